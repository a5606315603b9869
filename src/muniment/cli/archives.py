"""Archives of old captures: list them, and verify their files."""

from typing import Annotated

import typer

from muniment.cli.call import FAILED, Call
from muniment.cli.command import command
from muniment.cli.options import ASKER, flag, page_options
from muniment.cli.output import Screen, counted, table
from muniment.model.archive import ArchiveCheck

app = typer.Typer()
_COLUMNS = "archive_id kind ontology_version captures last_at archived_at revision bytes dropped_at"


@command(app, "archives", options=(*page_options(50), *ASKER))
def archives(
    call: Call,
    verify: Annotated[bool, flag("--verify", "Read every file and compare it with the index and the log.")] = False,
) -> None:
    """List the archives of old captures, the latest first, or verify them.

    With --verify every file is read: ends with 1 if one is missing or was changed, or holds other captures than the
    index says, or belongs to no archive.
    """
    if verify:
        _verify(call)
        return
    limit, after = call.options["limit"], call.options["after"]
    with call.open() as fabric:
        found = fabric.archives(call.principal("auditor"), limit=limit, after=after)
    call.show_page(found, table(_COLUMNS), limit=limit, key="archive_id", empty="no archives")


def _verify(call: Call) -> None:
    with call.open() as fabric, call.progress("verifying") as steps:
        found = fabric.verify_archives(
            call.principal("auditor"), on_progress=lambda done, of: steps.update(f"{done} of {of} archives")
        )
    call.show(found, _draw_check)
    if not found.ok:
        raise typer.Exit(FAILED)


def _draw_check(screen: Screen, found: ArchiveCheck) -> None:
    words, style = ("the archives are intact", "bold green") if found.ok else ("the archives are broken", "bold red")
    kept = counted(found.archives - found.dropped, "archive")
    screen.line((words, style), f": {counted(found.captures, 'capture')} in {kept}, {found.dropped} dropped")
    for one in found.problems:
        capture = f", {one.capture_id}" if one.capture_id is not None else ""
        screen.line((one.kind, "bold red"), f"  {one.archive_id}.{one.revision}{capture}: {one.why}", indent=2)
    if found.more:
        screen.line("and more", indent=2)
