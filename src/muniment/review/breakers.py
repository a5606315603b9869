"""Breakers: a class whose samples were wrong too often is not promoted without a person any more (JOB-6)."""

from muniment.database.storage import Transaction
from muniment.model.breaker import Breaker
from muniment.model.context import Principal
from muniment.model.fields import WriteClass


async def listed(tx: Transaction) -> list[Breaker]:
    """The state of each class that was ever suspended."""
    return [Breaker(**row) for row in await tx.rows("jobs.breakers")]


async def suspended(tx: Transaction) -> frozenset[WriteClass]:
    """The classes that policy may not promote alone for now."""
    return frozenset(one.write_class for one in await listed(tx) if one.open)


async def open_(tx: Transaction, write_class: WriteClass, samples: int, correct: int, low: float) -> None:
    """Suspend a class."""
    tick = await tx.tick()
    found = {"write_class": write_class, "samples": samples, "correct": correct, "low": round(low, 6)}
    tx.defer("jobs.switch", seq=tick.seq, at=tick.at, open=True, by="auto", **found)
    tx.emit("memory.auto_promotion_suspended", "auto", **found)


async def close(tx: Transaction, write_class: WriteClass, principal: Principal) -> None:
    """Let a class go on; its samples are counted anew from here."""
    tick = await tx.tick()
    none = {"samples": 0, "correct": 0, "low": 0.0}
    tx.defer("jobs.switch", seq=tick.seq, at=tick.at, open=False, by=principal.id, write_class=write_class, **none)
    tx.emit("memory.note", principal.id, about="auto_promotion_resumed", write_class=write_class)
