"""Browsing: the tenant's memories for people, without a run's filters; nothing is recorded.

Rights count as of now: what was erased, or whose consent ended, has no text, also for the past.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from pydantic_core import from_json

from muniment.database.rows import open_memory
from muniment.database.sealing import Vault
from muniment.database.storage import LATEST, Row, Transaction
from muniment.errors import NotFound
from muniment.language.words import query_words
from muniment.model.browse import Edge, Graph, MemoryChanges, MemoryState, MemorySummary, Node, Turn, Wanted
from muniment.pack import Pack
from muniment.promotion.rules import linked_entity
from muniment.promotion.store import entity_hash, term_hash
from muniment.recall import rules
from muniment.recall.entities import MOST_LINKS
from muniment.recall.rules import MOST_COMMON, MOST_SEEN
from muniment.recall.search import PointInTime, postings_of

# Of memories added and of memories ended, each.
MOST_CHANGES = 500
MOST_TURNS = 500
MOST_NODES = 100
_GONE: dict[str, Any] = {"text": "", "value": None}


# What a list of memories can be narrowed to.
FILTERS = ("user_id", "entity", "tier", "write_class")


@dataclass(frozen=True)
class MemoryBrowser:
    """The memories that match a filter (by each name of `FILTERS`, None for no filter), at a point in time.

    The filter `entity` is a list: an entity under all its names.
    """

    tx: Transaction
    vault: Vault
    pack: Pack
    chosen: Mapping[str, Any]
    point: PointInTime
    horizon: timedelta = timedelta.max

    async def newest(self, state: Wanted, count: int, after: str | None) -> list[MemorySummary]:
        """Return a page, the newest first, after a memory; raises `NotFound` for an unknown one."""
        born = LATEST
        if after is not None:
            row = await self.tx.row("browse.place", memory_id=after)
            if row is None:
                raise _unknown_after()
            born = row["born_seq"]
        where = self._where() | {"state": state, "born": born, "after": after or "", "count": count}
        rows = await self.tx.rows("browse.page", **where)
        return await self.shown([row["memory_id"] for row in rows])

    async def with_words(self, query: str, state: Wanted, count: int, after: str | None) -> list[MemorySummary]:
        """Return a page of those with words of the query, the best match first, then the newest."""
        key = await self.vault.existing_tenant_data_key(self.tx)
        terms = [term_hash(key, word.term) for word in query_words(query)] if key is not None else []
        where = self._where() | {"state": state, "terms": terms, "count": MOST_COMMON}
        rows = await self.tx.rows("browse.words", **where, sensitive=self.pack.sensitive_labels)
        newest = {row["term"]: row["memory_ids"] for row in rows}
        (words,) = await self.tx.rows(
            "browse.words_of", memory_ids=sorted({one for ids in newest.values() for one in ids})
        )
        scores = _scored(words, terms, [rules.rarity(MOST_SEEN, len(newest.get(term, ()))) for term in terms])
        ranked = sorted(sorted(scores, reverse=True), key=lambda memory_id: -scores[memory_id])
        if after is not None and after not in scores:
            raise _unknown_after()
        first = ranked.index(after) + 1 if after is not None else 0
        return await self.shown(ranked[first : first + count], scores)

    async def changes(self, since: PointInTime) -> MemoryChanges:
        """Return what began and what ended between that point in time and this browser's own."""
        points = {"since_seq": since.seq, "since": since.at, "count": MOST_CHANGES}
        rows = await self.tx.rows("browse.changes", **self._where(), **points)
        ids = {kind: [row["memory_id"] for row in rows if row["kind"] == kind] for kind in ("added", "ended")}
        totals = {row["kind"]: row["total"] for row in rows}
        every = {one.memory_id: one for one in await self.shown(sorted({*ids["added"], *ids["ended"]}))}
        return MemoryChanges(
            since=since.at,
            until=self.point.at,
            added=tuple(every[memory_id] for memory_id in ids["added"]),
            ended=tuple(every[memory_id] for memory_id in ids["ended"]),
            added_total=totals.get("added", 0),
            ended_total=totals.get("ended", 0),
            still=totals["still"],
        )

    async def turns(self) -> list[Turn]:
        """Return when memories began or ended inside the replay horizon, in order; of too many the latest."""
        rows = await self.tx.rows("browse.turns", **self.chosen, count=MOST_TURNS)
        return [Turn(**row) for row in reversed(rows) if self.tx.now - row["at"] <= self.horizon]

    async def around(self, entity: str, hops: int) -> Graph:
        """Return the entities up to so many hops away, and the live memories that link them."""
        here = set(self.pack.identity.spellings(entity))
        distances, edges, cut = {entity: 0, **dict.fromkeys(sorted(here), 0)}, dict[str, Edge](), False
        key = await self.vault.existing_tenant_data_key(self.tx)
        for distance in range(1, hops + 1):
            if not here or key is None:
                break
            found = await self._edges(sorted(entity_hash(key, one) for one in here))
            cut = cut or len(found) == MOST_LINKS
            next_: set[str] = set()
            for edge in found:
                # A hash may stand for two names: what was opened decides.
                if not {edge.entity, edge.links_to} & here:
                    continue
                new = {edge.entity, edge.links_to} - distances.keys()
                if len(distances) + len(new) > MOST_NODES:
                    cut = True
                    continue
                distances |= dict.fromkeys(sorted(new), distance)
                next_ |= new
                edges[edge.memory_id] = edge
            here = next_
        rows = await self.tx.rows("browse.on_entities", **self._at(), entities=sorted(distances))
        on = {row["entity"]: row["memories"] for row in rows}
        shown = {one: far for one, far in distances.items() if far or one == entity or on.get(one)}
        nodes = (Node(entity=one, distance=far, memories=on.get(one, 0)) for one, far in shown.items())
        return Graph(nodes=tuple(nodes), edges=tuple(edges.values()), cut=cut)

    async def _edges(self, around: list[int]) -> list[Edge]:
        where = {"around": around, "count": MOST_LINKS, "sensitive": self.pack.sensitive_labels}
        edges: list[Edge] = []
        for row in await self.tx.rows("browse.links", **self._at(), **where):
            fact = await self._opened(row)
            if fact is not None and (other := linked_entity(row["entity"], fact["value"])) is not None:
                named = {name: row[name] for name in ("memory_id", "entity", "predicate")}
                edges.append(Edge(**named, links_to=other))
        return edges

    async def shown(self, memory_ids: Sequence[str], scores: dict[str, float] | None = None) -> list[MemorySummary]:
        """Return memories as they are shown, in that order."""
        if not memory_ids:
            return []
        found = await self.rows_with_facts(memory_ids)
        return [self._shown(*found[memory_id], (scores or {}).get(memory_id)) for memory_id in memory_ids]

    def _shown(self, row: Row, fact: dict[str, Any] | None, score: float | None) -> MemorySummary:
        dead = row["dead_seq"] is not None and row["dead_seq"] <= self.point.seq
        names = ("memory_id", "entity", "predicate", "subject", "tier", "classification", "priority", "confidence")
        taken = {name: row[name] for name in (*names, "approver", "promoted_at", "tombstoned_at", *_TIMES)}
        return MemorySummary(
            **taken,
            **{name: (fact or _GONE)[name] for name in ("text", "value")},
            state=_state(row, self.point),
            write_class=row["class"],
            user_id=row["user_id"] or None,
            expires_at=row["ends_at"],
            ended_at=_ended_at(row, self.point),
            reason=row["reason"] if dead else None,
            superseded_by=row["superseded_by"] if dead else None,
            contradiction=row["contradiction"],
            withheld=fact is None and row["tombstoned_at"] is None,
            score=score,
        )

    async def rows_with_facts(self, memory_ids: Sequence[str]) -> dict[str, tuple[Row, dict[str, Any] | None]]:
        """Read memories by id, each with its content as far as it may be shown."""
        where = {"memory_ids": list(memory_ids), "sensitive": self.pack.sensitive_labels, **self._at()}
        return {row["memory_id"]: (row, await self._fact(row)) for row in await self.tx.rows("browse.some", **where)}

    async def _fact(self, row: Row) -> dict[str, Any] | None:
        return await self._opened(row) if row["allowed"] and row["content"] is not None else None

    async def _opened(self, row: Row) -> dict[str, Any] | None:
        """Open its content; None if that does not open."""
        content = await open_memory(self.tx, self.vault, row)
        return from_json(content) if content is not None else None

    def _at(self) -> dict[str, Any]:
        return {"seq": self.point.seq, "at": self.point.at}

    def _where(self) -> dict[str, Any]:
        return {**self.chosen, **self._at()}


