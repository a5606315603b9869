"""Search: what a run may see, in order of priority or ranked by a query (REC-2, REC-9).

Every statement filters first, by the one condition `visible` of database/fragments.sql; then come ranking and limit.

A scope of up to `MOST_SEEN` memories is read whole and ranked exactly. Of a larger one only the nearest by the vector
index and the newest with each word of the query are ranked, and the recall's record keeps which they were.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from psycopg.types.json import Jsonb
from pydantic_core import from_json, to_json

from muniment.database.packed_words import find_words
from muniment.database.rows import open_memory
from muniment.database.sealing import Vault
from muniment.database.storage import Row, Transaction
from muniment.database.vectors import Vector, halves_from_sql, numbers_from_sql, similarities, to_sql
from muniment.errors import EmbedderUnavailable
from muniment.language.embedding import BUILTIN_EMBEDDER, Embedder, StaticEmbedder
from muniment.language.instructions import visible_text
from muniment.language.words import Word, query_words
from muniment.pack import Pack
from muniment.promotion.rules import linked_entity
from muniment.promotion.store import entity_hash, term_hash
from muniment.recall import entities as requested
from muniment.recall import rules
from muniment.recall.entities import closeness, follow_links, is_pattern
from muniment.recall.rules import (
    MOST_COMMON,
    MOST_SEEN,
    Numbers,
    Postings,
    Ranking,
    Seen,
    View,
    conflict_sets,
)

# ---- filters: what a run may see, and the answer to a recall without a query ----


class PointInTime(NamedTuple):
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
    # For a recorded recall the one it had; None for that of the pack.
    relevance_floor: float | None = None

    def floor_under(self, pack: Pack) -> float:
        """Return the relevance below which records are left out (REC-13)."""
        policy = pack.memory_layer.recall_policy
        return policy.relevance_floor if self.relevance_floor is None else self.relevance_floor


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


_OF_VIEW = ("users", "labels", "sensitive", "intents", "session_id", "workflow_id", "tiers", "classes")


def filters(view: View, request: Request, at: PointInTime) -> dict[str, Any]:
    """Return the parameters of the SQL conditions `visible` and `wanted`."""
    return {
        **{name: getattr(view, name) for name in _OF_VIEW},
        "entities": [one for one in request.entities if not is_pattern(one)] if request.entities is not None else None,
        "under": [one[:-1] for one in request.entities or () if is_pattern(one)],
        "only": request.only,
        "qualifiers": Jsonb(view.qualifiers, to_json),
        "fresh_working": view.fresh_since["working"],
        "fresh_episodic": view.fresh_since["episodic"],
        "fresh_semantic": view.fresh_since["semantic"],
        "fresh_durable": view.fresh_since["durable"],
        "seq": at.seq,
        "at": at.at,
        "valid_at": view.valid_at,
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
        rows = await tx.rows("recall.links", **where, around=hashes, count=requested.MOST_LINKS)
        links = [link for row in rows if (link := await _link(tx, vault, row)) is not None]
        around = follow_links(around, reached, links, distance)
    return replace(request, entities=reached)


async def _link(tx: Transaction, vault: Vault, row: Row) -> tuple[str, str] | None:
    content = await open_memory(tx, vault, row)
    other = linked_entity(row["entity"], from_json(content)["value"]) if content is not None else None
    return (row["entity"], other) if other is not None else None


# ---- search by a query ----

# The nearest memories that are ranked of a scope too large to be read.
NEAREST = 200


@dataclass(frozen=True)
class ParsedQuery:
    """A query with its words, their stored hashes (`terms`), and the embedder for its meaning.

    `holder` is whose content the query is; `vector` its vector by an embedder other than the built-in.
    """

    query: str
    words: list[Word]
    terms: list[int]
    embedder: Embedder | None
    holder: str
    vector: Vector | None = None

    @classmethod
    async def of(
        cls,
        tx: Transaction,
        vault: Vault,
        query: str,
        embedder: Embedder | None,
        holder: str,
        vector: Vector | None = None,
    ) -> "ParsedQuery":
        """Parse a query, and hash its words under the tenant's key."""
        words, key = query_words(query), await vault.existing_tenant_data_key(tx)
        terms = [term_hash(key, word.term) for word in words] if key is not None else []
        return cls(query, words, terms, embedder, holder, vector)

    def weighted_vector(self, rarities: Sequence[float]) -> Vector | None:
        """Return the query's vector, rare words weighing more; None without known words or without the embedder.

        Only the built-in embedder weighs words, and is called here; any other has already been called (`vector`).
        """
        if not isinstance(self.embedder, StaticEmbedder):
            return self.vector
        try:
            if self.terms:
                found = self.embedder.aim([word.written for word in self.words], rarities)
            else:
                found = self.embedder.embed([visible_text(self.query)])
        except EmbedderUnavailable:
            return None
        return found[0] if found[0].any() else None

    def may_leave_out(self, vector: NDArray[Any] | None) -> bool:
        """Whether memories can be found to have nothing to do with the query: not if it has no words, or no vector."""
        return bool(self.terms) and vector is not None

    def note_embedder(self, found: Found, vector: Vector | None) -> Found:
        """Return the answer with the embedder that ranked it; without one it is degraded."""
        # A query without known words has no vector: that is no fault of the embedder.
        away = vector is None and (self.embedder is None or bool(self.words))
        used = self.embedder.name if vector is not None and self.embedder is not None else None
        return replace(found, embedder=used, degraded=("embedder",) if away else ())


