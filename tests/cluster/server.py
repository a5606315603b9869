"""A running Citus cluster in place of the embedded server, so that any test can run on one.

`MUNIMENT_TEST_CLUSTER` is the coordinator's address for a superuser, to a database in which Citus knows its nodes.
"""

import asyncio
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from muniment.database.address import Address
from muniment.database.cluster.distribute import distribute
from muniment.database.cluster.errors import CommitWarnings
from muniment.database.cluster.script import revocation, silence
from muniment.database.migrate import migrate, set_bound
from muniment.database.transaction import TASKS
from muniment.opening import OWNER
from muniment.testing import TestServer

# Read when the tests are collected: each test runs without settings from outside.
CLUSTER = os.environ.get("MUNIMENT_TEST_CLUSTER")
SHARDS = 4
# For what tests do themselves: only the program's statements may not go to several shards.
_OPTIONS = "-c search_path=muniment,public -c citus.multi_task_query_log_level=off"


def _nodes() -> tuple[str, ...]:
    """The address of each node, the coordinator's first."""
    if CLUSTER is None:
        return ()
    with psycopg.connect(CLUSTER, autocommit=True) as connection:
        known = connection.execute(
            "SELECT nodename, nodeport FROM pg_dist_node WHERE groupid <> 0 AND noderole = 'primary' ORDER BY nodeid"
        ).fetchall()
    return (CLUSTER, *(make_conninfo(CLUSTER, host=host, port=port) for host, port in known))


NODES = _nodes()


class _SettingConnection(psycopg.Connection[tuple[object, ...]]):
    """A connection that runs each statement under settings of its own.

    Only what is set for a transaction reaches the nodes: on a connection that set its tenant for the session, they would
    show nothing whatever the policies say. What a node refuses at a commit is its own error, as in the program.
    """

    settings: Mapping[str, str]
    warnings: CommitWarnings

    @contextmanager
    def transaction(self, *args: Any, **how: Any) -> Generator[psycopg.Transaction]:
        try:
            with super().transaction(*args, **how) as transaction:
                yield transaction
        except psycopg.errors.InternalError_ as error:
            raise self.warnings.take() or error from error

    def execute(self, *args: Any, **how: Any) -> "psycopg.Cursor[tuple[object, ...]]":
        with self.transaction():
            for name, value in self.settings.items():
                super().execute(
                    sql.SQL("SET LOCAL {} = {}").format(sql.Identifier(*name.split(".")), sql.Literal(value))
                )
            return super().execute(*args, **how)


class ClusterServer(TestServer):
    """Databases on a cluster, each migrated and distributed."""

    def __init__(self) -> None:
        super().__init__(Path())

    def __enter__(self) -> Self:
        for node in NODES:
            with psycopg.connect(node, autocommit=True) as connection:
                _create_owner(connection)
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Nothing: the cluster was there before."""

    @property
    def conninfo(self) -> str:
        return NODES[0]

    @property
    def nodes(self) -> tuple[str, ...]:
        return NODES

    def connect(self, database: str, user: str = "postgres") -> "psycopg.Connection[tuple[object, ...]]":
        """Connect as any role, whose statements may go to several shards."""
        place = make_conninfo(self.conninfo, dbname=database, user=user, options=_OPTIONS)
        return psycopg.connect(place, autocommit=True)

    def connect_with(
        self, database: str, user: str, settings: Mapping[str, str]
    ) -> "psycopg.Connection[tuple[object, ...]]":
        """Connect as a role whose statements all run with these settings on every node, to several shards too."""
        options = f"{_OPTIONS} -c citus.propagate_set_commands=local"
        place = make_conninfo(self.conninfo, dbname=database, user=user, options=options)
        connection = _SettingConnection.connect(place, autocommit=True)
        connection.settings, connection.warnings = dict(settings), CommitWarnings()
        connection.add_notice_handler(connection.warnings.on_notice)
        return connection

    def clone(self) -> str:
        name = self.empty()
        address = Address(conninfo_to_dict(self.url(name)), None)
        asyncio.run(migrate(address))
        asyncio.run(set_bound(address.for_owner(), None))
        done = asyncio.run(distribute(address, shards=SHARDS))
        assert done.problems == ()
        self._refuse_many_shards(name)
        return name

    def _refuse_many_shards(self, name: str) -> None:
        """Have every statement that goes to several shards fail, or tell it to the jobs, who list tenants (SCL-1)."""
        with self.connect(name) as connection:
            for task in TASKS:
                connection.execute(
                    sql.SQL("ALTER ROLE {} IN DATABASE {} SET citus.multi_task_query_log_level = {}").format(
                        sql.Identifier(f"muniment_{task}"),
                        sql.Identifier(name),
                        sql.Literal("notice" if task == "jobs" else "error"),
                    )
                )

    def empty(self) -> str:
        """Make a database on all nodes, and make a cluster of them."""
        name = f"test_{uuid4().hex}"
        make = sql.SQL("CREATE DATABASE {} OWNER {}").format(sql.Identifier(name), sql.Identifier(OWNER))
        for node in NODES:
            with psycopg.connect(node, autocommit=True) as connection:
                connection.execute(make)
            with psycopg.connect(make_conninfo(node, dbname=name), autocommit=True) as connection:
                connection.execute("CREATE EXTENSION citus")
                connection.execute("CREATE EXTENSION vector SCHEMA public")
                for statement in (revocation(), *silence(name)):
                    connection.execute(statement.encode())
                for function in ("pg_switch_wal()", "pg_ls_dir(text)"):
                    connection.execute(
                        sql.SQL("GRANT EXECUTE ON FUNCTION {} TO {}").format(sql.SQL(function), sql.Identifier(OWNER))
                    )
        with self.connect(name) as connection:
            for n, node in enumerate(NODES):
                place = conninfo_to_dict(node)
                add = "citus_add_node" if n else "citus_set_coordinator_host"
                connection.execute(f"SELECT {add}(%s, %s::int)", [place["host"], place["port"]])
        return name

    def drop(self, database: str) -> None:
        for node in NODES:
            with psycopg.connect(node, autocommit=True) as connection:
                connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(database)))


def unreferenced(server: TestServer, database: str) -> "psycopg.Connection[tuple[object, ...]]":
    """Connect as a superuser for whom no foreign key is looked at, on any node."""
    settings = {"session_replication_role": "replica"}
    if isinstance(server, ClusterServer):
        return server.connect_with(database, "postgres", settings)
    connection = server.connect(database)
    for name, value in settings.items():
        connection.execute(sql.SQL("SET {} = {}").format(sql.Identifier(name), sql.Literal(value)))
    return connection


def _create_owner(connection: "psycopg.Connection[tuple[object, ...]]") -> None:
    if connection.execute("SELECT FROM pg_roles WHERE rolname = %s", [OWNER]).fetchone() is None:
        owner = sql.Identifier(OWNER)
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN CREATEROLE NOSUPERUSER NOBYPASSRLS").format(owner))
        connection.execute(sql.SQL("GRANT pg_checkpoint, pg_monitor TO {}").format(owner))
