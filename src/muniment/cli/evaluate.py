"""Evaluations: figures of the parts that judge text, of memory as a whole, and of one's own golden queries."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, cast

import typer

from muniment.cli.asking import Call, verb
from muniment.cli.options import RUN, WHERE
from muniment.cli.output import Screen, Steps, listed, progress
from muniment.evaluation.records import Record, read_records

if TYPE_CHECKING:
    from muniment.evaluation.golden import Keep
    from muniment.model.metrics import GoldenResult
    from muniment.sync_verbs import Verbs

app = typer.Typer()
_group = typer.Typer(no_args_is_help=True)
app.add_typer(
    _group,
    name="eval",
    rich_help_panel="Govern",
    help="Figures on a file of yours: the parts that judge text, memory as a whole, your golden queries.",
)

Evaluation = Literal["contradictions", "duplicates", "pii", "injection"]
_Figures: TypeAlias = Callable[[Iterator[Record]], dict[str, Any]]
_Row: TypeAlias = dict[str, Any]

Data = Annotated[Path, typer.Option("--data", metavar="FILE", help="Records: .jsonl or a .json array, or .gz.")]

# Ends with it where a golden query failed, if that was asked for.
FAILED = 1


@verb(_group, "contradictions", example="muniment eval contradictions --data pairs.jsonl --json")
def contradictions(call: Call, data: Data) -> None:
    """Measure contradictions by text: found, and not cried where two texts merely differ.

    Nothing is stored, and no database is needed.
    """
    _judge(call, "contradictions", data)


@verb(_group, "duplicates", example="muniment eval duplicates --data pairs.jsonl --json")
def duplicates(call: Call, data: Data) -> None:
    """Measure duplicates by text: rewordings found, near misses left alone.

    Nothing is stored, and no database is needed.
    """
    _judge(call, "duplicates", data)


@verb(_group, "pii", example="muniment eval pii --data spans.jsonl --json")
def pii(call: Call, data: Data) -> None:
    """Measure how personal data that has a form is found.

    Nothing is stored, and no database is needed.
    """
    _judge(call, "pii", data)


@verb(_group, "injection", example="muniment eval injection --data texts.jsonl --json")
def injection(call: Call, data: Data) -> None:
    """Measure how text that addresses the model is found.

    Nothing is stored, and no database is needed.
    """
    _judge(call, "injection", data)


@verb(_group, "extraction", example="muniment eval extraction --data preferences/ --json")
def extraction(
    call: Call,
    data: Annotated[
        Path, typer.Option("--data", metavar="PATH", help="A file of records, or a folder of .jsonl files.")
    ],
) -> None:
    """Measure what the rules for messages draw out: stated preferences, their updates, and nothing from questions.

    Nothing is stored, and no database is needed.
    """
    from muniment.evaluation.extraction import figures, read_data

    records = read_data(data)
    with progress("evaluating extraction", len(records), as_json=call.as_json) as steps:
        result = figures(_watched(records, steps))
    call.show(result, lambda: _draw(Screen(), result))


@verb(_group, "memory", example="muniment eval memory --data locomo.json --json")
def memory(call: Call, data: Data) -> None:
    """Measure memory as a whole: conversations captured, promoted, and recalled by questions about them.

    Reads LoCoMo's and LongMemEval's formats. Works on a database of its own that is thrown away.
    """
    from muniment.evaluation.conversations import conversations
    from muniment.evaluation.memory import measure

    talks = conversations(read_records(data))
    with progress("evaluating memory", as_json=call.as_json) as steps:
        result = measure(talks, steps.at)
    call.show(result, lambda: _draw(Screen(), result))


@verb(_group, "as-of", example="muniment eval as-of --data situatedqa.jsonl --json")
def as_of(call: Call, data: Data) -> None:
    """Measure the past: answers that changed, promoted in order, then asked about as of each date and now.

    Works on a database of its own that is thrown away.
    """
    from muniment.evaluation.as_of import dated_questions, measure

    questions = dated_questions(read_records(data))
    with progress("evaluating as-of", as_json=call.as_json) as steps:
        result = measure(questions, steps.at)
    call.show(result, lambda: _draw(Screen(), result))


@verb(_group, "golden", options=(*RUN, *WHERE), example="muniment eval golden --file queries.yaml --tenant acme")
def golden(
    call: Call,
    file: Annotated[Path, typer.Option("--file", metavar="FILE", help="The queries, in YAML.")],
    history: Annotated[
        Path | None,
        typer.Option("--history", metavar="FILE", help="Where results are kept; NAME.history.jsonl beside the file."),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="End with 1 if a query failed.")] = False,
    record_key: Annotated[
        str | None,
        typer.Option(
            "--record-key",
            metavar="KEY",
            envvar="MUNIMENT_RECORD_KEY",
            show_envvar=False,
            help="An admin's key, or @FILE with it, to keep the figures on a server for its metrics "
            "(MUNIMENT_RECORD_KEY); without one a server keeps none.",
        ),
    ] = None,
) -> None:
    """Ask your own golden queries of your own memory, and compare with the times before.

    Each is asked as a run, of what it may see; the options say what a query's own run does not. Every query is a
    recall like any other, and recorded as one.
    """
    from muniment.evaluation.golden import measure, read_queries
    from muniment.evaluation.history import add_line, history_of, line_of, read_history, since

    run = call.run() if call.given["run"] is not None else call.run().model_copy(update={"run_id": "golden"})
    queries = read_queries(file, run)
    kept = history or history_of(file)
    before = read_history(kept)
    with call.open() as fabric, progress("asking", len(queries), as_json=call.as_json) as steps:
        result = measure(
            fabric,
            queries,
            lambda number: steps.at(f"{number} of {len(queries)}", number),
            record=_keeping(call, fabric, record_key),
        )
    now = line_of(result, datetime.now(UTC))
    add_line(kept, now)
    result |= {**since(before, now, [query.id for query, _ in queries]), "history": str(kept)}
    call.show(result, lambda: _draw_golden(Screen(), result))
    if strict and now.failed:
        raise typer.Exit(FAILED)


def _keeping(call: Call, fabric: "Verbs", record_key: str | None) -> "Keep | None":
    """What keeps the figures for the metrics: who is at the database itself may, a server asks for an admin's key."""
    if not call.is_remote():
        return lambda results: fabric.record_golden(call.local_admin(), results)
    if record_key is None:
        return None

    def keep(results: "Sequence[GoldenResult]") -> None:
        with closing(call.server_under(record_key)) as server:
            server.client.record_golden(server.me, results)

    return keep


