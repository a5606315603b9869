"""The lock between erasures and other writers: whoever writes what it read before holds erasures off."""

from collections.abc import Sequence

from muniment.database.storage import NamedStatement, Transaction

# Locked in share mode by transactions that write what they read before, exclusively by an erasure.
LOCK = "erasure"
BLOCK_ERASURES: NamedStatement = ("erasure.hold_off", {})


async def block_erasures(tx: Transaction) -> None:
    """Make erasures wait for the end of this transaction. Call it before the tenant's tick."""
    tx.defer_many("promote.make_locks", [(LOCK,)])
    await tx.gather(BLOCK_ERASURES)


def reached_by_erasure(candidate_ids: Sequence[str]) -> NamedStatement:
    """The statement that finds the candidates which a later erasure covers."""
    return "erasure.reached_candidates", {"candidate_ids": list(candidate_ids)}
