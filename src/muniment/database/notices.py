"""Receives notices of the database (LISTEN) on a connection of its own."""

import asyncio
from collections.abc import Callable
from typing import Any

import anyio
import psycopg
from psycopg import AsyncConnection, sql

from muniment.database.socket_watch import SocketWatch

# How long a server may take to begin to listen, while whoever closes waits for it.
LISTEN_SECONDS = 5.0


async def listen(conninfo: str, channel: str, on_start: Callable[[], None], on_notice: Callable[[str], None]) -> bool:
    """Listen on a channel until the connection ends; return False if it could not be opened, else True.

    `on_start` is called when notices are received from then on, `on_notice` with the text of each. The process is not
    woken while there are none.
    """
    try:
        connection = await AsyncConnection.connect(conninfo, autocommit=True)
    except (psycopg.Error, OSError):
        return False
    try:
        try:
            # Shielded: psycopg would log a warning in a program that ends right after it has opened a fabric.
            with anyio.move_on_after(LISTEN_SECONDS, shield=True) as waiting:
                await connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))
            if waiting.cancelled_caught:
                return False
        except psycopg.Error:
            return False
        on_start()
        await read_until_lost(connection, on_notice)
    finally:
        # `async with` would roll back first, for which a cancelled task cannot wait: the connection would stay open.
        await connection.close()
    return True


async def read_until_lost(connection: AsyncConnection[Any], on_notice: Callable[[str], None]) -> None:
    """Call `on_notice` with the text of each notice until the connection ends."""
    pgconn, watch, lost = connection.pgconn, SocketWatch(connection.pgconn.socket), asyncio.Event()

    def read() -> None:
        try:
            while True:
                pgconn.consume_input()
                while (notice := pgconn.notifies()) is not None:
                    on_notice(notice.extra.decode())
                if not watch.has_more():
                    return
        except psycopg.Error:
            watch.stop()
            lost.set()

    watch.start_reading(read)
    try:
        read()
        await lost.wait()
    finally:
        watch.stop()
