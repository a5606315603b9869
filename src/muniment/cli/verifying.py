"""The audit chain: verify, which proves that the event log and the rows it tells of stand as written, and seal."""

from pathlib import Path
from typing import Annotated, Any, cast

import typer

from muniment.cli.asking import Call, verb
from muniment.cli.inputs import opened, parsed
from muniment.cli.options import WHERE, WHO
from muniment.cli.output import Screen, progress
from muniment.cli.views import count
from muniment.errors import InvalidInput
from muniment.model.chain import Break, Head, Verification

app = typer.Typer()
_PANEL = "Govern"
BROKEN = 1
# A head is one line of some 250 characters and a tenant's name.
_HEAD_BYTES = 4096
# Events between two notes of how far it is.
_EVENTS_AT_ONCE = 50_000
# Characters of such a note, at most.
LONGEST = 1_000_000


@verb(
    app,
    "verify",
    panel=_PANEL,
    options=(*WHO, *WHERE),
    example="muniment verify --head /mnt/elsewhere/head.json --export-head /mnt/elsewhere/head.json",
)
def verify(
    call: Call,
    head: Annotated[
        Path | None, typer.Option("--head", metavar="FILE", help="A head exported earlier: it must still be there.")
    ] = None,
    export_head: Annotated[
        Path | None,
        typer.Option("--export-head", metavar="FILE", help="Write the head there, as one line, if the chain holds."),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            "--resume", metavar="FILE", help="Note there how far it is; go on from there after an interruption."
        ),
    ] = None,
) -> None:
    """Prove that every sealed event and every row it tells of is as it was written, and say where not.

    Ends with 1 if an event was changed, removed, inserted or moved, a batch forged or taken away, a row is not what the
    log says, or a head is no longer in the chain. Keep heads where nobody can write who can write the database.
    """
    given: dict[str, Any] | None = _read(head) if head is not None else None
    cursor = _noted(resume) if resume is not None else None
    with call.open() as fabric, progress("verifying", as_json=call.as_json) as steps:
        while True:
            found = fabric.verify(
                call.principal("auditor"),
                head=given,
                on_progress=lambda done, of: steps.at(f"{done} of {of} events"),
                cursor=cursor,
                count=_EVENTS_AT_ONCE if resume is not None else None,
            )
            cursor = found.cursor
            if resume is not None:
                _note(resume, cursor)
            if cursor is None:
                break
    if export_head is not None and found.ok and found.head is not None:
        _write(export_head, found.head)
    call.show(found, lambda: _draw(found))
    if found.clock_bound_s is None:
        call.note("this database sets no bound to clocks: events can be dated ahead of its own")
    if export_head is not None and (not found.ok or found.head is None):
        call.note("no head was written" + (": nothing is sealed yet" if found.ok else ""))
    if not found.ok:
        raise typer.Exit(BROKEN)


@verb(app, "seal", panel="Run it", options=WHERE, example="muniment seal --tenant tenant_acme_prod")
def seal(call: Call) -> None:
    """Seal the tenant's events in batches of the audit chain; what is sealed already stays as it is."""
    with call.open() as fabric, progress("sealing", as_json=call.as_json):
        sealed = fabric.seal(call.tenant)
    call.show({"sealed": sealed}, lambda: Screen().line(f"{count(sealed, 'event')} sealed"))


def _draw(found: Verification) -> None:
    screen = Screen()
    batches = f"{found.batches} batch{'' if found.batches == 1 else 'es'}"
    words, style = ("the chain holds", "bold green") if found.ok else ("the chain is broken", "bold red")
    screen.line((words, style), f": {count(found.events, 'event')} in {batches}, {found.unsealed} not sealed yet")
    if found.covered_from is not None:
        screen.facts([("rows", f"{count(found.rows, 'row')} compared, covered from number {found.covered_from} on")])
    else:
        screen.facts([("rows", "not compared: the log lists none yet, the next seal does")])
    if found.head is not None:
        screen.facts([("head", f"batch {found.head.batch}, up to number {found.head.last_seq}, {found.head.hash}")])
    for one in found.breaks:
        screen.line((one.kind, "bold red"), f"  {_place(one)}: {one.why}", indent=2)
    if found.more:
        screen.line("and more", indent=2)


def _place(one: Break) -> str:
    number = None if one.seq is None else f"number {one.seq}" if one.n is None else f"number {one.seq}.{one.n}"
    batch = None if one.batch is None else f"batch {one.batch}"
    if one.table is not None:
        number = f"{one.table} {one.row_id}" if one.row_id is not None else one.table
    return ", ".join(part for part in (batch, number, one.event_id) if part is not None) or "the chain"


def _read(path: Path) -> dict[str, Any]:
    with opened(path, "head") as stream:
        found = parsed(stream.read(_HEAD_BYTES), "head")
    if not isinstance(found, dict):
        raise InvalidInput("expected a head as it was exported", field="head")
    return cast("dict[str, Any]", found)


def _noted(path: Path) -> str | None:
    """Where an earlier verification stood."""
    if not path.exists():
        return None
    with opened(path, "resume") as stream:
        return stream.read(LONGEST + 1).decode("ascii", "replace").strip() or None


def _note(path: Path, cursor: str | None) -> None:
    """Where this one stands; nothing once it has ended."""
    try:
        if cursor is None:
            path.unlink(missing_ok=True)
        else:
            path.write_text(cursor + "\n", encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"cannot write {path}: {(error.strerror or 'it failed').lower()}", field="resume") from None


def _write(path: Path, head: Head) -> None:
    try:
        path.write_text(head.model_dump_json() + "\n", encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"cannot write {path}: {(error.strerror or 'it failed').lower()}", field="head") from None
