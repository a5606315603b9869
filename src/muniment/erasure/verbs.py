"""The verbs of erasure: what is held about a person, erasing them or one fact, receipts, searches, requests (SUB-3)."""

from typing import Annotated

from pydantic import Field, Strict

from muniment.consent import store as consents
from muniment.context import FabricContext
from muniment.erasure import facts, name_search, people, requests
from muniment.erasure import store as erasure
from muniment.model.context import Principal
from muniment.model.erasure import (
    Erasure,
    ErasureInput,
    FactErasure,
    FactErasureInput,
    NameSearch,
    NameSearchInput,
    PersonHeld,
    PersonRead,
    PersonView,
)
from muniment.model.fields import Instant, Name
from muniment.model.ids import is_ceid
from muniment.model.inputs import Listing, PageSize, VerbInput
from muniment.model.subject import ErasureRequest, MyMemory
from muniment.subject.person import Person, person_of
from muniment.subject.store import MOST
from muniment.verbs.declaration import verb


@verb("erase", right="erase", http="POST /erasures", status=201, retry=True, slow=True)
async def erase(context: FabricContext, officer: Principal, request: ErasureInput) -> Erasure:
    """Erase a subject, an end user, or both if they are the same person. This cannot be undone.

    Their keys are destroyed and the content is gone; tombstones stay. Once this returns, no interface and no dump
    yields the content. A job then purges what lies beneath the tables and sets `purged_at` on the receipt.
    """
    await context.open_tenant(officer.tenant_id)
    pack = await context.pack_for(officer)
    async with context.write_once(officer.tenant_id, "privacy", under=pack) as tx:
        receipt, sessions = await erasure.erase(tx, context.vault, officer, request, pack)
    # A session store that is away keeps sealed bytes that nothing opens any more; the purge comes again.
    for session_id, memory_ids in sessions.items():
        await context.sessions.forget(officer.tenant_id, session_id, memory_ids)
    return receipt


class FactId(VerbInput):
    """A fact, by its memory or its proposal."""

    fact_id: Name


@verb("preview_erasure", right="erase", effect="read", http="GET /erasures/facts/{fact_id}")
async def preview_erasure(context: FabricContext, officer: Principal, request: FactId) -> FactErasure:
    """Show what erasing one fact would take with it; nothing is erased.

    `fact_id` is a memory or a proposal. `shared` lists the captures on which other facts rest, with those facts:
    `erase_fact` keeps such a capture, or erases it with them. Raises `NotFound`, or `Conflict` if it was erased before.
    """
    return await facts.preview(context, officer, request.fact_id)


@verb("erase_fact", right="erase", http="POST /erasures/facts", status=201, retry=True, slow=True)
async def erase_fact(context: FabricContext, officer: Principal, request: FactErasureInput) -> Erasure:
    """Erase one fact: the texts, vectors and words of its memory, candidates and proposals. This cannot be undone.

    A capture on which nothing else rests is blanked; for one that others share, `capture` says whether it is kept or
    erased with them. Raises `Conflict` without that decision. A job then purges what lies beneath the tables and sets
    `purged_at` on the receipt. Raises `NotFound`, and `Conflict` if it was erased before.
    """
    return await facts.erase(context, officer, request)


class ListErasures(Listing):
    """Which receipts to list."""

    since: Instant | None = Field(None, description="only erasures at that moment or later")
    until: Instant | None = Field(None, description="only erasures before that moment")


@verb("erasures", right="read_erasures", http="GET /erasures", page_key="erasure_id", cli="erasures")
async def erasures(context: FabricContext, reader: Principal, request: ListErasures) -> list[Erasure]:
    """List the receipts of erasures, the latest first; `after` is the id of the last of the previous page."""
    async with context.transaction(reader.tenant_id, "auditor") as tx:
        return await erasure.receipts(tx, request.limit, request.after, request.since, request.until)


@verb("search_texts", right="erase", effect="read", http="POST /erasures/search", positional=("name",), slow=True)
async def search_texts(context: FabricContext, officer: Principal, request: NameSearchInput) -> NameSearch:
    """Search all texts for a name, to find what others said about a person, which an erasure by ids does not find.

    Returns a page of hits and how far the search has come; `after` of a page continues it. Each page is recorded, the
    name only as a keyed hash; a search that is finished for an `erasure_id` is recorded on its receipt. A privacy
    officer removes a memory with `retract(..., reason="erased")`.
    """
    return await name_search.search(context, officer, request)


# ---- what is held about a person ----


class WhichPerson(ErasureInput):
    """Whom it is about: a subject by its CEID, an end user by id, or both where they are the same person."""


@verb("people.get", right="erase", effect="read", http="GET /people/held")
async def get_person(context: FabricContext, officer: Principal, request: WhichPerson) -> PersonHeld:
    """Count what is held about a person, and what an erasure of them would remove now; nothing is erased."""
    person = await people.whom(context, officer, request)
    async with context.read_only(officer.tenant_id) as tx:
        return await people.held(tx, context.vault, person)


class PersonPage(WhichPerson, Listing):
    """Whom it is about, and which page."""


@verb("people.memories", right="erase", effect="read", http="GET /people/memories", page_key="memory_id")
async def person_memories(context: FabricContext, officer: Principal, request: PersonPage) -> list[MyMemory]:
    """List the memories that are held about a person, the latest first, as they would see them: ended ones too.

    What is sealed under the key of somebody else has no text. `after` is the id of the last memory of the previous
    page. Raises `NotFound`.
    """
    person = await people.whom(context, officer, request)
    async with people.reading(context, officer, person) as theirs:
        return await theirs.memories(request.limit, request.after)


