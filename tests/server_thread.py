"""A real HTTP server in a thread, and a fabric that calls it: every caller has a client with a key of their own."""

from collections.abc import Callable
from threading import Event, Thread
from typing import Any, Self

import anyio
import uvicorn

from muniment import AsyncFabric, Fabric, Principal, RunContext
from muniment.client import Client
from muniment.http.place import Place
from muniment.http.server import server_on
from muniment.http.settings import ServerSettings
from muniment.model.context import Asker
from muniment.testing.database import MASTER_KEYS

EVERY_LABEL = frozenset({"PUBLIC", "INTERNAL", "CONFIDENTIAL", "PII", "RESTRICTED"})
# What is tested has no patience for time-outs, nor reason to be slowed down.
NO_LIMITS = ServerSettings(rate=0)


class ServerThread:
    """A server in a thread of its own, on a database; `with` starts and stops it."""

    def __init__(
        self,
        make: Callable[[], AsyncFabric],
        settings: ServerSettings = NO_LIMITS,
        port: int = 0,
        proxies: str = "127.0.0.1",
    ) -> None:
        # Tests are the proxy that names many clients, unless they say otherwise.
        self._proxies = proxies
        self._make = make
        self._settings = settings
        self._port = port
        self._ready = Event()
        self._server: uvicorn.Server | None = None
        self._thread = Thread(target=self._run, daemon=True)
        self._failed: BaseException | None = None
        self.url = ""

    @classmethod
    def on(
        cls, database_url: str, settings: ServerSettings = NO_LIMITS, proxies: str = "127.0.0.1", **opened: Any
    ) -> Self:
        """On that database, under the tests' master key."""
        return cls(lambda: AsyncFabric.open(database_url, master_keys=MASTER_KEYS, **opened), settings, proxies=proxies)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(60), "the server did not start"
        if self._failed is not None:
            raise self._failed
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Tell it to stop, and wait until it has."""
        assert self._server is not None
        self._server.should_exit = True
        self._thread.join(60)
        assert not self._thread.is_alive(), "the server did not stop"

    def _run(self) -> None:
        try:
            anyio.run(self._serve, backend_options={"use_uvloop": True})
        except BaseException as error:
            self._failed = error
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        async with self._make() as fabric:
            place = Place(port=self._port, proxies=self._proxies)
            self._server = server_on(fabric, place, self._settings, on_ready=self._on_ready)
            await self._server.serve()

    def _on_ready(self, url: str) -> None:
        self.url = url
        self._ready.set()


class RemoteFabric:
    """The verbs of `Fabric` over HTTP; each caller has a client with a key of their own.

    Keys are made by `local`, a fabric on the same database.
    """

    def __init__(self, local: Fabric, url: str, *, served: ServerThread | None = None) -> None:
        self.local = local
        self.url = url
        self._served = served
        self._clients: dict[tuple[Any, ...], Client] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for client in self._clients.values():
            client.close()
        if self._served is not None:
            self._served.stop()
        self.local.close()

    @classmethod
    def on_its_own(cls, local: Fabric, database_url: str, **opened: Any) -> Self:
        """With a server of its own, which is stopped with it."""
        served = ServerThread.on(database_url, **opened).__enter__()
        return cls(local, served.url, served=served)

    def token(self, asker: Asker, **fields: Any) -> str:
        """A key for that asker."""
        principal = asker.principal if isinstance(asker, RunContext) else asker
        admin = Principal(tenant_id=principal.tenant_id, id="keeper", kind="operator", roles={"admin"})
        clearance = EVERY_LABEL if "agent" in principal.roles else None
        given: dict[str, Any] = {
            "clearance": clearance,
            "expires_in": "never",
            "speaks_for": principal.speaks_for,
            **fields,
        }
        made = self.local.keys.create(
            admin, principal_id=principal.id, kind=principal.kind, roles=principal.roles, **given
        )
        assert made.token is not None
        return made.token

    def client(self, asker: Asker) -> Client:
        """The client of that asker."""
        principal = asker.principal if isinstance(asker, RunContext) else asker
        mark = (principal.tenant_id, principal.id, principal.kind, principal.roles, principal.speaks_for)
        if mark not in self._clients:
            self._clients[mark] = Client.open(self.url, self.token(asker))
        return self._clients[mark]

    def _for(self, asker: Any) -> Client:
        if isinstance(asker, str):
            # A tenant's id: what the worker does, its admin may have done at once.
            asker = Principal(tenant_id=asker, id="keeper", kind="operator", roles={"admin"})
        return self.client(asker)

    def __getattr__(self, name: str) -> Any:
        if isinstance(getattr(Client, name, None), property):
            return _Group(self, name)

        def call(asker: Any, *args: Any, **kwargs: Any) -> Any:
            return getattr(self._for(asker), name)(asker, *args, **kwargs)

        return call


class _Group:
    def __init__(self, remote: RemoteFabric, name: str) -> None:
        self._far = remote
        self._name = name

    def __getattr__(self, verb: str) -> Any:
        def call(asker: Any, *args: Any, **kwargs: Any) -> Any:
            client = self._far._for(asker)
            return getattr(getattr(client, self._name), verb)(asker, *args, **kwargs)

        return call
