"""Attendances: who has a proposal before them. No verdict and no event: nothing rests on it."""

from datetime import timedelta

from muniment.database.storage import Transaction
from muniment.model.review_views import Presence

# Whoever was not seen to look for so long looks no more.
LOOKS_FOR = timedelta(seconds=30)


async def attend(tx: Transaction, proposal_id: str, principal: str) -> list[Presence]:
    """Note that somebody looks at it, and who else does, in the order they came."""
    given = {"proposal_id": proposal_id, "principal": principal, "gone": tx.now - LOOKS_FOR}
    tx.defer("review.attend", **given)
    return [Presence(**row) for row in await tx.rows("review.attending", **given)]


async def sweep(tx: Transaction) -> int:
    """Forget those who look no more; how many."""
    return await tx.do("review.left", gone=tx.now - LOOKS_FOR)
