"""Who asks through a client: the holder of its credential, and nobody else."""

from typing import Any

from pydantic import BaseModel, TypeAdapter

from muniment.client.transport import Transport
from muniment.errors import Denied, InvalidInput
from muniment.model.context import Asker, Principal, RunContext
from muniment.model.fields import Source
from muniment.model.speakers import SpeaksFor


class _Holder(BaseModel):
    tenant_id: str
    id: str
    kind: Source
    roles: frozenset[str]
    speaks_for: SpeaksFor = SpeaksFor()


class _Whoami(BaseModel):
    principal: _Holder


_WHOAMI: TypeAdapter[_Whoami] = TypeAdapter(_Whoami)


class Asking:
    """The wire, and whose it is."""

    def __init__(self, transport: Transport) -> None:
        self.wire = transport
        self._holder: Principal | None = None

    async def holder(self) -> Principal:
        """Whose credential it is, asked once."""
        if self._holder is None:
            found = (await self.wire.get("/v1/whoami", _WHOAMI)).principal
            self._holder = Principal(
                tenant_id=found.tenant_id,
                id=found.id,
                kind=found.kind,
                roles=found.roles,
                speaks_for=found.speaks_for,
            )
        return self._holder

    async def own(self, asker: Asker) -> Asker:
        """Raises `Denied` for another than the credential's own: the server would take it for the holder's word."""
        if not isinstance(asker, Principal | RunContext):
            raise InvalidInput("expected a Principal or a RunContext", field="asker")
        principal = await self.holder()
        given = asker.principal if isinstance(asker, RunContext) else asker
        if (given.tenant_id, given.id, given.kind) != (principal.tenant_id, principal.id, principal.kind):
            raise Denied(f"this client's credential is of {principal.kind} {principal.id}", field="asker")
        return asker

    async def tenant(self, tenant_id: str) -> None:
        """Raises `Denied` for another tenant than the credential's own."""
        if (await self.holder()).tenant_id != tenant_id:
            raise Denied("this client's credential is of another tenant", field="tenant_id")

    async def run(self, run: RunContext) -> dict[str, Any]:
        """A run as a body tells of it."""
        if not isinstance(run, RunContext):
            raise InvalidInput("expected a RunContext", field="run")
        await self.own(run)
        return told(run)

    async def about(self, run: RunContext) -> dict[str, Any]:
        """A run that somebody else asks about, of any agent of the tenant."""
        if not isinstance(run, RunContext):
            raise InvalidInput("expected a RunContext", field="run")
        await self.tenant(run.tenant_id)
        return told(run, "agent_id")

    async def with_run(self, asker: Asker, body: dict[str, Any]) -> dict[str, Any]:
        """A body with the run that asks, where it is one."""
        await self.own(asker)
        return body | {"run": told(asker)} if isinstance(asker, RunContext) else body


class Group:
    """Verbs that go together, asked over one client's wire.

    Their signatures are those of the fabric's own groups, repeated on purpose; a test compares them.
    """

    def __init__(self, asking: Asking) -> None:
        self._asking = asking
        self._wire = asking.wire


def told(run: RunContext, *apart: str) -> dict[str, Any]:
    """What a run says of itself; tenant, agent and the agent's roles are the credential's."""
    return run.model_dump(mode="json", exclude_unset=True, exclude={"tenant_id", "agent_id", "roles"} - set(apart))
