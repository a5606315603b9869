"""The tenant's memories over HTTP: the same methods as in `fabric.memories`."""

from collections.abc import Sequence
from datetime import datetime
from typing import Unpack

from pydantic import TypeAdapter

from muniment.client.asking import Group
from muniment.client.pages import Page, paged
from muniment.model.browse import Graph, MemoryChanges, MemoryShown, Turn
from muniment.model.context import Asker
from muniment.recall.browse import MemoryFilters

_MEMORIES = TypeAdapter(Page[MemoryShown])
_CHANGES = TypeAdapter(MemoryChanges)
_TURNS = TypeAdapter(list[Turn])
_GRAPH = TypeAdapter(Graph)


class AsyncMemoriesClient(Group):
    """Every memory of the tenant, whoever it is for; for reviewers and auditors."""

    async def list(
        self, asker: Asker, *, limit: int = 50, after: str | None = None, **narrowed: Unpack[MemoryFilters]
    ) -> list[MemoryShown]:
        """See `AsyncMemories.list`."""
        await self._asking.own(asker)
        return await paged(self._wire, "/v1/memories", _MEMORIES, limit=limit, after=after, **narrowed)

    async def changes(
        self,
        asker: Asker,
        *,
        since: datetime,
        until: datetime | None = None,
        entity: str | None = None,
        user_id: str | None = None,
    ) -> MemoryChanges:
        """See `AsyncMemories.changes`."""
        await self._asking.own(asker)
        asked = {"since": since, "until": until, "entity": entity, "user_id": user_id}
        return await self._wire.get("/v1/memories/changes", _CHANGES, asked)

    async def moments(self, asker: Asker, *, entity: str | None = None, user_id: str | None = None) -> Sequence[Turn]:
        """See `AsyncMemories.moments`."""
        await self._asking.own(asker)
        asked = {"entity": entity, "user_id": user_id}
        return await self._wire.get("/v1/memories/moments", _TURNS, asked)

    async def graph(self, asker: Asker, entity: str, *, hops: int = 1) -> Graph:
        """See `AsyncMemories.graph`."""
        await self._asking.own(asker)
        return await self._wire.get("/v1/memories/graph", _GRAPH, {"entity": entity, "hops": hops})