@verb("people.reads", right="erase", effect="read", http="GET /people/reads", page_key="recall_id")
async def person_reads(context: FabricContext, officer: Principal, request: PersonPage) -> list[PersonRead]:
    """List who read what about a person, the latest first: the recalls of their own runs, and those of others.

    Those of others are searched among the latest 5,000 recalls of the tenant. Ids and times, no text and no question.
    """
    person = await people.whom(context, officer, request)
    async with context.read_only(officer.tenant_id) as tx:
        return await people.reads(tx, context.vault, person, request.limit, request.after)


class ViewPerson(WhichPerson):
    """Whom it is about, and which page of those who read."""

    reads: PageSize = Field(20, description="so many of those who read")
    before: Name | None = Field(None, description="the recall of the last one of the previous page")


@verb("people.view", right="erase", effect="read", http="GET /people/view", also_right="read_consent")
async def view_person(context: FabricContext, officer: Principal, request: ViewPerson) -> PersonView:
    """Show what `people.get` counts, a page of `people.reads`, the consents and the requests, as of one moment."""
    person = await people.whom(context, officer, request)
    names = [one for one in person.holders if is_ceid(one)]
    async with context.read_only(officer.tenant_id) as tx:
        return PersonView(
            held=await people.held(tx, context.vault, person),
            reads=tuple(await people.reads(tx, context.vault, person, request.reads, request.before)),
            consents=tuple(await consents.listed(tx, context.vault, names, MOST) if names else ()),
            requests=tuple(await requests.of_user(tx, person.user_id) if person.user_id is not None else ()),
        )


# ---- requests of end users ----


@verb(
    "me.forget_everything",
    right="me",
    http="POST /me/erasure",
    status=201,
    retry=True,
    slow=True,
)
async def forget_everything(context: FabricContext, me: Principal) -> ErasureRequest:
    """Ask that everything about the caller is erased. A privacy officer releases it, or the pack at once (SUB-3).

    Raises `Conflict` while an earlier request waits.
    """
    person = await person_of(context, me, None)
    if person.pack.memory_layer.subject.erasure == "at_once":
        return await _erased_at_once(context, person)
    await context.open_tenant(me.tenant_id)
    async with context.write_once(me.tenant_id, "writer", under=person.pack) as tx:
        tx.change_nothing_visible()
        return await requests.ask(tx, person.user_id)


async def _erased_at_once(context: FabricContext, person: Person) -> ErasureRequest:
    """Record the request and release it, each in a transaction of its own: the second is that of the erasure.

    A request that was recorded and not released, because the process ended in between, is released now.
    """
    tenant_id = person.principal.tenant_id
    await context.open_tenant(tenant_id)
    async with context.write_once(tenant_id, "writer", under=person.pack) as tx:
        tx.change_nothing_visible()
        waiting = await requests.open_of(tx, person.user_id)
        request_id = waiting[0] if waiting else (await requests.ask(tx, person.user_id)).request_id
    return await _release(context, person.principal, request_id)


async def _release(context: FabricContext, by: Principal, request_id: str) -> ErasureRequest:
    pack = await context.pack_for(by)
    async with context.write_once(by.tenant_id, "privacy", under=pack) as tx:
        waiting = await requests.open_one(tx, request_id)
        # It answers all that the user asked for.
        _, sessions = await erasure.erase(tx, context.vault, by, ErasureInput(user_id=waiting.user_id), pack)
        released = await requests.one(tx, request_id)
    for session_id, memory_ids in sessions.items():
        await context.sessions.forget(by.tenant_id, session_id, memory_ids)
    return released


class ListErasureRequests(Listing):
    """Which requests to list."""

    waiting: Annotated[bool, Strict()] = Field(True, description="only those that wait for their release")


@verb(
    "erasure_requests.list",
    right="read_erasures",
    http="GET /erasure-requests",
    page_key="request_id",
    cli="erasure-requests list",
)
async def list_requests(
    context: FabricContext, reader: Principal, request: ListErasureRequests
) -> list[ErasureRequest]:
    """List the requests of end users to be erased, the latest first; by default those that wait."""
    async with context.transaction(reader.tenant_id, "auditor") as tx:
        return await requests.listed(tx, request.limit, request.after, waiting=request.waiting)


class ErasureRequestId(VerbInput):
    """A request for erasure."""

    request_id: Name


@verb(
    "erasure_requests.release",
    right="erase",
    http="POST /erasure-requests/{request_id}/release",
    retry=True,
    slow=True,
    cli="erasure-requests release",
)
async def release(context: FabricContext, officer: Principal, request: ErasureRequestId) -> ErasureRequest:
    """Release a request: everything about its user is erased, as `erase` would. This cannot be undone.

    Raises `NotFound`, and `Conflict` for one that was answered before.
    """
    return await _release(context, officer, request.request_id)


@verb(
    "erasure_requests.refuse",
    right="erase",
    http="POST /erasure-requests/{request_id}/refuse",
    cli="erasure-requests refuse",
)
async def refuse(context: FabricContext, officer: Principal, request: ErasureRequestId) -> ErasureRequest:
    """Refuse a request, for example where the law requires that the data is kept. Raises `NotFound`, `Conflict`."""
    async with context.write_once(officer.tenant_id, "privacy") as tx:
        tx.change_nothing_visible()
        await requests.open_one(tx, request.request_id)
        await requests.answer(tx, request.request_id, "refused", officer.id)
        return await requests.one(tx, request.request_id)
