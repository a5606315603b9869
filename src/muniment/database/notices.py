"""Listening for notices of the database (LISTEN) on a connection of its own."""

import asyncio
from collections.abc import Callable

import psycopg
from psycopg import AsyncConnection, sql
from psycopg.pq import ConnStatus


async def listen(conninfo: str, channel: str, began: Callable[[], None], heard: Callable[[str], None]) -> bool:
    """Call `began` when notices can be heard, and `heard` with each, until the connection ends; False if it never was.

    Nothing wakes the process while there are none.
    """
    try:
        connection = await AsyncConnection.connect(conninfo, autocommit=True)
    except (psycopg.Error, OSError):
        return False
    async with connection:
        try:
            await connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))
        except psycopg.Error:
            return False
        began()
        await _until_ended(connection, heard)
    return True


async def _until_ended(connection: AsyncConnection, heard: Callable[[str], None]) -> None:
    pgconn, loop = connection.pgconn, asyncio.get_running_loop()
    line, ended = pgconn.socket, asyncio.Event()

    def read() -> None:
        try:
            pgconn.consume_input()
            while (notice := pgconn.notifies()) is not None:
                heard(notice.extra.decode())
        except psycopg.Error:
            ended.set()
        if pgconn.status != ConnStatus.OK:
            ended.set()

    loop.add_reader(line, read)
    try:
        read()
        await ended.wait()
    finally:
        loop.remove_reader(line)
