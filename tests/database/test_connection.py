"""A batch of statements in one round trip: its results, its errors, what stays prepared, and how it is cancelled."""

import asyncio
import functools
import os
import select
import socket
import tempfile
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import psycopg
import pytest
import uvloop
from psycopg.pq import TransactionStatus
from psycopg.rows import dict_row

from muniment import AsyncFabric, Fabric
from muniment.database import connection as connections
from muniment.database import notices
from muniment.database.address import Address
from muniment.database.connection import Command, Connection
from muniment.database.statements import Statement
from muniment.database.storage import Storage
from muniment.errors import StorageUnavailable
from muniment.testing import People, TestServer
from muniment.testing.database import MASTER_KEYS

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


@in_a_loop
async def test_each_statement_has_its_own_reply(server: TestServer) -> None:
    async with connected(server) as connection:
        replies = await connection.exchange(
            [plain("BEGIN"), (MADE, []), (INSERTED, [3]), (PARAMETER, ["tea"]), (PARAMETER, [None]), plain("COMMIT")]
        )
        assert [reply.changed for reply in replies] == [0, 0, 3, 1, 1, 0]
        assert [reply.rows for reply in replies[3:5]] == [[{"word": "tea"}], [{"word": None}]]
        assert connection.pgconn.transaction_status == TransactionStatus.IDLE


@pytest.mark.rule("ISO-3")
@in_a_loop
async def test_other_tasks_run_between_the_parts_of_a_long_batch(server: TestServer) -> None:
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    def parts() -> Iterator[Command]:
        for _ in range(5):
            seen.append(turns)
            yield PARAMETER, ["tea"]

    seen: list[int] = []
    async with connected(server) as connection:
        task = asyncio.create_task(others())
        replies = await connection.exchange(parts())
        task.cancel()
    assert [reply.rows for reply in replies] == [[{"word": "tea"}]] * 5
    assert seen == sorted(set(seen)), "after each part the others had a turn"


@in_a_loop
async def test_the_first_error_is_raised_and_nothing_after_it_runs(server: TestServer) -> None:
    async with connected(server) as connection:
        with pytest.raises(psycopg.errors.DivisionByZero):
            await connection.exchange([plain("BEGIN"), (FAILS, [0]), plain("SELECT broken"), plain("COMMIT")])
        assert connection.pgconn.transaction_status == TransactionStatus.INERROR
        await connection.exchange([plain("ROLLBACK")])
        (reply,) = await connection.exchange([(FAILS, [1])])
        assert reply.rows == [{"never": 1}], "the connection goes on"


@in_a_loop
async def test_a_statement_is_prepared_once_and_again_only_if_it_was_not(server: TestServer) -> None:
    async with connected(server) as connection:
        with pytest.raises(psycopg.errors.UndefinedColumn):
            await connection.exchange([plain("SELECT broken"), (PARAMETER, ["tea"])])
        assert await prepared_names(connection) == []
        for _ in range(3):
            await connection.exchange([(PARAMETER, ["tea"]), (PARAMETER, ["milk"])])
        assert len(await prepared_names(connection)) == 1


@in_a_loop
async def test_the_statement_used_longest_ago_is_deallocated(
    server: TestServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "PREPARED_MAX", 2)
    async with connected(server) as connection:
        first, second, third = (Statement("many", f"SELECT $1::text AS word, {n} AS n") for n in range(3))
        for one in (first, second, first, third, second, first):
            (reply,) = await connection.exchange([(one, ["tea"])])
            assert reply.rows[0]["word"] == "tea"
        assert len(await prepared_names(connection)) == 2


@in_a_loop
async def test_a_full_table_of_names_disturbs_no_beginning_and_no_aborted_transaction(
    server: TestServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "PREPARED_MAX", 1)
    begin = Statement("begin", "BEGIN ISOLATION LEVEL REPEATABLE READ")
    async with connected(server) as connection:
        for _ in range(2):
            await connection.exchange([(PARAMETER, ["tea"])])
            with pytest.raises(psycopg.errors.DivisionByZero):
                await connection.exchange([(begin, []), (FAILS, [0])])
            await connection.exchange([(Statement("rollback", "ROLLBACK"), [])])
            assert connection.pgconn.transaction_status == TransactionStatus.IDLE


