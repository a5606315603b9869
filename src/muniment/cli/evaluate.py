"""Evaluations on the user's own data: detectors, extraction, memory as a whole, golden queries."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, cast

import typer

from muniment.cli.call import FAILED, Call
from muniment.cli.command import command, group
from muniment.cli.options import RUN, WHERE, flag
from muniment.cli.output import Progress, Screen, draw_figures, format_figure, joined
from muniment.errors import ReadersUnavailable
from muniment.evaluation.parts import Part, select_part
from muniment.evaluation.records import Record, read_records

if TYPE_CHECKING:
    from muniment.evaluation.golden import Keep
    from muniment.language.readers import Readers
    from muniment.model.metrics import GoldenResult
    from muniment.sync_verbs import Verbs

app = typer.Typer()
eval_ = group(app, "eval")

Evaluation = Literal["contradictions", "duplicates", "pii", "injection", "worth"]
_Figures: TypeAlias = Callable[..., dict[str, Any]]
_Row: TypeAlias = dict[str, Any]

PartOption = Annotated[
    Part | None,
    flag("--part held|open", "Only the records on which bars are read (held), or only the others (open)."),
]
Data = Annotated[Path, flag("--data FILE", "Records: .jsonl or a .json array, or either with .gz.")]


_DETECTORS: dict[Evaluation, str] = {
    "contradictions": "Measure how well contradictions between texts are found.",
    "duplicates": "Measure how well rewordings of the same text are found.",
    "pii": "Measure how well personal data with a fixed format is found.",
    "injection": "Measure how well instructions to the model are found in texts.",
    "worth": "Measure which sentences of users are taken to be worth knowing later, on chats in LongMemEval's format.",
}


def _add_detector(name: Evaluation, words: str) -> None:
    def evaluate(call: Call, data: Data, part: PartOption = None) -> None:
        every = read_records(data)
        records = select_part(every, part)
        # Imported by name, so that each evaluation loads only what it needs.
        module = import_module(f"muniment.evaluation.{name}")
        figures = cast("_Figures", module.figures)
        if name == "pii" and part is not None:
            figures = partial(figures, sets=module.labelled(every))

        def measure(steps: Progress, readers: "Readers | None") -> dict[str, Any]:
            return figures(_with_progress(records, steps), readers)

        _show_with_and_without(call, name, measure, len(records))

    evaluate.__doc__ = (
        f"{words}\n\nWith the package muniment-models the figures are those of the rules alone, and with the readers."
        " Nothing is stored, and no database is needed."
    )
    command(eval_, name)(evaluate)


for _name, _words in _DETECTORS.items():
    _add_detector(_name, _words)


def _show_with_and_without(
    call: Call, name: str, figures: "Callable[[Progress, Readers | None], dict[str, Any]]", total: int | None = None
) -> None:
    """Show the figures of the rules and, where they are installed, those with the trained readers."""
    # Imported here: it loads the embedders, which other commands of this module do without.
    from muniment.language.readers import BrokenReaders
    from muniment.settings import installed_readers

    readers = installed_readers()
    if isinstance(readers, BrokenReaders):
        raise ReadersUnavailable(f"{readers.problem}; MUNIMENT_READERS=off measures the rules alone")
    with call.progress(f"evaluating {name}", total) as steps:
        result = figures(steps, None)
        if readers is not None:
            result = {"rules": result, "readers": figures(steps, readers), "language": readers.version}
    call.show(result, draw_figures)


@command(eval_, "extraction")
def extraction(
    call: Call,
    data: Annotated[Path, flag("--data PATH", "A file of records, or a folder of .jsonl files.")],
    part: PartOption = None,
) -> None:
    """Measure which facts the rules extract from messages: preferences, their updates, and none from questions.

    Nothing is stored, and no database is needed.
    """
    from muniment.evaluation.extraction import figures, read_data

    records = select_part(read_data(data), part)
    with call.progress("evaluating extraction", len(records)) as steps:
        result = figures(_with_progress(records, steps))
    call.show(result, draw_figures)


@command(eval_, "verbatim")
def verbatim(call: Call) -> None:
    """Count the words that extraction changes in a fixed list of 200 sentences; there should be none.

    Nothing is stored, and no database is needed.
    """
    from muniment.evaluation.verbatim import figures

    call.show(figures(), draw_figures)


@command(eval_, "memory")
def memory(
    call: Call,
    data: Data,
    part: PartOption = None,
    form: Annotated[
        Literal["statements", "messages"],
        flag("--as statements|messages", "Turns are kept whole, or pass the extractor as the messages that they were."),
    ] = "statements",
    profile: Annotated[
        Literal["strict", "assisted", "personal"],
        flag("--profile NAME", "The profile under which messages are read; but for strict only its policy promotes."),
    ] = "strict",
) -> None:
    """Measure memory as a whole: conversations are captured and promoted, then questions are recalled.

    Reads the formats of LoCoMo and LongMemEval. Uses a database of its own, which is deleted afterwards. With the
    package muniment-models this is done twice: by the rules alone, and with the readers.
    """
    from muniment.evaluation.conversations import conversations
    from muniment.evaluation.memory import measure

    talks = conversations(select_part(read_records(data), part))
    _show_with_and_without(call, "memory", lambda steps, readers: measure(talks, steps.update, readers, form, profile))


@command(eval_, "as-of")
def as_of(call: Call, data: Data) -> None:
    """Measure recall as of a time: answers that change are promoted in order, then recalled for each date.

    Uses a database of its own, which is deleted afterwards. With the package muniment-models this is done twice: by
    the rules alone, and with the readers.
    """
    from muniment.evaluation.as_of import dated_questions, measure

    questions = dated_questions(read_records(data))
    _show_with_and_without(call, "as-of", lambda steps, readers: measure(questions, steps.update, readers))


@command(eval_, "golden", options=(*RUN, *WHERE))
def golden(
    call: Call,
    file: Annotated[Path, flag("--file FILE", "The queries, in YAML.")],
    history: Annotated[
        Path | None, flag("--history FILE", "Where results are kept; by default NAME.history.jsonl beside the queries.")
    ] = None,
    strict: Annotated[bool, flag("--strict", "End with 1 if a query fails.")] = False,
    record_key: Annotated[
        str | None,
        flag(
            "--record-key KEY",
            "The key of an admin, or @FILE that holds it, to record the figures on a server for its metrics "
            "(MUNIMENT_RECORD_KEY); without it a server records none.",
            envvar="MUNIMENT_RECORD_KEY",
            show_envvar=False,
        ),
    ] = None,
) -> None:
    """Run your golden queries on your memory, and compare the results with earlier ones.

    The options describe the run, where a query does not describe its own. Every query is recorded as a recall.
    """
    from muniment.evaluation.golden import measure, read_queries
    from muniment.evaluation.history import add_line, history_of, line_of, read_history, since

    run = call.run() if call.options["run"] is not None else call.run().model_copy(update={"run_id": "golden"})
    queries = read_queries(file, run)
    kept = history or history_of(file)
    before = read_history(kept)
    with call.open() as fabric, call.progress("querying", len(queries)) as steps:
        result = measure(
            fabric,
            queries,
            lambda number: steps.update(f"{number} of {len(queries)}", number),
            record=_recorder(call, fabric, record_key),
        )
    now = line_of(result, datetime.now(UTC))
    add_line(kept, now)
    result |= {**since(before, now, [query.id for query, _ in queries]), "history": str(kept)}
    call.show(result, _draw_golden)
    if strict and now.failed:
        raise typer.Exit(FAILED)


def _recorder(call: Call, fabric: "Verbs", record_key: str | None) -> "Keep | None":
    """Return what records the figures for the metrics: always on a database, on a server with the key of an admin."""
    if not call.is_remote():
        return lambda results: fabric.record_golden(call.local_admin(), results)
    if record_key is None:
        return None

    def record(results: "Sequence[GoldenResult]") -> None:
        with closing(call.server_with_key(record_key)) as server:
            server.client.record_golden(server.me, results)

    return record


def _with_progress(records: Sequence[Record], steps: Progress) -> Iterator[Record]:
    for done, record in enumerate(records):
        steps.update(f"{done} of {len(records)}", done)
        yield record
    steps.update(f"{len(records)} of {len(records)}", len(records))


def _draw_golden(screen: Screen, result: Mapping[str, Any]) -> None:
    """Draw every query, the mistakes of those that failed, and the change since the last run."""
    queries: list[_Row] = result["queries"]
    columns = ("passed", "precision", "recall", "found")
    rows = [
        (one["id"], "yes" if one["passed"] else "no", *(format_figure(one[name]) for name in columns[1:]))
        for one in queries
    ]
    screen.table(("query", *columns), rows)
    for one in queries:
        for words, what in (("missing", one["missing"]), ("unwanted", one["unwanted"])):
            for each in what:
                screen.line(f"{one['id']}: {words} {each}")
    regression, change = result["regression"], result["change"]
    screen.line("")
    fields: list[tuple[str, object]] = [
        ("passed", f"{result['passed']} of {result['n']}"),
        ("precision", format_figure(result["precision"])),
        ("recall", format_figure(result["recall"])),
        ("regressions fixed", f"{regression['passed']} of {regression['n']}" if regression["n"] else None),
        ("median_ms", format_figure(result["median_ms"])),
        ("pack", result["pack"]),
        ("embedder", result["embedder"]),
    ]
    if change is not None:
        differences = [
            f"{name} {change[name]:+.4g}" for name in ("passed", "precision", "recall") if change[name] is not None
        ]
        fields += [
            ("since", change["since"]),
            ("change", joined(differences)),
            ("pass again", joined(change["fixed"])),
            ("fail since", joined(change["failed"])),
        ]
    screen.fields([*fields, ("history", result["history"])], indent=0)
