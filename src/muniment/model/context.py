"""Who calls, and in which run: the first argument of every verb."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeAlias, get_args

from pydantic import AfterValidator, Field, ValidationError, model_validator

from muniment.model.bounds import check_lengths
from muniment.model.fields import (
    Artifact,
    Intent,
    Label,
    Name,
    OpenName,
    Qualifiers,
    RoleName,
    Source,
    TenantId,
    field_error,
    invalid,
)
from muniment.model.names import check_name, same_person
from muniment.model.speakers import SpeaksFor

# The roles that verbs require. A pack may declare others, which limit what a run may see.
Role = Literal["agent", "reviewer", "correction_writer", "privacy_officer", "auditor", "admin", "subject"]
BUILTIN_ROLES: frozenset[str] = frozenset(get_args(Role))
# The roles that a credential for one end user may have, and no other built-in ones.
OF_ONE_USER: frozenset[str] = frozenset({"agent", "subject"})
# Over HTTP a run that is not in a body is in this header, of at most so many characters.
RUN_HEADER = "Muniment-Run"
RUN_LIMIT = 8192


class _MadeByCallers(Artifact):
    """Callers build these themselves, so a wrong field raises our `InvalidInput`, not pydantic's error."""

    if not TYPE_CHECKING:

        def __init__(self, **values: Any) -> None:
            check_lengths(type(self), values)
            try:
                super().__init__(**values)
            except ValidationError as error:
                raise invalid(error) from None


def _somebody(value: str) -> str:
    if same_person(value, "auto"):
        raise ValueError("is the name that policy's own verdicts carry")
    return check_name(value)


PrincipalId = Annotated[Name, AfterValidator(_somebody)]


class Principal(_MadeByCallers):
    """A person or service that acts in one tenant, with the roles it holds and what it may speak for.

    An end user is a principal too; its id is its user id.
    """

    tenant_id: TenantId
    id: PrincipalId
    kind: Source
    roles: Annotated[frozenset[RoleName], Field(max_length=64, fail_fast=True)] = frozenset()
    speaks_for: SpeaksFor = SpeaksFor()

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            tenant_id: str,
            id: str,
            kind: Source,
            roles: Iterable[str] = (),
            speaks_for: SpeaksFor | Mapping[str, Iterable[str]] = ...,
        ) -> None: ...


class Run(_MadeByCallers):
    """An agent's run as the agent describes it: what it works on, for whom, and what it asks to see."""

    run_id: OpenName
    session_id: OpenName | None = None
    user_id: OpenName | None = None
    role: OpenName = "agent"
    intent_id: Intent | None = None
    workflow_id: OpenName | None = None
    decision_key: OpenName | None = None
    classification_allowed: Annotated[frozenset[Label], Field(max_length=64, fail_fast=True)] = frozenset(
        {"PUBLIC", "INTERNAL"}
    )
    qualifiers: Qualifiers = Field(default_factory=dict)
    pack: Name | None = None
    trace_id: OpenName | None = None
    speaks_for: SpeaksFor | None = Field(
        default=None, description="fewer tools and channels than the credential may speak for; by default all of them"
    )


class RunContext(Run):
    """A run of a named agent in a tenant, with the rights of that agent.

    `roles` names the roles that the agent holds beside `agent`, as the pack declares them, and `speaks_for` what it may
    speak for. A program that opens the fabric itself says both; on a server they are those of the credential.
    """

    tenant_id: TenantId
    agent_id: PrincipalId
    roles: Annotated[frozenset[RoleName], Field(max_length=64, fail_fast=True)] = frozenset()
    user_bound: bool = Field(
        default=False, description="whether the agent acts for this user alone: it writes nothing for others or for all"
    )

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            tenant_id: str,
            run_id: str,
            agent_id: str,
            session_id: str | None = None,
            user_id: str | None = None,
            role: str = "agent",
            intent_id: str | None = None,
            workflow_id: str | None = None,
            decision_key: str | None = None,
            classification_allowed: Iterable[str] = ("PUBLIC", "INTERNAL"),
            qualifiers: Mapping[str, str] = ...,
            pack: str | None = None,
            trace_id: str | None = None,
            speaks_for: SpeaksFor | Mapping[str, Iterable[str]] | None = None,
            roles: Iterable[str] = (),
            user_bound: bool = False,
        ) -> None: ...

    @model_validator(mode="after")
    def _holds_its_role(self) -> Self:
        if self.role != "agent" and self.role not in self.roles:
            raise field_error("role", "expected agent, or one of the roles that the agent holds (roles)")
        return self

    @property
    def principal(self) -> Principal:
        """The agent as a principal. Its only built-in role is `agent`: no role makes it a person."""
        spoken = self.speaks_for or SpeaksFor()
        return _agent(self.tenant_id, self.agent_id, self.roles, spoken.tools, spoken.channels)


# A run calls many times, and none of these values can change.
@lru_cache(maxsize=1024)
def _agent(
    tenant_id: str, agent_id: str, roles: frozenset[str], tools: frozenset[str], channels: frozenset[str]
) -> Principal:
    return Principal(
        tenant_id=tenant_id,
        id=agent_id,
        kind="agent",
        roles={"agent", *(roles - BUILTIN_ROLES)},
        speaks_for=SpeaksFor(tools=tools, channels=channels),
    )


Asker: TypeAlias = Principal | RunContext
