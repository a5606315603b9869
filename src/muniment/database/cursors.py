"""Where reading goes on: cursors that jobs keep in the database, and pages of lists that callers ask for."""

from muniment.database.storage import LATEST, Row, Transaction
from muniment.errors import NotFound


async def lock(tx: Transaction, name: str) -> Row:
    """Lock the cursor of that name until the commit, creating it if needed. Call it before the tenant's tick."""
    tx.defer("cursor.open", cursor=name)
    row = await tx.row("cursor.take", cursor=name)
    assert row is not None, "it was created just now"
    return row


def move(tx: Transaction, name: str, seq: int, place: str) -> None:
    """Move a cursor to a sequence number; `place` is the id of the row, as several rows can share one number."""
    tx.defer("cursor.move", cursor=name, seq=seq, place=place)


async def page_start(
    tx: Transaction, statement: str, after: str | None, *, latest_first: bool = False
) -> dict[str, object]:
    """The parameters for a page after the row with the id `after`; from the start of the list for None.

    `statement` reads the row's sequence number. Raises `NotFound` for an id that this tenant does not have.
    """
    if after is None:
        return {"seq": LATEST if latest_first else 0, "after": ""}
    row = await tx.row(statement, after=after)
    if row is None:
        raise NotFound("no such row to go on from", field="after")
    return {"seq": row["seq"], "after": after}