@in_a_loop
async def test_two_tasks_on_one_connection_are_told_apart(server: TestServer) -> None:
    async with connected(server) as connection:
        first = asyncio.create_task(connection.exchange([plain("SELECT 1 AS n, pg_sleep(0.2)")]))
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="two tasks"):
            await connection.exchange([plain("SELECT 2")])
        assert (await first)[0].rows[0]["n"] == 1


@in_a_loop
async def test_a_statement_whose_result_changed_with_the_schema_costs_its_connection(server: TestServer) -> None:
    everything = Statement("everything", "SELECT * FROM changing")
    async with connected(server) as connection:
        await connection.exchange([plain("CREATE TEMP TABLE changing (a int)")])
        await connection.exchange([(everything, [])])
        await connection.exchange([plain("ALTER TABLE changing ADD COLUMN b int")])
        with pytest.raises(psycopg.OperationalError):
            await connection.exchange([(everything, [])])
        assert connection.closed


@in_a_loop
async def test_behind_a_pooler_nothing_is_prepared_by_name(server: TestServer) -> None:
    async with connected(server) as connection:
        connection.names_statements = False
        (reply,) = await connection.exchange([(PARAMETER, ["tea"])])
        assert reply.rows == [{"word": "tea"}]
        assert await prepared_names(connection) == []


@in_a_loop
async def test_a_value_that_cannot_be_sent_leaves_the_connection_as_it_was(server: TestServer) -> None:
    async with connected(server) as connection:
        with pytest.raises(psycopg.DataError):
            await connection.exchange([plain("BEGIN"), (PARAMETER, ["a\0b"])])
        assert connection.pgconn.transaction_status == TransactionStatus.IDLE
        await connection.exchange([(PARAMETER, ["tea"])])


@in_a_loop
async def test_an_error_while_the_commands_are_made_closes_the_connection(server: TestServer) -> None:
    def commands() -> Iterator[Command]:
        yield plain("BEGIN")
        raise ValueError("the rows cannot be sealed")

    async with connected(server) as connection:
        with pytest.raises(ValueError, match="sealed"):
            await connection.exchange(commands())
        assert connection.closed


@in_a_loop
async def test_more_than_the_socket_holds_is_sent_while_as_much_comes_back(server: TestServer) -> None:
    word = "x" * 1_000_000
    async with connected(server) as connection:
        replies = await connection.exchange((PARAMETER, [word]) for _ in range(30))
        assert [reply.rows[0]["word"] for reply in replies] == [word] * 30


@in_a_loop
async def test_a_cancelled_call_stops_its_statement_on_the_server(server: TestServer) -> None:
    async with connected(server) as connection, connected(server) as other:
        running = asyncio.create_task(connection.exchange([plain("SELECT pg_sleep(60)")]))
        pid = connection.pgconn.backend_pid
        await _until(other, pid, active=True)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert connection.closed
        await _until(other, pid, active=False)


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
            await _until(other, pid, active=True)
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
        await _until(other, pid, active=True)
        await other.exchange([plain(f"SELECT pg_terminate_backend({pid})")])
        with pytest.raises(psycopg.OperationalError):
            await running


async def _until(connection: Connection, pid: int, *, active: bool) -> None:
    """Wait until that backend runs a statement, or no longer does."""
    asked: Any = plain(f"SELECT FROM pg_stat_activity WHERE pid = {pid} AND query ~ 'pg_sleep' AND state = 'active'")
    async with asyncio.timeout(10):
        while bool((await connection.exchange([asked]))[0].rows) is not active:  # noqa: ASYNC110  another process
            await asyncio.sleep(0.01)


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


