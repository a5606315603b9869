"""The verbs of end users about themselves: what is held, what waits, consents, recalls, and taking it all along."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field, Strict

from muniment.audit import provenance_store as trail
from muniment.candidates.propose import submit
from muniment.candidates.rules import statement_confidence
from muniment.capture.rules import proposal_input
from muniment.context import FabricContext
from muniment.corrections.verbs import on_memory
from muniment.errors import InvalidInput, NotFound
from muniment.model.candidate import Refusal
from muniment.model.consent import Consent, Predicates
from muniment.model.context import Asker, Principal
from muniment.model.fields import EvidenceRefs, Instant, Json, Label, Name, OpenName, Text
from muniment.model.inputs import Listing, PageSize, VerbInput
from muniment.model.promoted import Retraction, Undone
from muniment.model.proposal import Submission
from muniment.model.subject import (
    Decided,
    MyCapture,
    MyConsentRequest,
    MyExport,
    MyMemory,
    MyMemoryDetails,
    MyOutcome,
    MyProposal,
    MyRecall,
    MyRefusal,
    MyView,
)
from muniment.pack import Pack
from muniment.promotion.rules import undo_until
from muniment.subject import acts, own_consents
from muniment.subject import export as exporting
from muniment.subject.person import person_of, reading
from muniment.subject.rules import OWN_CLASSES
from muniment.subject.store import MOST
from muniment.verbs.declaration import verb

Code = Annotated[Name, Field(min_length=8, max_length=64)]


class WithCode(VerbInput):
    """An act of the person's own; an agent's run carries it with a one-time code."""

    code: Code | None = Field(
        None, description="the one-time code that was sent to the person; not where they are signed in"
    )


class ListMine(Listing):
    """Which memories to list."""

    live: Annotated[bool, Strict()] = Field(False, description="only those that are live")


@verb("me.list", right="me", http="GET /me/memories", page_key="memory_id", cli="me list")
async def list_memories(context: FabricContext, me: Principal, request: ListMine) -> list[MyMemory]:
    """List the memories that are held about the caller, the latest first: ended and hidden ones too, unless `live`.

    `after` is the id of the last memory of the previous page. Raises `NotFound`.
    """
    async with reading(context, await person_of(context, me, None)) as own:
        return await own.memories(request.limit, request.after, live=request.live)


class OwnMemory(VerbInput):
    """A memory."""

    memory_id: Name


@verb("me.get", right="me", http="GET /me/memories/{memory_id}", cli="me why")
async def get_memory(context: FabricContext, me: Principal, request: OwnMemory) -> MyMemoryDetails:
    """Show one memory and why it is held: what it came from, who decided, on which consent, how often it was recalled.

    Raises `NotFound` for one that is not about the caller.
    """
    person = await person_of(context, me, None)
    async with reading(context, person) as own:
        memory = await own.memory(request.memory_id)
        capture = (await own.some_captures([memory.capture_id])).get(memory.capture_id)
        decisions = await own.decisions(memory.proposal_id)
        mine = await own.consents() if memory.consent_id is not None else []
    async with context.read_only(me.tenant_id) as tx:
        recalled = await trail.recalled(tx, request.memory_id)
    consent = next((one for one in mine if one.consent_id == memory.consent_id), None)
    more: dict[str, Any] = {"capture": capture, "decisions": decisions, "consent": consent, "recalled": recalled}
    more["undo_until"] = _undo_until(memory, person.pack, tx.now)
    return MyMemoryDetails(**{name: getattr(memory, name) for name in MyMemory.model_fields}, **more)


def _undo_until(memory: MyMemory, pack: Pack, now: datetime) -> datetime | None:
    """Return until when the person can undo what policy promoted; None where they cannot, or no longer (PRO-8)."""
    until = undo_until(memory.approver, memory.promoted_at, pack)
    live = memory.state in ("live", "hidden") and memory.reach == "yours"
    return until if until is not None and live and now <= until else None


@verb("me.pending", right="me", http="GET /me/proposals", cli="me pending")
async def pending(context: FabricContext, me: Principal) -> list[MyProposal]:
    """List the facts about the caller that wait for a decision, by due time, and which the caller may confirm."""
    async with reading(context, await person_of(context, me, None)) as own:
        return await own.proposals()


class OwnCaptures(VerbInput):
    """Captures."""

    capture_ids: Annotated[tuple[Name, ...], Field(min_length=1, max_length=MOST)]


@verb("me.outcomes", right="me", http="POST /me/outcomes", effect="read", positional=("capture_ids",))
async def outcomes(context: FabricContext, me: Principal, request: OwnCaptures) -> list[MyOutcome]:
    """Show what became of captures of the caller's own: facts that are kept, those that wait and why, and refusals.

    They are in the order of the ids. Raises `NotFound` for a capture that is not the caller's, or is archived.
    """
    wanted = list(request.capture_ids)
    async with reading(context, await person_of(context, me, None)) as own:
        # INVARIANT: only captures that row security shows as the person's are asked about; their keys alone open facts.
        if set(wanted) - set(await own.some_captures(wanted)):
            raise NotFound("no such capture", field="capture_ids")
        keys = await own.own_keys()
    which = {"capture_ids": wanted}
    async with context.read_only(me.tenant_id) as tx:
        rows, read, refused = await tx.gather(
            ("subject.facts_of_captures", which),
            ("subject.consolidated", which),
            ("subject.refused_in_captures", which),
        )
    facts = own.facts(rows, keys)
    done = {row["capture_id"] for row in read}
    return [
        MyOutcome(
            capture_id=capture_id,
            read=capture_id in done,
            facts=tuple(one for one in facts if one.capture_id == capture_id),
            refusals=tuple(
                MyRefusal(gate=row["gate"], reason=row["reason"]) for row in refused if row["capture_id"] == capture_id
            ),
        )
        for capture_id in wanted
    ]


@verb("me.captures", right="me", http="GET /me/captures", page_key="capture_id", cli="me captures")
async def captures(context: FabricContext, me: Principal, request: Listing) -> list[MyCapture]:
    """List what the caller said, and what was captured about them, the latest first. Archived captures are not listed.

    `after` is the id of the last capture of the previous page. Raises `NotFound`.
    """
    async with reading(context, await person_of(context, me, None)) as own:
        return await own.captures(request.limit, request.after)


@verb("me.recalls", right="me", http="GET /me/recalls", page_key="recall_id", cli="me recalls")
async def recalls(context: FabricContext, me: Principal, request: Listing) -> list[MyRecall]:
    """List who recalled what in the caller's own runs, the latest first."""
    async with reading(context, await person_of(context, me, None)) as own:
        return await own.recalls(request.limit, request.after)


