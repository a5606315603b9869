"""What a person stated, as they see it afterwards."""

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from muniment.model.candidate import GateName, WriteClass
from muniment.model.fields import Artifact
from muniment.model.proposal import Status

# Beside those of a proposal: the states of a capture that none came from ("processed": no fact was found in it), and
# "retracted" for a memory that was promoted.
StatementStatus = Status | Literal["waiting", "processed", "refused", "parked", "erased", "retracted"]


class Statement(Artifact):
    """A fact that a person stated or corrected, with its outcome.

    Like `Submission`, it omits what the checks found.
    """

    capture_id: str
    stated_at: datetime
    write_class: WriteClass | None = None
    entity: str | None = None
    predicate: str | None = None
    value: Any = None
    text: str | None = Field(default=None, description="as it was stated, but masked; none where it was erased")
    corrects: str | None = Field(default=None, description="the memory that it was to correct")
    status: StatementStatus = Field(
        description="as of a `Submission`: `pending` until a person has decided, also where a check set it aside"
    )
    proposal_id: str | None = None
    gate: GateName | None = Field(default=None, description="which gate refused it")
    reason: str | None = Field(
        default=None, description="why the gate refused it, the reviewer rejected it, or the memory was retracted"
    )
    decided_by: str | None = Field(default=None, description="the person who decided it")
    decided_at: datetime | None = None
