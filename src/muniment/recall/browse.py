"""The tenant's memories for those who review and audit: listed, searched, compared over time, and as a graph."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, TypedDict, Unpack

from pydantic import Field

from muniment.context import FabricContext
from muniment.database.storage import LATEST, Transaction
from muniment.errors import InvalidInput
from muniment.model.browse import Graph, MemoryChanges, MemoryShown, Turn, Wanted
from muniment.model.context import Asker
from muniment.model.fields import Artifact, AsOf, Ceid, Instant, Name, Query, Tier, WriteClass, build
from muniment.recall.browse_store import MemoryBrowser, MemorySelection
from muniment.recall.filters import PointInTime
from muniment.recall.recall import point_in_time
from muniment.recall.rules import replay_horizon
from muniment.verbs import arguments as checks


class MemoryFilters(TypedDict, total=False):
    """What `list` can be narrowed to."""

    entity: str | None
    user_id: str | None
    tier: Tier | None
    write_class: WriteClass | None
    query: str | None
    state: Wanted | None
    as_of: datetime | int | None


class _Whose(Artifact):
    entity: Ceid | None = None
    user_id: Name | None = None


class _Listed(_Whose):
    tier: Tier | None = None
    write_class: WriteClass | None = None
    query: Query | None = None
    state: Wanted | None = None
    as_of: AsOf | None = None


class _Between(_Whose):
    since: Instant
    until: Instant | None = None


class _Around(Artifact):
    entity: Ceid
    hops: Annotated[int, Field(strict=True, ge=1, le=3)] = 1


class AsyncMemories:
    """Every memory of the tenant, whoever it is for; for reviewers and auditors."""

    def __init__(self, context: FabricContext) -> None:
        self._context = context

    async def list(
        self, asker: Asker, *, limit: int = 50, after: str | None = None, **narrowed: Unpack[MemoryFilters]
    ) -> list[MemoryShown]:
        """Live memories, the newest first; with a `query` those with its words, what has most of them first.

        Narrowed to an `entity`, a `user_id`, a `tier`, a `write_class`; in `state` `ended` or `all` instead of `live`;
        `as_of` a past moment as they stood then. `after` is the id of the last memory of the page before. Raises
        `NotFound`, and `HistoryCollected` beyond the replay horizon.
        """
        given = build(_Listed, narrowed)
        count, last = checks.page(limit, after)
        await self._context.authorise(asker, "read_memory")
        chosen = MemorySelection(given.user_id, given.entity, given.tier, given.write_class)
        async with self._context.read_only(asker.tenant_id) as tx:
            shelf = await self._shelf(tx, chosen, given.as_of)
            if given.query is None:
                return await shelf.newest(given.state or "live", count, last)
            return await shelf.with_words(given.query, given.state or "live", count, last)

    async def changes(
        self,
        asker: Asker,
        *,
        since: datetime,
        until: datetime | None = None,
        entity: str | None = None,
        user_id: str | None = None,
    ) -> MemoryChanges:
        """What began and what ended after one moment up to another, by default up to now, and how many stood at both.

        Raises `HistoryCollected` beyond the replay horizon.
        """
        asked = {"since": since, "until": until, "entity": entity, "user_id": user_id}
        given = build(_Between, asked)
        if given.until is not None and given.since >= given.until:
            raise InvalidInput("must lie before until", field="since")
        await self._context.authorise(asker, "read_memory")
        async with self._context.read_only(asker.tenant_id) as tx:
            shelf = await self._shelf(tx, MemorySelection(given.user_id, given.entity), given.until, "until")
            return await shelf.changes(await point_in_time(self._context, tx, given.since, "since"))

    # Sequence, not list: `list` is a verb of this class.
    async def moments(self, asker: Asker, *, entity: str | None = None, user_id: str | None = None) -> Sequence[Turn]:
        """When memories began or ended inside the replay horizon, in order; of more than 500 the latest."""
        given = build(_Whose, {"entity": entity, "user_id": user_id})
        await self._context.authorise(asker, "read_memory")
        async with self._context.read_only(asker.tenant_id) as tx:
            return await (await self._shelf(tx, MemorySelection(given.user_id, given.entity))).turns()

    async def graph(self, asker: Asker, entity: str, *, hops: int = 1) -> Graph:
        """The entities up to three `hops` around one, and the live memories whose values tie them; at most 100."""
        given = build(_Around, {"entity": entity, "hops": hops})
        await self._context.authorise(asker, "read_memory")
        async with self._context.read_only(asker.tenant_id) as tx:
            return await (await self._shelf(tx, MemorySelection())).around(given.entity, given.hops)

    async def _shelf(
        self, tx: Transaction, chosen: MemorySelection, as_of: datetime | int | None = None, field: str = "as_of"
    ) -> MemoryBrowser:
        pack = await self._context.packs.read_in_force(tx) or self._context.packs.default
        horizon = replay_horizon(await self._context.packs.within_notice(tx))
        point = (
            await point_in_time(self._context, tx, as_of, field) if as_of is not None else PointInTime(LATEST, tx.now)
        )
        return MemoryBrowser(tx, self._context.vault, pack, chosen, point, horizon)
