"""Presence: who has a proposal open. No verdict and no event, nothing rests on it."""

from datetime import timedelta

from muniment.database.storage import Transaction
from muniment.model.review_views import Presence

# Somebody who did not report for so long is gone.
PRESENT_FOR = timedelta(seconds=30)


async def attend(tx: Transaction, proposal_id: str, principal: str) -> list[Presence]:
    """Note that somebody has a proposal open; returns who else does, in the order they came."""
    values = {"proposal_id": proposal_id, "principal": principal, "gone": tx.now - PRESENT_FOR}
    tx.defer("review.attend", **values)
    return [Presence(**row) for row in await tx.rows("review.attending", **values)]


async def sweep_presence(tx: Transaction) -> int:
    """Delete the presence of those who are gone; returns how many."""
    return await tx.do("review.left", gone=tx.now - PRESENT_FOR)
