"""What the verbs of a client share: whose credential it is, requests and their results, opening and closing."""

from collections.abc import Generator, Mapping
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar
from urllib.parse import quote

from pydantic import BaseModel, TypeAdapter
from pydantic_core import to_json

from muniment.client.transport import ANSWER_WITHIN, LONG, RETRIES, Transport, Where
from muniment.errors import Denied, InvalidInput
from muniment.model.context import RUN_HEADER, Asker, Principal, RunContext
from muniment.model.fields import Source
from muniment.model.inputs import check_name
from muniment.model.speakers import SpeaksFor

if TYPE_CHECKING:
    from muniment.pack import Pack

T = TypeVar("T")


class _Holder(BaseModel):
    tenant_id: str
    id: str
    kind: Source
    roles: frozenset[str]
    speaks_for: SpeaksFor = SpeaksFor()


class _Whoami(BaseModel):
    principal: _Holder
    user_id: str | None = None


class _Page(BaseModel, Generic[T]):
    """One page of a list, as the server sends it."""

    items: list[T]


class Result(Generic[T]):
    """A type that the server sends, or one of several, or pages of it.

    It is imported, and its validator built, when the first one comes: a program that is started for one request needs
    few of them.
    """

    def __init__(self, *names: str, many: bool = False) -> None:
        self._names = names
        self._many = many

    @cached_property
    def _kind(self) -> Any:
        places = (name.rpartition(".") for name in self._names)
        kind, *others = [getattr(import_module(module), name) for module, _, name in places]
        for one in others:
            kind = kind | one
        return list[kind] if self._many else kind

    @cached_property
    def adapter(self) -> TypeAdapter[T]:
        """Validates one."""
        return TypeAdapter(self._kind)

    @cached_property
    def page(self) -> TypeAdapter[_Page[T]]:
        """Validates a page."""
        page: Any = _Page
        return TypeAdapter(page[self._kind])


_WHOAMI: Result[_Whoami] = Result("muniment.client.connection._Whoami")


class Connection:
    """The transport to a server, and whose credential it carries."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self._holder: Principal | None = None
        self._bound_user: str | None = None

    async def holder(self) -> Principal:
        """Whose credential it is; asked once."""
        if self._holder is None:
            found = await self.transport.get("/v1/whoami", _WHOAMI.adapter)
            self._bound_user = found.user_id
            self._holder = Principal(**dict(found.principal))
        return self._holder

    async def bound_user(self) -> str | None:
        """The only end user that runs under the credential may act for; None for several."""
        await self.holder()
        return self._bound_user

    async def check_asker(self, asker: Asker) -> None:
        """Raise `Denied` for another asker than the credential's holder, whom the server would take it for."""
        if not isinstance(asker, Principal | RunContext):
            raise InvalidInput("expected a Principal or a RunContext", field="asker")
        principal = await self.holder()
        given = asker.principal if isinstance(asker, RunContext) else asker
        if (given.tenant_id, given.id, given.kind) != (principal.tenant_id, principal.id, principal.kind):
            raise Denied(f"this client's credential is of {principal.kind} {principal.id}", field="asker")

    async def check_tenant(self, tenant_id: str) -> None:
        """Raise `Denied` for another tenant than the credential's own."""
        if (await self.holder()).tenant_id != tenant_id:
            raise Denied("this client's credential is of another tenant", field="tenant_id")


