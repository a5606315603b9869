"""Pages of lists that go by the tenant's numbers: where the page before ended."""

from muniment.database.storage import LATEST, Transaction
from muniment.errors import NotFound


async def place(tx: Transaction, statement: str, after: str | None, *, latest_first: bool = False) -> dict[str, object]:
    """The place behind the row of that id, for the page's statement; the beginning of the list where none is named.

    Raises `NotFound` for an id that this tenant has not, another's just so.
    """
    if after is None:
        return {"seq": LATEST if latest_first else 0, "after": ""}
    row = await tx.row(statement, after=after)
    if row is None:
        raise NotFound("no such row to go on from", field="after")
    return {"seq": row["seq"], "after": after}
