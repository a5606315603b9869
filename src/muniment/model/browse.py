"""The tenant's memories for browsing: a page of them, two points in time compared, the graph around an entity."""

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from muniment.model.fields import Artifact, Tier, WriteClass
from muniment.model.promoted import RetractionReason

MemoryState = Literal["live", "expired", "retracted", "superseded", "tombstoned"]
Wanted = Literal["live", "ended", "all"]


class MemorySummary(Artifact):
    """A memory in a list, in its state at the requested time.

    Rights count as of now: what was erased since, or whose consent ended, has no text for the past either.
    """

    memory_id: str
    state: MemoryState
    text: str
    value: Any = None
    write_class: WriteClass
    entity: str | None = None
    predicate: str | None = None
    subject: str | None = None
    user_id: str | None = None
    tier: Tier
    classification: str
    priority: float
    confidence: float
    approver: str
    promoted_at: datetime
    expires_at: datetime | None = None
    valid_from: datetime | None = Field(default=None, description="from when it holds in the world (REC-14)")
    valid_until: datetime | None = Field(default=None, description="until when it holds in the world")
    ended_at: datetime | None = Field(default=None, description="when it was retracted, or else expired")
    reason: RetractionReason | None = Field(default=None, description="why it was retracted")
    superseded_by: str | None = None
    tombstoned_at: datetime | None = Field(default=None, description="since when its content is gone")
    contradiction: bool = Field(default=False, description="a contradiction with a memory or a proposal was open")
    withheld: bool = Field(
        default=False, description="no text is shown: its consent has ended, or it cannot be decrypted"
    )
    score: float | None = Field(default=None, description="in a search: the share of the query's words it has, 0 to 1")


class MemoryChanges(Artifact):
    """Memories that began or ended between two points in time, the latest first.

    Beyond what is listed the totals count it. What came and went in between is in both lists.
    """

    since: datetime
    until: datetime
    added: tuple[MemorySummary, ...] = ()
    ended: tuple[MemorySummary, ...] = Field(default=(), description="in their final state: `state`, `reason`")
    added_total: int = 0
    ended_total: int = 0
    still: int = Field(default=0, description="live at both times")


class Turn(Artifact):
    """A point in time at which memories began or ended."""

    at: datetime
    began: int = 0
    ended: int = 0


class Node(Artifact):
    """An entity of the graph."""

    entity: str
    distance: int = Field(description="steps from the requested entity")
    memories: int = Field(description="live memories on it")


class Edge(Artifact):
    """A live memory whose value names another entity."""

    memory_id: str
    entity: str
    predicate: str | None
    links_to: str


class Graph(Artifact):
    """An entity, the entities around it, and the live memories that link them."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...] = ()
    cut: bool = Field(default=False, description="there is more than is shown")