class ClientGroup:
    """Verbs that are called over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def _get(
        self,
        asker: Asker,
        path: str,
        result: Result[T],
        params: Mapping[str, Any] | None = None,
        *,
        as_run: bool = False,
    ) -> T:
        """Read something; `as_run` where a run reads it as itself, and not as its agent."""
        await self._connection.check_asker(asker)
        headers = run_header(asker) if as_run and isinstance(asker, RunContext) else None
        return await self._connection.transport.get(path, result.adapter, params, headers=headers)

    async def _list(self, asker: Asker, path: str, result: Result[T], **params: Any) -> list[T]:
        """Read a page of a list."""
        await self._connection.check_asker(asker)
        return (await self._connection.transport.get(path, result.page, params)).items

    async def _send(
        self,
        asker: Asker,
        path: str,
        result: Result[T],
        body: dict[str, Any] | None = None,
        *,
        method: str = "POST",
        as_run: bool = False,
        about: RunContext | None = None,
        slow: bool = False,
    ) -> T:
        """Have something done; `as_run` where a run does it as itself, `about` is a run that is asked about."""
        if about is not None:
            if not isinstance(about, RunContext):
                raise InvalidInput("expected a RunContext", field="run")
            if as_run and isinstance(asker, RunContext):
                raise InvalidInput("a run explains what it sees itself", field="run")
            await self._connection.check_tenant(about.tenant_id)
            body = {**(body or {}), "run": run_fields(about) | {"agent_id": about.agent_id}}
        await self._connection.check_asker(asker)
        if as_run and isinstance(asker, RunContext):
            body = {**(body or {}), "run": run_fields(asker)}
        within = LONG if slow else None
        return await self._connection.transport.send(path, result.adapter, body, method=method, within=within)

    async def _send_run(self, run: RunContext, path: str, result: Result[T], body: dict[str, Any] | None) -> T:
        """Have something done for a run."""
        if not isinstance(run, RunContext):
            raise InvalidInput("expected a RunContext", field="run")
        return await self._send(run, path, result, body, as_run=True)

    async def _work(self, tenant_id: str, path: str, result: Result[T], params: Mapping[str, Any] | None = None) -> T:
        """Have the work of a tenant done."""
        await self._connection.check_tenant(tenant_id)
        return await self._connection.transport.send(path, result.adapter, params=params, within=LONG)


class ClientLifecycle(ClientGroup):
    """An asynchronous client without its verbs."""

    @classmethod
    def open(
        cls, url: str | None = None, key: str | None = None, *, timeout: float = ANSWER_WITHIN, retries: int = RETRIES
    ) -> Self:
        """Open a client of the server at that address (MUNIMENT_SERVER) with that key (MUNIMENT_KEY).

        A request that fails on the way is tried again up to `retries` times. Every write carries an idempotency key, so
        that it is done once. Raises `InvalidInput`.
        """
        return cls(Connection(Transport(Where.gather(url, key), timeout=timeout, retries=retries)))

    def __await__(self) -> Generator[Any, None, Self]:
        return self.__aenter__().__await__()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._connection.transport.close()

    async def whoami(self) -> Principal:
        """Read whose credential it is."""
        return await self._connection.holder()

    async def bound_user(self) -> str | None:
        """Read which end user alone the credential may act for; None if it may for several."""
        return await self._connection.bound_user()


def secret_of(client: ClientGroup, purpose: str) -> bytes:
    """Return a secret for one purpose, derived from a client's credential: another one has another."""
    # No method: a client has the verbs of a fabric, and no others.
    return client._connection.transport.secret(purpose)  # pyright: ignore[reportPrivateUsage]  of this package


def segment(value: Any, field: str) -> str:
    """An id as one part of a path; raises `InvalidInput` for what is none."""
    text = check_name(value, field)
    if text in (".", ".."):
        raise InvalidInput("is no id", field=field)
    return quote(text, safe="@:")


def run_fields(run: RunContext) -> dict[str, Any]:
    """What a run says of itself; tenant, agent and the agent's roles are the credential's."""
    return run.model_dump(mode="json", exclude_unset=True, exclude={"tenant_id", "agent_id", "roles"})


def run_header(run: RunContext) -> dict[str, str]:
    """A run for a request without a body; as ASCII, which is all that a header can hold."""
    return {RUN_HEADER: to_json(run_fields(run), ensure_ascii=True).decode("ascii")}


def pack_text(pack: "str | Path | Pack", field: str) -> str:
    """A pack as a body carries it: its text, or the name of a registered one."""
    from muniment.pack import Pack, load_pack

    if isinstance(pack, Pack):
        return to_json(pack.document()).decode()
    if isinstance(pack, Path):
        return to_json(load_pack(pack).document()).decode()
    if not isinstance(pack, str):
        raise InvalidInput("expected a path, the pack's text, or a loaded pack", field=field)
    return pack
