"""Promotion by policy of what enters the queue, in the transaction that enqueues it (REV-3).

What has to be checked alone, or finds no room, is left to the job: it is promoted, held or left as any other proposal.
"""

from collections.abc import Sequence

from muniment.candidates.intake import IntakeDecision
from muniment.context import FabricContext
from muniment.database.rows import candidate_content
from muniment.database.sealing import SEALED_BYTES
from muniment.database.storage import Transaction
from muniment.model.capture import holder_of
from muniment.promotion import store as promote
from muniment.review import store as review
from muniment.review.queue_store import QueueEntry

# What policy promotes, with the check that it passed.
Chosen = tuple[QueueEntry, promote.PromotionCheck]


async def choose(tx: Transaction, decision: IntakeDecision, entries: Sequence[QueueEntry]) -> list[Chosen]:
    """Choose the entries that policy promotes at once: those that need no check of their own and find room.

    They were compared under the locks of their scopes. INVARIANT: the tenant's clock was not taken yet.
    """
    eligible = [(entry, passed) for entry, passed in zip(entries, decision.passed, strict=True) if entry.auto_eligible]
    if not eligible or not decision.scopes_locked or decision.comparer is None:
        return []
    embedded, near = [one.embedded for _, one in eligible], [one.has_neighbours for _, one in eligible]
    checks = promote.check_together(embedded, near, decision.comparer, decision.pack)
    room = await promote.lock_room(tx, decision.pack)
    return [
        (entry, check)
        for (entry, _), check in zip(eligible, checks, strict=True)
        if check is not None and room.take(entry.tier, entry.draft.candidate.write_class, _size(entry)) is None
    ]


def _size(entry: QueueEntry) -> int:
    """Return the size of the body that it will have."""
    return len(candidate_content(entry.draft.candidate)) + SEALED_BYTES


async def promote_chosen(
    context: FabricContext,
    tx: Transaction,
    decision: IntakeDecision,
    entries: Sequence[QueueEntry],
    chosen: Sequence[Chosen],
) -> list[str]:
    """Approve and promote what was chosen, after all entries were enqueued; returns the ids of the memories."""
    assert decision.comparer is not None, "they were compared"
    pack = decision.pack
    holders = [holder_of(one.draft.candidate.subject, one.draft.candidate.scope.user_id) for one, _ in chosen]
    keys = await context.vault.keys(tx, holders)
    approvals = [
        review.Approval(one.proposal_id, holder, one.tier, one.priority, keys[holder])
        for holder, (one, _) in zip(holders, chosen, strict=True)
    ]
    verdicts = await review.approve(tx, approvals, None, pack)
    promotions = [
        promote.Promotion(
            one.proposal_id,
            verdict_id,
            one.draft.candidate,
            one.draft.capture,
            one.tier,
            one.tier,
            one.priority,
            (),
            keys[holder],
            check,
        )
        for verdict_id, holder, (one, check) in zip(verdicts, holders, chosen, strict=True)
    ]
    if len(chosen) == sum(one.auto_eligible for one in entries):
        # The job need not read these again.
        tx.defer("review.settle", seq=(await tx.tick()).seq, place=chosen[-1][0].proposal_id)
    return await promote.insert(tx, context.vault, promotions, review.signature(None), decision.comparer, pack)
