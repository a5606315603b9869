"""Searching: what a run sees, ranked by a query (REC-2, REC-9).

A scope of up to `MOST_SEEN` memories is read whole and ranked exactly. Of a larger one, those nearest by the vector
index and the newest with each word of the query are, and the record keeps which they were.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np

from muniment.candidates.comparison import Vector, to_sql, unpacked
from muniment.database.sealing import Vault
from muniment.database.storage import Named, Row, Transaction
from muniment.errors import EmbedderUnavailable
from muniment.language.embedding import BUILTIN_EMBEDDER, Embedder, StaticEmbedder
from muniment.language.instructions import as_seen
from muniment.language.words import Word, query_words
from muniment.pack import Pack
from muniment.promotion import indexing
from muniment.recall import ranking
from muniment.recall.filters import Found, Request, conflict_sets
from muniment.recall.ranking import MOST_COMMON, Numbers, Postings, Ranking, Seen
from muniment.recall.rules import closeness

# Up to so many memories their vectors come along with them; of more the database is asked how near they are.
FEW = 2_000
# Of a scope too large to be read, the nearest that are ranked.
NEAREST = 200


@dataclass(frozen=True)
class Asked:
    """A query, taken apart: its words, as they are kept, and the embedder that knows what they mean."""

    query: str
    words: list[Word]
    terms: list[int]
    embedder: Embedder | None
    holder: str
    place: Vector | None = None

    @classmethod
    async def of(
        cls,
        tx: Transaction,
        vault: Vault,
        query: str,
        embedder: Embedder | None,
        holder: str,
        place: Vector | None = None,
    ) -> "Asked":
        """The words of a query under the tenant's key; `holder` is whose content it is, `place` where it lies."""
        words, key = query_words(query), await vault.known_comparing(tx)
        terms = [indexing.mark(key, word.term) for word in words] if key is not None else []
        return cls(query, words, terms, embedder, holder, place)

    def aim(self, rarities: Mapping[int, float]) -> Vector | None:
        """Where it points, its rarer words more than its common ones; None if nowhere, or if the embedder is away.

        Only the built-in embedder can weigh words, and is asked here; another was asked before (`place`).
        """
        if not isinstance(self.embedder, StaticEmbedder):
            return self.place
        try:
            if self.terms:
                aimed = self.embedder.aim([word.written for word in self.words], [rarities[one] for one in self.terms])
            else:
                aimed = self.embedder.embed([as_seen(self.query)])
        except EmbedderUnavailable:
            return None
        return aimed[0] if aimed[0].any() else None


