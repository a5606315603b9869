"""Forgetting a person: erase, and the receipts."""

from collections.abc import Sequence
from typing import Annotated

import typer

from muniment.cli.asking import WHERE, WHO, Call, verb
from muniment.cli.output import Screen, listed, moment
from muniment.model.erasure import Erasure

app = typer.Typer()
_OPTIONS = (*WHO, *WHERE)
_PANEL = "Govern"


@verb(app, "erase", panel=_PANEL, options=_OPTIONS, example="muniment erase customer:cust_8861 --user cust_8861 --yes")
def erase(
    call: Call,
    subject: Annotated[str | None, typer.Argument(metavar="CEID", help="The subject to forget.")] = None,
    user: Annotated[
        str | None, typer.Option("--user", metavar="ID", help="The end user to forget: the same person, or instead.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Forget a person: keys destroyed, content gone, tombstones left. It cannot be undone.

    The worker then cleans what lies beneath and the receipt gets its purged_at.
    """
    whom = " and ".join(one for one in (subject, f"user {user}" if user else None) if one)
    if whom and not yes and not call.as_json:
        typer.confirm(f"Erase everything about {whom} in {call.tenant} for good?", abort=True, err=True)
    with call.open() as fabric:
        receipt = fabric.erase(call.principal("privacy_officer"), subject=subject, user_id=user)
    call.show(receipt, lambda: _draw([receipt]))
    if not receipt.memories and not any(receipt.rows.values()):
        call.note("there was nothing of that name")
    call.note("muniment worker --until-idle cleans what lies beneath")


@verb(app, "erasures", panel=_PANEL, options=_OPTIONS, example="muniment erasures")
def erasures(
    call: Call,
    limit: Annotated[int, typer.Option("--limit", help="At most so many.")] = 50,
    after: Annotated[str | None, typer.Option("--after", metavar="ID", help="The last one of the page before.")] = None,
) -> None:
    """List the receipts of erasures, the latest first."""
    with call.open() as fabric:
        found = fabric.erasures(call.principal("auditor"), limit=limit, after=after)
    call.show(found, lambda: _draw(found))
    if not found:
        call.note("nothing was erased")
    elif len(found) == limit:
        call.note(f"there may be more: muniment erasures --after {found[-1].erasure_id}")


def _draw(found: Sequence[Erasure]) -> None:
    screen = Screen()
    for one in found:
        screen.line(f"{one.erasure_id}  {one.subject or ''} {one.user_id or ''}".rstrip())
        screen.line(f"erased {moment(one.erased_at)} by {one.by}", indent=4)
        purged = f"purged {moment(one.purged_at)}" if one.purged_at else "not purged yet"
        reached = {"memories": one.memories, **one.rows}
        parts = [f"{what.replace('_', ' ')} {rows}" for what, rows in reached.items() if rows]
        screen.line(f"{listed(parts) if parts else 'nothing found'}; {purged}", indent=4)
