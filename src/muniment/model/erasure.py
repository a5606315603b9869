"""Erasure: the request, and the receipt for what was erased."""

from datetime import datetime
from typing import Self

from pydantic import Field, model_validator

from muniment.model.fields import Artifact, Ceid, Name, field_error


class ErasureInput(Artifact):
    """Whom to erase: a subject by its CEID, an end user by id, or both where they are the same person."""

    subject: Ceid | None = None
    user_id: Name | None = None

    @model_validator(mode="after")
    def _someone(self) -> Self:
        if self.subject is None and self.user_id is None:
            raise field_error("subject", "give a subject, a user_id, or both")
        return self


class Erasure(Artifact):
    """What was erased, by whom and when; `purged_at` is set once nothing of it is left in the files of the database."""

    erasure_id: str
    tenant_id: str
    subject: str | None = None
    aliases: tuple[str, ...] = Field(default=(), description="the same subject under its other namespaces")
    user_id: str | None = None
    by: str
    seq: int
    erased_at: datetime
    purged_at: datetime | None = None
    purge_waits: str | None = Field(
        default=None, description="what the last purge attempt waited for, while it is not purged"
    )
    name_search: datetime | None = Field(
        default=None, description="when a search of all texts for a name was completed for it; null if none was"
    )
    memories: int = Field(description="promoted memories that became tombstones")
    rows: dict[str, int] = Field(
        default_factory=dict, description="how many other rows were blanked or removed, by kind"
    )
