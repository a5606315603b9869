"""Who asks: the credential that the door has checked, and the role that each route declares."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Annotated, cast

from fastapi import Header, Request
from pydantic import StringConstraints, TypeAdapter, ValidationError

from muniment.access.roles import Verb
from muniment.errors import InvalidInput, Unauthenticated
from muniment.fabric import AsyncFabric
from muniment.model.context import RUN_HEADER, RUN_LIMIT, Asker, Principal, Run, RunContext
from muniment.model.credential import Credential
from muniment.model.fields import invalid

IDEMPOTENCY_HEADER = "Idempotency-Key"
_RUN: TypeAdapter[Run] = TypeAdapter(Run)

KeyText = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[!-~]+$")]
KEY_SAID = (
    "Any string of the caller's, a UUID for one. The same request under the same key is carried out once: for a day "
    "the second is answered as the first was."
)
IdempotencyKey = Annotated[KeyText | None, Header(alias=IDEMPOTENCY_HEADER, description=KEY_SAID)]
RunHeader = Annotated[
    str | None,
    Header(
        alias=RUN_HEADER, max_length=RUN_LIMIT, description="An agent's run, as the JSON object that bodies call `run`."
    ),
]


class Asking:
    """One request's asker, and the fabric it asks."""

    def __init__(self, fabric: AsyncFabric, credential: Credential, verb: Verb) -> None:
        self.fabric = fabric
        self.credential = credential
        self.verb: Verb = verb

    @property
    def principal(self) -> Principal:
        """Whose credential it is."""
        return self.credential.principal

    @property
    def tenant_id(self) -> str:
        """The tenant it is of."""
        return self.credential.principal.tenant_id

    async def asker(self, run: Run | None) -> Asker:
        """The run that is told of, or who holds the credential."""
        return await self.fabric.access.asker(self.credential, run, self.verb)

    async def run(self, run: Run) -> RunContext:
        """The run of an agent."""
        return await self.fabric.access.run(self.credential, run, self.verb)

    async def asker_by_header(self, header: str | None) -> Asker:
        """The run that the header tells of, or who holds the credential."""
        return await self.asker(run_of(header))


class May:
    """A dependency: the route's own verb. Whoever may not do that is refused before anything else is looked at.

    Without a verb every credential will do; with `also` it takes the right to both.
    """

    def __init__(self, verb: Verb | None, *, agents: Verb | None = None, also: Verb | None = None) -> None:
        self.verb: Verb | None = verb
        self.agents: Verb | None = agents
        self.also: Verb | None = also

    async def __call__(self, request: Request) -> Asking:
        """The asker, if it may; raises `Unauthenticated`, `RoleMissing`."""
        credential = cast("Credential | None", request.scope.get("state", {}).get("credential"))
        if credential is None:
            raise Unauthenticated("give a key or a token: Authorization: Bearer ...")
        of_agent = self.agents is not None and credential.principal.kind == "agent"
        verb = self.agents if of_agent else self.verb
        fabric = cast("AsyncFabric", request.app.state.fabric)
        if verb is not None:
            await fabric.access.allow(credential.principal, verb)
        if self.also is not None:
            await fabric.access.allow(credential.principal, self.also)
        return Asking(fabric, credential, verb or "recall")


class MayRetract(May):
    """A reviewer; or a privacy officer, who may for the reason `erased` alone."""

    def __init__(self) -> None:
        super().__init__("retract")

    async def __call__(self, request: Request) -> Asking:
        """The asker, if it may; raises `Unauthenticated`, `RoleMissing`."""
        credential = cast("Credential | None", request.scope.get("state", {}).get("credential"))
        roles = {*credential.principal.roles} if credential is not None else set[str]()
        officer = "privacy_officer" in roles and "reviewer" not in roles
        return await (May("erase") if officer else May("retract"))(request)


def run_of(header: str | None) -> Run | None:
    """A run as a header tells of it; raises `InvalidInput`."""
    if header is None:
        return None
    with inside_run():
        try:
            return _RUN.validate_json(header)
        except ValidationError as error:
            raise invalid(error) from None


@contextmanager
def inside_run() -> Generator[None]:
    """A run that is wrong says so itself, and does not know where in the request it stands."""
    try:
        yield
    except InvalidInput as error:
        error.field = f"run.{error.field}" if error.field else "run"
        raise
