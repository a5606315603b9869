"""Credential: who a request comes from, and what it may do. Nothing in a request can extend it."""

from datetime import datetime
from typing import Annotated, Self

from pydantic import Field, model_validator

from muniment.model.context import BUILTIN_ROLES, Principal
from muniment.model.fields import Artifact, Label, Name, field_error

# What a run may see under a credential that sets no limit: the same as a run's default.
CLEARANCE: frozenset[str] = frozenset({"PUBLIC", "INTERNAL"})


class Credential(Artifact):
    """What an API key or a token allows: upper limits that a run under it can only narrow (ISO-5).

    One for one end user is an agent's or that user's own: another built-in role would reach past that user.
    """

    principal: Principal
    user_id: Name | None = Field(default=None, description="the only end user that runs under it may act for")
    clearance: Annotated[frozenset[Label], Field(max_length=64, fail_fast=True)] = CLEARANCE
    packs: Annotated[frozenset[Name], Field(max_length=256, fail_fast=True)] | None = Field(
        default=None, description="the only packs that runs under it may pin; none: those that the pack in force lists"
    )
    key_id: str | None = Field(default=None, description="of an API key; none for a token")
    expires_at: datetime | None = None

    @model_validator(mode="after")
    def _keeps_to_its_user(self) -> Self:
        roles = self.principal.roles
        if self.user_id is not None and (roles & BUILTIN_ROLES != {"agent"}):
            raise field_error("user_id", "a credential for one end user has the role agent and no other built-in one")
        if self.principal.kind == "end_user" and self.user_id != self.principal.id:
            raise field_error("user_id", "the credential of an end user is only for that user")
        return self