def test_an_ignored_error_leaves_no_statement_outside_the_transaction_and_commits_nothing(
    fabric: Fabric, people: People
) -> None:
    fabric.capture(people.service, kind="message", text="hello", classification="INTERNAL")
    setting = Statement("setting", "SELECT current_setting('muniment.tenant', true) AS tenant", planned_once=False)

    async def ignoring(bad: list[Any], expected: type[psycopg.Error], then: Statement) -> object:
        async with fabric._fabric._context.transaction(people.tenant_id, "writer") as tx:
            with pytest.raises(expected):
                await tx._round_trip([(FAILS if bad == [0] else PARAMETER, bad)])
            if bad == [0]:
                return None
            return (await tx._round_trip([(then, [])]))[0].rows[0]["tenant"]

    assert fabric._portal.call(ignoring, ["a\0b"], psycopg.DataError, setting) == people.tenant_id
    with pytest.raises(psycopg.errors.InFailedSqlTransaction):
        fabric._portal.call(ignoring, [0], psycopg.errors.DivisionByZero, setting)


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


@pytest.mark.parametrize("tenant", ["it's", "back\\slash", "'; DROP TABLE x; --", "\\'", "中'; --x", "né"])
def test_any_tenant_is_quoted_as_itself_whatever_encoding_others_use(
    server: TestServer, database: str, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    setting = Statement("setting", "SELECT current_setting('muniment.tenant', true) AS tenant", planned_once=False)

    async def read() -> object:
        storage = Storage(Address.parse(server.url(database), MASTER_KEYS.login_secret()))
        async with storage.transaction(tenant, "recall", datetime.now(UTC)) as tx:
            found = (await tx._round_trip([(setting, [])]))[0].rows[0]["tenant"]
        await storage.close()
        return found

    with psycopg.connect(server.conninfo, client_encoding="gbk"):
        assert asyncio.run(read()) == tenant


@in_a_loop
async def test_the_key_of_a_captures_holder_is_read_by_one_plan_for_all(server: TestServer, database: str) -> None:
    people = People("one-plan")
    async with AsyncFabric.open(server.url(database), master_keys=MASTER_KEYS) as fabric:
        for number in range(9):
            await fabric.capture(people.service, kind="statement", text=f"Parcel {number}.", classification="INTERNAL")
        async with fabric._context.transaction(people.tenant_id, "writer") as tx:
            (reply,) = await tx.connection.exchange([(PLANS, [])])
    (found,) = [row for row in reply.rows if "FROM subjects" in row["statement"] and "FOR SHARE" in row["statement"]]
    # The first capture of a holder also makes its key, in a transaction of its own.
    assert found["generic_plans"] >= 8 and found["custom_plans"] <= 2


@in_a_loop
async def test_the_bodies_of_a_recall_from_the_index_are_read_by_one_plan_for_all(
    server: TestServer, database: str
) -> None:
    people = People("one-plan")
    run = people.run(None)
    async with AsyncFabric.open(server.url(database), master_keys=MASTER_KEYS) as fabric:
        for number in range(9):
            await fabric.propose(run, write_class="statement", text=f"Parcel {number}.", classification="INTERNAL")
            queued = await fabric.queue.list(people.reviewer)
            await fabric.queue.approve_many(people.reviewer, [one.proposal_id for one in queued])
            await fabric.recall(run, "parcel")
            await fabric.recall(run, "parcel")
        async with fabric._context.transaction(people.tenant_id, "recall") as tx:
            (reply,) = await tx.connection.exchange([(PLANS, [])])
    (bodies,) = [row for row in reply.rows if "JOIN memory_bodies" in row["statement"]]
    # The first recall reads the whole scope, with a plan for its own values.
    assert bodies["generic_plans"] >= 17 and bodies["custom_plans"] <= 1
    (changes,) = [row for row in reply.rows if "retractions" in row["statement"] and "promoted" in row["statement"]]
    assert changes["generic_plans"] >= 8 and changes["custom_plans"] == 0
