"""Retracting a memory, and the return of its duplicates to review: they stated the same fact (REV-8)."""

from muniment.archives import store as archives
from muniment.candidates.intake import Intake
from muniment.candidates.store import redraft
from muniment.context import FabricContext
from muniment.database.locks import block_erasures
from muniment.database.storage import Transaction
from muniment.model.promoted import Retraction, RetractionReason
from muniment.pack import Pack
from muniment.promotion.retraction_store import lock_to_retract, supersede
from muniment.review import store as review

# If the fact itself was wrong, its duplicates are reviewed again. If it was superseded, corrected or lost its consent,
# that holds for the duplicates too.
_RETURNS_DUPLICATES: frozenset[RetractionReason] = frozenset({"wrong", "deprecated"})


async def retract_memory(
    context: FabricContext, tx: Transaction, memory_id: str, *, by: str, reason: RetractionReason, pack: Pack
) -> Retraction:
    """Retract a memory and return its duplicates to review; raises `NotFound`, or `Conflict` when it was retracted.

    The duplicates are read and screened before the tenant's clock is taken. They can be compared only afterwards, when
    the memory that they repeat is retracted.
    """
    # The duplicates are read here and written below: no erasure may pass in between.
    await block_erasures(tx)
    returning = await _returning(context, tx, memory_id, pack) if reason in _RETURNS_DUPLICATES else None
    await lock_to_retract(tx, memory_id)
    retraction = await supersede(tx, memory_id, by=by, reason=reason)
    if returning is not None:
        await (await returning.decide(tx)).enqueue(tx)
    return retraction


async def _returning(context: FabricContext, tx: Transaction, memory_id: str, pack: Pack) -> Intake | None:
    """Draft each duplicate of a memory anew, to pass the gates again and wait for a person."""
    ids = [row["proposal_id"] for row in await tx.rows("review.duplicates_of", memory_id=memory_id)]
    found = await review.load_many(tx, context.vault, ids, skip_broken=True)
    if not found:
        return None
    await archives.block_archiving(tx)
    drafts = await redraft(tx, context.vault, found, pack)
    return await Intake.of(context, tx, pack, drafts) if drafts else None
