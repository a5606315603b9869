"""The archives: which there are, and whether their files still hold what was put there."""

from collections.abc import Sequence
from typing import Annotated

import typer

from muniment.cli.asking import Call, verb
from muniment.cli.options import WHERE, WHO
from muniment.cli.output import Screen, moment, progress
from muniment.cli.views import count
from muniment.model.archive import Archive, ArchiveCheck

app = typer.Typer()
BROKEN = 1


@verb(app, "archives", panel="Govern", options=(*WHO, *WHERE), example="muniment archives --verify")
def archives(
    call: Call,
    limit: Annotated[int, typer.Option("--limit", help="At most so many.")] = 50,
    after: Annotated[str | None, typer.Option("--after", metavar="ID", help="The last one of the page before.")] = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Read every file and hold it against index and log.")
    ] = False,
) -> None:
    """List the archives that old captures went to, the latest first.

    With --verify every file is read: ends with 1 if one is missing or was changed, or holds other captures than the
    index names, or if there is a file that no archive has.
    """
    if verify:
        _verify(call)
        return
    with call.open() as fabric:
        found = fabric.archives(call.principal("auditor"), limit=limit, after=after)
    call.show(found, lambda: _draw(found))
    if not found:
        call.note("nothing was archived")
    elif len(found) == limit:
        call.note(f"there may be more: muniment archives --after {found[-1].archive_id}")


def _verify(call: Call) -> None:
    with call.open() as fabric, progress("verifying", as_json=call.as_json) as steps:
        found = fabric.verify_archives(
            call.principal("auditor"), on_progress=lambda done, of: steps.at(f"{done} of {of} archives")
        )
    call.show(found, lambda: _judge(found))
    if not found.ok:
        raise typer.Exit(BROKEN)


def _draw(found: Sequence[Archive]) -> None:
    screen = Screen()
    for one in found:
        state = f"dropped {moment(one.dropped_at)}" if one.dropped_at else f"{one.bytes} bytes, revision {one.revision}"
        screen.line(
            (one.archive_id, "bold cyan"), f"  {count(one.captures, one.kind)} of ontology {one.ontology_version}"
        )
        screen.line(f"up to {moment(one.last_at)}, archived {moment(one.archived_at)}; {state}", indent=4)


def _judge(found: ArchiveCheck) -> None:
    screen = Screen()
    words, style = ("the archives hold", "bold green") if found.ok else ("the archives are broken", "bold red")
    kept = count(found.archives - found.dropped, "archive")
    screen.line((words, style), f": {count(found.captures, 'capture')} in {kept}, {found.dropped} dropped")
    for one in found.problems:
        capture = f", {one.capture_id}" if one.capture_id is not None else ""
        screen.line((one.kind, "bold red"), f"  {one.archive_id}.{one.revision}{capture}: {one.why}", indent=2)
    if found.more:
        screen.line("and more", indent=2)
