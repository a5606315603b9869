"""The named locks of a tenant, and the one between erasures and whoever writes what it has read."""

from collections.abc import Iterable

from muniment.database.storage import NamedStatement, Transaction

# Locked in share mode by transactions that write what they have read, exclusively by an erasure.
ERASURE = "erasure"
BLOCK_ERASURES: NamedStatement = ("erasure.hold_off", {})


def create(tx: Transaction, names: Iterable[str]) -> None:
    """Create the rows of these locks, if they are missing."""
    tx.defer_many("promote.make_locks", [(name,) for name in names])


async def block_erasures(tx: Transaction) -> None:
    """Make erasures wait for the end of this transaction. Call it before the tenant's tick."""
    create(tx, [ERASURE])
    await tx.gather(BLOCK_ERASURES)