@verb("me.consents", right="me", http="GET /me/consents", cli="me consents")
async def list_consents(context: FabricContext, me: Principal) -> list[Consent]:
    """List the caller's own records in the consent ledger, oldest first."""
    async with reading(context, await person_of(context, me, None)) as own:
        return await own.consents()


class ListRequests(VerbInput):
    """Which consent requests to list."""

    closed: Annotated[bool, Strict()] = Field(False, description="also those that were answered or have ended")


@verb("me.requests", right="me", http="GET /me/consent-requests", cli="me requests")
async def requests(context: FabricContext, me: Principal, request: ListRequests) -> list[MyConsentRequest]:
    """List the questions whether something may be kept that was refused only because the caller had not consented."""
    async with reading(context, await person_of(context, me, None)) as own:
        return await own.consent_requests(closed=request.closed)


class ViewMine(Listing):
    """Which page of memories, and how many of the last recalls."""

    recalls: PageSize = Field(20, description="so many of the last recalls")


@verb("me.view", right="me", http="GET /me/view")
async def view(context: FabricContext, me: Principal, request: ViewMine) -> MyView:
    """Show a page of `me.list`, `me.pending`, `me.requests`, `me.consents` and the last recalls, as of one moment.

    Raises `NotFound` for an `after` that is not the caller's.
    """
    async with reading(context, await person_of(context, me, None)) as own:
        return MyView(
            memories=tuple(await own.memories(request.limit, request.after)),
            pending=tuple(await own.proposals()),
            consent_requests=tuple(await own.consent_requests()),
            consents=tuple(await own.consents()),
            recalls=tuple(await own.recalls(request.recalls, None)),
            consent_labels=tuple(own.pack.sensitive_labels),
        )


