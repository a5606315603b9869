"""What an interface asks of the fabric before and beside the verbs: who the caller is, and what it may do."""

from datetime import datetime
from typing import Any

from muniment.access.roles import Right
from muniment.context import FabricContext
from muniment.errors import Denied, InvalidInput
from muniment.model.api_key import Credential
from muniment.model.context import Asker, Principal, Run, RunContext


class AsyncAccess:
    """Checks callers; a refused one is recorded in the log of its tenant."""

    def __init__(self, context: FabricContext) -> None:
        self._context = context

    async def allow(self, principal: Principal, verb: Right) -> None:
        """Raise `RoleMissing` unless the principal may call the verb."""
        await self._context.authorise(principal, verb)

    async def asker(self, credential: Credential, run: Run | None, verb: Right) -> Asker:
        """The caller under this credential: its run if it names one, else the principal.

        Raises `InvalidInput` and `Denied`, as `run` does.
        """
        if run is not None:
            return await self.run(credential, run, verb)
        if credential.user_id is not None and credential.principal.kind != "end_user":
            raise InvalidInput("is required: this credential acts for a single user", field="run")
        return credential.principal

    async def run(self, credential: Credential, run: Run, verb: Right = "recall") -> RunContext:
        """The run of an agent, within the limits of its credential.

        Tenant, agent and the agent's roles come from the credential, and so do user, labels, tools and channels that
        the run does not name. Others than the credential's own are `Denied`, and so are a role that it lacks and a pack
        that it may not pin: a run can only narrow (ISO-5). Raises `InvalidInput` if the credential is not an agent's.
        """
        principal = credential.principal
        if principal.kind != "agent":
            raise InvalidInput(f"is only for agents; this credential is of kind {principal.kind}", field="run")
        try:
            narrowed = _within(credential, run)
        except Denied as error:
            await self._context.report(principal, verb, error)
            raise
        bound = credential.user_id is not None
        return RunContext(
            **narrowed, tenant_id=principal.tenant_id, agent_id=principal.id, roles=principal.roles, user_bound=bound
        )

    async def labels(self, principal: Principal) -> tuple[str, ...]:
        """The classifications that a person can give to what they state, in rising order; raises `RoleMissing`."""
        await self._context.authorise(principal, "correct")
        return (await self._context.pack_for(principal)).labels

    def now(self) -> datetime:
        """The fabric's clock."""
        return self._context.now()

    async def at(self, tenant_id: str) -> int:
        """The sequence number of the last change in a tenant; 0 if there was none."""
        async with self._context.transaction(tenant_id, "auditor") as tx:
            row = await tx.row("tenant.clock")
        return row["seq"] if row is not None else 0

    def secret(self, purpose: str) -> bytes:
        """A secret for one purpose that all servers under the same master key share."""
        return self._context.vault.shared(purpose)

    async def ready(self) -> None:
        """Raise `StorageUnavailable`, or an error like it, if the database does not answer."""
        await self._context.storage.answers()


def _within(credential: Credential, run: Run) -> dict[str, Any]:
    fields: dict[str, Any] = {name: getattr(run, name) for name in Run.model_fields if name in run.model_fields_set}
    if credential.user_id is not None and fields.setdefault("user_id", credential.user_id) != credential.user_id:
        raise Denied("this credential acts for another user", field="run.user_id")
    principal = credential.principal
    if run.role not in principal.roles:
        raise Denied(f"this credential does not have the role {run.role}", field="run.role")
    if run.pack is not None and credential.packs is not None and run.pack not in credential.packs:
        raise Denied(f"this credential may not pin the pack {run.pack}", field="run.pack")
    if run.speaks_for is None:
        fields["speaks_for"] = principal.speaks_for
    elif (beyond := run.speaks_for.beyond(principal.speaks_for)) is not None:
        raise Denied(f"this credential may not speak for {beyond}", field="run.speaks_for")
    if "classification_allowed" not in fields:
        fields["classification_allowed"] = run.classification_allowed & credential.clearance
    elif uncleared := run.classification_allowed - credential.clearance:
        raise Denied(f"this credential is not cleared for {min(uncleared)}", field="run.classification_allowed")
    return fields
