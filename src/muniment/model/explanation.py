"""Explanations: the decision of each filter on a memory, and the replay of a recall."""

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from muniment.model.fields import Artifact
from muniment.model.promoted import Ending

FilterName = Literal[
    "user", "session", "session_end", "workflow", "intent", "classification", "qualifiers", "consent", "content",
    "promoted", "retracted", "expired", "freshness", "validity",
]  # fmt: skip
Visibility = Literal["visible", "hidden", "not_yet_promoted", "expired", "not_valid", "retracted", "tombstoned"]
Missed = Literal["narrowed", "cut", "irrelevant"]
Why = Literal["consent", "erased", "clearance", "moved", "query_erased", "embedder"]


class FilterVerdict(Artifact):
    """The decision of one filter: what the memory has, and what the run or the time requires."""

    name: FilterName
    passed: bool
    memory: dict[str, Any] = Field(default_factory=dict)
    asked: dict[str, Any] = Field(default_factory=dict)


class _Visibility(Artifact):
    memory_id: str
    visibility: Visibility
    at: datetime = Field(description="the point in time it is about")
    seq: int | None = Field(default=None, description="the tenant's sequence number at that time; none for now")
    recall_id: str | None = None
    returned: bool | None = Field(default=None, description="whether that recall returned it")
    missed: Missed | None = Field(
        default=None,
        description="why a visible one was not returned: not asked for, cut by the limit, below the relevance floor",
    )
    relevance: float | None = Field(default=None, description="of an irrelevant one: how near it is to the query")
    relevance_floor: float | None = Field(default=None, description="and the least that the recall returned")
    valid_at: datetime | None = Field(default=None, description="when it had to hold in the world (REC-14)")
    prompts: tuple[str, ...] = Field(default=(), description="the compiled prompts of that recall that it was in")
    pack: str | None = None
    filters: tuple[FilterVerdict, ...] = ()
    promoted_at: datetime
    expires_at: datetime | None = None


class Explanation(Ending, _Visibility):
    """Why a memory was visible, or which filters hid it (REC-10). It holds no content."""

    tombstoned_at: datetime | None = None

    @property
    def visible(self) -> bool:
        """Whether every filter passed."""
        return self.visibility == "visible"

    @property
    def hidden_by(self) -> tuple[FilterName, ...]:
        """All filters that hide it, not only the first."""
        return tuple(one.name for one in self.filters if not one.passed)


class Difference(Artifact):
    """A memory whose rank differs in the replay: its rank then and now, counted from 0, and why."""

    memory_id: str
    then: int | None
    now: int | None
    why: Why


class Replay(Artifact):
    """A recorded recall, run again as of its time (REC-9)."""

    recall_id: str
    at: datetime
    seq: int
    pack: str
    same: bool
    then: tuple[str, ...]
    now: tuple[str, ...]
    differences: tuple[Difference, ...] = ()
    reasons: tuple[Why, ...] = Field(default=(), description="why it could not be run as recorded")
