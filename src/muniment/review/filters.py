"""The filters of the queue, as verbs take them and as its statements do."""

from typing import Annotated, Any

from pydantic import Field, Strict

from muniment.context import FabricContext
from muniment.model.context import Principal
from muniment.model.fields import Ceid, Name, Tier, WriteClass
from muniment.model.inputs import VerbInput
from muniment.model.proposal import HumanReason
from muniment.model.review_views import Danger, OpenStatus, QueueOrder, Risk
from muniment.review.dangers import bits_of, known_to


class QueueFilters(VerbInput):
    """What `queue.list` can be narrowed to."""

    write_class: WriteClass | None = None
    closed: Annotated[bool, Strict()] = Field(False, description="also those that had their final verdict")
    tier: Tier | None = Field(None, description="the tier it would go to")
    risk: Risk | None = None
    reason: HumanReason | None = Field(None, description="why a person has to look at it")
    entity: Ceid | None = Field(None, description="what it is about")
    assignee: Name | None = Field(None, description="who it is assigned to")
    status: OpenStatus | None = Field(None, description="the status of an open proposal")
    overdue: Annotated[bool, Strict()] | None = Field(None, description="only overdue ones, or only the others")
    author: Name | None = Field(None, description="whose capture it came from")
    danger: Danger | None = Field(None, description="only those with that danger, or with `any`")
    mentioned: Annotated[bool, Strict()] = Field(False, description="only those in whose comments the caller is named")
    order: QueueOrder | None = Field(None, description="by default `due`; `newest` first, or the most `unusual` first")


async def filters_of(context: FabricContext, reader: Principal, request: QueueFilters) -> dict[str, Any]:
    """Return the filters of the queue as its statements take them: an entity under all its names, dangers as a sum."""
    pack = await context.pack_for(reader)
    filters = {name: getattr(request, name) for name in QueueFilters.model_fields}
    mentioned = reader.id if request.mentioned else None
    filters |= {"entity": await context.spellings(reader, request.entity), "mentioned": mentioned}
    return filters | known_to(pack) | {"dangers": bits_of(filters.pop("danger"))}
