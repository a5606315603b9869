"""Submitting a typed fact: captured first, then through the gates and into the queue, in one transaction (CAN-8)."""

from muniment.errors import NotFound
from muniment.fabric.admission import Admission
from muniment.fabric.desk import Desk
from muniment.governance import trail
from muniment.model.candidate import Refusal
from muniment.model.capture import Capture, CaptureInput, Content
from muniment.model.context import Principal
from muniment.model.ids import make_ids
from muniment.model.proposal import Submission
from muniment.pack import Pack
from muniment.pipeline import candidate as candidates
from muniment.pipeline import capture as captures
from muniment.pipeline import review, waiting
from muniment.pipeline.capture import Receipt
from muniment.policy.speaking import vouched_for
from muniment.storage.session import Transaction


async def submit(desk: Desk, author: Principal, pack: Pack, item: CaptureInput) -> Submission | Refusal:
    """Four round trips: begin; all that will be asked; the tenant's clock; everything that is written, and the commit.

    A fifth with an idempotency key.
    """
    prepared = captures.Prepared(pack, desk.now())
    prepared.add([item])
    await desk.open_tenant(author.tenant_id)
    async with desk.transaction(author.tenant_id, "writer", under=pack) as tx:
        ids = make_ids("cap", 1, tx.now)
        unwritten = as_captured(item, author, Receipt(ids[0], 0, tx.now), pack)
        (draft,) = candidates.drafts(unwritten, pack, [], iter(candidates.new_ids(tx, 1)))
        admission = await Admission.of(desk, tx, pack, [draft])
        await admission.foresee(tx)
        decided = await admission.decided(tx)
        (receipt,) = await captures.write(tx, desk.vault, author, prepared, ids)
        if receipt.repeated:
            return await _submitted_before(desk, tx, receipt.capture_id)
        waiting.mark_done(tx, ids)
        proposals, refusals = await decided.captured(as_captured(item, author, receipt, pack)).enter(tx)
        if refusals:
            return refusals[0]
        return Submission(
            proposal_id=proposals[0], capture_id=ids[0], write_class=draft.candidate.write_class, status="pending"
        )


async def submitted_under(
    desk: Desk, tx: Transaction, author: Principal, key: str, corrects: str
) -> Submission | Refusal | None:
    """What became of a correction of that memory which the same author handed in under that idempotency key."""
    whose = {"principal": author.id, "principal_kind": author.kind}
    for row in await tx.rows("capture.claimed_keys", keys=[key], **whose):
        capture = await trail.capture(tx, desk.vault, row["capture_id"], desk.archives)
        fact = capture.content.fact if capture is not None and capture.content is not None else None
        if capture is not None and fact is not None and (capture.author, fact.corrects) == (author.id, corrects):
            return await _submitted_before(desk, tx, capture.capture_id)
    return None


async def _submitted_before(desk: Desk, tx: Transaction, capture_id: str) -> Submission | Refusal:
    ids = await review.of_capture(tx, capture_id)
    if ids:
        return Submission.of((await review.load(tx, desk.vault, ids[0])).proposal)
    refusals = await candidates.refusals_of(tx, capture_id)
    if not refusals:
        raise NotFound("what was proposed with this idempotency key is gone", field="idempotency_key")
    return refusals[0]


def as_captured(item: CaptureInput, author: Principal, receipt: Receipt, pack: Pack) -> Capture:
    """What was handed in as the capture that it becomes."""
    return Capture(
        capture_id=receipt.capture_id,
        tenant_id=author.tenant_id,
        seq=receipt.seq,
        author=author.id,
        source=author.kind,
        observed_at=item.observed_at or receipt.captured_at,
        captured_at=receipt.captured_at,
        pack=pack.ref,
        ontology_version=pack.meta.ontology_version,
        vouched=vouched_for(author, item),
        content=Content(text=item.text, fact=item.fact, evidence_refs=item.evidence_refs),
        **item.model_dump(include=set(captures.COLUMNS) - {"observed_at"}),
    )
