"""The named locks of a tenant: between erasures and whoever writes what it has read, and between promotions."""

from collections.abc import Collection, Iterable

from muniment.database.storage import NamedStatement, Transaction

# Locked in share mode by transactions that write what they have read, exclusively by an erasure.
ERASURE = "erasure"
BLOCK_ERASURES: NamedStatement = ("erasure.hold_off", {})
# The lock of the scope of all users; that of one user has the user id behind it.
_SCOPE = "scope @"


def create(tx: Transaction, names: Iterable[str]) -> None:
    """Create the rows of these locks, if they are missing."""
    tx.defer_many("promote.make_locks", [(name,) for name in names])


async def block_erasures(tx: Transaction) -> None:
    """Make erasures wait for the end of this transaction. Call it before the tenant's tick."""
    create(tx, [ERASURE])
    await tx.gather(BLOCK_ERASURES)


def scope_keys(users: Collection[str | None]) -> list[str]:
    """Return the names of the locks of these users' scopes, in the order in which they are taken."""
    return [_SCOPE, *(_SCOPE + user for user in sorted(user for user in users if user))]


def scope_locks(users: Collection[str | None]) -> list[NamedStatement]:
    """Return the statements that lock these users' scopes; None stands for what all users see.

    Two promotions that some run could see side by side never pass at once: what is for all users waits for every
    other, what is for one user waits for that user's and for what is for all. All take the locks in one order: the
    subjects, then the scopes.
    """
    everybody, *own = scope_keys(users)
    first: NamedStatement = ("promote.take_lock" if None in users else "promote.share_lock", {"key": everybody})
    return [first, ("promote.take_locks", {"keys": own})] if own else [first]
