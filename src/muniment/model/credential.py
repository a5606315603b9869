"""Credential: who a request comes from, and how far it reaches. Nothing a request says adds to it."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from muniment.model.context import Principal
from muniment.model.fields import Artifact, Label, Name

# What a run may see under a credential that says nothing of it: as a run's own default.
CLEARANCE: frozenset[str] = frozenset({"PUBLIC", "INTERNAL"})


class Credential(Artifact):
    """What an API key or a token stands for."""

    principal: Principal
    user_id: Name | None = Field(default=None, description="the only end user that runs under it may act for")
    clearance: Annotated[frozenset[Label], Field(max_length=64)] = CLEARANCE
    key_id: str | None = Field(default=None, description="of an API key; none for a token")
    expires_at: datetime | None = None
