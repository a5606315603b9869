"""The statements of items: what its author waits for, and one item of each namespace."""

from collections.abc import Sequence
from typing import Any

from muniment.database.storage import Row, Transaction

# What is told of at once.
MOST_WAITING = 100


async def waiting(
    tx: Transaction, author: str, user_id: str | None, *, entities: Sequence[str] = (), under: Sequence[str] = ()
) -> list[Row]:
    """Read what an author put there, or asked to delete, that is undecided or that policy found to be a duplicate."""
    where = {"entities": list(entities), "under": list(under)}
    return await tx.rows("items.waiting", author=author, user_id=user_id, count=MOST_WAITING, **where)


async def one_of_each_namespace(tx: Transaction, where: dict[str, Any], count: int) -> list[str]:
    """Read the id of one visible memory for each namespace; `where` are the parameters of a recall's filters."""
    return [row["memory_id"] for row in await tx.rows("items.namespaces", **where, count=count)]
