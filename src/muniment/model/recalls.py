"""Recorded recalls, as far as the caller may see them now: a page of them, and what one returned."""

from datetime import datetime

from pydantic import Field

from muniment.model.explanation import FilterName, Visibility
from muniment.model.fields import Artifact, Tier, WriteClass
from muniment.model.recall import Provenance


class RecallSummary(Artifact):
    """A recorded recall: whose, when, under which pack, and how much it returned; never its query."""

    recall_id: str
    at: datetime
    seq: int = Field(description="the tenant's sequence number then")
    run_id: str
    agent_id: str
    user_id: str | None = None
    pack: str
    as_of: datetime | None = Field(default=None, description="the requested point in time, if not now")
    with_query: bool = False
    returned: int = Field(description="how many memories it returned; for a run, of those that it may see now")
    omitted: int | None = Field(default=0, description="how many the limit cut off; not shown to a run")
    degraded: tuple[str, ...] = ()


class Returned(Artifact):
    """A memory that a recall returned, with its provenance, and whether the run would see it now (REC-5).

    Rights count as of now: of what was erased, or whose consent ended, neither text nor evidence is shown.
    """

    memory_id: str
    visibility: Visibility = Field(description="for the same run now")
    hidden_by: tuple[FilterName, ...] = Field(default=(), description="every filter that would hide it")
    text: str = Field(default="", description="only for a person")
    withheld: bool = Field(default=False, description="neither text nor evidence is shown")
    write_class: WriteClass
    tier: Tier
    classification: str
    provenance: Provenance

    @property
    def visible(self) -> bool:
        """Whether every filter would pass it."""
        return self.visibility == "visible"


class RecallDetails(RecallSummary):
    """A recorded recall with what it returned, in its order."""

    memories: tuple[Returned, ...] = ()
