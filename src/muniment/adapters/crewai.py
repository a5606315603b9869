"""CrewAI: a storage for its memory, whose records are governed memories (ADP-1).

    storage = MunimentStorage.open(user="ann")
    memory = Memory(storage=storage, embedder=storage.embed)

A saved record is a proposal: where the pack lets policy promote it, it is found at once; otherwise it is pending until
a person decides. CrewAI searches by vectors and Muniment by texts: `embed` is the embedder that knows the text of each
vector it gave. Reading changes nothing: when a record was last read is not noted in it.
"""

import asyncio
import struct
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any, Self, cast

from muniment.extras import require_framework

require_framework("crewai")

from crewai.memory.types import MemoryRecord, ScopeInfo

from muniment.adapters.kept_items import KeptItems, PutRefused
from muniment.client import Client
from muniment.errors import InvalidInput
from muniment.items.verbs import MOST_LOOKED_AT
from muniment.language.embedding import builtin_embedder
from muniment.model.context import Principal, RunContext
from muniment.model.item import Item, ItemWaiting
from muniment.sync import Fabric

__all__ = ["MunimentStorage", "PutRefused"]

TOOL = "crewai"
# The first part of all namespaces; the scope `/crew/research` is (ROOT, "crew", "research").
ROOT = "crewai"
# Texts whose vectors are remembered: a search comes right after its embedding.
_TEXTS_KEPT = 4096
_PAGE = 100
# What a record's metadata tells of its memory; not saved with it.
OWN = "muniment"