@dataclass(frozen=True)
class Search:
    """One query over what a run may see; `where` are the filters' parameters, ages are counted back from `at`."""

    tx: Transaction
    request: Request
    where: dict[str, Any]
    pack: Pack
    query: ParsedQuery
    at: datetime

    async def find(self) -> Found:
        """Return the answer, the best first."""
        if self.request.candidates is not None:
            return await self._rank_some(self.request.candidates, self._rarities(await self._newest_with_words()))
        query = self.query
        (scope,) = await self.tx.rows(
            "recall.seen",
            **self._where_about(),
            most=self.request.most_seen,
            embedder=self._embedder(),
            holder=query.holder,
        )
        if scope["size"] > self.request.most_seen:
            return await self._find_approximately()
        contradictions: list[str] = scope["contradictions"] or []
        sides: list[str] = [*(scope["existing"] or ()), *(scope["incoming"] or ())]
        read = _Read.of(scope, query.terms, list(zip(contradictions * 2, sides, strict=True)))
        found = await self._rank(read, rules.rarities(len(query.terms), read.postings, len(read.seen.ids)))
        return replace(found, holder_key=(scope["wrapped_key"], scope["key_version"]))

    async def _find_approximately(self) -> Found:
        newest = await self._newest_with_words()
        rarities = self._rarities(newest)
        chosen = {memory_id for ids in newest.values() for memory_id in ids}
        vector, embedder = self.query.weighted_vector(rarities), self.query.embedder
        if vector is not None and embedder is not None:
            by_index = embedder.name == BUILTIN_EMBEDDER
            near = self.where | {"aim": to_sql(vector), "count": NEAREST}
            rows = await self.tx.rows(
                "recall.near" if by_index else "recall.near_exactly",
                **(near if by_index else near | {"embedder": embedder.name}),
            )
            chosen |= {row["memory_id"] for row in rows}
        return await self._rank_some(sorted(chosen), rarities)

    async def _newest_with_words(self) -> dict[int, list[str]]:
        """Read the newest memories with each word of the query, by the word."""
        where = self.where | {"terms": self.query.terms, "count": MOST_COMMON}
        return {row["term"]: row["memory_ids"] for row in await self.tx.rows("recall.rare", **where)}

    def _rarities(self, newest: Mapping[int, Sequence[str]]) -> list[float]:
        return [rules.rarity(self.request.most_seen, len(newest.get(term, ()))) for term in self.query.terms]

    async def _rank_some(self, candidates: list[str], rarities: list[float]) -> Found:
        """Rank these memories, as far as they are visible."""
        some, conflicts = await self.tx.gather(
            ("recall.some", self._where_about() | {"memory_ids": candidates, "embedder": self._embedder()}),
            ("recall.conflicts", self.where | {"memory_ids": candidates}),
        )
        sides = [(row["contradiction_id"], row[side]) for row in conflicts for side in ("existing", "incoming")]
        found = await self._rank(_Read.of(some[0], self.query.terms, sides), rarities)
        return replace(found, candidates=candidates)

    async def _rank(self, read: "_Read", rarities: list[float]) -> Found:
        vector, seen = self.query.weighted_vector(rarities), read.seen
        of_decision: list[Row] = []
        if self.request.decision_key is not None:
            of_decision = await self.tx.rows("recall.of_decision", decision_key=self.request.decision_key)
        ranked = rules.rank(
            seen,
            vector=read.similarities(vector),
            words=rules.words_shared(read.postings, len(seen.ids), rarities),
            entity=self._entity(seen, of_decision),
            policy=self.pack.memory_layer.recall_policy,
            at=self.at,
        )
        compared = read.with_meaning() if self.query.may_leave_out(vector) else None
        found = answer(self.request, self.pack, seen, ranked, read.conflicts, compared=compared)
        return self.query.note_embedder(found, vector)

    def _embedder(self) -> str | None:
        return self.query.embedder.name if self.query.embedder is not None else None

    def _where_about(self) -> dict[str, Any]:
        return self.where | {"about": [entity for entity, _ in self._entities()]}

    def _entities(self) -> list[tuple[str, float]]:
        return closeness(self.request.entities, self.query.query, self.pack.identity)

    def _entity(self, seen: Seen, of_decision: list[Row]) -> Numbers:
        """Return how near each memory is to the requested entities, or to the run's own decision."""
        near = np.array([0.0, *(closeness for _, closeness in self._entities())])[seen.about]
        for row in of_decision:
            if (index := seen.places.get(row["memory_id"])) is not None:
                near[index] = 1.0
        return near


