"""How memories end: every retraction, every tombstone and every end of a session is written here."""

from collections.abc import Sequence
from typing import Any

from muniment.audit import provenance_store as trail
from muniment.contradictions import store as contradictions
from muniment.database.storage import Row, Tick, Transaction
from muniment.errors import Conflict, NotFound
from muniment.model.contradiction import Outcome
from muniment.model.promoted import Retraction, RetractionReason, SessionEnd

_OUTCOMES: dict[RetractionReason, Outcome] = {
    "superseded": "superseded",
    "corrected": "corrected",
    "consent_revoked": "consent_revoked",
}


async def lock_live(tx: Transaction, memory_id: str, *, expired_too: bool = False) -> bool:
    """Lock a memory until the commit if it is live, and return whether it is; to be called before the tick."""
    return await tx.row("promote.lock_live", memory_id=memory_id, expired_too=expired_too) is not None


async def lock_to_retract(tx: Transaction, memory_id: str) -> None:
    """Lock a memory that is to be retracted; raises `NotFound`, or `Conflict` if it is already retracted."""
    # The row's own lock comes before the clock's: of two retractions at once the second finds it retracted.
    if not await lock_live(tx, memory_id, expired_too=True):
        if await tx.row("promote.is_there", memory_id=memory_id) is None:
            raise NotFound("no such memory", field="memory_id")
        raise Conflict("was retracted before", field="memory_id")


async def retract_locked(
    tx: Transaction,
    memory_ids: Sequence[str],
    *,
    by: str,
    reason: RetractionReason,
    superseded_by: str | None = None,
) -> Tick:
    """Retract memories that are live and locked, and end their contradictions; returns the sequence of it."""
    ids = list(memory_ids)
    used = await trail.used_lately(tx, ids) if ids else {}
    tick = await tx.tick()
    if ids:
        ended: dict[str, Any] = {"reason": reason, "superseded_by": superseded_by}
        tx.defer_many("promote.retract", [(one,) for one in ids], seq=tick.seq, at=tick.at, by=by, **ended)
        tx.defer("promote.mark_dead", memory_ids=ids, seq=tick.seq)
        for one in ids:
            tx.emit("memory.retracted", by, memory_id=one, **ended, **used[one])
        await contradictions.end(tx, by, _OUTCOMES.get(reason, "retracted"), memory_ids=ids)
    return tick


async def supersede(
    tx: Transaction, memory_id: str, *, by: str, reason: RetractionReason, superseded_by: str | None = None
) -> Retraction:
    """Retract one memory that is locked, naming the memory that replaces it."""
    tick = await retract_locked(tx, [memory_id], by=by, reason=reason, superseded_by=superseded_by)
    return Retraction(
        memory_id=memory_id,
        seq=tick.seq,
        retracted_at=tick.at,
        retracted_by=by,
        reason=reason,
        superseded_by=superseded_by,
    )


async def remove_content(tx: Transaction, memory_ids: Sequence[str], digests: Sequence[Row]) -> None:
    """Delete the bodies of memories and leave tombstones with their digests (`tombstone.digests`).

    At the commit a notice is sent to the processes that hold vectors and words of the tenant in memory.
    INVARIANT: each was retracted, or has expired.
    """
    tick, ids = await tx.tick(), list(memory_ids)
    rows = [(row["memory_id"], row["digest"]) for row in digests]
    tx.defer_many("tombstone.insert", rows, seq=tick.seq, at=tick.at)
    tx.defer("tombstone.entomb", memory_ids=ids, seq=tick.seq, at=tick.at)
    tx.defer("tombstone.delete_bodies", memory_ids=ids)
    tx.defer("tombstone.notify")


async def end_session(tx: Transaction, session_id: str, user_id: str | None, *, by: str) -> SessionEnd:
    """End a session of a user, or of nobody; if it has ended before, that stays as it was (TIR-6)."""
    whose = {"user_id": user_id or "", "session_id": session_id}
    row = await tx.row("promote.session_end", **whose)
    if row is None:
        tick = await tx.tick()
        if await tx.do("promote.end_session", **whose, seq=tick.seq, at=tick.at, by=by):
            tx.emit("memory.session_ended", by, session_id=session_id)
        row = await tx.row("promote.session_end", **whose)
    assert row is not None, "it has just been written"
    return SessionEnd(**row)
