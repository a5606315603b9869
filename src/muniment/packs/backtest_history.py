"""Recorded captures with the memories that each was compared with at its time, read for a backtest (PAC-3)."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from muniment.contradictions.rules import Neighbour
from muniment.contradictions.store import (
    AT_ONCE,
    FETCHED,
    EmbeddedCandidate,
    TextComparer,
    about_spelled,
    key_of,
    near_among,
    near_to,
    on_keys_of,
    open_memories,
    users_beside,
)
from muniment.database.rows import capture_of
from muniment.database.sealing import Vault
from muniment.database.storage import LATEST, Row, Transaction
from muniment.errors import SealBroken
from muniment.model.capture import Capture
from muniment.pack import Pack

Place = tuple[int, str]
# Beyond every capture there can be.
LAST: Place = (LATEST, "")
# Of a scope too large to be fetched, each candidate's nearest are looked up.
NEAREST = 200


class Past(NamedTuple):
    """A capture, the sequence number at which it was decided, and whether anything of it entered the queue.

    Its content is None if it was erased or does not open.
    """

    capture: Capture
    decided_seq: int
    queued: bool


async def captures(
    tx: Transaction, vault: Vault, since: datetime | None, until: datetime, before: Place, count: int
) -> list[Past]:
    """The latest captures of a window before a place, the newest first, opened."""
    parameters = {"since": since, "until": until, "seq": before[0], "capture_id": before[1], "count": count}
    rows = await tx.rows("backtest.captures", **parameters)
    keys = await vault.keys(tx, {row["holder"] for row in rows if row["content"]}, skip_broken=True)
    found: list[Past] = []
    for row in rows:
        content = None
        if row["content"] and (key := keys.get(row["holder"])) is not None:
            try:
                content = key.open("captures.content", row["capture_id"], row["content"])
            except SealBroken:
                content = None
        found.append(Past(capture_of(row, content), row["decided_seq"], row["queued"]))
    return found


async def answers(
    tx: Transaction, vault: Vault, capture_ids: Sequence[str], extractors: Sequence[str]
) -> dict[tuple[str, str], bytes]:
    """The stored answers of models, by capture and extractor."""
    if not capture_ids or not extractors:
        return {}
    parameters = {"capture_ids": list(capture_ids), "extractors": list(extractors)}
    rows = await tx.rows("backtest.answers", **parameters)
    keys = await vault.keys(tx, {row["holder"] for row in rows}, skip_broken=True)
    found: dict[tuple[str, str], bytes] = {}
    for row in rows:
        if (key := keys.get(row["holder"])) is not None:
            where = (row["capture_id"], row["extractor"])
            found[where] = key.open("extractions.answer", "/".join(where), row["answer"])
    return found


async def neighbours(
    tx: Transaction, vault: Vault, probes: Sequence[tuple[EmbeddedCandidate, Past]], comparer: TextComparer, pack: Pack
) -> list[list[Neighbour]]:
    """For each candidate the memories on its key or near its text when its capture was decided; consent as of now."""
    if not probes:
        return []
    embedded = [probe for probe, _ in probes]
    candidates = [probe.candidate for probe in embedded]
    own = comparer.by.identity.users_spelled
    scope = {"embedder": comparer.embedder.name, "users": users_beside(candidates), "count": FETCHED + 1, "own": own}
    _, keys = on_keys_of(candidates, pack)
    seen, on_keys = await tx.gather(("backtest.vectors", scope), ("backtest.on_keys", keys))
    if len(seen) <= FETCHED:
        abouts = [about_spelled(candidate, comparer.by) for candidate in candidates]

        def counts(index: int, row: Row) -> bool:
            # A fact on a key is compared with plain texts alone.
            other_kind = not (candidates[index].on_key and row["on_key"])
            about = abouts[index]
            same_subject = about is None or row["about"] in (None, *about)
            return other_kind and same_subject and _stood(row, probes[index][1])

        near = near_among(embedded, seen, comparer, counts)
        wanted = sorted({memory_id for found in near for memory_id in found})
        labels = pack.sensitive_labels
        rows = await tx.rows("neighbours.some", memory_ids=wanted, sensitive=labels) if wanted else []
    else:
        near, rows = await _searched(tx, probes, comparer, pack)
    opened = await open_memories(tx, vault, [*on_keys, *rows])
    hidden = {row["memory_id"] for row in (*on_keys, *rows) if row["hidden"]}
    answers: list[list[Neighbour]] = []
    for (probe, past), similar in zip(probes, near, strict=True):
        key = (probe.candidate.entity, probe.candidate.predicate)
        there = [row["memory_id"] for row in on_keys if key_of(row, pack) == key and _stood(row, past)]
        shown = [name for name in dict.fromkeys([*there, *similar]) if name in opened]
        answers.append([Neighbour(opened[name], similar.get(name, 0.0), name in hidden) for name in shown])
    return answers


def _stood(row: Row, past: Past) -> bool:
    """Whether the memory was live when the capture was decided."""
    if row["born_seq"] >= past.decided_seq or (row["died_seq"] is not None and row["died_seq"] < past.decided_seq):
        return False
    return row["ends_at"] is None or row["ends_at"] > past.capture.captured_at


async def _searched(
    tx: Transaction, probes: Sequence[tuple[EmbeddedCandidate, Past]], comparer: TextComparer, pack: Pack
) -> tuple[list[dict[str, float]], list[Row]]:
    """The same if there are too many to fetch: the database finds those of each candidate."""
    near: list[dict[str, float]] = []
    rows: list[Row] = []
    for first in range(0, len(probes), AT_ONCE):
        queries = [
            near_to(probe, comparer, pack, NEAREST, seq=past.decided_seq, at=past.capture.captured_at)
            for probe, past in probes[first : first + AT_ONCE]
        ]
        answered = iter(await tx.gather(*(one for one in queries if one is not None)))
        for one in queries:
            found = [row for row in next(answered) if row["comes"]] if one is not None else []
            near.append({row["memory_id"]: row["similarity"] for row in found})
            rows += found
    return near, rows
