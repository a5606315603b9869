"""Importing: a file of JSON lines, each a capture or a proposal, and what the gates make of them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, BinaryIO, cast

import typer

from muniment.cli import views
from muniment.cli.asking import REFUSED, Call, verb
from muniment.cli.inputs import objects_in, opened, size_of
from muniment.cli.options import CIRCUMSTANCES, SPEAKS_FOR, WHERE, WHO
from muniment.cli.output import Screen, Steps, failure, note, progress
from muniment.cli.writing import Label, consolidated, tell_parked
from muniment.errors import InvalidInput, MunimentError
from muniment.model.candidate import Consolidation, Refusal
from muniment.model.capture import Receipt
from muniment.model.context import Principal
from muniment.model.fields import CaptureKind
from muniment.sync_verbs import Verbs
from muniment.verbs.keywords import ProposeFields

app = typer.Typer()
_CHUNK = 1000
# Half of what a server takes at once, where nobody told it otherwise; a line of the longest fits in.
_CHUNK_BYTES = 8 * 1024 * 1024
_ITEM = re.compile(r"^captures\.(\d+)(?:\.(.*))?$")
# A key of idempotency belongs to one line.
_OPTIONS = tuple(one for one in CIRCUMSTANCES if one.name != "idempotency_key")

_Line = tuple[int, dict[str, Any]]


@dataclass
class _Imported:
    """How far an import is; everything in it is committed."""

    capture_ids: list[str] = field(default_factory=list[str])
    proposals: list[str] = field(default_factory=list[str])
    promoted: list[str] = field(default_factory=list[str])
    refusals: list[Refusal] = field(default_factory=list[Refusal])
    lines: dict[str, int] = field(default_factory=dict[str, int])  # of each capture
    repeated: int = 0
    last_line: int = 0

    def capture(self, receipts: list[Receipt], lines: list[_Line]) -> None:
        self.capture_ids += [receipt.capture_id for receipt in receipts]
        self.repeated += sum(receipt.repeated for receipt in receipts)
        self.lines |= {receipt.capture_id: number for receipt, (number, _) in zip(receipts, lines, strict=True)}
        self.last_line = lines[-1][0]

    def consolidate(self, result: Consolidation) -> None:
        self.proposals += result.proposals
        self.promoted += result.promoted
        self.refusals += result.refusals

    def as_dict(self) -> dict[str, object]:
        return {
            "captured": len(self.capture_ids),
            "repeated": self.repeated,
            "proposed": len(self.proposals),
            "refused": len(self.refusals),
            "capture_ids": self.capture_ids,
            "proposals": self.proposals,
            "promoted": self.promoted,
            "refusals": [{"line": self.lines.get(one.capture_id), **one.model_dump()} for one in self.refusals],
        }

    def words(self) -> str:
        again = f" ({self.repeated} of them before)" if self.repeated else ""
        return (
            f"{len(self.capture_ids)} captured{again}, {len(self.proposals)} proposed, {len(self.refusals)} refused"
            f"{f', {len(self.promoted)} promoted by policy' if self.promoted else ''}"
        )


class _LineAtFault(Exception):
    def __init__(self, place: str, error: MunimentError) -> None:
        super().__init__(place)
        self.place = place
        self.error = error


@verb(
    app,
    "import",
    panel="Write",
    options=(*_OPTIONS, *WHO, *SPEAKS_FOR, *WHERE),
    example="muniment import history.jsonl -c INTERNAL --as loader --kind system --role agent",
)
def import_(
    call: Call,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="JSON lines; - is stdin.")],
    no_consolidate: Annotated[
        bool, typer.Option("--no-consolidate", help="Leave the captures for muniment consolidate.")
    ] = False,
    capture_kind: Annotated[
        CaptureKind | None,
        typer.Option("--capture-kind", "-k", metavar="KIND", help="The kind of captures whose line says none."),
    ] = None,
    classification: Label = None,
) -> None:
    """Read a file of JSON lines, in order, and consolidate.

    A line with write_class is proposed, any other is captured. Options fill in what lines lack. Captures are written a
    thousand at a time, each portion whole or not at all. Ends with 3 if a gate refused something.
    """
    author = call.principal("correction_writer", of_agents="agent")
    if not no_consolidate and not call.may_work():
        lacks = "lacks the role admin, so it cannot consolidate: --no-consolidate leaves that to the server's worker"
        raise InvalidInput(lacks, field="key")
    defaults = call.circumstances()
    if classification is not None:
        defaults["classification"] = classification
    done = _Imported()
    stream = opened(file, "file")
    with stream, call.open() as fabric:
        _read_all(call, _Writer(fabric, author, defaults, capture_kind, done), stream)
        result = Consolidation() if no_consolidate else consolidated(call, fabric)
    done.consolidate(result)
    call.show(done.as_dict(), lambda: views.imported(Screen(), done.words(), done.refusals, done.lines))
    tell_parked(call, result)
    if done.refusals:
        raise typer.Exit(REFUSED)


def _read_all(call: Call, writer: "_Writer", stream: BinaryIO) -> None:
    done, whole = writer.done, False
    try:
        with progress("importing", size_of(stream), as_json=call.as_json) as steps:
            writer.write_all(stream, steps)
        whole = True
    except _LineAtFault as fault:
        committed = {"captured": len(done.capture_ids), "proposed": len(done.proposals), "last_line": done.last_line}
        failure({"place": fault.place, **fault.error.as_dict(), **committed}, as_json=call.as_json)
        raise typer.Exit(1) from None
    finally:
        # However it ended: what was committed stays committed, and its owner must know where to go on.
        if not whole and not call.as_json:
            note(f"{done.words()}{f', up to line {done.last_line}' if done.last_line else ''}")


@dataclass(frozen=True)
class _Writer:
    """Writes lines as they come: captures together, proposals one by one, none before the lines above it."""

    fabric: Verbs
    author: Principal
    defaults: Mapping[str, Any]
    kind: CaptureKind | None
    done: _Imported

    def write_all(self, stream: BinaryIO, steps: Steps) -> None:
        waiting: list[_Line] = []
        room = _CHUNK_BYTES
        for number, size, found in objects_in(stream):
            if isinstance(found, InvalidInput):
                raise _LineAtFault(f"line {number}", found)
            proposed = "write_class" in found
            if waiting and (proposed or size > room):
                self._capture(waiting)
                waiting, room = [], _CHUNK_BYTES
            if not proposed:
                waiting.append((number, found))
                room -= size
            if len(waiting) == _CHUNK:
                self._capture(waiting)
                waiting, room = [], _CHUNK_BYTES
            if proposed:
                self._propose(number, found)
            if not waiting:
                steps.at(f"line {number}", stream.tell() if stream.seekable() else None)
        if waiting:
            self._capture(waiting)

    def _capture(self, lines: list[_Line]) -> None:
        kind = {"kind": self.kind} if self.kind is not None else {}
        try:
            receipts = self.fabric.capture_many(self.author, [{**self.defaults, **kind, **item} for _, item in lines])
        except MunimentError as error:
            raise _LineAtFault(*_placed(error, lines)) from None
        self.done.capture(receipts, lines)

    def _propose(self, number: int, item: dict[str, Any]) -> None:
        try:
            # What the call itself names would not reach its own check.
            if strange := item.keys() - ProposeFields.__annotations__.keys():
                name = min(strange)
                raise InvalidInput("is not a known field", field=name if name.isidentifier() else None)
            given = cast("ProposeFields", {**self.defaults, **item})
            outcome = self.fabric.propose(self.author, **given)
        except MunimentError as error:
            raise _LineAtFault(f"line {number}", error) from None
        self.done.last_line = number
        if isinstance(outcome, Refusal):
            self.done.lines[outcome.capture_id] = number
            self.done.refusals.append(outcome)
        else:
            self.done.proposals.append(outcome.proposal_id)


def _placed(error: MunimentError, lines: list[_Line]) -> tuple[str, MunimentError]:
    """The line that an error of a batch is about, and the error as it is told there."""
    if (found := _ITEM.match(error.field or "")) is not None:
        error.field = found[2]
        return f"line {lines[int(found[1])][0]}", error
    first, last = lines[0][0], lines[-1][0]
    return f"line {first}" if first == last else f"lines {first} to {last}", error
