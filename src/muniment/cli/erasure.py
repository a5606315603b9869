"""Erasure of a person or of one fact: erase, search for a name, and the receipts."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from pydantic import TypeAdapter, ValidationError

from muniment.cli.call import Call
from muniment.cli.command import command, group
from muniment.cli.inputs import open_input
from muniment.cli.options import ASKER, argument, flag
from muniment.cli.output import Screen, by_and_at, counted, each, fields_of, joined
from muniment.cli.plain import plain
from muniment.errors import InvalidInput, NotFound
from muniment.model.context import Principal
from muniment.model.erasure import Erasure, FactErasure, NameHit, NameSearch
from muniment.model.subject import ErasureRequest

if TYPE_CHECKING:
    from muniment.sync_verbs import Verbs

app = typer.Typer()
requests = group(app, "erasure-requests", lists=True)
_PAGE = 1000
_PURGE_HINT = "muniment worker --until-idle purges the files of the database"


@command(app, "erase", options=ASKER)
def erase(
    call: Call,
    subject: Annotated[str | None, argument("CEID", "The subject to erase.")] = None,
    user: Annotated[str | None, flag("--user ID", "The end user to erase, with or without a subject.")] = None,
    again: Annotated[
        Path | None,
        flag(
            "--again FILE",
            "Instead: repeat the erasures of this file, from muniment erasures --json, that a restored database lacks.",
        ),
    ] = None,
    search: Annotated[
        str | None, flag("--search NAME", "Instead: search every text for a name, and erase nothing.")
    ] = None,
    erasure: Annotated[
        str | None, flag("--erasure ID", "With --search: the erasure whose receipt records the search.")
    ] = None,
    fact: Annotated[
        str | None, flag("--fact ID", "Instead: erase one fact, by its memory (pm_...) or its proposal (mwp_...).")
    ] = None,
    capture: Annotated[
        Literal["keep", "erase"] | None,
        flag("--capture", "With --fact: what becomes of a capture on which other facts rest too."),
    ] = None,
    yes: Annotated[bool, flag("--yes", "Do not ask for confirmation.")] = False,
) -> None:
    """Erase everything about a person, or one fact. This cannot be undone.

    Keys are destroyed and content is deleted; tombstones stay. The worker then purges the files of the database, and
    the receipt gets its purged_at. --search finds what other people's records say about the person.

    --fact erases one fact: its memory, its proposals, and its capture if nothing else rests on it. Otherwise what else
    would go is shown, and --capture decides.
    """
    person = subject is not None or user is not None
    if fact is not None:
        if person or search is not None or again is not None:
            raise InvalidInput("give one fact, or a person, a name or a file, not both", field="fact")
        _erase_fact(call, fact, capture, yes)
        return
    if capture is not None:
        raise InvalidInput("goes with --fact", field="capture")
    if search is not None:
        if person or again is not None:
            raise InvalidInput("give a name to search for, or a person to erase, not both", field="search")
        _search(call, search, erasure)
        return
    if erasure is not None:
        raise InvalidInput("goes with --search", field="erasure")
    if again is not None:
        if person:
            raise InvalidInput("give a person or a file, not both", field="again")
        _erase_again(call, again, yes)
        return
    if person:
        names = " and ".join(one for one in (subject, f"user {user}" if user else None) if one)
        call.confirm(f"Permanently erase everything about {names} in tenant {call.tenant}?", yes=yes)
    with call.open() as fabric, call.progress("erasing"):
        receipt = fabric.erase(call.principal("privacy_officer"), subject=subject, user_id=user)
    call.show(receipt, _draw)
    if not receipt.memories and not any(receipt.rows.values()):
        call.note("nothing was found about this person")
    call.note(_PURGE_HINT)


def _erase_fact(call: Call, fact_id: str, capture: Literal["keep", "erase"] | None, yes: bool) -> None:
    officer = call.principal("privacy_officer")
    with call.open() as fabric:
        would = fabric.preview_erasure(officer, fact_id)
        if would.shared and capture is None:
            call.show(would, _draw_facts)
            raise InvalidInput(
                "other facts rest on its capture: give keep, or erase to erase them too", field="capture"
            )
        if not yes:
            call.show(would, _draw_facts)
        call.confirm(f"Permanently erase this fact in tenant {call.tenant}?", yes=yes)
        receipt = fabric.erase_fact(officer, fact_id=fact_id, capture=capture)
    call.show(receipt, _draw)
    call.note(_PURGE_HINT)


def _draw_facts(screen: Screen, would: FactErasure) -> None:
    screen.line(f"would be erased: {counted(len(would.facts), 'proposal')} of {would.fact_id}")
    for one in would.facts:
        screen.item(one.memory_id or one.proposal_id or one.candidate_id, one.text)
    for capture_id in would.captures:
        screen.line(f"with its capture {capture_id}, on which nothing else rests")
    for shared in would.shared:
        why = "is not read yet" if shared.unread else f"also holds {counted(len(shared.facts), 'other fact')}"
        screen.line(f"capture {shared.capture_id} {why}:")
        for one in shared.facts:
            screen.item(one.memory_id or one.proposal_id or one.candidate_id, one.text)


def _search(call: Call, name: str, erasure_id: str | None) -> None:
    officer = call.principal("privacy_officer")
    hits: list[NameHit] = []
    unreadable = 0
    after: str | None = None
    with call.open() as fabric, call.progress("searching"):
        while True:
            page = fabric.search_texts(officer, name, erasure_id=erasure_id, limit=200, after=after)
            hits += page.hits
            unreadable += page.unreadable
            if (after := page.after) is None:
                break
    found = page.model_copy(update={"hits": tuple(hits), "unreadable": unreadable})
    call.show(found, _draw_hits)
    if any(one.memory_id for one in hits):
        call.note("muniment erase --fact ID erases a memory with its proposals and its capture")


def _draw_hits(screen: Screen, found: NameSearch) -> None:
    for hit in found.hits:
        screen.line(f"{hit.place}  {hit.id}  {hit.field}")
        screen.line(hit.excerpt, indent=4)
    screen.line(f"{len(found.hits)} of {found.searched} texts contain the name")
    if found.unreadable:
        screen.line(f"{found.unreadable} texts could not be read")


def _erase_again(call: Call, file: Path, yes: bool) -> None:
    receipts = _read_receipts(file, call.tenant)
    officer = call.principal("privacy_officer")
    with call.open() as fabric:
        present = list(_all_receipts(fabric, officer))
        missing = [one for one in receipts if not any(_covers(other, one) for other in present)]
        if missing:
            names = joined(sorted({one.fact_id or one.subject or one.user_id or "" for one in missing}))
            call.confirm(f"Permanently erase everything about {names} in tenant {call.tenant}?", yes=yes)
        done = [receipt for one in missing if (receipt := _erased_again(fabric, officer, one)) is not None]
    call.show(done, each(_draw))
    if done:
        call.note(f"{len(done)} of {len(receipts)} erasures were repeated, the others are in this database")
        call.note(_PURGE_HINT)
    else:
        call.note("nothing to repeat: this database already has all erasures of the file")


def _covers(present: Erasure, receipt: Erasure) -> bool:
    # An earlier erasure does not cover what was captured about the same person after it.
    same = (present.fact_id, present.subject, present.user_id) == (receipt.fact_id, receipt.subject, receipt.user_id)
    return same and present.erased_at >= receipt.erased_at


def _erased_again(fabric: "Verbs", officer: Principal, receipt: Erasure) -> Erasure | None:
    """Repeat an erasure; None for one of a fact that this database does not have."""
    if receipt.fact_id is None:
        return fabric.erase(officer, subject=receipt.subject, user_id=receipt.user_id)
    with suppress(NotFound):
        return fabric.erase_fact(
            officer,
            fact_id=receipt.fact_id,
            capture="erase" if receipt.captures else "keep",
            requested_by=receipt.requested_by,
        )
    return None


def _read_receipts(file: Path, tenant_id: str) -> list[Erasure]:
    """Read the receipts of a file, the oldest first; raises `InvalidInput`."""
    with open_input(file, "again") as stream:
        try:
            found = TypeAdapter(list[Erasure]).validate_json(stream.read())
        except ValidationError:
            raise InvalidInput("expected the output of muniment erasures --json", field="again") from None
    if others := {one.tenant_id for one in found} - {tenant_id}:
        raise InvalidInput(f"is of tenant {joined(sorted(others))}, expected {tenant_id}", field="again")
    return sorted(found, key=lambda one: one.erased_at)


def _all_receipts(fabric: "Verbs", officer: Principal) -> Iterator[Erasure]:
    after: str | None = None
    while page := fabric.erasures(officer, limit=_PAGE, after=after):
        yield from page
        after = page[-1].erasure_id


def _draw(screen: Screen, one: Erasure) -> None:
    screen.line(f"{one.erasure_id}  {one.fact_id or one.subject or ''} {one.user_id or ''}".rstrip())
    reached = {"memories": one.memories, **one.rows}
    deleted = joined(f"{what.replace('_', ' ')} {rows}" for what, rows in reached.items() if rows)
    screen.fields(
        [
            ("erased", by_and_at(one.by, one.erased_at)),
            ("deleted", deleted or "nothing"),
            ("purged", one.purged_at or "not yet"),
            *fields_of(one, "purge_waits aliases captures requested_by"),
            ("name search", (one.name_search or "not done") if one.fact_id is None else None),
        ]
    )


plain(app, "erasures", draw=_draw, empty="no erasures")


def _draw_request(screen: Screen, one: ErasureRequest) -> None:
    screen.line(f"{one.request_id}  {one.user_id}  {one.answer or 'waits'}")
    screen.fields([("asked", one.asked_at), *fields_of(one, "answered_by answered_at erasure_id")])


plain(requests, "list", draw=_draw_request, empty="no requests wait")
plain(requests, "release", draw=_draw_request, note=_PURGE_HINT)
plain(requests, "refuse", draw=_draw_request)
