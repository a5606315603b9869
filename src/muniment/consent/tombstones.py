"""Tombstones: the content of memories whose consent ended is taken away; ids, times and digests stay (CON-4)."""

from dataclasses import dataclass
from typing import Any

from muniment.audit import provenance_store as trail
from muniment.contradictions import store as contradictions
from muniment.database.storage import Transaction
from muniment.erasure.store import hold_off_erasure
from muniment.model.capture import holder_of

AT_ONCE = 500


@dataclass(frozen=True)
class Chain:
    """An unbroken chain of consents that has ended: by whom it was revoked, or by nobody when it ran out."""

    root_id: str
    subject: str
    revoked_by: str | None


async def ended_chains(tx: Transaction) -> list[Chain]:
    """Those of the tenant whose memories have not been taken away yet."""
    return [Chain(**row) for row in await tx.rows("consent.ended_chains", root_id=None)]


async def still_ended(tx: Transaction, chain: Chain) -> bool:
    """Hold the subject against a grant, a revocation or a promotion, and look again: it may have been renewed."""
    await hold_off_erasure(tx)
    await tx.row("consent.lock_subject", holder=holder_of(chain.subject, None))
    return bool(await tx.rows("consent.ended_chains", root_id=chain.root_id))


async def take_away(tx: Transaction, chain: Chain) -> int:
    """Take away the content of some of the chain's memories, the live ones retracted first; how many there were.

    INVARIANT: the subject is held, and the chain has ended (`still_ended`).
    """
    rows = await tx.rows("tombstone.of_consent", root_id=chain.root_id, count=AT_ONCE)
    if not rows:
        return 0
    ids = [row["memory_id"] for row in rows]
    live = [row["memory_id"] for row in await tx.rows("tombstone.lock_live", memory_ids=ids)]
    by = chain.revoked_by or "auto"
    digests = await tx.rows("tombstone.digests", memory_ids=ids)
    used = await trail.used_lately(tx, live)
    tick = await tx.tick()
    at: dict[str, Any] = {"seq": tick.seq, "at": tick.at}
    retraction: dict[str, Any] = {"by": by, "reason": "consent_revoked", "superseded_by": None}
    tx.defer_many("promote.retract", [(memory_id,) for memory_id in live], **at, **retraction)
    tx.defer("promote.mark_dead", seq=tick.seq, memory_ids=live)
    tx.defer_many("tombstone.insert", [(row["memory_id"], row["digest"]) for row in digests], **at)
    tx.defer("tombstone.entomb", memory_ids=ids, **at)
    tx.defer("tombstone.delete_bodies", memory_ids=ids)
    for memory_id in live:
        said = {"reason": "consent_revoked", "superseded_by": None, **used[memory_id]}
        tx.emit("memory.retracted", by, memory_id=memory_id, **said)
    await contradictions.end(tx, by, "consent_revoked", memory_ids=live)
    return len(ids)


async def collect(tx: Transaction, memory_ids: list[str]) -> None:
    """Take away the content of memories that ended long ago. INVARIANT: each was retracted, or has expired."""
    digests = await tx.rows("tombstone.digests", memory_ids=memory_ids)
    tick = await tx.tick()
    rows = [(row["memory_id"], row["digest"]) for row in digests]
    tx.defer_many("tombstone.insert", rows, seq=tick.seq, at=tick.at)
    tx.defer("tombstone.entomb", seq=tick.seq, at=tick.at, memory_ids=memory_ids)
    tx.defer("tombstone.delete_bodies", memory_ids=memory_ids)


async def finish(tx: Transaction, chain: Chain, note_limit: int) -> int:
    """Say that the chain is done, with the number of its memories; past the limit also as a note."""
    found = await tx.row("tombstone.count_of_consent", root_id=chain.root_id)
    memories: int = found["memories"] if found is not None else 0
    tick = await tx.tick()
    if await tx.do("consent.swept", root_id=chain.root_id, seq=tick.seq, at=tick.at, memories=memories) == 0:
        return 0  # Another pass was first.
    by, how = chain.revoked_by or "auto", "revoked" if chain.revoked_by else "expired"
    event = "memory.consent_revoked" if chain.revoked_by else "memory.consent_expired"
    tx.emit(event, by, consent_id=chain.root_id, memories=memories)
    if memories > note_limit:
        tx.emit("memory.note", "auto", about=f"consent_{how}", consent_id=chain.root_id, memories=memories)
    return memories
