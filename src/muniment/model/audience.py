"""Audience: what the filters of recall ask of a run, and of the time, before they show a fact."""

from datetime import datetime

from pydantic import Field

from muniment.model.explanation import FilterName
from muniment.model.fields import Artifact


class Audience(Artifact):
    """Which recalls show a fact once it is promoted, until it is retracted or erased (REC-1).

    A filter that asks nothing of it is not among `filters`; each that asks something is, with what it asks in a field.
    """

    filters: tuple[FilterName, ...] = Field(description="the filters that hide it from some run, or at some time")
    user_id: str | None = Field(default=None, description="user: the run is for this user")
    session_id: str | None = Field(
        default=None, description="session: the run is of this session, which has not ended; null asks for none"
    )
    workflow_id: str | None = Field(default=None, description="workflow: the run is of this workflow")
    intent_id: str | None = Field(
        default=None, description="intent: the run has this intent, or one under it if it ends in .*"
    )
    classification: str = Field(description="classification: the run is cleared for this label")
    roles: tuple[str, ...] | None = Field(
        default=None, description="classification: and acts in one of these roles; null is any that the pack has"
    )
    qualifiers: dict[str, str] = Field(
        default_factory=dict, description="qualifiers: the run names no other value for any of these"
    )
    required: dict[str, str] = Field(default_factory=dict, description="qualifiers: the run names these")
    consent_id: str | None = Field(default=None, description="consent: it, or its renewal, covers the fact")
    valid_from: datetime | None = Field(default=None, description="validity: what is asked about is not before it")
    valid_until: datetime | None = Field(default=None, description="validity: and before this")
    lifetime: float | None = Field(default=None, description="expired: seconds from its promotion to its end")
    fresh_for: float | None = Field(
        default=None, description="freshness: seconds from its promotion for which it is recalled"
    )