def _judge(call: Call, name: Evaluation, data: Path) -> None:
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


def _draw_golden(screen: Screen, result: Mapping[str, Any]) -> None:
    """Every query, what was wrong with those that failed, and how it went against the time before."""
    queries: list[_Row] = result["queries"]
    columns = ("passed", "precision", "recall", "found")
    rows = [
        (one["id"], "yes" if one["passed"] else "no", *(_shown(one[name]) for name in columns[1:])) for one in queries
    ]
    screen.table(("query", *columns), rows)
    for one in queries:
        for words, what in (("missing", one["missing"]), ("unwanted", one["unwanted"])):
            for each in what:
                screen.line(f"{one['id']}: {words} {each}")
    regression, change = result["regression"], result["change"]
    screen.line("")
    facts: list[tuple[str, object]] = [
        ("passed", f"{result['passed']} of {result['n']}"),
        ("precision", _shown(result["precision"])),
        ("recall", _shown(result["recall"])),
        ("once failed", f"{regression['passed']} of {regression['n']} pass now" if regression["n"] else None),
        ("median_ms", _shown(result["median_ms"])),
        ("pack", result["pack"]),
        ("embedder", result["embedder"]),
    ]
    if change is not None:
        differences = [
            f"{name} {change[name]:+.4g}" for name in ("passed", "precision", "recall") if change[name] is not None
        ]
        facts += [
            ("since", change["since"]),
            ("change", listed(differences)),
            ("pass again", listed(change["fixed"])),
            ("fail since", listed(change["failed"])),
        ]
    screen.facts([*facts, ("history", result["history"])], indent=0)


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
