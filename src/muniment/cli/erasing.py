"""Forgetting a person: erase, and the receipts."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer
from pydantic import TypeAdapter, ValidationError

from muniment.cli.asking import Call, verb
from muniment.cli.inputs import opened
from muniment.cli.options import WHERE, WHO
from muniment.cli.output import Screen, listed, moment, progress
from muniment.errors import InvalidInput
from muniment.model.context import Principal
from muniment.model.erasure import Erasure
from muniment.model.name_search import NameHit, NameSearch
from muniment.sync_verbs import Verbs

app = typer.Typer()
_OPTIONS = (*WHO, *WHERE)
_PANEL = "Govern"
_PAGE = 1000
_RECEIPTS = TypeAdapter(list[Erasure])


@verb(app, "erase", panel=_PANEL, options=_OPTIONS, example="muniment erase customer:cust_8861 --user cust_8861 --yes")
def erase(
    call: Call,
    subject: Annotated[str | None, typer.Argument(metavar="CEID", help="The subject to forget.")] = None,
    user: Annotated[
        str | None, typer.Option("--user", metavar="ID", help="The end user to forget: the same person, or instead.")
    ] = None,
    again: Annotated[
        Path | None,
        typer.Option(
            "--again",
            metavar="FILE",
            help="Instead: what that file, from muniment erasures --json, has and a restored database lacks.",
        ),
    ] = None,
    search: Annotated[
        str | None,
        typer.Option("--search", metavar="NAME", help="Instead: look for a name in every text, and erase nothing."),
    ] = None,
    erasure: Annotated[
        str | None,
        typer.Option("--erasure", metavar="ID", help="With --search: the erasure whose receipt says that it was done."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Forget a person: keys destroyed, content gone, tombstones left. It cannot be undone.

    The worker then cleans what lies beneath and the receipt gets its purged_at. What others say of the person in
    passing is found with --search.
    """
    if search is not None:
        if subject is not None or user is not None or again is not None:
            raise InvalidInput("give a name to search for, or a person to forget, not both", field="search")
        _search(call, search, erasure)
        return
    if erasure is not None:
        raise InvalidInput("goes with --search", field="erasure")
    if again is not None:
        if subject is not None or user is not None:
            raise InvalidInput("give a person or a file, not both", field="again")
        _erase_again(call, again, yes)
        return
    whom = " and ".join(one for one in (subject, f"user {user}" if user else None) if one)
    if whom and not yes and not call.as_json:
        typer.confirm(f"Erase everything about {whom} in {call.tenant} for good?", abort=True, err=True)
    with call.open() as fabric, progress("erasing", as_json=call.as_json):
        receipt = fabric.erase(call.principal("privacy_officer"), subject=subject, user_id=user)
    call.show(receipt, lambda: _draw([receipt]))
    if not receipt.memories and not any(receipt.rows.values()):
        call.note("there was nothing of that name")
    call.note("muniment worker --until-idle cleans what lies beneath")


def _search(call: Call, name: str, erasure_id: str | None) -> None:
    """Every page of a search, one after the other."""
    officer = call.principal("privacy_officer")
    hits: list[NameHit] = []
    unreadable = 0
    after: str | None = None
    with call.open() as fabric, progress("searching", as_json=call.as_json):
        while True:
            page = fabric.search_texts(officer, name, erasure_id=erasure_id, limit=200, after=after)
            hits += page.hits
            unreadable += page.unreadable
            if (after := page.after) is None:
                break
    whole = page.model_copy(update={"hits": tuple(hits), "unreadable": unreadable})
    call.show(whole, lambda: _draw_hits(whole))
    if any(one.memory_id for one in hits):
        call.note("muniment retract ID --reason erased takes the text of a memory away")


def _draw_hits(found: NameSearch) -> None:
    screen = Screen()
    for hit in found.hits:
        screen.line(f"{hit.place}  {hit.id}  {hit.field}")
        screen.line(hit.excerpt, indent=4)
    screen.line(f"{len(found.hits)} of {found.searched} texts hold the name")
    if found.unreadable:
        screen.line(f"{found.unreadable} texts do not open")


def _erase_again(call: Call, file: Path, yes: bool) -> None:
    receipts = _read(file, call.tenant)
    officer = call.principal("privacy_officer")
    with call.open() as fabric:
        there = list(_all(fabric, officer))
        lost = [one for one in receipts if not any(_repeats(other, one) for other in there)]
        if lost and not yes and not call.as_json:
            names = listed(sorted({one.subject or one.user_id or "" for one in lost}))
            typer.confirm(f"Erase everything about {names} in {call.tenant} for good?", abort=True, err=True)
        done = [fabric.erase(officer, subject=one.subject, user_id=one.user_id) for one in lost]
    call.show(done, lambda: _draw(done))
    call.note(f"{len(done)} of {len(receipts)} were done again, the others are in this database")
    if done:
        call.note("muniment worker --until-idle cleans what lies beneath")


def _repeats(there: Erasure, receipt: Erasure) -> bool:
    # One of before would leave what came after it: somebody erased who came back, and was erased again.
    same = (there.subject, there.user_id) == (receipt.subject, receipt.user_id)
    return same and there.erased_at >= receipt.erased_at


def _read(file: Path, tenant_id: str) -> list[Erasure]:
    """The receipts of a file, the first erasure first; raises `InvalidInput`."""
    with opened(file, "again") as stream:
        try:
            found = _RECEIPTS.validate_json(stream.read())
        except ValidationError:
            raise InvalidInput("expected what muniment erasures --json gave", field="again") from None
    if others := {one.tenant_id for one in found} - {tenant_id}:
        raise InvalidInput(f"is of tenant {listed(sorted(others))}, expected {tenant_id}", field="again")
    return sorted(found, key=lambda one: one.erased_at)


def _all(fabric: Verbs, officer: Principal) -> Iterator[Erasure]:
    after: str | None = None
    while page := fabric.erasures(officer, limit=_PAGE, after=after):
        yield from page
        after = page[-1].erasure_id


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
        if one.aliases:
            screen.line(f"also as {listed(one.aliases)}", indent=4)
        if one.purge_waits:
            screen.line(f"the purge waits: {one.purge_waits}", indent=4)
        searched = f"done {moment(one.name_search)}" if one.name_search else "not done"
        screen.line(f"search of texts for a name: {searched}", indent=4)