# ---- acts ----


class OwnProposal(WithCode):
    """A proposal."""

    proposal_id: Name


@verb(
    "me.confirm",
    right="me",
    run_right="me_by_code",
    http="POST /me/proposals/{proposal_id}/confirm",
    retry=True,
    cli="me confirm",
)
async def confirm(context: FabricContext, asker: Asker, request: OwnProposal) -> Decided:
    """Confirm a fact about oneself; it is promoted in the same transaction, where the pack allows it (SUB-2).

    The status is `promoted`; or `duplicate` if a live memory says the same already; or `held` or `blocked` if it
    contradicts one and the pack says so. An agent's run needs the one-time `code` that was sent to the person. Raises
    `NotFound` for a fact that is not about the caller, `Denied` for one that takes a reviewer, `AlreadyDecided`.
    """
    return await acts.confirm(context, await person_of(context, asker, request.code), request.proposal_id)


@verb(
    "me.decline",
    right="me",
    run_right="me_by_code",
    http="POST /me/proposals/{proposal_id}/decline",
    retry=True,
    cli="me decline",
)
async def decline(context: FabricContext, asker: Asker, request: OwnProposal) -> Decided:
    """Say that a fact about oneself is not to be kept. The same fact is refused for as long as the pack says.

    Raises `NotFound`, `AlreadyDecided`, and `Denied` for what is not the caller's to decline.
    """
    return await acts.decline(context, await person_of(context, asker, request.code), request.proposal_id)


class Forget(WithCode, OwnMemory):
    """A memory to forget."""


@verb(
    "me.forget",
    right="me",
    run_right="me_by_code",
    http="POST /me/memories/{memory_id}/forget",
    retry=True,
    cli="me forget",
)
async def forget(context: FabricContext, asker: Asker, request: Forget) -> Retraction:
    """Have one memory forgotten at once: it is retracted, and the fact is refused until the caller allows it again.

    Raises `NotFound`, `Conflict` the second time, and `Denied` for a memory that is not of the caller's own runs alone.
    """
    return await acts.forget(context, await person_of(context, asker, request.code), request.memory_id)


@verb("me.undo", right="me", http="POST /me/memories/{memory_id}/undo", retry=True, cli="me undo")
async def undo(context: FabricContext, me: Principal, request: OwnMemory) -> Undone:
    """Undo what policy promoted about the caller, and promote again what it had superseded.

    Within the pack's term; after it, `forget` is possible still. What a person had approved, or what cannot come back
    at once, waits for a person. Raises `NotFound`, `Denied` for a memory that is not of the caller's own runs alone,
    and `Conflict` if a person approved it, if it was retracted, or if the term is over.
    """
    return await acts.undo(context, await person_of(context, me, None), request.memory_id)


@verb("me.allow_again", right="me", http="POST /me/memories/{memory_id}/allow-again", retry=True, cli="me allow-again")
async def allow_again(context: FabricContext, me: Principal, request: OwnMemory) -> MyMemory:
    """Let a fact that was forgotten be proposed again. Raises `NotFound`, and `Conflict` if it was not forgotten."""
    return await acts.allow_again(context, await person_of(context, me, None), request.memory_id)


class CorrectOwn(OwnMemory):
    """What is right instead."""

    text: Text | None = Field(None, description="the right statement, in words")
    value: Json = Field(None, description="the right value, for a typed fact")


