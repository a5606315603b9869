"""Connections of their own for tests, and statements to send through them."""

import asyncio
import functools
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from psycopg.rows import dict_row

from muniment.database.connection import Command, Connection
from muniment.database.statements import Statement
from muniment.testing import TestServer

PARAMETER = Statement("parameter", "SELECT $1::text AS word")
FAILS = Statement("fails", "SELECT 1 / $1::int AS never")
MADE = Statement("made", "CREATE TEMP TABLE made (n int) ON COMMIT DROP", planned_once=False)
INSERTED = Statement("inserted", "INSERT INTO made SELECT generate_series(1, $1::int)", planned_once=False)


PLANS = Statement("plans", "SELECT statement, generic_plans, custom_plans FROM pg_prepared_statements")


@asynccontextmanager
async def connected(server: TestServer) -> AsyncGenerator[Connection]:
    async with await Connection.connect(server.conninfo, autocommit=True, row_factory=dict_row) as connection:
        yield connection


def in_a_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run an async test in an event loop of its own."""

    @functools.wraps(test)
    def run(*arguments: Any, **fixtures: Any) -> None:
        asyncio.run(test(*arguments, **fixtures))

    return run


def plain(text: str) -> Command:
    return Statement("plain", text, planned_once=False), []


async def prepared_names(connection: Connection) -> list[str]:
    (reply,) = await connection.exchange([plain("SELECT name FROM pg_prepared_statements ORDER BY name")])
    return [row["name"] for row in reply.rows]


async def until_active(connection: Connection, pid: int, *, active: bool) -> None:
    """Wait until that backend runs a statement, or no longer does."""
    asked: Any = plain(f"SELECT FROM pg_stat_activity WHERE pid = {pid} AND query ~ 'pg_sleep' AND state = 'active'")
    async with asyncio.timeout(10):
        while bool((await connection.exchange([asked]))[0].rows) is not active:  # noqa: ASYNC110  another process
            await asyncio.sleep(0.01)