class MunimentStorage:
    """A storage of CrewAI's memory over a fabric, or over a server by its client.

    `run` says in which tenant, for which user and as which agent. `person` is the user, where this program may act for
    them: only then a delete takes effect at once; otherwise it is a request. `wait` is how many seconds a save waits
    for its promotion.
    """

    def __init__(
        self,
        fabric: Fabric | Client,
        run: RunContext,
        *,
        person: Principal | None = None,
        wait: float = 0.0,
        classification: str = "INTERNAL",
        items: KeptItems | None = None,
    ) -> None:
        self.items = items or KeptItems(fabric, run, tool=TOOL, person=person, classification=classification, wait=wait)
        self._texts: OrderedDict[bytes, str] = OrderedDict()
        self._lock = Lock()

    @classmethod
    def open(
        cls,
        user: str,
        *,
        profile: str = "personal",
        home: str | Path | None = None,
        wait: float = 0.0,
        classification: str = "INTERNAL",
    ) -> Self:
        """Open a storage in a home of one user (MUNIMENT_HOME, else ./.muniment); `close` closes it."""
        items = KeptItems.open(user, tool=TOOL, profile=profile, home=home, wait=wait, classification=classification)
        return cls(items.fabric, items.run, items=items)

    def __deepcopy__(self, _: dict[int, Any]) -> Self:
        # CrewAI copies a memory for each crew; its storage is one.
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the fabric, if `open` opened it."""
        self.items.close()

    def pending(self, scope_prefix: str | None = None) -> list[ItemWaiting]:
        """List what was saved there, or asked to be deleted, that waits for a person (ADP-2)."""
        return self.items.pending(_namespace(scope_prefix))

    # ---- vectors ----

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Embed texts with the built-in embedder; the memory that uses this storage takes it as its `embedder`."""
        vectors = [[float(one) for one in vector] for vector in builtin_embedder().embed(list(texts))]
        with self._lock:
            for text, vector in zip(texts, vectors, strict=True):
                self._texts[_packed(vector)] = text
                self._texts.move_to_end(_packed(vector))
            while len(self._texts) > _TEXTS_KEPT:
                self._texts.popitem(last=False)
        return vectors

    def _text_of(self, vector: Sequence[float]) -> str:
        with self._lock:
            found = self._texts.get(_packed(vector))
        if found is None:
            raise InvalidInput(
                "is no vector of this storage's embedder: use Memory(storage=storage, embedder=storage.embed)",
                field="query_embedding",
            )
        return found

    # ---- writing ----

    def save(self, records: list[MemoryRecord]) -> None:
        """Propose records. Raises `PutRefused` after all were tried, if a gate refused one."""
        refused: PutRefused | None = None
        for record in records:
            try:
                self._put(record)
            except PutRefused as error:
                refused = refused or error
        if refused is not None:
            raise refused

    def _put(self, record: MemoryRecord) -> None:
        metadata = {name: value for name, value in record.metadata.items() if name != OWN}
        value = {
            "content": record.content,
            "categories": list(record.categories),
            "metadata": metadata,
            "importance": record.importance,
            "source": record.source,
            "private": record.private,
        }
        self.items.put(_namespace(record.scope), record.id, value, text=record.content or None)

    def update(self, record: MemoryRecord) -> None:
        """Propose a record in place of the one with its id; one that moved to another scope leaves the old one."""
        before = self._find(record.id)
        self._put(record)
        if before is not None and before.namespace != _namespace(record.scope):
            self.items.delete(before.namespace, before.key)

    def delete(
        self,
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        record_ids: list[str] | None = None,
        older_than: datetime | None = None,
        metadata_filter: dict[str, Any] | None = None,
    ) -> int:
        """Have records forgotten by their person, or ask for it; returns how many are gone now."""
        gone = 0
        for item in list(self._every(scope_prefix)):
            record = _record(item)
            if (
                (record_ids is None or record.id in record_ids)
                and _matches(record, categories, metadata_filter)
                and (older_than is None or record.created_at < _naive(older_than))
            ):
                done = self.items.delete(item.namespace, item.key)
                gone += done is not None and done.status == "kept"
        return gone

    def reset(self, scope_prefix: str | None = None) -> None:
        """Have all records of a scope forgotten by their person, or ask for it."""
        self.delete(scope_prefix)

    # ---- reading ----

    def search(
        self,
        query_embedding: list[float],
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        metadata_filter: dict[str, Any] | None = None,
        limit: int = 10,
        min_score: float = 0.0,
    ) -> list[tuple[MemoryRecord, float]]:
        """Search promoted records by the text of a vector of `embed`; the score is the similarity of the texts."""
        query = self._text_of(query_embedding)
        narrowed = bool(categories or metadata_filter)
        found = self.items.search(_namespace(scope_prefix), query=query, limit=_PAGE if narrowed else limit).items
        records = [one for one in map(_record, found) if _matches(one, categories, metadata_filter)]
        if not records:
            return []
        vectors = builtin_embedder().embed([query, *(one.content for one in records)])
        scores = [max(0.0, float(vectors[0] @ vector)) for vector in vectors[1:]]
        ranked = sorted(zip(records, scores, strict=True), key=lambda one: -one[1])
        return [one for one in ranked if one[1] >= min_score][:limit]

    def get_record(self, record_id: str) -> MemoryRecord | None:
        """Return the promoted record of that id; it is looked for among the newest 1,000."""
        found = self._find(record_id)
        return _record(found) if found is not None else None

    def list_records(self, scope_prefix: str | None = None, limit: int = 200, offset: int = 0) -> list[MemoryRecord]:
        """List the promoted records of a scope, the newest first, of the newest 1,000."""
        return [_record(one) for one in list(self._every(scope_prefix))[offset : offset + max(limit, 0)]]

    def list_scopes(self, parent: str = "/") -> list[str]:
        """List the scopes right below one."""
        above = _namespace(parent)
        found = self.items.fabric.items.namespaces(self.items.run, prefix=above, limit=MOST_LOOKED_AT).namespaces
        return sorted({_scope(one[: len(above) + 1]) for one in found if len(one) > len(above)})

    def get_scope_info(self, scope: str) -> ScopeInfo:
        """Return how many records a scope has, with those below it, their categories and times."""
        records = [_record(one) for one in self._every(scope)]
        times = [one.created_at for one in records]
        return ScopeInfo(
            path=_scope(_namespace(scope)),
            record_count=len(records),
            categories=sorted({one for record in records for one in record.categories}),
            oldest_record=min(times, default=None),
            newest_record=max(times, default=None),
            child_scopes=self.list_scopes(scope),
        )

    def list_categories(self, scope_prefix: str | None = None) -> dict[str, int]:
        """Count the records of each category."""
        counts: dict[str, int] = {}
        for item in self._every(scope_prefix):
            for category in _record(item).categories:
                counts[category] = counts.get(category, 0) + 1
        return counts

    def count(self, scope_prefix: str | None = None) -> int:
        """Count the promoted records of a scope, with those below it; at most 1,000."""
        return sum(1 for _ in self._every(scope_prefix))

    def _every(self, scope_prefix: str | None) -> Iterator[Item]:
        """Read the newest records of a scope, page by page."""
        offset = 0
        while offset < MOST_LOOKED_AT:
            page = self.items.search(_namespace(scope_prefix), limit=_PAGE, offset=offset)
            yield from page.items
            offset += len(page.items)
            if not page.items or not page.omitted:
                return

    def _find(self, record_id: str) -> Item | None:
        return next((one for one in self._every(None) if one.key == record_id), None)

    # ---- the same without blocking an event loop ----

    async def asave(self, records: list[MemoryRecord]) -> None:
        """Propose records, as `save` does."""
        await asyncio.to_thread(self.save, records)

    async def asearch(
        self,
        query_embedding: list[float],
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        metadata_filter: dict[str, Any] | None = None,
        limit: int = 10,
        min_score: float = 0.0,
    ) -> list[tuple[MemoryRecord, float]]:
        """Search, as `search` does."""
        return await asyncio.to_thread(
            self.search, query_embedding, scope_prefix, categories, metadata_filter, limit, min_score
        )

    async def adelete(
        self,
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        record_ids: list[str] | None = None,
        older_than: datetime | None = None,
        metadata_filter: dict[str, Any] | None = None,
    ) -> int:
        """Delete, as `delete` does."""
        return await asyncio.to_thread(self.delete, scope_prefix, categories, record_ids, older_than, metadata_filter)


