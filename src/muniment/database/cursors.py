"""Cursors: how far a tenant's log has been read for some purpose, one row each, held by one reader at a time."""

from muniment.database.storage import Row, Transaction


async def take(tx: Transaction, name: str) -> Row:
    """Hold the cursor of that name until the commit, made where there is none. It comes before the tenant's clock."""
    tx.defer("cursor.open", cursor=name)
    row = await tx.row("cursor.take", cursor=name)
    assert row is not None, "it was opened just now"
    return row


def move(tx: Transaction, name: str, seq: int, place: str) -> None:
    """To a place in the order of commits; `place` tells apart what has one number."""
    tx.defer("cursor.move", cursor=name, seq=seq, place=place)
