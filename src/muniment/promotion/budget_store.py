"""Budgets as they stand: what is live in a tenant against what its pack allows."""

from muniment.database.storage import Transaction
from muniment.pack import Pack
from muniment.promotion.rules import Room

LOCK = "budget"


async def room(tx: Transaction, pack: Pack) -> Room:
    """What is left now."""
    rows = await tx.rows("jobs.use") if pack.memory_layer.budgets else []
    return Room.under(pack, {(row["tier"], row["class"]): (row["records"], row["bytes"]) for row in rows})


async def hold(tx: Transaction, pack: Pack) -> Room:
    """What is left under the tenant's pack, held until the commit: no two promotions take the same room.

    It comes before the tenant's clock.
    """
    if pack.memory_layer.budgets:
        tx.defer_many("promote.make_locks", [(LOCK,)])
        await tx.row("promote.take_lock", key=LOCK)
    return await room(tx, pack)