@verb("me.correct", right="me", http="POST /me/memories/{memory_id}/correct", status=201, retry=True)
async def correct(context: FabricContext, me: Principal, request: CorrectOwn) -> Submission | Refusal:
    """Say what is right instead of a memory about oneself: the right `value` of a typed fact, or a `text`.

    With a text alone, a plain statement takes the place of the memory, typed or not. It is an ordinary proposal with
    the reason `user_correction`, and replaces the memory once a reviewer approves it. Raises `NotFound`, `Denied`, and
    `Conflict` for a memory that was retracted before.
    """
    person = await person_of(context, me, None)
    await acts.own_memory(context, person, request.memory_id)
    async with context.transaction(me.tenant_id, "auditor") as tx:
        memory = await trail.memory(tx, context.vault, request.memory_id)
    known = on_memory(memory, person.pack)
    on_key = memory.entity is not None and memory.predicate is not None
    if request.value is not None and not on_key:
        raise InvalidInput("give the right statement as text, and no value", field="text")
    if request.value is None and request.text is None:
        raise InvalidInput("is required: the right statement, or the right value of a typed fact", field="text")
    typed = request.value is not None
    if typed:
        known["write_class"] = memory.write_class if memory.write_class in OWN_CLASSES else "preference"
    else:
        known |= {"write_class": "statement", "entity": None, "predicate": None}
    said: dict[str, Any] = {
        "text": request.text,
        "value": request.value,
        "confidence": statement_confidence("end_user", person.pack),
    }
    item = proposal_input({"user_id": person.user_id}, {**known, **said}, corrects=request.memory_id)
    return await submit(context, me, person.pack, item)


# ---- consent ----


class OwnConsent(VerbInput):
    """A consent that a person gives themselves."""

    purpose: OpenName | None = Field(None, description="what for; by default a purpose that the pack names")
    predicates_allowed: Predicates = Field(
        ("*",), description="the predicates that it covers; `*` is all, and plain statements"
    )
    data_classifications_allowed: Annotated[tuple[Label, ...], Field(min_length=1, max_length=64)]
    valid_until: Instant | None = None
    supersedes: Name | None = None
    evidence_refs: EvidenceRefs = Field((), description="how the consent was given, beside the sign-in")


@verb("me.consent", right="me", http="POST /me/consents", status=201, retry=True)
async def give_consent(context: FabricContext, me: Principal, request: OwnConsent) -> Consent:
    """Record the caller's own consent with evidence of how it was given; with `supersedes` it renews an earlier one.

    A consent for everything of a label answers the open consent requests for that label: their captures run again.
    """
    person = await person_of(context, me, None)
    terms = own_consents.terms_of(
        person,
        request.data_classifications_allowed,
        purpose=request.purpose,
        predicates=request.predicates_allowed,
        valid_until=request.valid_until,
        supersedes=request.supersedes,
        evidence=request.evidence_refs,
    )
    return await own_consents.give(context, person, terms)


class RevokeOwn(VerbInput):
    """A consent to revoke."""

    consent_id: Name
    evidence_refs: EvidenceRefs = ()


@verb("me.revoke", right="me", http="POST /me/consents/{consent_id}/revoke", cli="me revoke")
async def revoke(context: FabricContext, me: Principal, request: RevokeOwn) -> Consent:
    """Revoke a consent of the caller's own: its memories are hidden from the next recall on. Raises `NotFound`."""
    person = await person_of(context, me, None)
    return await own_consents.revoke(context, person, request.consent_id, request.evidence_refs)


class Answer(WithCode):
    """The answer to a consent request."""

    request_id: Name
    answer: Literal["grant", "refuse"]


@verb(
    "me.answer",
    right="me",
    run_right="me_by_code",
    http="POST /me/consent-requests/{request_id}/answer",
    positional=("request_id", "answer"),
    retry=True,
)
async def answer(context: FabricContext, asker: Asker, request: Answer) -> MyConsentRequest:
    """Answer a consent request, once. `grant` records a consent for its label and has the capture run again.

    `refuse` is remembered like a rejection: nobody asks about the same fact for as long. Raises `NotFound`, and
    `Conflict` if it was answered before or has ended.
    """
    person = await person_of(context, asker, request.code)
    return await own_consents.answer(context, person, request.request_id, request.answer)


# ---- taking it along ----


@verb("me.export", right="me", http="GET /me/export", slow=True)
async def export(context: FabricContext, me: Principal) -> MyExport:
    """Return everything that is held about the caller, to take along; the export is an event.

    It holds memories, facts that wait, captures, consents, consent requests, recalls of their own runs and requests for
    erasure; nothing that is sealed under the key of anybody else.
    """
    person = await person_of(context, me, None)
    async with reading(context, person) as own:
        whole = await exporting.everything(own, me.tenant_id)
    # INVARIANT: nothing is handed out before the event is committed.
    await exporting.record(context, me.tenant_id, me.id, user_id=person.user_id, **exporting.counts(whole))
    return whole
