"""Contradictions: opened when they are seen, ended once, and how long that took (CTR-3, CTR-5)."""

from collections.abc import Sequence

from psycopg.types.json import Jsonb

from muniment.contradictions.rules import Contradicted
from muniment.database.storage import Row, Transaction
from muniment.errors import Conflict, NotFound
from muniment.model.candidate import Candidate
from muniment.model.contradiction import Contradiction, Outcome
from muniment.model.ids import make_ids


async def open_(
    tx: Transaction, by: str, proposal_id: str, candidate: Candidate, found: Sequence[Contradicted]
) -> None:
    """Open one for each memory that the proposal contradicts."""
    if not found:
        return
    tick = await tx.tick()
    ids = make_ids("ctr", len(found), tick.at)
    rows = [(one_id, one.memory.memory_id, one.reason) for one_id, one in zip(ids, found, strict=True)]
    tx.defer_many(
        "contradictions.insert",
        rows,
        seq=tick.seq,
        at=tick.at,
        entity=candidate.entity,
        predicate=candidate.predicate,
        proposal_id=proposal_id,
    )
    for contradiction_id, existing, reason in rows:
        tx.emit(
            "memory.contradiction",
            by,
            contradiction_id=contradiction_id,
            existing=existing,
            proposal_id=proposal_id,
            reason=reason,
        )


async def open_new(
    tx: Transaction, by: str, proposal_id: str, candidate: Candidate, found: Sequence[Contradicted]
) -> None:
    """Open those of them that were not opened for the proposal before."""
    if found:
        rows = await tx.rows("contradictions.of_proposal", proposal_id=proposal_id)
        before = {row["existing"] for row in rows}
        await open_(tx, by, proposal_id, candidate, [one for one in found if one.memory.memory_id not in before])


async def end(
    tx: Transaction,
    by: str,
    outcome: Outcome,
    *,
    memory_ids: Sequence[str] = (),
    proposal_ids: Sequence[str] = (),
) -> None:
    """End those that have one of these as a side: the side is gone."""
    await tx.tick()  # INVARIANT: looked at only once nobody else can end them.
    rows = await tx.rows("contradictions.touching", memory_ids=list(memory_ids), proposal_ids=list(proposal_ids))
    await _end(tx, by, outcome, rows)


async def coexist(tx: Transaction, by: str, contradiction_id: str, qualifiers: dict[str, dict[str, str]]) -> None:
    """End one so that both sides stand, each seen by the runs that say its qualifiers, given by memory.

    Raises `Conflict` when it was ended before.
    """
    tick = await tx.tick()
    found = await one(tx, contradiction_id)
    if not found.open:
        raise Conflict("was settled before", field="contradiction_id")
    await _end(tx, by, "coexist", [found.model_dump(include={"contradiction_id", "opened_at"})])
    tx.defer_many(
        "contradictions.qualify",
        [(memory_id, Jsonb(said)) for memory_id, said in sorted(qualifiers.items())],
        contradiction_id=contradiction_id,
        seq=tick.seq,
        at=tick.at,
    )


async def _end(tx: Transaction, by: str, outcome: Outcome, rows: Sequence[Row]) -> None:
    if not rows:
        return
    tick = await tx.tick()
    tx.defer_many(
        "contradictions.resolve",
        [(row["contradiction_id"],) for row in rows],
        seq=tick.seq,
        at=tick.at,
        by=by,
        outcome=outcome,
    )
    for row in rows:
        tx.emit(
            "memory.contradiction_resolved",
            by,
            contradiction_id=row["contradiction_id"],
            outcome=outcome,
            seconds=int((tick.at - row["opened_at"]).total_seconds()),
        )


async def listed(
    tx: Transaction,
    *,
    memory_id: str | None = None,
    proposal_id: str | None = None,
    contradiction_id: str | None = None,
    closed: bool = True,
    after: str | None = None,
    limit: int = 1000,
) -> list[Contradiction]:
    """The tenant's, or those of one memory or proposal, the oldest first."""
    rows = await tx.rows(
        "contradictions.list",
        memory_id=memory_id,
        proposal_id=proposal_id,
        contradiction_id=contradiction_id,
        closed=closed,
        after=after or "",
        count=limit,
    )
    return [Contradiction(**row) for row in rows]


async def one(tx: Transaction, contradiction_id: str, *, field: str = "contradiction_id") -> Contradiction:
    """One, open or not; raises `NotFound`."""
    found = await listed(tx, contradiction_id=contradiction_id, limit=1)
    if not found:
        raise NotFound("no such contradiction", field=field)
    return found[0]
