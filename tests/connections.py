"""Fabrics of a test's own on connections that stay open from test to test: opening those is what takes their time."""

from contextlib import nullcontext
from dataclasses import replace
from typing import Any, Self

from anyio.from_thread import start_blocking_portal

from muniment import AsyncFabric, Fabric
from muniment.fabric.connect import Opened, _desk
from muniment.storage.address import Address
from muniment.storage.session import Storage
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


class Connections:
    """Connections to one database: made when first used, and made again where a test cut them."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._address = Address.parse(url, MASTER_KEYS.login_secret())
        self._storage = _Kept(self._address)
        self._running = start_blocking_portal()

    def __enter__(self) -> Self:
        self._portal = self._running.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._portal.call(self._storage.end)
        self._running.__exit__(None, None, None)

    def fabric(self, **settings: Any) -> Fabric:
        """As `Fabric.open`: it has a clock of its own, and has seen no pack, key, embedder or session yet."""
        fabric = AsyncFabric.open(self._url, **settings)
        desk = replace(_desk(fabric._settings, self._address, MASTER_KEYS), storage=self._storage)
        fabric._opened = Opened(desk, self._address, None)
        return Fabric(self._portal, nullcontext(self._portal), fabric)
