"""A file of JSON lines of our own, each a capture or a proposal of whoever brings it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, cast

import typer

from muniment.cli import views
from muniment.cli.call import FAILED, REFUSED, Call
from muniment.cli.inputs import file_size, open_input, read_json_lines
from muniment.cli.options import ASKER, CIRCUMSTANCES, SPEAKS_FOR, Label, argument, flag
from muniment.cli.output import Progress, Screen, write_error, write_note
from muniment.cli.write import fail_if_unreadable, run_consolidation
from muniment.errors import InvalidInput, MunimentError
from muniment.model.candidate import Consolidation, Refusal
from muniment.model.capture import Receipt
from muniment.model.context import Principal
from muniment.model.fields import CaptureKind
from muniment.verbs.keywords import ProposeFields

if TYPE_CHECKING:
    from muniment.capture.store import Receipt
    from muniment.sync_verbs import Verbs

_BATCH = 1000
# Half of a server's default limit for a request; the longest line fits in.
_BATCH_BYTES = 8 * 1024 * 1024
_ITEM = re.compile(r"^captures\.(\d+)(?:\.(.*))?$")
# An idempotency key belongs to one line.
_OPTIONS = tuple(one for one in CIRCUMSTANCES if one.name != "idempotency_key")

_Line = tuple[int, dict[str, Any]]


@dataclass
class _Imported:
    """What an import has committed so far."""

    capture_ids: list[str] = field(default_factory=list[str])
    proposals: list[str] = field(default_factory=list[str])
    promoted: list[str] = field(default_factory=list[str])
    refusals: list[Refusal] = field(default_factory=list[Refusal])
    lines: dict[str, int] = field(default_factory=dict[str, int])  # of each capture
    repeated: int = 0
    last_line: int = 0

    def add_captures(self, receipts: "list[Receipt]", lines: list[_Line]) -> None:
        self.capture_ids += [receipt.capture_id for receipt in receipts]
        self.repeated += sum(receipt.repeated for receipt in receipts)
        self.lines |= {receipt.capture_id: number for receipt, (number, _) in zip(receipts, lines, strict=True)}
        self.last_line = lines[-1][0]

    def add_consolidation(self, result: Consolidation) -> None:
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

    def summary(self) -> str:
        repeated = f" ({self.repeated} of them before)" if self.repeated else ""
        return (
            f"{len(self.capture_ids)} captured{repeated}, {len(self.proposals)} proposed, {len(self.refusals)} refused"
            f"{f', {len(self.promoted)} promoted by policy' if self.promoted else ''}"
        )

    def draw(self, screen: Screen) -> None:
        screen.line(self.summary())
        views.draw_refusals(screen, self.refusals, self.lines)


class _LineError(Exception):
    def __init__(self, place: str, error: MunimentError) -> None:
        super().__init__(place)
        self.place = place
        self.error = error


OPTIONS = (*_OPTIONS, *SPEAKS_FOR, *ASKER)


def import_lines(
    call: Call,
    file: Annotated[Path, argument("FILE", "A file of JSON lines; - is stdin.")],
    no_consolidate: Annotated[
        bool, flag("--no-consolidate", "Only capture; muniment consolidate does the rest.")
    ] = False,
    capture_kind: Annotated[
        CaptureKind | None, flag("--capture-kind -k KIND", "The kind of captures whose line has none.")
    ] = None,
    classification: Label = None,
) -> None:
    """Capture or propose each line of a file of JSON lines as your own word, in order, and consolidate.

    A line with write_class is proposed, any other is captured. Options are defaults for fields that a line lacks.
    Captures are written in batches of a thousand, each in one transaction. Ends with 3 if a gate refused something.
    """
    author = call.writer()
    if not no_consolidate and not call.may_work():
        lacks = "lacks the role admin, so it cannot consolidate: --no-consolidate leaves that to the server's worker"
        raise InvalidInput(lacks, field="key")
    defaults = call.capture_fields(classification=classification)
    done = _Imported()
    stream = open_input(file, "file")
    with stream, call.open() as fabric:
        _read_all(call, _Writer(fabric, author, defaults, capture_kind, done), stream)
        result = Consolidation() if no_consolidate else run_consolidation(call, fabric)
    done.add_consolidation(result)
    call.show(done.as_dict(), lambda screen, _: done.draw(screen))
    fail_if_unreadable(call, result)
    if done.refusals:
        raise typer.Exit(REFUSED)


def _read_all(call: Call, writer: "_Writer", stream: BinaryIO) -> None:
    done, complete = writer.done, False
    try:
        with call.progress("importing", file_size(stream)) as steps:
            writer.write_all(stream, steps)
        complete = True
    except _LineError as error:
        committed = {"captured": len(done.capture_ids), "proposed": len(done.proposals), "last_line": done.last_line}
        write_error({"place": error.place, **error.error.as_dict(), **committed}, as_json=call.as_json)
        raise typer.Exit(FAILED) from None
    finally:
        # What was committed stays: the user must know where to continue.
        if not complete and not call.as_json:
            write_note(f"{done.summary()}{f', up to line {done.last_line}' if done.last_line else ''}")


@dataclass(frozen=True)
class _Writer:
    """Writes lines in order: captures in batches, proposals one by one."""

    fabric: "Verbs"
    author: Principal
    defaults: Mapping[str, Any]
    kind: CaptureKind | None
    done: _Imported

    def write_all(self, stream: BinaryIO, steps: Progress) -> None:
        batch: list[_Line] = []
        room = _BATCH_BYTES
        for number, size, found in read_json_lines(stream):
            if isinstance(found, InvalidInput):
                raise _LineError(f"line {number}", found)
            is_proposal = "write_class" in found
            if batch and (is_proposal or size > room):
                self._capture(batch)
                batch, room = [], _BATCH_BYTES
            if is_proposal:
                self._propose(number, found)
            else:
                batch.append((number, found))
                room -= size
            if len(batch) == _BATCH:
                self._capture(batch)
                batch, room = [], _BATCH_BYTES
            if not batch:
                steps.update(f"line {number}", stream.tell() if stream.seekable() else None)
        if batch:
            self._capture(batch)

    def _capture(self, lines: list[_Line]) -> None:
        kind = {"kind": self.kind} if self.kind is not None else {}
        try:
            receipts = self.fabric.capture_many(self.author, [{**self.defaults, **kind, **item} for _, item in lines])
        except MunimentError as error:
            raise _LineError(*_locate(error, lines)) from None
        self.done.add_captures(receipts, lines)

    def _propose(self, number: int, item: dict[str, Any]) -> None:
        try:
            # Checked here: a field with the name of a parameter of `propose` would fail as a wrong call.
            if unknown := item.keys() - ProposeFields.__annotations__.keys():
                name = min(unknown)
                raise InvalidInput("is not a known field", field=name if name.isidentifier() else None)
            outcome = self.fabric.propose(self.author, **cast("ProposeFields", {**self.defaults, **item}))
        except MunimentError as error:
            raise _LineError(f"line {number}", error) from None
        self.done.last_line = number
        if isinstance(outcome, Refusal):
            self.done.lines[outcome.capture_id] = number
            self.done.refusals.append(outcome)
        else:
            self.done.proposals.append(outcome.proposal_id)


def _locate(error: MunimentError, lines: list[_Line]) -> tuple[str, MunimentError]:
    """Return the line that an error of a batch is about, and the error with the field of that line."""
    if (found := _ITEM.match(error.field or "")) is not None:
        error.field = found[2]
        return f"line {lines[int(found[1])][0]}", error
    first, last = lines[0][0], lines[-1][0]
    return f"line {first}" if first == last else f"lines {first} to {last}", error
