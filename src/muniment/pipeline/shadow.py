"""The shadow: recorded captures with what each was compared with at its time, read without writing anything (PAC-3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from muniment.embedding import BUILTIN_EMBEDDER
from muniment.errors import SealBroken
from muniment.model.capture import Capture
from muniment.model.promoted import PromotedMemory
from muniment.pack import Pack
from muniment.pipeline.senses import Probe, Senses, to_sql
from muniment.policy.contradiction import Neighbour
from muniment.policy.visibility import sensitive_labels
from muniment.storage.rows import capture_of, memory_of
from muniment.storage.sealing import Vault
from muniment.storage.session import Named, Row, Transaction

Place = tuple[int, str]
# Beyond every capture there can be.
LAST: Place = (2**62, "")
NEAREST = 200
# Searches that go out in one round trip.
AT_ONCE = 25
# Half precision moves a similarity by less than this.
_ROUNDING = 5e-4


@dataclass(frozen=True)
class Past:
    """A capture, the number under which something was made of it, and whether that came into the queue.

    Its content is None where it is gone or does not open.
    """

    capture: Capture
    decided_seq: int
    queued: bool


async def captures(
    tx: Transaction, vault: Vault, since: datetime | None, until: datetime, before: Place, count: int
) -> list[Past]:
    """The latest captures of a window before a place, the newest first, opened."""
    given = {"since": since, "until": until, "seq": before[0], "capture_id": before[1], "count": count}
    rows = await tx.rows("backtest.captures", **given)
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
    """What models answered, by capture and extractor."""
    if not capture_ids or not extractors:
        return {}
    given = {"capture_ids": list(capture_ids), "extractors": list(extractors)}
    rows = await tx.rows("backtest.answers", **given)
    keys = await vault.keys(tx, {row["holder"] for row in rows}, skip_broken=True)
    found: dict[tuple[str, str], bytes] = {}
    for row in rows:
        if (key := keys.get(row["holder"])) is not None:
            where = (row["capture_id"], row["extractor"])
            found[where] = key.open("extractions.answer", "/".join(where), row["answer"])
    return found


async def neighbours(
    tx: Transaction, vault: Vault, probes: Sequence[tuple[Probe, Past]], senses: Senses, pack: Pack
) -> list[list[Neighbour]]:
    """Of each candidate what stood on its key or near its text when its capture was decided; consent is as of now."""
    found: list[list[Neighbour]] = []
    for first in range(0, len(probes), AT_ONCE):
        part = [_asked(probe, past, senses, pack) for probe, past in probes[first : first + AT_ONCE]]
        answered = iter(await tx.gather(*(one for asked in part for one in asked)))
        for asked in part:
            rows = [row for _ in asked for row in next(answered)]
            found.append(await _opened(tx, vault, rows))
    return found


def _asked(probe: Probe, past: Past, senses: Senses, pack: Pack) -> list[Named]:
    candidate = probe.candidate
    user = candidate.scope.user_id
    then = {"seq": past.decided_seq, "at": past.capture.captured_at, "sensitive": sensitive_labels(pack)}
    asked: list[Named] = []
    if candidate.on_key:
        asked.append(("backtest.on_key", {"entity": candidate.entity, "predicate": candidate.predicate, **then}))
    if probe.vector is not None:
        near: dict[str, Any] = {
            "vector": to_sql(probe.vector),
            "users": None if user is None else ["", user],
            "on_key": candidate.on_key,
            "about": candidate.entity or candidate.subject,
            "reach": 1 - senses.by.thresholds.similarity + _ROUNDING,
            "count": NEAREST,
            **then,
        }
        name = senses.embedder.name
        by_index = name == BUILTIN_EMBEDDER
        asked.append(("backtest.near", near) if by_index else ("backtest.near_exactly", near | {"embedder": name}))
    return asked


async def _opened(tx: Transaction, vault: Vault, rows: Sequence[Row]) -> list[Neighbour]:
    memories: dict[str, PromotedMemory] = {}
    for row in rows:
        if row["memory_id"] not in memories:
            try:
                key = await vault.open_key(tx, row["holder"], row["wrapped_key"], row["key_version"])
                content = key.open("memory_bodies.content", row["memory_id"], row["content"])
            except SealBroken:
                continue  # Nobody can read it: it says nothing that could be contradicted or repeated.
            memories[row["memory_id"]] = memory_of(row, content)
    similar = {row["memory_id"]: row["similarity"] for row in rows if "similarity" in row}
    hidden = {row["memory_id"] for row in rows if row["hidden"]}
    return [Neighbour(one, similar.get(name, 0.0), name in hidden) for name, one in memories.items()]


async def recall_ids(tx: Transaction, since: datetime | None, until: datetime, count: int) -> list[str]:
    """The latest recalls of a window, the newest first."""
    return [row["recall_id"] for row in await tx.rows("backtest.recalls", since=since, until=until, count=count)]
