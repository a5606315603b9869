"""Proposing a typed fact: captured, through the gates and into the queue, in one transaction (CAN-8)."""

from collections.abc import Sequence
from dataclasses import replace

from muniment.candidates import store as candidates
from muniment.candidates.intake import Intake
from muniment.candidates.rules import draft_facts, fact_holders
from muniment.capture import store as captures
from muniment.capture.rules import vouched_for
from muniment.capture.store import Receipt
from muniment.context import FabricContext
from muniment.database.storage import Transaction
from muniment.errors import NotFound
from muniment.model.candidate import Refusal
from muniment.model.capture import Capture, CaptureInput, Content, holder_of
from muniment.model.context import Principal
from muniment.model.ids import make_ids
from muniment.model.proposal import MOST_TARGETS, Submission
from muniment.pack import Pack
from muniment.review import store as review


async def submit(
    context: FabricContext, author: Principal, pack: Pack, item: CaptureInput, *, retracts: Sequence[str] = ()
) -> Submission | Refusal:
    """Capture a fact and propose it; returns the refusal if a gate refuses it.

    With `retracts` it is no fact but a request that one of those memories is retracted: a person decides.

    It takes four round trips: begin, all reads, the tenant's clock, all writes with the commit; a fifth with an
    idempotency key.
    """
    prepared = captures.Prepared(pack, context.now())
    prepared.add([item])
    (item,) = prepared.items
    await context.open_tenant(author.tenant_id)
    async with context.transaction(author.tenant_id, "writer", under=pack) as tx:
        ids = make_ids("cap", 1, tx.now)
        unwritten = as_captured(item, author, Receipt(ids[0], 0, tx.now), pack)
        (draft,) = draft_facts(unwritten, pack, [], iter(candidates.new_ids(tx, 1)))
        if retracts:
            asked = draft.candidate.model_copy(update={"flags": (*draft.candidate.flags, "agent_asked")})
            draft = replace(draft, candidate=asked, action="retract", targets=tuple(retracts[:MOST_TARGETS]))
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
        proposals, refusals = await decision.with_capture(as_captured(item, author, receipt, pack)).enqueue(tx)
        if refusals:
            return refusals[0]
        return Submission(
            proposal_id=proposals[0], capture_id=ids[0], write_class=draft.candidate.write_class, status="pending"
        )


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
        content=Content(text=item.text, fact=item.fact, evidence_refs=item.evidence_refs),
        **item.model_dump(include=set(captures.COLUMNS) - {"observed_at"}),
    )
