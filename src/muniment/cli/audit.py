"""The audit chain: verify and seal."""

from pathlib import Path
from typing import Annotated, Any, cast

import typer

from muniment.cli.call import FAILED, Call
from muniment.cli.command import command
from muniment.cli.inputs import open_input, parse_json, write_file
from muniment.cli.options import ASKER, flag
from muniment.cli.output import Screen, counted
from muniment.cli.plain import plain
from muniment.errors import InvalidInput
from muniment.model.chain import Break, Verification

app = typer.Typer()
# A head is one line of some 250 characters and a tenant's name.
_HEAD_BYTES = 4096
# Events between two writes of the resume file, and the longest such file.
_EVENTS_AT_ONCE = 50_000
_LONGEST_CURSOR = 1_000_000


@command(app, "verify", options=ASKER)
def verify(
    call: Call,
    head: Annotated[
        Path | None, flag("--head FILE", "A head exported earlier, which must still be part of the chain.")
    ] = None,
    export_head: Annotated[
        Path | None, flag("--export-head FILE", "Write the head of the chain to this file if it is intact.")
    ] = None,
    resume: Annotated[
        Path | None, flag("--resume FILE", "Keep the position in this file, and continue there after an interruption.")
    ] = None,
) -> None:
    """Verify that the event log, and the rows it covers, are unchanged.

    Ends with 1 if an event was changed, removed, inserted or moved, a batch was forged or removed, a row differs from
    the log, or a head is no longer part of the chain. Keep heads where nobody can write who can write to the database.
    """
    earlier = _read_head(head) if head is not None else None
    cursor = _read_cursor(resume) if resume is not None else None
    with call.open() as fabric, call.progress("verifying") as steps:
        while True:
            found = fabric.verify(
                call.principal("auditor"),
                head=earlier,
                on_progress=lambda done, of: steps.update(f"{done} of {of} events"),
                cursor=cursor,
                count=_EVENTS_AT_ONCE if resume is not None else None,
            )
            cursor = found.cursor
            if resume is not None:
                _write_cursor(resume, cursor)
            if cursor is None:
                break
    if export_head is not None and found.ok and found.head is not None:
        write_file(export_head, found.head.model_dump_json() + "\n", "head")
    call.show(found, _draw)
    if found.clock_bound_s is None:
        call.note("this database sets no bound on clocks: events can be dated in its future")
    for one in found.below_promise:
        call.note(f"below what is promised: {one}")
    if export_head is not None and (not found.ok or found.head is None):
        call.note("no head was written" + (": nothing is sealed yet" if found.ok else ""))
    if not found.ok:
        raise typer.Exit(FAILED)


plain(
    app,
    "seal",
    draw=lambda screen, done: screen.line(f"{counted(done['sealed'], 'event')} sealed"),
    document=lambda sealed, _: {"sealed": sealed},
    doing="sealing",
)


def _draw(screen: Screen, found: Verification) -> None:
    batches = f"{found.batches} batch{'' if found.batches == 1 else 'es'}"
    words, style = ("the chain is intact", "bold green") if found.ok else ("the chain is broken", "bold red")
    screen.line((words, style), f": {counted(found.events, 'event')} in {batches}, {found.unsealed} not sealed yet")
    rows = (
        f"{counted(found.rows, 'row')} compared, covered from sequence {found.covered_from} on"
        if found.covered_from is not None
        else "not compared: the log covers none before the next seal"
    )
    head = found.head
    screen.fields(
        [("rows", rows), ("head", f"batch {head.batch}, up to sequence {head.last_seq}, {head.hash}" if head else None)]
    )
    for one in found.breaks:
        screen.line((one.kind, "bold red"), f"  {_place(one)}: {one.why}", indent=2)
    if found.more:
        screen.line("and more", indent=2)


def _place(one: Break) -> str:
    number = None if one.seq is None else f"sequence {one.seq}" if one.n is None else f"sequence {one.seq}.{one.n}"
    batch = None if one.batch is None else f"batch {one.batch}"
    if one.table is not None:
        number = f"{one.table} {one.row_id}" if one.row_id is not None else one.table
    return ", ".join(part for part in (batch, number, one.event_id) if part is not None) or "the chain"


def _read_head(path: Path) -> dict[str, Any]:
    with open_input(path, "head") as stream:
        found = parse_json(stream.read(_HEAD_BYTES), "head")
    if not isinstance(found, dict):
        raise InvalidInput("expected a head as it was exported", field="head")
    return cast("dict[str, Any]", found)


def _read_cursor(path: Path) -> str | None:
    if not path.exists():
        return None
    with open_input(path, "resume") as stream:
        return stream.read(_LONGEST_CURSOR + 1).decode("ascii", "replace").strip() or None


def _write_cursor(path: Path, cursor: str | None) -> None:
    """Keep the position of a verification; the file is removed when it has ended."""
    if cursor is not None:
        write_file(path, cursor + "\n", "resume")
        return
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise InvalidInput(f"cannot remove {path}: {(error.strerror or 'it failed').lower()}", field="resume") from None