@dataclass(frozen=True)
class _Read:
    """What was read for ranking: memories, where they have the query's words, the sides of open conflicts, vectors."""

    seen: Seen
    postings: Postings
    conflicts: list[tuple[str, str]]
    vectors: bytes
    with_vector: Sequence[str]

    @classmethod
    def of(cls, row: Row, terms: Sequence[int], conflicts: list[tuple[str, str]]) -> "_Read":
        """Read a row of packed columns: the memories, and where the words of the query occur in them."""
        seen = _seen(row)
        places = [seen.places[memory_id] for memory_id in row["with_words"] or ()]
        postings = postings_of(row, places, terms)
        return cls(seen, postings, conflicts, row["vectors"] or b"", row["with_vector"] or ())

    def similarities(self, vector: Vector | None) -> Numbers:
        """Return each memory's similarity to the query's vector; 0 for one without a vector."""
        near = np.zeros(len(self.seen.ids))
        if vector is not None:
            places = [self.seen.places[memory_id] for memory_id in self.with_vector]
            near[places] = similarities(self.vectors, len(places), vector)
        return near

    def with_meaning(self) -> NDArray[np.bool_]:
        """Return which memories have a vector that says something."""
        known = np.zeros(len(self.seen.ids), dtype=np.bool_)
        if self.with_vector:
            places = [self.seen.places[memory_id] for memory_id in self.with_vector]
            known[places] = halves_from_sql(self.vectors, len(places)).any(axis=1)
        return known


def answer(
    request: Request,
    pack: Pack,
    seen: Seen,
    ranked: Ranking,
    sides: list[tuple[str, str]],
    total: int | None = None,
    *,
    compared: NDArray[np.bool_] | None,
) -> Found:
    """Split the ranking into plain, low-confidence and conflict sets (whole, by their best side), then limit each.

    Of what was `compared` with the query by meaning, what is below the relevance floor is left out, a conflict set only
    if all its sides are; None where the query says nothing, or has no vector: then nothing is left out. `total` is how
    many memories outside of conflicts are asked for, where only the best of them were ranked.
    """
    limit, floor = request.limit, request.floor_under(pack)
    near = np.ones(len(seen.ids), dtype=np.bool_)
    if floor and compared is not None:
        near = (rules.relevance(seen, ranked.parts) >= floor) | ~compared
    in_conflict = {memory_id for _, memory_id in sides}
    sets: list[tuple[list[str], list[str]]] = []
    if sides:
        wanted = {seen.ids[index] for index in ranked.order}
        sets = [one for one in conflict_sets(sides) if wanted & set(one[1])]
        sets.sort(key=lambda one: (-max(ranked.total_of(seen, member) for member in one[1]), one))
    asked_for = sum(len(members) for _, members in sets)
    sets = [one for one in sets if any(near[place] for name in one[1] if (place := seen.places.get(name)) is not None)]
    least = pack.memory_layer.recall_policy.confidence
    plain: list[str] = []
    low: list[str] = []
    outside = 0
    confidences: list[float] = seen.confidence[ranked.order].tolist()
    for index, confidence in zip(ranked.order, confidences, strict=True):
        if seen.ids[index] not in in_conflict:
            outside += 1
            if near[index]:
                (low if confidence < least else plain).append(seen.ids[index])
    found = Found(plain[:limit], low[:limit], sets[:limit], 0)
    omitted = asked_for + (outside if total is None else total) - len(found.ids)
    ids = [one for one in found.ids if one in seen.places]
    scores = ranked.scores([seen.places[one] for one in ids])
    working = seen.working.intersection(ids)
    return replace(found, omitted=omitted, scores=dict(zip(ids, scores, strict=True)), working=working)


def _seen(row: Row) -> Seen:
    keyed: dict[tuple[str, str], list[tuple[str, bool]]] = {}
    columns = [row[name] or () for name in ("keyed", "entities", "predicates", "corrections")]
    for memory_id, entity, predicate, correction in zip(*columns, strict=True):
        keyed.setdefault((entity, predicate), []).append((memory_id, correction))
    return Seen(
        ids=row["memory_ids"] or [],
        priority=numbers_from_sql(row["priority"], ">f8"),
        confidence=numbers_from_sql(row["confidence"], ">f8"),
        born_seq=numbers_from_sql(row["born_seq"], ">i8"),
        promoted_at=numbers_from_sql(row["promoted_at"], ">f8"),
        intent=numbers_from_sql(row["intent"], ">i2"),
        about=numbers_from_sql(row["about"], ">i2"),
        wanted=numbers_from_sql(row["wanted"], "?"),
        working=frozenset(row["working"] or ()),
        keyed=keyed,
    )


def postings_of(row: Row, places: Sequence[int], terms: Sequence[int]) -> Postings:
    """Find the words of a query in a row of packed columns; `places` are those of its memories with words."""
    found = find_words(row["terms"] or b"", numbers_from_sql(row["sizes"], ">i4"), terms)
    own = np.array(places, dtype=np.intp)[found.places]
    return Postings(found.terms, own, found.times, numbers_from_sql(row["words"], ">i2")[found.places])
