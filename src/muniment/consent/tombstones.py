"""Tombstones: memories whose consent ended lose their content; ids, times and digests stay (CON-4)."""

from typing import NamedTuple

from muniment.database.locks import block_erasures
from muniment.database.storage import Transaction
from muniment.model.capture import holder_of
from muniment.promotion.retraction_store import remove_content, retract_locked

AT_ONCE = 500


class Chain(NamedTuple):
    """An unbroken chain of consents that has ended; `revoked_by` is None when it expired."""

    root_id: str
    subject: str
    revoked_by: str | None


async def ended_chains(tx: Transaction) -> list[Chain]:
    """Return the tenant's ended chains whose memories still have content."""
    return [Chain(**row) for row in await tx.rows("consent.ended_chains", root_id=None)]


async def still_ended(tx: Transaction, chain: Chain) -> bool:
    """Lock the subject against grants, revocations and promotions, and read the chain again: it may be renewed."""
    await block_erasures(tx)
    await tx.row("consent.lock_subject", holder=holder_of(chain.subject, None))
    return bool(await tx.rows("consent.ended_chains", root_id=chain.root_id))


async def remove_some(tx: Transaction, chain: Chain) -> int:
    """Retract the live ones of the chain's next memories and remove the content of all; returns how many.

    INVARIANT: the subject is locked, and the chain has ended (`still_ended`).
    """
    rows = await tx.rows("tombstone.of_consent", root_id=chain.root_id, count=AT_ONCE)
    if not rows:
        return 0
    ids = [row["memory_id"] for row in rows]
    live = [row["memory_id"] for row in await tx.rows("tombstone.lock_live", memory_ids=ids)]
    digests = await tx.rows("tombstone.digests", memory_ids=ids)
    await retract_locked(tx, live, by=chain.revoked_by or "auto", reason="consent_revoked")
    await remove_content(tx, ids, digests)
    return len(ids)


async def record_sweep(tx: Transaction, chain: Chain, note_limit: int) -> int:
    """Record that the chain is done and return the number of its memories; above the limit also as a note."""
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
