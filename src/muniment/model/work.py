"""Background work: the backlog of captures, parked captures, when the jobs ran, and suspended classes."""

from datetime import datetime

from pydantic import Field

from muniment.model.fields import Artifact, WriteClass


class Parked(Artifact):
    """A capture that could not be consolidated and waits for an operator; the capture itself is unchanged."""

    capture_id: str
    tries: int
    error: str | None = Field(description="which extractor, and why; never content")
    parked_at: datetime


class Backlog(Artifact):
    """The backlog: new captures and since when, captures to retry and from when, parked captures."""

    behind: int
    since: datetime | None = None
    again: int
    next_at: datetime | None = None
    parked: int
    model_error: str | None = Field(
        default=None,
        description="why a language model's answers are waited for, in its server's own words if it has any",
    )


class ClockReset(Artifact):
    """The reset of a tenant's clock: the sequence number from which it is correct again, and its value before."""

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


class Breaker(Artifact):
    """The state of a write class; open means that a person reviews everything."""

    write_class: WriteClass
    open: bool
    at: datetime
    by: str
    samples: int
    correct: int
    low: float = Field(description="lower end of the interval around the share of correct samples")
