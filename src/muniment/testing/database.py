"""A temporary PostgreSQL: one embedded server, and copies of a migrated database."""

import asyncio
from pathlib import Path
from types import TracebackType
from typing import Self
from uuid import uuid4

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from muniment.database import embedded
from muniment.database.master import LocalMasterKeys
from muniment.database.migrate import set_bound
from muniment.opening import DATABASE, OWNER, prepared

MASTER_KEYS = LocalMasterKeys(b"a master key for tests, 32 bytes")


class TestServer:
    """An embedded server in a folder, whose databases set no bound on clocks (AUD-5).

    Unless `durable`, commits do not wait for the disk.
    """

    __test__ = False

    def __init__(self, home: Path, *, durable: bool = False) -> None:
        self.home = home
        self._durable = durable
        self._lease: embedded.Lease | None = None

    def __enter__(self) -> Self:
        # A test run that is terminated leaves no server running.
        embedded.release_before_ending()
        self._lease = embedded.acquire(self.home)
        with self.connect("postgres") as connection:
            for setting in () if self._durable else ("synchronous_commit", "full_page_writes"):
                connection.execute(sql.SQL("ALTER SYSTEM SET {} = off").format(sql.Identifier(setting)))
            connection.execute("SELECT pg_reload_conf()")
        asyncio.run(prepared(self._lease))
        # Fake clocks may be ahead of the database's.
        asyncio.run(set_bound(make_conninfo(self.conninfo, dbname=DATABASE), None))
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if self._lease is not None:
            self._lease.release()

    @property
    def conninfo(self) -> str:
        """The superuser's address."""
        assert self._lease is not None
        return self._lease.conninfo

    @property
    def nodes(self) -> tuple[str, ...]:
        """The superuser's address of each server; one, unless it is a cluster."""
        return (self.conninfo,)

    def connect(self, database: str, user: str = "postgres") -> "psycopg.Connection[tuple[object, ...]]":
        """Connect to a database as any role."""
        place = make_conninfo(self.conninfo, dbname=database, user=user, options="-c search_path=muniment,public")
        return psycopg.connect(place, autocommit=True)

    def clone(self) -> str:
        """Create a migrated, empty database, and return its name."""
        name = f"test_{uuid4().hex}"
        with self.connect("postgres") as connection:
            statement = sql.SQL("CREATE DATABASE {} TEMPLATE {} OWNER {}")
            connection.execute(statement.format(sql.Identifier(name), sql.Identifier(DATABASE), sql.Identifier(OWNER)))
        return name

    def url(self, database: str) -> str:
        """Return the address of a database as its owner, for `Fabric.open`."""
        return make_conninfo(self.conninfo, dbname=database, user=OWNER)

    def task_url(self, database: str, task: str) -> str:
        """Return the address of a database as the login of a task."""
        options = "-c search_path=muniment,public"
        return make_conninfo(self.conninfo, dbname=database, user=f"muniment_{task}", options=options)

    def drop(self, database: str) -> None:
        """Drop a database, also if it has connections."""
        with self.connect("postgres") as connection:
            connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(database)))