def _packed(vector: Sequence[float]) -> bytes:
    return struct.pack(f"<{len(vector)}d", *vector)


def _namespace(scope: str | None) -> tuple[str, ...]:
    return (ROOT, *(part for part in (scope or "/").split("/") if part))


def _scope(namespace: Sequence[str]) -> str:
    return "/" + "/".join(namespace[1:])


def _naive(at: datetime) -> datetime:
    """Return a time as CrewAI writes it: in UTC, without a zone."""
    return at.astimezone(UTC).replace(tzinfo=None) if at.tzinfo is not None else at


def _record(item: Item) -> MemoryRecord:
    held = cast("dict[str, Any]", item.value) if isinstance(item.value, dict) else {"content": str(item.value)}
    about = {"memory_id": item.memory_id, "pending": item.pending, "conflicts": len(item.conflicts)}
    return MemoryRecord(
        id=item.key,
        content=str(held.get("content", "")),
        scope=_scope(item.namespace),
        categories=list(held.get("categories") or ()),
        metadata={**(held.get("metadata") or {}), OWN: about},
        importance=held.get("importance", 0.5),
        source=held.get("source"),
        private=bool(held.get("private")),
        created_at=_naive(item.created_at),
        last_accessed=_naive(item.updated_at),
    )


def _matches(record: MemoryRecord, categories: list[str] | None, metadata: dict[str, Any] | None) -> bool:
    in_one = not categories or any(one in record.categories for one in categories)
    return in_one and all(record.metadata.get(name) == value for name, value in (metadata or {}).items())
