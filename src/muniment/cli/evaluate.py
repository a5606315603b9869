"""Evaluations: figures of the parts that judge text, on a file of the user's."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, cast

import typer

from muniment.cli.asking import Call, verb
from muniment.cli.output import Screen, Steps, progress
from muniment.evaluation.reading import Record, read_records

app = typer.Typer()

Evaluation = Literal["contradictions", "duplicates", "pii", "injection"]
_Figures: TypeAlias = Callable[[Iterator[Record]], dict[str, Any]]
_Row: TypeAlias = dict[str, Any]


@verb(app, "eval", panel="Govern", example="muniment eval pii --data spans.jsonl --json")
def evaluate(
    call: Call,
    name: Annotated[Evaluation, typer.Argument(metavar="NAME", help="contradictions, duplicates, pii or injection.")],
    data: Annotated[Path, typer.Option("--data", metavar="FILE", help="Records: .jsonl or a .json array, or .gz.")],
) -> None:
    """Measure how well a part judges: contradictions, duplicates, personal data (pii) or injection.

    Nothing is stored, and no database is needed.
    """
    records = read_records(data)
    # By name: what an evaluation needs is loaded only for that one.
    figures = cast("_Figures", import_module(f"muniment.evaluation.{name}").figures)
    with progress(f"evaluating {name}", len(records), as_json=call.as_json) as steps:
        result = figures(_watched(records, steps))
    call.show(result, lambda: _draw(Screen(), result))


def _watched(records: Sequence[Record], steps: Steps) -> Iterator[Record]:
    for done, record in enumerate(records):
        steps.at(f"{done} of {len(records)}", done)
        yield record
    steps.at(f"{len(records)} of {len(records)}", len(records))


def _draw(screen: Screen, result: Mapping[str, Any]) -> None:
    """Plain figures as facts, and what is counted by kind as tables of the same columns."""
    plain = [(name, _shown(value)) for name, value in result.items() if not isinstance(value, dict)]
    if plain:
        screen.facts(plain, indent=0)
    tables: dict[tuple[str, ...], list[tuple[str, _Row]]] = {}
    for name, value in result.items():
        if isinstance(value, dict):
            for row, figures in _rows(name, cast("_Row", value)):
                tables.setdefault(tuple(figures), []).append((row, figures))
    for columns, rows in tables.items():
        screen.line("")
        screen.table(("", *columns), [(name, *(_shown(figures[one]) for one in columns)) for name, figures in rows])


def _rows(name: str, value: _Row) -> Iterator[tuple[str, _Row]]:
    """The rows that a mapping of figures makes: itself, or those below it."""
    own = {key: item for key, item in value.items() if not isinstance(item, dict)}
    if own:
        yield name, own
    for key, item in value.items():
        if key not in own:
            yield from _rows(f"{name} {key}", item)


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4f}" if abs(value) >= 0.001 or value == 0 else f"{value:.1e}"
    return str(value)