@dataclass(frozen=True)
class Search:
    """One query over what a run sees; `given` are the filters, `at` the moment that ages are counted from."""

    tx: Transaction
    request: Request
    given: dict[str, Any]
    pack: Pack
    asked: Asked
    at: datetime

    async def found(self) -> Found:
        """The answer, the best first."""
        if self.request.candidates is not None:
            return await self._among(self.request.candidates, self._rarities(await self._rare()))
        embedder = self.asked.embedder.name if self.asked.embedder is not None else None
        limits = {"most": self.request.most_seen, "few": FEW}
        (scope,) = await self.tx.rows(
            "recall.seen",
            **self._given(),
            **limits,
            embedder=embedder,
            terms=self.asked.terms,
            holder=self.asked.holder,
        )
        if scope["size"] > self.request.most_seen:
            return await self._approximately()
        read = _Read.whole(scope)
        found = await self._ranked(read, ranking.rarities(self.asked.terms, read.postings, read.seen.places))
        return replace(found, holder_key=(scope["wrapped_key"], scope["key_version"]))

    async def _approximately(self) -> Found:
        rare = await self._rare()
        rarities = self._rarities(rare)
        chosen = set(rare.ids)
        aim, embedder = self.asked.aim(rarities), self.asked.embedder
        if aim is not None and embedder is not None:
            by_index = embedder.name == BUILTIN_EMBEDDER
            near = self.given | {"aim": to_sql(aim), "count": NEAREST}
            rows = await self.tx.rows(
                "recall.near" if by_index else "recall.near_exactly",
                **(near if by_index else near | {"embedder": embedder.name}),
            )
            chosen |= {row["memory_id"] for row in rows}
        return await self._among(sorted(chosen), rarities)

    async def _rare(self) -> Postings:
        """The newest memories with each word of the query."""
        given = self.given | {"terms": self.asked.terms, "count": MOST_COMMON}
        return _postings((await self.tx.rows("recall.rare", **given))[0])

    def _rarities(self, rare: Postings) -> dict[int, float]:
        count = Counter(rare.terms)
        return {term: ranking.rarity(self.request.most_seen, count[term]) for term in self.asked.terms}

    async def _among(self, candidates: list[str], rarities: dict[int, float]) -> Found:
        """Rank these, as far as they are visible."""
        some, postings, conflicts = await self.tx.gather(
            ("recall.some", self._given() | {"memory_ids": candidates}),
            ("recall.postings_of", {"terms": self.asked.terms, "memory_ids": candidates}),
            ("recall.conflicts", self.given | {"memory_ids": candidates}),
        )
        found = await self._ranked(_Read.of_some(some[0], postings[0], conflicts), rarities)
        return replace(found, candidates=candidates)

    async def _ranked(self, read: "_Read", rarities: dict[int, float]) -> Found:
        aim, embedder, seen = self.asked.aim(rarities), self.asked.embedder, read.seen
        questions: dict[str, Named] = {}
        if aim is not None and embedder is not None and read.vectors is None and seen.ids:
            near = {"aim": to_sql(aim), "embedder": embedder.name, "memory_ids": seen.ids}
            questions["near"] = ("recall.similar", near)
        if self.request.decision_key is not None:
            questions["decision"] = ("recall.of_decision", {"decision_key": self.request.decision_key})
        rows = dict(zip(questions, await self.tx.gather(*questions.values()), strict=True))
        ranked = ranking.rank(
            seen,
            vector=read.nearness(aim) if read.vectors is not None else _similarities(seen, rows.get("near", [])),
            words=ranking.words_shared(read.postings, seen.places, rarities),
            entity=self._entity(seen, rows.get("decision", [])),
            policy=self.pack.memory_layer.recall_policy,
            at=self.at,
        )
        # A query that says nothing points nowhere: that is no fault of the embedder's.
        away = aim is None and (embedder is None or bool(self.asked.words))
        return replace(
            _answer(self.request.limit, self.pack, seen, ranked, read.conflicts),
            embedder=embedder.name if aim is not None and embedder is not None else None,
            degraded=("embedder",) if away else (),
        )

    def _given(self) -> dict[str, Any]:
        return self.given | {"about": [entity for entity, _ in self._asked_for()]}

    def _asked_for(self) -> list[tuple[str, float]]:
        return closeness(self.request.entities, self.asked.query)

    def _entity(self, seen: Seen, of_decision: list[Row]) -> Numbers:
        """How near each is to what was asked about: its entity, or the run's own decision."""
        near = np.array([0.0, *(closeness for _, closeness in self._asked_for())])[seen.about]
        for row in of_decision:
            if (place := seen.places.get(row["memory_id"])) is not None:
                near[place] = 1.0
        return near


