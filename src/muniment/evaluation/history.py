"""The history of golden queries: a line for each time they were asked, and what changed since (MET-1)."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from muniment.errors import InvalidInput
from muniment.evaluation.records import failure_reason
from muniment.model.fields import Artifact, Instant, build


class Line(Artifact):
    """The result of one time that the queries were asked."""

    at: Instant
    n: int
    passed: int
    precision: float | None
    recall: float | None
    failed: tuple[str, ...]
    pack: str
    embedder: str | None


def history_of(path: Path) -> Path:
    """Return the default path of the history of a file of queries: beside it."""
    return path.with_name(f"{path.stem}.history.jsonl")


def read_history(path: Path) -> list[Line]:
    """Return the lines of a history, oldest first, none without a file; raises `InvalidInput` naming a wrong line."""
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return []
    except UnicodeDecodeError:
        raise InvalidInput(f"{path.name}: is not UTF-8", field="history") from None
    except (OSError, ValueError) as error:
        raise InvalidInput(f"cannot read {path}: {failure_reason(error)}", field="history") from None
    return [
        _line(line, f"{path.name} line {number}") for number, line in enumerate(text.split("\n"), 1) if line.strip()
    ]


def _line(line: str, place: str) -> Line:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        raise InvalidInput(f"{place}: is not JSON", field="history") from None
    if not isinstance(found, dict):
        raise InvalidInput(f"{place}: expected an object", field="history")
    try:
        return build(Line, cast("dict[str, Any]", found))
    except InvalidInput as error:
        raise InvalidInput(f"{place}: {error}", field="history") from None


def line_of(result: Mapping[str, Any], at: datetime) -> Line:
    """Return the line that is kept of a result of `golden.measure`."""
    failed = tuple(one["id"] for one in result["queries"] if not one["passed"])
    kept = ("n", "passed", "precision", "recall", "pack", "embedder")
    return build(Line, {"at": at, "failed": failed, **{name: result[name] for name in kept}})


def add_line(path: Path, line: Line) -> None:
    """Append a line to a history; raises `InvalidInput` where it cannot be written."""
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(line.model_dump_json() + "\n")
    except (OSError, ValueError) as error:
        raise InvalidInput(f"cannot write {path}: {failure_reason(error)}", field="history") from None


def since(lines: Sequence[Line], now: Line, ids: Sequence[str]) -> dict[str, Any]:
    """Compare the results of the queries `ids` now with the history before.

    `regression` counts those that failed at any time before; `change` compares with the last time, if there is one.
    """
    once_failed = {name for line in lines for name in line.failed}.intersection(ids)
    passed = once_failed.difference(now.failed)
    regression = {
        "n": len(once_failed),
        "passed": len(passed),
        "accuracy": len(passed) / len(once_failed) if once_failed else None,
    }
    return {"regression": regression, "change": _change(lines[-1], now, ids) if lines else None}


def _change(last: Line, now: Line, ids: Sequence[str]) -> dict[str, Any]:
    return {
        "since": last.at,
        "passed": now.passed - last.passed,
        "precision": _difference(now.precision, last.precision),
        "recall": _difference(now.recall, last.recall),
        "fixed": [name for name in ids if name in last.failed and name not in now.failed],
        "failed": [name for name in ids if name in now.failed and name not in last.failed],
    }


def _difference(now: float | None, before: float | None) -> float | None:
    return now - before if now is not None and before is not None else None
