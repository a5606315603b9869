"""Writing: capture, propose, consolidate."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, cast, get_args

import typer

from muniment.cli import views
from muniment.cli.asking import CIRCUMSTANCES, WHERE, WHO, Call, verb
from muniment.cli.inputs import captures_in, json_value, opened, payload_of, size_of, text_of
from muniment.cli.output import Screen, Steps, failure, note, progress
from muniment.errors import InvalidInput, MunimentError
from muniment.model.candidate import Refusal
from muniment.model.context import Principal
from muniment.model.fields import CaptureKind, WriteClass
from muniment.pipeline.capture import Receipt
from muniment.sync import Fabric

if TYPE_CHECKING:
    from muniment.fabric.inputs import CaptureFields, ProposeFields

app = typer.Typer()
_PANEL = "Write"
_CHUNK = 1000
_ITEM = re.compile(r"^captures\.(\d+)(?:\.(.*))?$")

Kind = Annotated[
    CaptureKind | None,
    typer.Option(
        "--capture-kind",
        "-k",
        metavar="KIND",
        help=f"What was captured; a statement when not said. One of {', '.join(get_args(CaptureKind))}.",
    ),
]
Label = Annotated[
    str | None, typer.Option("--classification", "-c", metavar="LABEL", help="A label of the pack, such as INTERNAL.")
]


@verb(
    app,
    "capture",
    panel=_PANEL,
    options=(*CIRCUMSTANCES, *WHO, *WHERE),
    example="muniment capture 'Returns are accepted within 30 days.' -c PUBLIC --evidence doc:returns_policy",
)
def capture(
    call: Call,
    text: Annotated[str | None, typer.Argument(metavar="TEXT", help="What happened; - reads stdin.")] = None,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", metavar="FILE", help="Read the text from a file; - is stdin.")
    ] = None,
    payload: Annotated[
        str | None, typer.Option("--payload", metavar="JSON", help="JSON beside the text, or @FILE with it.")
    ] = None,
    batch: Annotated[
        Path | None,
        typer.Option(
            "--batch",
            metavar="FILE",
            help="A file of JSON lines, one capture each; - is stdin. Options fill in what lines lack.",
        ),
    ] = None,
    capture_kind: Kind = None,
    classification: Label = None,
) -> None:
    """Write down what happened. Once it returns, it is committed.

    A batch is written a thousand lines at a time; each thousand is written whole or not at all.
    """
    author = call.principal("correction_writer", of_agents="agent")
    fields = call.circumstances()
    if capture_kind is not None:
        fields["kind"] = capture_kind
    if classification is not None:
        fields["classification"] = classification
    if batch is not None:
        if text is not None or file is not None or payload is not None:
            raise InvalidInput("takes its texts and payloads from the file alone", field="batch")
        _capture_batch(call, author, batch, fields)
        return
    fields = {"kind": "statement"} | fields
    if (words := text_of(text, file)) is not None:
        fields["text"] = words
    if (data := payload_of(payload)) is not None:
        fields["payload"] = data
    with call.open() as fabric:
        receipt = fabric.capture(author, **cast("CaptureFields", fields))
    call.show(receipt, lambda: _captured(receipt))


def _captured(receipt: Receipt) -> None:
    before = "  captured before" if receipt.repeated else ""
    Screen().line((receipt.capture_id, "bold cyan"), f"  number {receipt.seq}{before}")


@dataclass
class _Batch:
    """How far a batch is."""

    capture_ids: list[str] = field(default_factory=list[str])
    repeated: int = 0
    last_line: int = 0
    done: bool = False

    def as_dict(self) -> dict[str, object]:
        return {"committed": len(self.capture_ids), "repeated": self.repeated, "capture_ids": self.capture_ids}

    def words(self) -> str:
        again = f", {self.repeated} of them captured before" if self.repeated else ""
        return f"{len(self.capture_ids)} captures committed{again}"


class _LineAtFault(Exception):
    def __init__(self, place: str, error: MunimentError) -> None:
        super().__init__(place)
        self.place = place
        self.error = error


def _capture_batch(call: Call, author: Principal, path: Path, defaults: Mapping[str, Any]) -> None:
    batch = _Batch()
    stream = opened(path, "batch")
    try:
        with stream, call.open() as fabric, progress("capturing", size_of(stream), as_json=call.as_json) as steps:
            _capture_lines(fabric, author, stream, defaults, batch, steps)
        batch.done = True
    except _LineAtFault as fault:
        told = {"place": fault.place, **fault.error.as_dict(), "committed": len(batch.capture_ids)}
        failure(told, as_json=call.as_json)
        raise typer.Exit(1) from None
    finally:
        # However it ended: what was committed stays committed, and its owner must know where to go on.
        if not batch.done and not call.as_json:
            until = f", up to line {batch.last_line}" if batch.last_line else ""
            note(f"{batch.words()}{until}")
    call.show(batch.as_dict(), lambda: Screen().line(batch.words()))


def _capture_lines(
    fabric: Fabric,
    author: Principal,
    stream: BinaryIO,
    defaults: Mapping[str, Any],
    batch: _Batch,
    steps: Steps,
) -> None:
    lines = captures_in(stream)
    read = 0
    while chunk := _chunk(lines):
        receipts = _written(fabric, author, chunk, defaults)
        batch.capture_ids.extend(receipt.capture_id for receipt in receipts)
        batch.repeated += sum(receipt.repeated for receipt in receipts)
        batch.last_line = chunk[-1][0]
        read = stream.tell() if stream.seekable() else read
        steps.at(f"{len(batch.capture_ids)} captures", read)


def _chunk(lines: Iterator[tuple[int, dict[str, Any] | InvalidInput]]) -> list[tuple[int, dict[str, Any]]]:
    chunk: list[tuple[int, dict[str, Any]]] = []
    for number, found in islice(lines, _CHUNK):
        if isinstance(found, InvalidInput):
            raise _LineAtFault(f"line {number}", found)
        chunk.append((number, found))
    return chunk


def _written(
    fabric: Fabric, author: Principal, chunk: list[tuple[int, dict[str, Any]]], defaults: Mapping[str, Any]
) -> list[Receipt]:
    try:
        return fabric.capture_many(author, [{**defaults, **item} for _, item in chunk])
    except MunimentError as error:
        if (found := _ITEM.match(error.field or "")) is not None:
            error.field = found[2]
            raise _LineAtFault(f"line {chunk[int(found[1])][0]}", error) from None
        first, last = chunk[0][0], chunk[-1][0]
        place = f"line {first}" if first == last else f"lines {first} to {last}"
        raise _LineAtFault(place, error) from None


@verb(
    app,
    "propose",
    panel=_PANEL,
    options=(*CIRCUMSTANCES, *WHO, *WHERE),
    example="muniment propose --class preference --entity customer:cus_77 "
    "--predicate prefers_communication_channel --value email -c INTERNAL --evidence tool:crm.lookup:tc_212",
)
def propose(
    call: Call,
    write_class: Annotated[WriteClass, typer.Option("--class", help="What kind of fact it is.")],
    entity: Annotated[str | None, typer.Option("--entity", metavar="CEID", help="Whom or what it is about.")] = None,
    predicate: Annotated[str | None, typer.Option("--predicate", metavar="NAME", help="What is said of it.")] = None,
    value: Annotated[str | None, typer.Option("--value", metavar="TEXT", help="The value, a text.")] = None,
    value_json: Annotated[str | None, typer.Option("--value-json", metavar="JSON", help="The value as JSON.")] = None,
    text: Annotated[str | None, typer.Option("--text", metavar="TEXT", help="The fact in words.")] = None,
    confidence: Annotated[float | None, typer.Option("--confidence", help="From 0 to 1.")] = None,
    capture_kind: Kind = None,
    classification: Label = None,
) -> None:
    """Propose a typed fact: it is captured, passes the gates and enters the queue.

    Ends with 3 if a gate refuses it; the capture stays.
    """
    said: dict[str, Any] = {
        "entity": entity,
        "predicate": predicate,
        "value": json_value(value, value_json),
        "text": text,
        "confidence": confidence,
        "kind": capture_kind,
        "classification": classification,
    }
    fields = call.circumstances() | {name: given for name, given in said.items() if given is not None}
    author = call.principal("correction_writer", of_agents="agent")
    with call.open() as fabric:
        outcome = fabric.propose(author, **cast("ProposeFields", {"write_class": write_class, **fields}))
    if isinstance(outcome, Refusal):
        call.refuse({"refusal": outcome}, lambda: views.refusal(Screen(), outcome))
    words = f"proposed {outcome.proposal_id}: a {outcome.write_class}, {outcome.status}"
    call.show(outcome, lambda: Screen().line(words))


@verb(app, "consolidate", panel=_PANEL, options=WHERE, example="muniment consolidate --tenant tenant_acme_prod")
def consolidate(call: Call) -> None:
    """Turn the captures that wait into proposals or refusals."""
    with call.open() as fabric, progress("consolidating", as_json=call.as_json) as steps:
        result = fabric.consolidate(
            call.tenant,
            on_progress=lambda so_far: steps.at(f"{so_far.captures} captures, {len(so_far.proposals)} proposals"),
        )
    call.show(result, lambda: views.consolidation(Screen(), result))
    if result.failed:
        told = {"code": "seal_broken", "message": f"{len(result.failed)} captures could not be read and were parked"}
        failure(told, as_json=call.as_json)
        raise typer.Exit(1)