# When it holds in the world (REC-14).
_TIMES = ("valid_from", "valid_until")


def _state(row: Row, point: PointInTime) -> MemoryState:
    if row["tomb_seq"] is not None and row["tomb_seq"] <= point.seq:
        return "tombstoned"
    if row["dead_seq"] is not None and row["dead_seq"] <= point.seq:
        return "superseded" if row["superseded_by"] is not None else "retracted"
    return "expired" if row["ends_at"] is not None and row["ends_at"] <= point.at else "live"


def _ended_at(row: Row, point: PointInTime) -> datetime | None:
    dead = row["dead_seq"] is not None and row["dead_seq"] <= point.seq
    ends = (row["retracted_at"] if dead else None, row["ends_at"])
    return min((at for at in ends if at is not None and at <= point.at), default=None)


def _scored(row: Row, terms: Sequence[int], weights: Sequence[float]) -> dict[str, float]:
    """Score each memory by the words of the query that it has, rare words counting more."""
    ids: list[str] = row["with_words"] or []
    shared = rules.words_shared(postings_of(row, range(len(ids)), terms), len(ids), weights)
    return {memory_id: round(float(score), 6) for memory_id, score in zip(ids, shared, strict=True)}


def _unknown_after() -> NotFound:
    return NotFound("no such memory to go on from", field="after")
