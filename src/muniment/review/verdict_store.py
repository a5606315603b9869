"""Recording verdicts: every verdict on a proposal is a new row, written here."""

import psycopg

from muniment.database.storage import Transaction
from muniment.errors import AlreadyDecided
from muniment.model.fields import Source, Tier
from muniment.model.ids import make_id
from muniment.model.proposal import Action


async def record_verdict(
    tx: Transaction,
    proposal_id: str,
    action: Action,
    by: tuple[str, Source],
    *,
    pack: str,
    holder: str,
    verdict_id: str | None = None,
    tier: Tier | None = None,
    priority: float | None = None,
    assignee: str | None = None,
    memory_id: str | None = None,
    remark: bytes | None = None,
    cause: str | None = None,
    locked: bool = False,
) -> str:
    """Insert a verdict and return its id; `remark` is sealed for the `holder` of the proposal's content.

    Raises `AlreadyDecided` when somebody else ended the proposal first. With `locked`, nobody can have: the proposal
    was locked and then seen undecided, so the insert goes out with the next statements.
    """
    tick = await tx.tick()
    verdict_id = verdict_id or make_id("rv", tick.at)
    row = {
        "verdict_id": verdict_id,
        "proposal_id": proposal_id,
        "seq": tick.seq,
        "action": action,
        "by": by[0],
        "by_kind": by[1],
        "at": tick.at,
        "pack": pack,
        "tier": tier,
        "priority": priority,
        "assignee": assignee,
        "memory_id": memory_id,
        "holder": holder,
        "remark": remark,
        "cause": cause,
    }
    if locked:
        tx.defer_row("review.decide", **row)
        return verdict_id
    try:
        await tx.do("review.decide", **row)
    except psycopg.errors.UniqueViolation as error:
        if error.diag.constraint_name == "verdicts_one_final":
            raise AlreadyDecided("somebody else decided this proposal first", field="proposal_id") from error
        raise
    return verdict_id
