"""API keys and credentials: who a request comes from, and what it may do. Nothing in a request can extend it."""

from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from muniment.model.context import BUILTIN_ROLES, OF_ONE_USER, Principal, PrincipalId
from muniment.model.fields import Artifact, Instant, Label, Name, Note, OpenName, RoleName, Source, field_error
from muniment.model.speakers import SpeaksFor

ApiKeyState = Literal["active", "expired", "revoked"]

LASTS = timedelta(days=90)
# A term added to any date of this age stays within what Python and PostgreSQL can count.
_LONGEST = timedelta(days=36_500)


def _term(value: Any) -> Any:
    if value is None or value == "never":
        return value
    if not isinstance(value, timedelta) or not timedelta(0) < value <= _LONGEST:
        raise ValueError(f"expected a length of time of at most {_LONGEST.days} days, or never")
    return value


Term = Annotated[timedelta | Literal["never"] | None, BeforeValidator(_term)]


class ApiKeyInput(Artifact):
    """An API key as an admin requests it.

    It ends at `expires_at`, or after `expires_in`; with neither after 90 days. One for runs may be for one user only.
    Its roles are built-in ones, or declared by the pack. `speaks_for` names the tools and channels it may speak for,
    `packs` those that its runs may pin.
    """

    principal_id: PrincipalId
    kind: Source
    roles: Annotated[frozenset[RoleName], Field(min_length=1, max_length=64, fail_fast=True)]
    user_id: OpenName | None = None
    clearance: Annotated[frozenset[Label], Field(max_length=64, fail_fast=True)] | None = None
    speaks_for: SpeaksFor = SpeaksFor()
    packs: Annotated[frozenset[Name], Field(max_length=256, fail_fast=True)] | None = None
    expires_at: Instant | None = None
    expires_in: Term = None
    label: Note | None = None

    @model_validator(mode="after")
    def _holds_together(self) -> Self:
        built_in = self.roles & BUILTIN_ROLES
        if self.kind == "agent" and built_in != {"agent"}:
            raise field_error("roles", "an agent has the role agent and no other built-in one")
        if self.kind == "end_user" and not (built_in and built_in <= OF_ONE_USER):
            raise field_error("roles", "an end_user has the role agent, the role subject, or both, and no other one")
        if self.kind != "end_user" and "subject" in built_in:
            raise field_error("roles", "the role subject is for the key of an end_user")
        if self.user_id is not None and not (built_in and built_in <= OF_ONE_USER):
            raise field_error("user_id", "a key for one end user has the role agent and no other built-in one")
        if self.kind == "end_user" and self.user_id != self.principal_id:
            raise field_error("user_id", "the key of an end user is only for that user: expected its principal_id")
        if self.expires_at is not None and self.expires_in is not None:
            raise field_error("expires_at", "give a time or a length of time, not both")
        return self

    def ends_at(self, now: datetime) -> datetime | None:
        """When it ends if it is made now; None for never."""
        if self.expires_at is not None or self.expires_in == "never":
            return self.expires_at
        return now + (self.expires_in or LASTS)


class ApiKey(Artifact):
    """An API key, what it allows and its state. `token` is returned once, when the key is made, and never stored."""

    key_id: str
    tenant_id: str
    principal_id: str
    kind: Source
    roles: tuple[str, ...]
    user_id: str | None = Field(default=None, description="the only end user that runs under it may act for")
    clearance: tuple[str, ...]
    speaks_for: SpeaksFor = Field(default=SpeaksFor(), description="the tools and channels it may speak for")
    packs: tuple[str, ...] | None = Field(
        default=None, description="the only packs that runs under it may pin; none: those that the pack in force lists"
    )
    label: str | None = None
    state: ApiKeyState
    created_at: datetime
    created_by: str
    expires_at: datetime | None = None
    last_used_at: datetime | None = Field(default=None, description="to the minute")
    revoked_at: datetime | None = None
    revoked_by: str | None = None
    problem: str | None = Field(
        default=None, description="why it is not accepted: the name of its principal is refused"
    )
    token: str | None = Field(default=None, repr=False)


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
        built_in = self.principal.roles & BUILTIN_ROLES
        if "subject" in built_in and self.principal.kind != "end_user":
            raise field_error("roles", "the role subject is for the credential of an end_user")
        if self.user_id is not None and not (built_in and built_in <= OF_ONE_USER):
            raise field_error("user_id", "a credential for one end user has the role agent and no other built-in one")
        if self.principal.kind == "end_user" and self.user_id != self.principal.id:
            raise field_error("user_id", "the credential of an end user is only for that user")
        return self
