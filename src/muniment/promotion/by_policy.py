"""Promotes proposals that policy may approve in the transaction that enqueues them (REV-3).

A proposal that has to be checked alone, or that the budget has no room for, is left to the job, as any other.
"""

from collections.abc import Sequence

from muniment.candidates.intake import IntakeDecision
from muniment.context import FabricContext
from muniment.contradictions.batch_rules import BatchMember
from muniment.database.rows import fact_content
from muniment.database.sealing import SEALED_BYTES
from muniment.database.storage import Transaction
from muniment.model.capture import holder_of
from muniment.promotion import store as promote
from muniment.review import store as review
from muniment.review.queue_store import QueueEntry

# An entry that policy promotes, with the check that it passed.
Chosen = tuple[QueueEntry, promote.PromotionCheck]


async def choose(tx: Transaction, decision: IntakeDecision, entries: Sequence[QueueEntry]) -> list[Chosen]:
    """Choose the entries that policy promotes at once: those that need not be checked alone and that have room.

    None if they were not compared under the locks of their scopes. Raises `ReadersUnavailable`.
    INVARIANT: the tenant has no tick yet.
    """
    eligible = [(entry, passed) for entry, passed in zip(entries, decision.passed, strict=True) if entry.auto_eligible]
    if not eligible or not decision.scopes_locked or decision.comparer is None:
        return []
    embedded = [passed.embedded for _, passed in eligible]
    members = [
        BatchMember(passed.embedded.candidate, entry.tier, passed.read, passed.has_neighbours)
        for entry, passed in eligible
    ]
    checks = await promote.check_together(embedded, members, decision.comparer, decision.pack)
    room = await promote.lock_room(tx, decision.pack)
    return [
        (entry, check)
        for (entry, _), check in zip(eligible, checks, strict=True)
        if check is not None and room.take(entry.tier, entry.draft.candidate.write_class, _size(entry)) is None
    ]


def _size(entry: QueueEntry) -> int:
    """Return how many bytes the sealed body of its memory will have."""
    return len(fact_content(entry.draft.candidate)) + SEALED_BYTES


async def promote_chosen(
    context: FabricContext,
    tx: Transaction,
    decision: IntakeDecision,
    entries: Sequence[QueueEntry],
    chosen: Sequence[Chosen],
) -> list[str]:
    """Approve and promote the chosen entries, after all were enqueued; returns the ids of the memories."""
    assert decision.comparer is not None, "they were compared"
    pack = decision.pack
    holders = [holder_of(entry.draft.candidate.subject, entry.draft.candidate.scope.user_id) for entry, _ in chosen]
    keys = await context.vault.keys(tx, holders)
    approvals = [
        review.Approval(entry.proposal_id, holder, entry.tier, entry.priority, keys[holder])
        for holder, (entry, _) in zip(holders, chosen, strict=True)
    ]
    verdicts = await review.approve(tx, approvals, None, pack, new=True)
    promotions = [
        promote.Promotion(
            proposal_id=entry.proposal_id,
            proposal_action=entry.draft.action,
            verdict_id=verdict_id,
            candidate=entry.draft.candidate,
            capture=entry.draft.capture,
            tier=entry.tier,
            tier_derived=entry.tier,
            priority=entry.priority,
            editors=(),
            key=keys[holder],
            check=check,
        )
        for verdict_id, holder, (entry, check) in zip(verdicts, holders, chosen, strict=True)
    ]
    if len(chosen) == sum(entry.auto_eligible for entry in entries):
        # The job need not read these again.
        tx.defer("review.settle", seq=(await tx.tick()).seq, place=chosen[-1][0].proposal_id)
    return await promote.insert(tx, context.vault, promotions, review.signature(None), decision.comparer, pack)
