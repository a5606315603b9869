"""Erasure: the receipt for what was made to be forgotten."""

from datetime import datetime
from typing import Self

from pydantic import Field, model_validator

from muniment.model.fields import Artifact, Ceid, Name, misses


class ErasureInput(Artifact):
    """Whom to forget: a subject by its CEID, an end user by id, or both where they are the same person."""

    subject: Ceid | None = None
    user_id: Name | None = None

    @model_validator(mode="after")
    def _someone(self) -> Self:
        if self.subject is None and self.user_id is None:
            raise misses("subject", "give a subject, a user_id, or both")
        return self


class Erasure(Artifact):
    """What was erased, by whom, when; `purged_at` once nothing of it is left beneath the tables either."""

    erasure_id: str
    tenant_id: str
    subject: str | None = None
    aliases: tuple[str, ...] = Field(default=(), description="the subject under the other namespaces that are the same")
    user_id: str | None = None
    by: str
    seq: int
    erased_at: datetime
    purged_at: datetime | None = None
    purge_waits: str | None = Field(default=None, description="what the last purge waited for, while it is not purged")
    name_search: datetime | None = Field(
        default=None, description="when a search of all texts for a name was finished for it; null: none was"
    )
    memories: int = Field(description="promoted memories that became tombstones")
    rows: dict[str, int] = Field(default_factory=dict, description="how many of what else was blanked or removed")
