"""Filters: what a run may see, and the answer to a recall without a query.

Every statement filters first, by the one condition `visible` of database/fragments.sql; then come ranking and limit.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb
from pydantic_core import from_json

from muniment.database.rows import open_memory
from muniment.database.sealing import Vault
from muniment.database.storage import Row, Transaction
from muniment.pack import Pack
from muniment.promotion.rules import linked_entity
from muniment.promotion.store import entity_hash
from muniment.recall import rules
from muniment.recall.ranking import MOST_SEEN
from muniment.recall.rules import View, follow_links


@dataclass(frozen=True)
class PointInTime:
    """A point in a tenant's history: its sequence, and the time."""

    seq: int
    at: datetime


@dataclass(frozen=True)
class Request:
    """What a recall is narrowed to, beside the run's view.

    `entities` maps each entity to its distance from the requested ones. `candidates` are the memories that an
    approximate search ranked: a replay ranks them again.
    """

    limit: int
    query: str | None = None
    entities: Mapping[str, int] | None = None
    hops: int = 0
    only: list[str] | None = None
    decision_key: str | None = None
    candidates: list[str] | None = None
    most_seen: int = MOST_SEEN


@dataclass(frozen=True)
class Found:
    """The memories of an answer, in order: plain, of low confidence, and conflict sets with their contradictions.

    `holder_key` is the wrapped key and its version of the holder of the query, where it was read with them.
    """

    plain: list[str]
    low: list[str]
    sets: list[tuple[list[str], list[str]]]
    omitted: int
    scores: Mapping[str, dict[str, float]] = field(default_factory=dict[str, dict[str, float]])
    embedder: str | None = None
    candidates: list[str] | None = None
    degraded: tuple[str, ...] = ()
    holder_key: tuple[bytes | None, int | None] | None = None
    working: frozenset[str] = frozenset()

    @property
    def ids(self) -> list[str]:
        """All of their ids, in the order of the answer."""
        return [*self.plain, *self.low, *(member for _, members in self.sets for member in members)]


def filters(view: View, request: Request, at: PointInTime) -> dict[str, Any]:
    """Return the parameters of the SQL conditions `visible` and `wanted`."""
    return {
        "users": view.users,
        "labels": view.labels,
        "sensitive": view.sensitive,
        "intents": view.intents,
        "session_id": view.session_id,
        "workflow_id": view.workflow_id,
        "tiers": view.tiers,
        "classes": view.classes,
        "entities": list(request.entities) if request.entities is not None else None,
        "only": request.only,
        "qualifiers": Jsonb(view.qualifiers),
        "fresh_working": view.fresh_since["working"],
        "fresh_episodic": view.fresh_since["episodic"],
        "fresh_semantic": view.fresh_since["semantic"],
        "fresh_durable": view.fresh_since["durable"],
        "seq": at.seq,
        "at": at.at,
    }


async def find_without_query(tx: Transaction, request: Request, where: dict[str, Any], pack: Pack) -> Found:
    """Order by priority, then newest first, then id; a correction before all others on its key (REC-2)."""
    confidence = pack.memory_layer.recall_policy.confidence
    rows = await tx.rows("recall.visible", **where, confidence=confidence, count=request.limit)
    plain = [row["memory_id"] for row in rows if row["part"] == 0]
    low = [row["memory_id"] for row in rows if row["part"] == 1]
    sets = conflict_sets([(row["contradiction_id"], row["memory_id"]) for row in rows if row["part"] == 2])
    totals = {row["part"]: row["total"] for row in rows if row["part"] < 2}
    omitted = totals.get(0, 0) - len(plain) + totals.get(1, 0) - len(low)
    omitted += sum(len(members) for _, members in sets[request.limit :])
    working = frozenset(row["memory_id"] for row in rows if row["tier"] == "working")
    return Found(plain, low, sets[: request.limit], omitted, working=working)


async def follow_hops(tx: Transaction, vault: Vault, view: View, request: Request, at: PointInTime) -> Request:
    """Return the request with the entities that visible facts link to its own, within its hops (REC-6)."""
    if request.entities is None or not request.hops:
        return request
    where = filters(view, request, at)
    reached = dict.fromkeys(sorted(request.entities), 0)
    around, key = set(reached), await vault.existing_tenant_data_key(tx)
    for distance in range(1, request.hops + 1):
        if not around or key is None:
            break
        hashes = sorted(entity_hash(key, one) for one in around)
        rows = await tx.rows("recall.links", **where, around=hashes, count=rules.MOST_LINKS)
        links = [link for row in rows if (link := await _link(tx, vault, row)) is not None]
        around = follow_links(around, reached, links, distance)
    return replace(request, entities=reached)


async def _link(tx: Transaction, vault: Vault, row: Row) -> tuple[str, str] | None:
    content = await open_memory(tx, vault, row)
    other = linked_entity(row["entity"], from_json(content)["value"]) if content is not None else None
    return (row["entity"], other) if other is not None else None


def conflict_sets(sides: list[tuple[str, str]]) -> list[tuple[list[str], list[str]]]:
    """Join contradictions that share a side into one set, so that a set is always whole (REC-4)."""
    pairs: dict[str, list[str]] = {}
    for contradiction_id, memory_id in sides:
        pairs.setdefault(contradiction_id, []).append(memory_id)
    sets: list[tuple[set[str], set[str]]] = []
    for contradiction_id, members in sorted(pairs.items()):
        touching = [one for one in sets if one[1] & set(members)]
        ids = {contradiction_id}.union(*(one[0] for one in touching))
        joined = set(members).union(*(one[1] for one in touching))
        sets = [one for one in sets if one not in touching] + [(ids, joined)]
    return sorted((sorted(ids), sorted(members)) for ids, members in sets)