@dataclass(frozen=True)
class _Read:
    """What was read to rank: the memories, where the query's words stand, the sides of open conflicts, and vectors."""

    seen: Seen
    postings: Postings
    conflicts: list[tuple[str, str]]
    vectors: Numbers | None = None
    placed: Sequence[str] = ()

    @classmethod
    def whole(cls, scope: Row) -> "_Read":
        """A whole scope; its vectors where they came along."""
        contradictions: list[str] = scope["contradictions"] or []
        sides: list[str] = [*(scope["existing"] or ()), *(scope["incoming"] or ())]
        conflicts = list(zip(contradictions * 2, sides, strict=True))
        vectors = unpacked(scope["vectors"] or b"", len(scope["placed"] or ())) if scope["size"] <= FEW else None
        return cls(_seen(scope), _postings(scope), conflicts, vectors, scope["placed"] or ())

    @classmethod
    def of_some(cls, some: Row, postings: Row, conflicts: list[Row]) -> "_Read":
        """Some memories of a scope."""
        sides = [(row["contradiction_id"], row[side]) for row in conflicts for side in ("existing", "incoming")]
        return cls(_seen(some), _postings(postings), sides)

    def nearness(self, aim: Vector | None) -> Numbers:
        """How near each lies to where the query aims; 0 of one without a vector."""
        near = np.zeros(len(self.seen.ids))
        if aim is not None and self.vectors is not None and len(self.placed):
            lengths = np.linalg.norm(self.vectors, axis=1)
            places = [self.seen.places[memory_id] for memory_id in self.placed]
            near[places] = self.vectors @ aim.astype(np.float64) / np.where(lengths > 0, lengths, 1)
        return near


def _answer(limit: int, pack: Pack, seen: Seen, ranked: Ranking, sides: list[tuple[str, str]]) -> Found:
    """Conflict sets apart and whole, by their best side; plain records, those of low confidence; then the limit."""
    in_conflict = {memory_id for _, memory_id in sides}
    wanted = {seen.ids[place] for place in ranked.order}
    sets = [one for one in conflict_sets(sides) if wanted & set(one[1])]
    sets.sort(key=lambda one: (-max(ranked.total_of(seen, member) for member in one[1]), one))
    least = pack.memory_layer.recall_policy.confidence
    plain: list[str] = []
    low: list[str] = []
    for place in ranked.order:
        if seen.ids[place] not in in_conflict:
            (low if seen.confidence[place] < least else plain).append(seen.ids[place])
    omitted = max(len(plain) - limit, 0) + max(len(low) - limit, 0) + sum(len(one[1]) for one in sets[limit:])
    found = Found(plain[:limit], low[:limit], sets[:limit], omitted)
    scores = {one: ranked.score(seen.places[one]) for one in found.ids if one in seen.places}
    return replace(found, scores=scores, working=seen.working.intersection(found.ids))


def _similarities(seen: Seen, rows: list[Row]) -> Numbers:
    vector = np.zeros(len(seen.ids))
    for row in rows:
        near = _numbers(row["similarity"], ">f8")
        for memory_id, similarity in zip(row["memory_ids"] or (), near.tolist(), strict=True):
            vector[seen.places[memory_id]] = similarity
    return vector


def _seen(row: Row) -> Seen:
    keyed: dict[tuple[str, str], list[tuple[str, bool]]] = {}
    columns = [row[name] or () for name in ("keyed", "entities", "predicates", "corrections")]
    for memory_id, entity, predicate, correction in zip(*columns, strict=True):
        keyed.setdefault((entity, predicate), []).append((memory_id, correction))
    return Seen(
        ids=row["memory_ids"] or [],
        priority=_numbers(row["priority"], ">f8"),
        confidence=_numbers(row["confidence"], ">f8"),
        born_seq=_numbers(row["born_seq"], ">i8"),
        promoted_at=_numbers(row["promoted_at"], ">f8"),
        intent=_numbers(row["intent"], ">i2"),
        about=_numbers(row["about"], ">i2"),
        wanted=_numbers(row["wanted"], "?"),
        working=frozenset(row["working"] or ()),
        keyed=keyed,
    )


def _postings(row: Row) -> Postings:
    times, words = _numbers(row["tf"], ">i2"), _numbers(row["words"], ">i2")
    return Postings(row["terms"] or (), row["stand_in"] or (), times, words)


def _numbers(packed: bytes | None, kind: str) -> Any:
    """A column of numbers as the database packs it, in this machine's order."""
    return np.frombuffer(packed or b"", dtype=kind).astype(np.dtype(kind).newbyteorder("="))
