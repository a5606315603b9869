"""Fabrics of a test's own on connections that stay open from test to test: opening those is what takes their time."""

from contextlib import nullcontext
from dataclasses import replace
from typing import Any, Self

from anyio.from_thread import start_blocking_portal

from muniment import AsyncFabric, Fabric
from muniment.fabric.connect import connect
from muniment.testing.database import MASTER_KEYS


class Connections:
    """Connections to one database; they are made when first used, and again when a test cut or closed them."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._running = start_blocking_portal()

    def __enter__(self) -> Self:
        self._portal = self._running.__enter__()
        self._first = self._portal.call(connect, AsyncFabric.open(self._url)._settings, MASTER_KEYS)
        return self

    def __exit__(self, *_: object) -> None:
        self._portal.call(self._first.close)
        self._running.__exit__(None, None, None)

    def fabric(self, **settings: Any) -> Fabric:
        """As `Fabric.open`: with its own clock, and nothing in its caches of packs, keys, embedders and sessions.

        Closing it closes the connections too; who does not close it leaves nothing behind.
        """
        fabric = AsyncFabric.open(self._url, **settings)
        own = self._portal.call(connect, fabric._settings, MASTER_KEYS)
        fabric._opened = replace(own, desk=replace(own.desk, storage=self._first.desk.storage))
        return Fabric(self._portal, nullcontext(self._portal), fabric)
