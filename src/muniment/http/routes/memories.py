"""The tenant's memories for those who review and audit: listed, searched, compared over time, and as a graph."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import Field

from muniment.http.bodies import Page, page
from muniment.http.caller import Asking, May
from muniment.http.idempotency import IdempotentRoute
from muniment.http.lists import Listing
from muniment.model.browse import Graph, MemoryChanges, MemoryShown, Turn, Wanted
from muniment.model.fields import AsOf, Ceid, Instant, Name, Tier, WriteClass
from muniment.model.fields import Query as Words

router = APIRouter(tags=["memories"], route_class=IdempotentRoute)

Reader = Annotated[Asking, Depends(May("read_memory"))]
Entity = Annotated[Ceid | None, Query(description="what it is about")]
User = Annotated[Name | None, Query(description="the end user it is for")]


class MemoryListing(Listing):
    """Which memories."""

    entity: Ceid | None = Field(default=None, description="what it is about")
    user_id: Name | None = Field(default=None, description="the end user it is for")
    tier: Tier | None = None
    write_class: WriteClass | None = None
    query: Words | None = Field(default=None, description="words to look for")
    state: Wanted | None = Field(default=None, description="`live` when not said")
    as_of: AsOf | None = Field(default=None, description="as they stood at that moment, or at that sequence number")


@router.get("/memories")
async def list_(asking: Reader, listing: Annotated[MemoryListing, Query()]) -> Page[MemoryShown]:
    """Live memories, the newest first; with a `query` those with its words, what has most of them first."""
    found = await asking.fabric.memories.list(asking.principal, **listing.asked())
    return page(found, listing.limit, "memory_id")


@router.get("/memories/changes")
async def changes(
    asking: Reader, since: Instant, until: Instant | None = None, entity: Entity = None, user_id: User = None
) -> MemoryChanges:
    """What began and what ended after one moment up to another, and how many stood at both."""
    return await asking.fabric.memories.changes(
        asking.principal, since=since, until=until, entity=entity, user_id=user_id
    )


@router.get("/memories/moments")
async def moments(asking: Reader, entity: Entity = None, user_id: User = None) -> list[Turn]:
    """When memories began or ended inside the replay horizon, in order; of more than 500 the latest."""
    return list(await asking.fabric.memories.moments(asking.principal, entity=entity, user_id=user_id))


@router.get("/memories/graph")
async def graph(asking: Reader, entity: Ceid, hops: Annotated[int, Query(ge=1, le=3)] = 1) -> Graph:
    """The entities around one, and the live memories whose values tie them together."""
    return await asking.fabric.memories.graph(asking.principal, entity, hops=hops)
