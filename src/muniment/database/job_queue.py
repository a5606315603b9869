"""The tables of the job queue: procrastinate's own, in a schema of their own.

The comment on the schema is the name of the last of procrastinate's migrations that was applied.
"""

import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, LiteralString, Self, cast

import anyio
from psycopg import AsyncConnection, OperationalError, sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg_pool import AsyncConnectionPool

from muniment.database.address import Address
from muniment.database.primaries import Primaries

if TYPE_CHECKING:
    from procrastinate import App

SCHEMA = "procrastinate"
# Seconds for which a connection is tried again, and between two tries. A pool's own first pause is a second long.
_RETRIED_SECONDS = 2.0
_PAUSE_SECONDS = 0.1
_WAITING = (
    "SELECT queueing_lock FROM procrastinate_jobs WHERE status = 'todo' AND queueing_lock = ANY (%(locks)s::text[])"
)
_GRANTS = (
    "USAGE ON SCHEMA {}",
    "SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {}",
    "USAGE ON ALL SEQUENCES IN SCHEMA {}",
    "EXECUTE ON ALL FUNCTIONS IN SCHEMA {}",
)


class PooledQueue(AsyncConnectionPool[AsyncConnection[Any]]):
    """Connections to the queue's tables through a pooler, which keeps no setting between two transactions."""

    @asynccontextmanager
    async def connection(
        self,
        timeout: float | None = None,  # noqa: ASYNC109  the pool's own signature
    ) -> AsyncGenerator[AsyncConnection[Any]]:
        """A connection in a transaction that finds the queue's tables."""
        async with super().connection(timeout) as connection:
            await _execute(connection, "SET LOCAL search_path = {}")
            yield connection


class QueueConnection(AsyncConnection[Any]):
    """A connection for the queue's pool and listener that retries while the server is briefly away."""

    @classmethod
    async def connect(cls, conninfo: str = "", **how: Any) -> Self:
        """Connect like the driver, of several servers to the primary; raises the error of the last try."""
        primaries: Primaries = how.pop("primaries")
        give_up_at = time.monotonic() + _RETRIED_SECONDS
        while True:
            try:
                if not primaries.several:
                    return await super().connect(conninfo, **how)
                return (await primaries.connect(super().connect, conninfo, **how))[0]
            except OperationalError:
                if time.monotonic() > give_up_at:
                    raise
            await anyio.sleep(_PAUSE_SECONDS)


def queue_pool(address: Address, primaries: Primaries) -> dict[str, Any]:
    """The arguments of a pool of connections to the queue's tables, with the login of the jobs."""
    place: dict[str, Any] = conninfo_to_dict(address.for_task("jobs")) | {"application_name": "muniment-worker"}
    if address.pooler is None:
        place["options"] = f"-c search_path={SCHEMA}"
        return {
            "conninfo": make_conninfo(**place),
            "connection_class": QueueConnection,
            "kwargs": {"primaries": primaries},
        }
    # No statement is prepared by name.
    return {
        "conninfo": make_conninfo(**place),
        "connection_class": QueueConnection,
        "pool_factory": PooledQueue,
        "kwargs": {"prepare_threshold": None, "primaries": primaries},
    }


async def waiting_locks(app: "App", locks: list[str]) -> set[str]:
    """Those of the queueing locks whose jobs wait in the queue."""
    rows = await app.connector.execute_query_all_async(_WAITING, locks=locks)
    return {str(row["queueing_lock"]) for row in rows}


async def migrate(connection: AsyncConnection) -> None:
    """Create the tables, or bring them to the installed version, as the owner; grant the jobs' login access."""
    # Takes a tenth of a second to import, so only migrations do.
    from procrastinate.schema import SchemaManager

    steps = _steps(SchemaManager.get_migrations_path())
    level, latest = await _level(connection), max(steps)
    if level == latest:
        return
    async with connection.transaction():
        # On a cluster the queue is the coordinator's alone. Without Citus the setting has no effect.
        await connection.execute("SET LOCAL citus.enable_ddl_propagation = off")
        await _execute(connection, "CREATE SCHEMA IF NOT EXISTS {}")
        await _execute(connection, "SET LOCAL search_path = {}")
        if level is None:
            await connection.execute(SchemaManager.get_schema())
        else:
            for name in sorted(name for name in steps if name > level):
                await connection.execute(cast("LiteralString", steps[name].read_text("utf-8")))
        for grant in _GRANTS:
            await _execute(connection, f"GRANT {grant} TO muniment_jobs")
        comment = sql.SQL("COMMENT ON SCHEMA {} IS {}").format(sql.Identifier(SCHEMA), sql.Literal(latest))
        await connection.execute(comment)


def _steps(folder: str) -> dict[str, Path]:
    return {one.stem: one for one in Path(folder).glob("*.sql")}


async def _execute(connection: AsyncConnection, statement: str) -> None:
    await connection.execute(sql.SQL(cast("LiteralString", statement)).format(sql.Identifier(SCHEMA)))


async def _level(connection: AsyncConnection) -> str | None:
    """The last migration applied; None if the tables are not there."""
    found = await connection.execute(
        "SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = %s", [SCHEMA]
    )
    row = await found.fetchone()
    return str(row[0]) if row is not None and row[0] is not None else None
