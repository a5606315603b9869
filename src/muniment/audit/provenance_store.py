"""The trail: from a promoted memory back to everything it rests on, and forward to the recalls that used it."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic_core import to_json

from muniment.database.rows import candidate_of, event_of, memory_of, open_contents
from muniment.database.sealing import Vault
from muniment.database.storage import LATEST, Row, Transaction
from muniment.errors import NotFound
from muniment.loops import give_way
from muniment.model.candidate import Candidate
from muniment.model.events import Event
from muniment.model.ids import first_id, made_at
from muniment.model.promoted import PromotedMemory
from muniment.model.trail import Recalled

RECALLS_SHOWN = 100
# Bytes of an event that takes long to decode.
LONG = 10_000
# Of each kind, in the event of one retraction.
USES_NAMED = 100
_FIRST = datetime.min.replace(tzinfo=UTC)


async def memory(tx: Transaction, vault: Vault, memory_id: str) -> PromotedMemory:
    """One memory, retracted or not; without content if that was erased. Raises `NotFound`."""
    row = await tx.row("audit.memory", memory_id=memory_id, seq=LATEST, at=tx.now)
    if row is None:
        raise NotFound("no such memory", field="memory_id")
    if row["content"] is None:
        return memory_of(row, None)
    key = await vault.open_key(tx, row["holder"], row["wrapped_key"], row["key_version"])
    return memory_of(row, key.open("memory_bodies.content", memory_id, row["content"]))


async def candidates(tx: Transaction, vault: Vault, candidate_id: str) -> tuple[Candidate, ...]:
    """The candidate and all those it is an edit of, the first first."""
    rows = await tx.rows("audit.candidates", candidate_id=candidate_id)
    contents = await open_contents(tx, vault, "candidates", "candidate_id", rows)
    return tuple(candidate_of(row, content) for row, content in zip(rows, contents, strict=True))


async def proposals_of(tx: Transaction, candidate_ids: list[str]) -> list[str]:
    """The proposals of those candidates, in order."""
    return [row["proposal_id"] for row in await tx.rows("audit.proposals_of", candidate_ids=candidate_ids)]


async def recalls_with(tx: Transaction, memory_id: str) -> tuple[str, ...]:
    """The recalls that returned the memory, the latest first."""
    rows = await tx.rows("audit.recalls_with", memory_id=memory_id, count=RECALLS_SHOWN)
    return tuple(row["recall_id"] for row in rows)


async def recalled(tx: Transaction, memory_id: str) -> Recalled:
    """How often recalls returned the memory, and when."""
    row = await tx.row("audit.recalled", memory_id=memory_id)
    return Recalled(**row) if row is not None else Recalled()


async def prompts_with(tx: Transaction, memory_id: str) -> tuple[str, ...]:
    """The compiled prompts that contain the memory, the latest first."""
    rows = await tx.rows("audit.prompts_with", memory_id=memory_id, count=RECALLS_SHOWN)
    return tuple(row["compile_id"] for row in rows)


async def used_lately(tx: Transaction, memory_ids: list[str]) -> dict[str, dict[str, list[str]]]:
    """The recalls and prompts of the last day that used each memory, for whoever acted on them (TIR-5)."""
    since = tx.now - timedelta(days=1)
    first = {"first_recall": first_id("rcl", since), "first_prompt": first_id("cmp", since)}
    used: dict[str, dict[str, list[str]]] = {one: {"recalls": [], "prompts": []} for one in memory_ids}
    for row in await tx.rows("audit.used_since", memory_ids=memory_ids, **first):
        if len(named := used[row["memory_id"]][row["kind"]]) < USES_NAMED:
            named.append(row["id"])
    return used


async def events_at(tx: Transaction, seqs: set[int], about: set[str]) -> tuple[Event, ...]:
    """The events of those transactions, without what they say of other things than those with these ids."""
    found = [event_of(row) for row in await tx.rows("audit.events_of", seqs=sorted(seqs))]
    items = [item for event in found for item in event.items]
    # What ends a contradiction names neither side of it.
    known = about | {
        item["contradiction_id"] for item in items if item.get("proposal_id") in about and "existing" in item
    }

    def is_wanted(item: dict[str, Any]) -> bool:
        named = _named(item, "memory_id", "proposal_id") or _named(item, "contradiction_id", "capture_id")
        return named <= known

    return tuple(event for one in found if (event := one.only(is_wanted)) is not None)


def _named(item: dict[str, Any], *fields: str) -> set[str]:
    return {item[name] for name in fields if item.get(name) is not None}


async def number_at(tx: Transaction, at: datetime, *, before: bool = False) -> int:
    """The sequence number of the last transaction by a moment, or strictly before it; 0 if there is none."""
    if before and at == _FIRST:
        return 0  # There is no earlier moment to ask for.
    row = await tx.row("recall.moment", at=at - timedelta(microseconds=1) if before else at)
    return row["seq"] or 0 if row is not None else 0


async def events_after(tx: Transaction, after: int, limit: int) -> list[Event]:
    """The tenant's log after a sequence number."""
    return await _decoded(await tx.rows("audit.events", after=after, count=limit))


async def events_found(
    tx: Transaction, after: int, limit: int, *, types: Sequence[str] | None, about: str | None, latest: bool
) -> list[Event]:
    """Events of some types, or that name an id; with `latest` the latest first, from before `after`.

    Of an event with several items those that name the id are returned.
    """
    wanted: dict[str, Any] = {"types": types, "about": None, "count": limit}
    before = after or LATEST
    if about is not None:
        made, start = made_at(about), 0
        if made is not None:
            # Nothing names an id before it was made.
            start = await number_at(tx, made - timedelta(milliseconds=1))
        place = {"after": 0, "before": before} if latest else {"after": after, "before": LATEST}
        wanted |= {"about": to_json(about), "made": start, "latest": latest, **place}
        found = await _decoded(await tx.rows("audit.events_about", **wanted))
        named = [one.only(lambda item: wanted["about"] in to_json(item)) for one in found]
        events = [event for event in named if event is not None]
        return events[::-1] if latest else events
    if latest:
        rows = await tx.rows("audit.latest_events", **wanted, before=before)
    else:
        rows = await tx.rows("audit.events_found", **wanted, after=after)
    return await _decoded(rows)


async def _decoded(rows: Sequence[Row]) -> list[Event]:
    """The events of rows; other tasks run meanwhile, since a page of batches has many megabytes."""
    events: list[Event] = []
    for row in rows:
        events.append(event_of(row))
        if len(row["body"]) > LONG:
            await give_way()
    return events
