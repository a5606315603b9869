"""A connection whose call is cancelled, or whose server ends: what is noticed, raised and tried again."""

import asyncio
import os
import select
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, cast

import psycopg
import pytest
import uvloop

from muniment import Fabric
from muniment.database import notices
from muniment.database.connection import Connection
from muniment.database.statements import Statement
from muniment.errors import StorageUnavailable
from muniment.testing import People, TestServer
from tests.database.raw_connections import connected, in_a_loop, plain, until_active


@in_a_loop
async def test_a_cancelled_call_stops_its_statement_on_the_server(server: TestServer) -> None:
    async with connected(server) as connection, connected(server) as other:
        running = asyncio.create_task(connection.exchange([plain("SELECT pg_sleep(60)")]))
        pid = connection.pgconn.backend_pid
        await until_active(other, pid, active=True)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert connection.closed
        await until_active(other, pid, active=False)


@in_a_loop
async def test_a_connection_that_the_server_closed_is_known_without_a_round_trip(server: TestServer) -> None:
    async with connected(server) as connection, connected(server) as other:
        assert not connection.has_ended()
        await other.exchange([plain(f"SELECT pg_terminate_backend({connection.pgconn.backend_pid}, 5000)")])
        assert connection.has_ended()
        with pytest.raises(psycopg.OperationalError):
            await connection.exchange([plain("SELECT 1")])


def die_before_reading(folder: Path) -> threading.Thread:
    """A server that lets one client in, and ends when its first request arrives, without reading it."""
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(folder / ".s.PGSQL.5432"))
    listening.listen()

    def message(kind: bytes, content: bytes) -> bytes:
        return kind + (len(content) + 4).to_bytes(4, "big") + content

    def serve() -> None:
        with listening, listening.accept()[0] as client:
            client.recv(8192)
            client.sendall(message(b"R", bytes(4)) + message(b"S", b"client_encoding\0UTF8\0") + message(b"Z", b"I"))
            select.select([client], [], [])
            client.sendall(message(b"E", b"SFATAL\0C57P01\0Mthe server ends\0\0"))

    thread = threading.Thread(target=serve)
    thread.start()
    return thread


@pytest.mark.rule("ERR-6")
@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_a_server_that_ends_before_it_reads_a_request_is_an_operational_error(
    run: Callable[[Coroutine[Any, Any, None]], None],
) -> None:
    async def ask(folder: Path) -> None:
        async with await Connection.connect(host=str(folder), user="nobody", autocommit=True) as connection:
            async with asyncio.timeout(10):
                with pytest.raises(psycopg.OperationalError):
                    await connection.exchange([plain("SELECT 1")])

    with tempfile.TemporaryDirectory() as folder:
        serving = die_before_reading(Path(folder))
        run(ask(Path(folder)))
        serving.join()


class Reading:
    """libpq's connection; calls `ended` in the step of the event loop in which it reports the end of the stream."""

    def __init__(self, pgconn: Any, ended: Callable[[], None]) -> None:
        self._pgconn, self._ended = pgconn, ended

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pgconn, name)

    def consume_input(self) -> None:
        try:
            self._pgconn.consume_input()
        except psycopg.OperationalError:
            self._ended()
            raise


@pytest.mark.rule("ERR-6")
@pytest.mark.parametrize("waits_for", ["an answer", "a notice"])
@in_a_loop
async def test_the_socket_of_a_server_that_ended_is_free_for_the_next_connection_at_once(
    server: TestServer, waits_for: str
) -> None:
    loop, heard = asyncio.get_running_loop(), asyncio.Event()
    ours, theirs = socket.socketpair()
    async with connected(server) as connection, connected(server) as other:
        number, pid = connection.pgconn.socket, connection.pgconn.backend_pid

        def take_number() -> None:
            os.dup2(ours.fileno(), number)
            loop.add_reader(number, heard.set)
            theirs.send(b".")

        # Before the task that waits goes on.
        connection.pgconn = cast("Any", Reading(connection.pgconn, lambda: loop.call_soon(take_number)))
        if waits_for == "an answer":
            waiting = asyncio.create_task(_fails(connection))
            await until_active(other, pid, active=True)
        else:
            waiting = asyncio.create_task(notices.read_until_lost(connection, lambda _: None))
            await asyncio.sleep(0)
        await other.exchange([plain(f"SELECT pg_terminate_backend({pid})")])
        await waiting
        async with asyncio.timeout(10):
            await heard.wait()
        loop.remove_reader(number)
    os.close(number)
    ours.close()
    theirs.close()


async def _fails(connection: Connection) -> None:
    with pytest.raises(psycopg.OperationalError):
        await connection.exchange([plain("SELECT pg_sleep(60)")])


@in_a_loop
async def test_a_server_that_ends_in_the_middle_is_an_operational_error(server: TestServer) -> None:
    async with connected(server) as connection, connected(server) as other:
        running = asyncio.create_task(connection.exchange([plain("BEGIN"), plain("SELECT pg_sleep(60)")]))
        pid = connection.pgconn.backend_pid
        await until_active(other, pid, active=True)
        await other.exchange([plain(f"SELECT pg_terminate_backend({pid})")])
        with pytest.raises(psycopg.OperationalError):
            await running


@pytest.mark.rule("ERR-3")
def test_a_connection_that_dies_unnoticed_is_replaced_before_anything_is_done(
    fabric: Fabric, people: People, server: TestServer, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fabric.capture(people.service, kind="message", text="hello", classification="INTERNAL")
    monkeypatch.setattr(Connection, "has_ended", lambda _: False)
    with server.connect("postgres") as owner:
        owner.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = %s AND usename LIKE 'muniment_%%'",
            [database],
        )
    assert fabric.work.backlog(people.admin).behind == 1
    fabric.capture(people.service, kind="message", text="again", classification="INTERNAL")
    assert fabric.work.backlog(people.admin).behind == 2


def test_a_statement_that_somebody_ends_is_not_sent_again(
    fabric: Fabric, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    fabric.capture(people.service, kind="message", text="hello", classification="INTERNAL")
    sent = 0
    exchange = Connection.exchange

    async def counted(self: Connection, commands: Any) -> Any:
        nonlocal sent
        sent += 1
        return await exchange(self, commands)

    monkeypatch.setattr(Connection, "exchange", counted)
    ended = Statement("ended", "SELECT pg_sleep(0.2), pg_terminate_backend(pg_backend_pid())", planned_once=False)

    async def run() -> None:
        async with fabric._fabric._context.transaction(people.tenant_id, "writer") as tx:
            await tx._round_trip([(ended, [])])

    with pytest.raises(StorageUnavailable):
        fabric._portal.call(run)
    assert sent == 1


def test_a_program_without_a_log_is_not_told_of_connections_that_end() -> None:
    program = "import logging, muniment.database.pool; logging.getLogger('psycopg.pool').warning('discarding')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
