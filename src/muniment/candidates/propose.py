"""Proposing a typed fact: captured, through the gates and into the queue, in one transaction (CAN-8)."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import psycopg

from muniment.candidates import store as candidates
from muniment.candidates.intake import Intake
from muniment.candidates.rules import draft_facts, fact_holders
from muniment.capture import store as captures
from muniment.capture.rules import vouched_for
from muniment.capture.store import Receipt
from muniment.context import FabricContext
from muniment.database.cluster.errors import violates
from muniment.database.storage import Transaction
from muniment.errors import Conflict, NotFound
from muniment.model.candidate import Refusal
from muniment.model.capture import Capture, CaptureInput, Content, holder_of
from muniment.model.context import Principal
from muniment.model.fields import build
from muniment.model.ids import make_ids
from muniment.model.proposal import MOST_TARGETS, ProposalDocument, Submission
from muniment.pack import Pack
from muniment.review import store as review


def is_document(fields: Mapping[str, Any]) -> bool:
    """Whether these are the fields of a proposal document, and not of a fact (REV-10)."""
    return "candidate" in fields


def read_document(fields: Mapping[str, Any], pack: Pack) -> tuple[ProposalDocument, dict[str, Any]]:
    """Check a proposal document; returns it, and the fact that it proposes, about its entity.

    What it says about tier, consent, contradiction and eligibility is checked in form and believed in nothing: each is
    computed anew. Raises `InvalidInput`.
    """
    document = build(ProposalDocument, fields)
    fact = document.candidate
    return document, {
        "write_class": document.write_class,
        "entity": fact.entity_ceid,
        "subject": fact.entity_ceid,
        "predicate": fact.predicate,
        "value": fact.value,
        "evidence_refs": fact.evidence_refs,
        "confidence": fact.confidence,
        "classification": pack.default_label,
    }


async def submit(
    context: FabricContext,
    author: Principal,
    pack: Pack,
    item: CaptureInput,
    proposal_id: str | None = None,
    *,
    retracts: Sequence[str] = (),
) -> Submission | Refusal:
    """Capture a fact and propose it, under an id of its own if one is given; returns the refusal if a gate refuses it.

    With `retracts` it is no fact but a request that one of those memories is retracted: a person decides. The same fact
    of the same author under the same id is proposed once. Raises `Conflict` for an id that is taken.
    It takes four round trips: begin, all reads, the tenant's clock, all writes with the commit; a fifth with an
    idempotency key.
    """
    prepared = captures.Prepared(pack, context.now())
    prepared.add([item])
    await context.open_tenant(author.tenant_id)
    with _taken_id(proposal_id):
        return await _submit(context, author, prepared, proposal_id, tuple(retracts[:MOST_TARGETS]))


async def _submit(
    context: FabricContext,
    author: Principal,
    prepared: captures.Prepared,
    proposal_id: str | None,
    retracts: tuple[str, ...],
) -> Submission | Refusal:
    pack, (item,) = prepared.pack, prepared.items
    async with context.transaction(author.tenant_id, "writer", under=pack) as tx:
        if proposal_id is not None and (before := await _proposed_as(context, tx, author, item, proposal_id)):
            return before
        ids = make_ids("cap", 1, tx.now)
        unwritten = as_captured(item, author, Receipt(ids[0], 0, tx.now), pack)
        (draft,) = draft_facts(unwritten, pack, [], iter(candidates.new_ids(tx, 1)))
        if retracts:
            asked = draft.candidate.model_copy(update={"flags": (*draft.candidate.flags, "agent_asked")})
            draft = replace(draft, candidate=asked, action="retract", targets=retracts)
        intake = await Intake.of(context, tx, pack, [draft])
        # The holders of the fact and of the capture differ where the capture names only a user.
        fact = draft.candidate
        holders = (*fact_holders(fact.subject, fact.scope.user_id, pack), holder_of(item.subject, item.user_id))
        await intake.prefetch(tx, *(("tenant.hold_subjects", {"holders": [one]}) for one in dict.fromkeys(holders)))
        decision = await intake.decide(tx)
        if not decision.contradicts:
            tx.change_nothing_visible()
        (receipt,) = await captures.write(tx, context.vault, author, prepared, ids)
        if receipt.repeated:
            return await _submitted_before(context, tx, receipt.capture_id)
        candidates.mark_done(tx, ids)
        decision = decision.with_capture(as_captured(item, author, receipt, pack))
        entries = decision.entries(tx)
        if proposal_id is not None:
            entries = [replace(one, proposal_id=proposal_id) for one in entries]
        proposals, refusals = await decision.enqueue_entries(tx, entries)
        if refusals:
            return refusals[0]
        return Submission(
            proposal_id=proposals[0], capture_id=ids[0], write_class=draft.candidate.write_class, status="pending"
        )


_TAKEN = "is the id of another proposal"


@contextmanager
def _taken_id(proposal_id: str | None) -> Generator[None]:
    """Raise `Conflict` where the id of a proposal was taken by another transaction meanwhile."""
    try:
        yield
    except psycopg.errors.UniqueViolation as error:
        if proposal_id is None or not violates(error, "proposals_pkey"):
            raise
        raise Conflict(_TAKEN, field="proposal_id") from error


async def _proposed_as(
    context: FabricContext, tx: Transaction, author: Principal, item: CaptureInput, proposal_id: str
) -> Submission | None:
    """Return what this author proposed under that id before, with the same fact; None if nobody did."""
    try:
        proposal = (await review.load(tx, context.vault, proposal_id)).proposal
    except NotFound:
        return None
    capture = await captures.read_one(tx, context.vault, proposal.candidate.capture_id)
    same = capture is not None and capture.content is not None and capture.content.fact == item.fact
    if not same or proposal.candidate.author != author.id:
        raise Conflict(_TAKEN, field="proposal_id")
    return Submission.of(proposal)


async def submitted_under(
    context: FabricContext, tx: Transaction, author: Principal, key: str, corrects: str
) -> Submission | Refusal | None:
    """Return the result of the correction that this author proposed for that memory under the idempotency key."""
    whose = {"principal": author.id, "principal_kind": author.kind}
    for row in await tx.rows("capture.claimed_keys", keys=[key], **whose):
        capture = await captures.read_one(tx, context.vault, row["capture_id"], context.archives)
        fact = capture.content.fact if capture is not None and capture.content is not None else None
        if capture is not None and fact is not None and (capture.author, fact.corrects) == (author.id, corrects):
            return await _submitted_before(context, tx, capture.capture_id)
    return None


async def _submitted_before(context: FabricContext, tx: Transaction, capture_id: str) -> Submission | Refusal:
    if (proposed := await tx.row("review.of_capture", capture_id=capture_id)) is not None:
        return Submission.of((await review.load(tx, context.vault, proposed["proposal_id"])).proposal)
    if (refused := await tx.row("candidate.refusals", capture_id=capture_id)) is None:
        raise NotFound("what was proposed with this idempotency key is gone", field="idempotency_key")
    return Refusal(**refused)


def as_captured(item: CaptureInput, author: Principal, receipt: Receipt, pack: Pack) -> Capture:
    """Build the capture that an input becomes."""
    return Capture(
        **{name: getattr(receipt, name) for name in ("capture_id", "seq", "captured_at")},
        tenant_id=author.tenant_id,
        author=author.id,
        source=author.kind,
        observed_at=item.observed_at or receipt.captured_at,
        pack=pack.ref,
        ontology_version=pack.meta.ontology_version,
        vouched=vouched_for(author, item),
        content=Content(text=item.text, fact=item.fact, evidence_refs=item.evidence_refs, claims=item.claims),
        **item.model_dump(include=set(captures.COLUMNS) - {"observed_at"}),
    )
