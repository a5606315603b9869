"""Who asks, and in which run: every call begins with one of these."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, Field, ValidationError

from muniment.model.bounds import check_lengths
from muniment.model.fields import Artifact, Intent, Label, Name, OpenName, Qualifiers, Source, TenantId, invalid
from muniment.model.names import check_name, same_person

Role = Literal["agent", "reviewer", "correction_writer", "privacy_officer", "auditor", "admin"]
# Over HTTP a run that no body tells of is in this header, in so many characters at most.
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
    """A person or service that acts in one tenant."""

    tenant_id: TenantId
    id: PrincipalId
    kind: Source
    roles: Annotated[frozenset[Role], Field(fail_fast=True)] = frozenset()

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            tenant_id: str,
            id: str,  # noqa: A002  the field is called so
            kind: Source,
            roles: Iterable[Role] = (),
        ) -> None: ...


class Run(_MadeByCallers):
    """An agent's run as the agent tells of it: what it acts on, for whom, and what it asks to see."""

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


class RunContext(Run):
    """A run of a named agent in a tenant."""

    tenant_id: TenantId
    agent_id: PrincipalId

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
        ) -> None: ...

    @property
    def principal(self) -> Principal:
        """The agent as the one who acts."""
        return Principal(tenant_id=self.tenant_id, id=self.agent_id, kind="agent", roles={"agent"})


Asker: TypeAlias = Principal | RunContext
