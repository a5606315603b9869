"""The folder that `make bench-scale` works in: an embedded server that is kept between runs, and the room on its disk."""

import asyncio
import shutil
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psycopg
from psycopg.conninfo import make_conninfo

from bench.meter import Meter
from muniment import AsyncFabric
from muniment.database import embedded
from muniment.opening import DATABASE, prepared
from muniment.testing.database import MASTER_KEYS

PACK = Path(__file__).parent / "pack.yaml"
# Bytes that stay free, and the bytes of a memory with its trail, its part of the log, and what a rewrite needs.
KEPT_FREE, A_MEMORY = 15 * 10**9, 8_000


class NoRoom(Exception):
    """The disk would be too full."""


class Home:
    """The server of the folder; it runs while this is open."""

    def __init__(self, folder: Path, *, kept_free: int = KEPT_FREE) -> None:
        self.folder = folder
        self._kept_free = kept_free
        self._lease: embedded.Lease | None = None

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.require_room()
        embedded.release_before_ending()
        self._lease = embedded.acquire(self.folder)
        asyncio.run(prepared(self._lease))
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if self._lease is not None:
            self._lease.release()

    @property
    def free(self) -> int:
        """Bytes free on the disk, above those that are left alone."""
        return shutil.disk_usage(self.folder).free - self._kept_free

    def require_room(self, more: int = 0) -> None:
        """Raise `NoRoom` unless so many bytes more can be written."""
        if self.free < more:
            raise NoRoom(
                f"{self.folder}: {more / 1e9:.1f} GB needed above the {self._kept_free / 1e9:.0f} GB left alone"
            )

    def connect(self) -> "psycopg.Connection[Any]":
        """The database as the superuser."""
        assert self._lease is not None
        place = make_conninfo(self._lease.conninfo, dbname=DATABASE, options="-c search_path=muniment,public")
        return psycopg.connect(place, autocommit=True)

    def fabric(self, **options: Any) -> AsyncFabric:
        """A fabric of the folder, with rules alone and this benchmark's pack."""
        given: dict[str, Any] = {"pack": PACK, "readers": None, **options}
        return AsyncFabric.open(home=self.folder, master_keys=MASTER_KEYS, **given)

    def meter(self) -> Meter:
        """Measures this process together with PostgreSQL."""
        return Meter(int((self.folder / "data" / "postmaster.pid").read_text().splitlines()[0]))
