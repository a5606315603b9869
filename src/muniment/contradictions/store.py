"""Contradictions: opened when they are found, ended once, with how long that took (CTR-3, CTR-5)."""

from collections.abc import Sequence
from typing import Any

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
    """Open a contradiction for each memory that the proposal contradicts."""
    if not found:
        return
    tick = await tx.tick()
    ids = make_ids("ctr", len(found), tick.at)
    rows = [(one_id, one.memory.memory_id, one.reason) for one_id, one in zip(ids, found, strict=True)]
    shared: dict[str, Any] = {"entity": candidate.entity, "predicate": candidate.predicate, "proposal_id": proposal_id}
    tx.defer_many("contradictions.insert", rows, seq=tick.seq, at=tick.at, **shared)
    for contradiction_id, existing, reason in rows:
        what = {"contradiction_id": contradiction_id, "existing": existing, "proposal_id": proposal_id}
        tx.emit("memory.contradiction", by, **what, reason=reason)


async def open_new(
    tx: Transaction, by: str, proposal_id: str, candidate: Candidate, found: Sequence[Contradicted]
) -> None:
    """Open the contradictions that were not opened for the proposal before."""
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
    """End the contradictions that have one of these memories or proposals as a side."""
    await tx.tick()  # INVARIANT: they are read once nobody else can end them.
    rows = await tx.rows("contradictions.touching", memory_ids=list(memory_ids), proposal_ids=list(proposal_ids))
    await _end(tx, by, outcome, rows)


async def coexist(tx: Transaction, by: str, contradiction_id: str, qualifiers: dict[str, dict[str, str]]) -> None:
    """End a contradiction so that both sides stay, each seen only by runs with its `qualifiers`, by memory.

    Raises `Conflict` when it was ended before.
    """
    tick = await tx.tick()
    found = await one(tx, contradiction_id)
    if not found.open:
        raise Conflict("was settled before", field="contradiction_id")
    await _end(tx, by, "coexist", [found.model_dump(include={"contradiction_id", "opened_at"})])
    rows = [(memory_id, Jsonb(required)) for memory_id, required in sorted(qualifiers.items())]
    tx.defer_many("contradictions.qualify", rows, contradiction_id=contradiction_id, seq=tick.seq, at=tick.at)


async def _end(tx: Transaction, by: str, outcome: Outcome, rows: Sequence[Row]) -> None:
    if not rows:
        return
    tick = await tx.tick()
    ids = [(row["contradiction_id"],) for row in rows]
    tx.defer_many("contradictions.resolve", ids, seq=tick.seq, at=tick.at, by=by, outcome=outcome)
    for row in rows:
        what = {"contradiction_id": row["contradiction_id"], "outcome": outcome}
        seconds = int((tick.at - row["opened_at"]).total_seconds())
        tx.emit("memory.contradiction_resolved", by, **what, seconds=seconds)


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
    """List contradictions, all or of one memory or proposal, the oldest first."""
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
    """Read one contradiction, open or not; raises `NotFound`."""
    found = await listed(tx, contradiction_id=contradiction_id, limit=1)
    if not found:
        raise NotFound("no such contradiction", field=field)
    return found[0]
