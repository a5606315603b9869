"""Backfill: live memories brought under a later ontology, by order of a named person (JOB-8)."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from muniment.model.fields import Artifact

Change = Literal["renamed", "retyped", "dropped"]
# Migrated to a new record, merged with one that said it already, withdrawn; or still there: left, refused by a gate,
# held for what it contradicts.
ItemOutcome = Literal["migrated", "merged", "dropped", "left", "refused", "held"]


class BackfillItem(Artifact):
    """What became of one memory, and why it stayed where it did."""

    memory_id: str
    change: Change
    outcome: ItemOutcome
    reason: str | None = Field(default=None, description="a gate with its reason, or a code such as not_a_number")
    proposal_id: str | None = None
    became: str | None = Field(default=None, description="the memory that stands in its place")


class Backfill(Artifact):
    """An order, or what one would be about (`backfill_id` None), and how far it is."""

    backfill_id: str | None
    pack: str
    ontology_version: str
    from_versions: tuple[str, ...] = Field(default=(), description="ontology versions of the memories it is about")
    ordered_by: str
    ordered_at: datetime
    finished_at: datetime | None = None
    planned: dict[Change, int] = Field(default_factory=dict, description="memories it is about, when it was planned")
    done: dict[ItemOutcome, int] = Field(default_factory=dict, description="what became of those it came to")
    left: tuple[BackfillItem, ...] = Field(
        default=(), description="those that stay and wait for a person, the first thousand"
    )
