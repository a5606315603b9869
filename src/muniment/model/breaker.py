"""Breaker: whether a write class may be promoted without a person."""

from datetime import datetime

from pydantic import Field

from muniment.model.fields import Artifact, WriteClass


class Breaker(Artifact):
    """The state of a write class; open means that a person reviews everything."""

    write_class: WriteClass
    open: bool
    at: datetime
    by: str
    samples: int
    correct: int
    low: float = Field(description="lower end of the interval around the share of correct samples")
