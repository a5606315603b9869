"""Data to evaluate on: `.jsonl` or one `.json` array, plain or `.gz`, each record with the place it came from."""

import gzip
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

from muniment.errors import InvalidInput

Wanted = TypeVar("Wanted")

_ENDINGS = (".jsonl", ".jsonl.gz", ".json", ".json.gz")
_NAMES: dict[type[Any], str] = {
    str: "a text",
    bool: "true or false",
    int: "a whole number",
    list: "a list",
    dict: "an object",
}


class Record(dict[str, Any]):
    """One record; `place` says where it stands, such as `spans.jsonl line 7`."""

    place: str = "the record"


def read_records(path: Path) -> list[Record]:
    """Every record of a file; raises `InvalidInput` naming the file and the line that is wrong."""
    if not path.name.endswith(_ENDINGS):
        raise InvalidInput(f"{path.name}: expected a file that ends in {', '.join(_ENDINGS)}", field="data")
    text = _text(path)
    is_array = path.name.removesuffix(".gz").endswith(".json")
    found = list(_of_array(text, path.name) if is_array else _of_lines(text, path.name))
    if not found:
        raise InvalidInput(f"{path.name}: holds no records", field="data")
    return found


def taken(record: Mapping[str, Any], field: str, kind: type[Wanted]) -> Wanted:
    """A field of a record that must be there and of that kind; raises `InvalidInput` with the record's place."""
    if not isinstance(record, Mapping):
        raise InvalidInput("expected an object", field="record")
    value = record.get(field)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise wrong(record, field, f"expected {_NAMES.get(kind, kind.__name__)}")
    return value


def wrong(record: Mapping[str, Any], field: str, expected: str) -> InvalidInput:
    """The error of a record that cannot be used."""
    place = record.place if isinstance(record, Record) else Record.place
    return InvalidInput(f"{place}: {expected}", field=field)


def _text(path: Path) -> str:
    try:
        content = path.read_bytes()
        return (gzip.decompress(content) if path.name.endswith(".gz") else content).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInput(f"{path.name}: is not UTF-8", field="data") from None
    except (gzip.BadGzipFile, EOFError):
        raise InvalidInput(f"{path.name}: is not gzip", field="data") from None
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or "it is no path").lower()
        raise InvalidInput(f"cannot read {path}: {reason}", field="data") from None


def _of_lines(text: str, name: str) -> Iterator[Record]:
    # Not splitlines: a record may hold other line ends than these, unescaped.
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            raise InvalidInput(f"{name} line {number}: is not JSON", field="data") from None
        yield _record(found, f"{name} line {number}")


def _of_array(text: str, name: str) -> Iterator[Record]:
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidInput(f"{name} line {error.lineno}: is not JSON", field="data") from None
    except (ValueError, RecursionError):
        raise InvalidInput(f"{name}: is not JSON", field="data") from None
    if not isinstance(found, list):
        raise InvalidInput(f"{name}: expected one array of records", field="data")
    for number, item in enumerate(cast("list[Any]", found), 1):
        yield _record(item, f"{name} record {number}")


def _record(found: Any, place: str) -> Record:
    if not isinstance(found, dict):
        raise InvalidInput(f"{place}: expected an object", field="data")
    record = Record(cast("dict[str, Any]", found))
    record.place = place
    return record
