"""The tenant's memories as a person looks through them: a page, two moments compared, the graph around an entity."""

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from muniment.model.fields import Artifact, Tier, WriteClass
from muniment.model.promoted import RetractionReason

MemoryState = Literal["live", "expired", "retracted", "superseded", "tombstoned"]
Wanted = Literal["live", "ended", "all"]


class MemoryShown(Artifact):
    """A memory in a list, as it stood at the moment that was asked about.

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
    ended_at: datetime | None = Field(default=None, description="when it was retracted, or else expired")
    reason: RetractionReason | None = Field(default=None, description="why it was retracted")
    superseded_by: str | None = None
    tombstoned_at: datetime | None = Field(default=None, description="its content is gone since")
    contradiction: bool = Field(default=False, description="a contradiction with a memory or a proposal was open")
    withheld: bool = Field(default=False, description="its consent has ended, or it does not open: no text is shown")
    score: float | None = Field(default=None, description="of a search: how much of its words it has, 0 to 1")


class MemoryChanges(Artifact):
    """What began and what ended after one moment up to another, the latest first.

    Beyond what is listed the totals count it. What came and went in between is in both lists.
    """

    since: datetime
    until: datetime
    added: tuple[MemoryShown, ...] = ()
    ended: tuple[MemoryShown, ...] = Field(default=(), description="as they stood in the end: `state`, `reason`")
    added_total: int = 0
    ended_total: int = 0
    still: int = Field(default=0, description="live at both moments")


class Turn(Artifact):
    """A moment at which memories began or ended."""

    at: datetime
    began: int = 0
    ended: int = 0


class Node(Artifact):
    """An entity of the graph."""

    entity: str
    distance: int = Field(description="steps from the one that was asked about")
    memories: int = Field(description="live memories on it")


class Edge(Artifact):
    """A live memory whose value names another entity."""

    memory_id: str
    entity: str
    predicate: str | None
    links_to: str


class Graph(Artifact):
    """The entities around one, and the live memories that tie them together."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...] = ()
    cut: bool = Field(default=False, description="there is more than is shown")
