"""Work in hand: what waits to be consolidated, what was parked, and when the jobs ran."""

from datetime import datetime

from pydantic import Field

from muniment.model.fields import Artifact


class Parked(Artifact):
    """A capture that could not be consolidated, for an operator to see; the capture itself is untouched."""

    capture_id: str
    tries: int
    error: str | None = Field(description="which extractor, and why; never content")
    parked_at: datetime


class Backlog(Artifact):
    """How much waits: new captures and since when, captures to be tried again and from when on, parked ones."""

    behind: int
    since: datetime | None = None
    again: int
    next_at: datetime | None = None
    parked: int


class ClockReset(Artifact):
    """That a tenant's clock was brought back: the number from which on it is right again, and what it was before."""

    seq: int
    at: datetime
    was_at: datetime
    reset_by: str
    reason: str


class JobRun(Artifact):
    """When a job ran last in the tenant, how long it took, and how often it failed in a row."""

    job: str
    ran_at: datetime
    next_at: datetime | None = None
    took: float
    failures: int = 0
    error: str | None = None
