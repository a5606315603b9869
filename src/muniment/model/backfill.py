"""Backfill: live memories migrated to a later ontology and to resolved aliases, ordered by a named person (JOB-8)."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from muniment.model.fields import Artifact

# `alias_resolved` is a memory whose entity or subject got the namespace that its own is an alias of.
Change = Literal["renamed", "retyped", "alias_resolved", "dropped"]
# Migrated to a new record, merged with one that said it already, withdrawn; or still there: left, refused by a gate,
# held for what it contradicts.
ItemOutcome = Literal["migrated", "merged", "dropped", "left", "refused", "held"]


class BackfillItem(Artifact):
    """The outcome for one memory, and the reason if it was not migrated."""

    memory_id: str
    change: Change
    outcome: ItemOutcome
    reason: str | None = Field(default=None, description="a gate with its reason, or a code such as not_a_number")
    proposal_id: str | None = None
    became: str | None = Field(default=None, description="the memory that replaced it")


class Backfill(Artifact):
    """A backfill and its progress; a plan that was not ordered has no `backfill_id`."""

    backfill_id: str | None
    pack: str
    ontology_version: str
    from_versions: tuple[str, ...] = Field(default=(), description="ontology versions of the memories it covers")
    ordered_by: str
    ordered_at: datetime
    finished_at: datetime | None = None
    planned: dict[Change, int] = Field(default_factory=dict, description="memories it covers, at the time of planning")
    done: dict[ItemOutcome, int] = Field(default_factory=dict, description="outcomes so far")
    left: tuple[BackfillItem, ...] = Field(
        default=(), description="memories that wait for a person, the first thousand"
    )
