"""Withdrawing a memory, and what comes back with it: its duplicates stood for the same fact (REV-8)."""

from muniment.archives import store as archives
from muniment.audit import provenance_store as trail
from muniment.candidates import store as candidates
from muniment.candidates.intake import Admission
from muniment.candidates.store import Draft
from muniment.context import FabricContext
from muniment.database.storage import Transaction
from muniment.erasure.store import hold_off_erasure
from muniment.model.promoted import Retraction, RetractionReason
from muniment.pack import Pack
from muniment.promotion import store as promote
from muniment.review import store as review

# Where the fact itself was found wanting, what repeated it deserves another look. Superseded, corrected or without
# consent it is settled for the duplicates too.
_BRING_BACK: frozenset[RetractionReason] = frozenset({"wrong", "deprecated"})


async def withdraw(
    context: FabricContext, tx: Transaction, memory_id: str, *, by: str, reason: RetractionReason, pack: Pack
) -> Retraction:
    """Retract it; raises `NotFound`, or `Conflict` when it was withdrawn before.

    What comes back is read and screened before the tenant's clock is taken; it can only be compared after, when what
    it repeated stands no more.
    """
    # What comes back was read before: no erasure may pass in between.
    await hold_off_erasure(tx)
    returning = await _returning(context, tx, memory_id, pack) if reason in _BRING_BACK else None
    retraction = await promote.retract(tx, memory_id, by=by, reason=reason)
    if returning is not None:
        await (await returning.decided(tx)).enter(tx)
    return retraction


async def _returning(context: FabricContext, tx: Transaction, memory_id: str, pack: Pack) -> Admission | None:
    """Each duplicate as a candidate of its own, to pass the gates again and wait for a person."""
    found = await review.load_many(tx, context.vault, await review.duplicates_of(tx, memory_id), skip_broken=True)
    if not found:
        return None
    ids = iter(candidates.new_ids(tx, len(found)))
    wanted = sorted({one.proposal.candidate.capture_id for one in found})
    await archives.hold_off(tx)
    captures = await trail.captures(tx, context.vault, wanted)
    ordinals = await candidates.ordinals(tx, wanted)
    drafts: list[Draft] = []
    for one in found:
        capture = captures.get(one.proposal.candidate.capture_id)
        if capture is None or not one.row["content"]:
            continue  # Archived: what it said can be proposed anew. Erased: it cannot.
        again = candidates.afresh(one.proposal.candidate, next(ids), capture, pack)
        prior = tuple(one.row["prior_editors"] or ())
        place = ordinals[capture.capture_id]
        ordinals[capture.capture_id] += 1
        drafts.append(Draft(again, capture, place, prior, one.proposal.proposal_id))
    return await Admission.of(context, tx, pack, drafts) if drafts else None
