"""Receives notices of the database (LISTEN) on a connection of its own."""

import asyncio
from collections.abc import Callable

import psycopg
from psycopg import AsyncConnection, sql
from psycopg.pq import ConnStatus


async def listen(conninfo: str, channel: str, on_start: Callable[[], None], on_notice: Callable[[str], None]) -> bool:
    """Listen on a channel until the connection ends; return False if it could not be opened, else True.

    `on_start` is called when notices are received from then on, `on_notice` with the text of each. The process is not
    woken while there are none.
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
        on_start()
        await _read_until_lost(connection, on_notice)
    return True


async def _read_until_lost(connection: AsyncConnection, on_notice: Callable[[str], None]) -> None:
    pgconn, loop = connection.pgconn, asyncio.get_running_loop()
    socket, lost = pgconn.socket, asyncio.Event()

    def read() -> None:
        try:
            pgconn.consume_input()
            while (notice := pgconn.notifies()) is not None:
                on_notice(notice.extra.decode())
        except psycopg.Error:
            lost.set()
        if pgconn.status != ConnStatus.OK:
            lost.set()

    loop.add_reader(socket, read)
    try:
        read()
        await lost.wait()
    finally:
        loop.remove_reader(socket)
