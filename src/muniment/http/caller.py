"""Who asks: the credential that the middleware has checked, and the right that each route takes."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Annotated, Any, cast

from fastapi import Header, Request
from pydantic import StringConstraints, TypeAdapter, ValidationError

from muniment.access.roles import ALLOWED
from muniment.access.roles import Right as Right
from muniment.errors import InvalidInput, Unauthenticated
from muniment.fabric import AsyncFabric
from muniment.model.api_key import Credential
from muniment.model.context import RUN_HEADER, RUN_LIMIT, Asker, Principal, Run, RunContext
from muniment.model.fields import invalid
from muniment.verbs.declaration import Declaration

IDEMPOTENCY_HEADER = "Idempotency-Key"
_RUN: TypeAdapter[Run] = TypeAdapter(Run)

KeyText = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[!-~]+$")]
KEY_SAID = (
    "Any string of the caller's, such as a UUID. The same request under the same key is carried out once: for a day "
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
    """Who calls in one request, and the fabric."""

    def __init__(self, fabric: AsyncFabric, credential: Credential, verb: Right) -> None:
        self.fabric = fabric
        self.credential = credential
        self.verb: Right = verb

    @property
    def principal(self) -> Principal:
        """Whose credential it is."""
        return self.credential.principal

    @property
    def tenant_id(self) -> str:
        """The tenant of the credential."""
        return self.credential.principal.tenant_id

    async def asker(self, run: Run | None) -> Asker:
        """The run in the body, or else the holder of the credential."""
        return await self.fabric.access.asker(self.credential, run, self.verb)

    async def run(self, run: Run) -> RunContext:
        """The run of an agent, within what its credential allows."""
        return await self.fabric.access.run(self.credential, run, self.verb)

    async def asker_by_header(self, header: str | None) -> Asker:
        """The run in the header, or else the holder of the credential."""
        return await self.asker(run_of(header))


class May:
    """A dependency: the right that a route takes. A caller without it is refused before anything else is looked at.

    It follows the declaration of a verb; without one every credential will do.
    """

    def __init__(self, verb: Declaration[Any] | None = None) -> None:
        self.verb = verb

    @property
    def rights(self) -> list[Right]:
        """The right of people and that of agents, where there are such."""
        found = (self.verb.right, self.verb.run_right) if self.verb is not None else ()
        return [right for right in found if right is not None]

    @property
    def writes(self) -> bool:
        """Whether the route writes."""
        return self.verb is not None and self.verb.effect != "read"

    async def __call__(self, request: Request) -> Asking:
        """The asker, if it may; raises `Unauthenticated`, `RoleMissing`."""
        credential = cast("Credential | None", request.scope.get("state", {}).get("credential"))
        if credential is None:
            raise Unauthenticated("send an API key or token in the header Authorization: Bearer ...")
        right = self._right(credential.principal)
        fabric = cast("AsyncFabric", request.app.state.fabric)
        if right is not None:
            await fabric.access.allow(credential.principal, right)
        if self.verb is not None and self.verb.also_right is not None:
            await fabric.access.allow(credential.principal, self.verb.also_right)
        return Asking(fabric, credential, right or "recall")

    def _right(self, principal: Principal) -> Right | None:
        verb = self.verb
        if verb is None:
            return None
        if verb.run_right is not None and principal.kind == "agent":
            return verb.run_right
        if verb.right is None or verb.other_right is None or principal.roles & ALLOWED[verb.right]:
            return verb.right
        return verb.other_right if principal.roles & ALLOWED[verb.other_right] else verb.right


def run_of(header: str | None) -> Run | None:
    """Parse the run in a header; raises `InvalidInput`."""
    if header is None:
        return None
    with inside_run():
        try:
            return _RUN.validate_json(header)
        except ValidationError as error:
            raise invalid(error) from None


@contextmanager
def inside_run() -> Generator[None]:
    """Put `run.` before the field of an error: a run does not know that it is part of a request."""
    try:
        yield
    except InvalidInput as error:
        error.field = f"run.{error.field}" if error.field else "run"
        raise
