"""Fabrics of a test's own on connections that stay open from test to test: opening those is what takes their time."""

from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Self

import pytest
from anyio.from_thread import start_blocking_portal

from muniment import AsyncFabric, Fabric, loops
from muniment.database.address import Address
from muniment.database.embedded import Lease, acquire, resolve
from muniment.database.master import MasterKeys, find_master_keys
from muniment.database.storage import Storage
from muniment.opening import Opened, _context, embedded_address
from muniment.testing import TestServer
from muniment.testing.database import MASTER_KEYS


class _Kept(Storage):
    """Connections that outlive the fabrics on them, one for each task.

    Where a test came to use more of them they are closed: those who come after it are alone again, and what one
    writes after the other lies one after the other.
    """

    async def close(self) -> None:
        for task, pool in list(self._pools.items()):
            if pool.size > 1:
                del self._pools[task]
                await pool.close()

    async def end(self) -> None:
        await super().close()


@dataclass(frozen=True)
class _Lent(Opened):
    """The server stays when the fabric goes."""

    async def close(self) -> None:
        await Opened(self.context, self.address, None).close()


class Connections:
    """Connections to one database: made when first used, and made again where a test cut them."""

    def __init__(self, address: Address, *, url: str | None = None, lease: Lease | None = None) -> None:
        self._address = address
        self._url = url
        self._lease = lease
        self._storage = _Kept(self._address)
        self._running = start_blocking_portal(backend_options=loops.OPTIONS)

    @classmethod
    def to(cls, url: str) -> Self:
        """To that database, under the tests' master key."""
        return cls(Address.parse(url, MASTER_KEYS.login_secret()), url=url)

    def __enter__(self) -> Self:
        self._portal = self._running.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._portal.call(self._storage.end)
        self._running.__exit__(None, None, None)

    def fabric(self, **settings: Any) -> Fabric:
        """As `Fabric.open`: it has a clock of its own, and has seen no pack, key, embedder or session yet."""
        return self.under(AsyncFabric.open(self._url, **settings), MASTER_KEYS)

    def under(self, fabric: AsyncFabric, keys: MasterKeys) -> Fabric:
        """That fabric, opened on these connections."""
        context = replace(_context(fabric._settings, self._address, keys), storage=self._storage)
        fabric._opened = _Lent(context, self._address, self._lease)
        return Fabric(self._portal, nullcontext(self._portal), fabric)


@contextmanager
def found_open(server: TestServer) -> Generator[None]:
    """Fabrics that this process opens on the server's own home find it open; opening is most of what a command does.

    Those in other homes, by an address, or in a process of their own open and close what they use.
    """
    before, home = Fabric._started, resolve(server.home)
    with acquire(home) as lease, Connections(embedded_address(lease), lease=lease) as connections:

        def started(cls: type[Fabric], fabric: AsyncFabric) -> Fabric:
            settings = fabric._settings
            if cls is not Fabric or settings.url is not None or resolve(settings.home) != home or fabric._master_keys:
                return before(fabric)
            return connections.under(fabric, find_master_keys(home))

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Fabric, "_started", classmethod(started))
            yield
