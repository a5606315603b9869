"""What a node refuses, at the statement or at the commit, is our own error as on one server."""

import asyncio
from datetime import UTC, datetime

import psycopg
import pytest

from muniment.database.cluster.errors import violates
from muniment.database.statements import Statement
from muniment.database.storage import Transaction
from muniment.errors import Conflict, RequestRepeated
from tests.cluster.databases import ClusterDatabase, storage_of

TENANT = "tenant_1"
REQUEST = Statement("request", "INSERT INTO requests (tenant_id, principal, key) VALUES ($1, $2, $3)")
RESET = Statement("reset", "INSERT INTO resets (tenant_id, id, key) VALUES ($1, $2, $3)")


async def insert(tx: Transaction, statement: Statement, *values: str) -> None:
    await tx.rows("tenant.clock")
    await tx.connection.exchange([(statement, [TENANT, *values])])


@pytest.mark.rule("SCL-1", "ERR-2")
def test_a_request_that_was_carried_out_is_known_by_the_constraint_of_the_shard(divided: ClusterDatabase) -> None:
    async def story() -> None:
        async with storage_of(divided) as storage:
            for expected in (False, True):
                try:
                    async with storage.transaction(TENANT, "writer", datetime.now(UTC)) as tx:
                        await insert(tx, REQUEST, "a", "key")
                    repeated = False
                except RequestRepeated:
                    repeated = True
                assert repeated is expected

    asyncio.run(story())


@pytest.mark.rule("SCL-1", "ERR-2")
def test_a_deferred_key_that_fails_at_the_commit_on_a_node_is_that_key_s_error(divided: ClusterDatabase) -> None:
    async def story() -> None:
        async with storage_of(divided) as storage:
            with pytest.raises(psycopg.errors.ForeignKeyViolation) as raised:
                async with storage.transaction(TENANT, "writer", datetime.now(UTC)) as tx:
                    await insert(tx, RESET, "r_1", "no such request")
            assert violates(raised.value, "resets_of_request")
            pool = storage._pools["writer"]
            assert pool.size == 1, "the connection is used again"
            async with storage.transaction(TENANT, "writer", datetime.now(UTC)) as tx:
                await insert(tx, REQUEST, "a", "another")
                await insert(tx, RESET, "r_1", "another")
        assert divided.execute("SELECT id FROM muniment.resets") == [("r_1",)]

    asyncio.run(story())


@pytest.mark.rule("SCL-1", "ERR-2")
def test_two_transactions_that_wait_for_each_other_on_a_node_are_a_conflict(divided: ClusterDatabase) -> None:
    async def story() -> None:
        async with storage_of(divided) as storage:
            met = asyncio.Barrier(2)

            async def crossed(first: str, second: str) -> str:
                try:
                    async with storage.transaction(TENANT, "writer", datetime.now(UTC)) as tx:
                        await insert(tx, REQUEST, "a", first)
                        await met.wait()
                        await insert(tx, REQUEST, "a", second)
                except Conflict:
                    return "conflict"
                return "ok"

            assert "conflict" in await asyncio.gather(crossed("1", "2"), crossed("2", "1"))

    asyncio.run(story())
