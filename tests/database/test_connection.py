"""A batch of statements in one round trip: its results, its errors, what stays prepared, and how it is cancelled."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from psycopg.pq import TransactionStatus

from muniment import AsyncFabric, Fabric
from muniment.database import connection as connections
from muniment.database.address import Address
from muniment.database.connection import Command
from muniment.database.statements import Statement
from muniment.database.storage import Storage
from muniment.testing import People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.database.raw_connections import (
    FAILS,
    INSERTED,
    MADE,
    PARAMETER,
    PLANS,
    connected,
    in_a_loop,
    plain,
    prepared_names,
)


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
