"""What a task's session sets holds on the node that has the tenant's rows, too (SCL-1)."""

import asyncio
from datetime import UTC, datetime

import pytest

from muniment import Fabric
from muniment.database.statements import Statement
from muniment.database.storage import Task
from muniment.testing import People
from muniment.testing.database import MASTER_KEYS
from tests.cluster.databases import ClusterDatabase, storage_of
from tests.stories import promoted

NAMES = ("lock_timeout", "synchronous_commit", "hnsw.iterative_scan", "hnsw.ef_search", "hnsw.max_scan_tuples")
# Settings are read where the row is.
READ = Statement(
    "settings",
    "SELECT array_agg(current_setting(name, true)), t.seq FROM unnest($1::text[]) name, muniment.tenant_clock t"
    " WHERE t.tenant_id = $2 GROUP BY t.seq",
)


@pytest.mark.rule("REC-8")
@pytest.mark.parametrize(
    ("task", "expected"),
    [
        ("recall", ["10s", "off", "strict_order", "200", "100000"]),
        ("writer", ["10s", "on", "strict_order", "200", "100000"]),
        ("jobs", ["10s", "on", None, None, None]),
    ],
)
def test_a_node_searches_waits_and_commits_as_one_server_does(
    distributed: ClusterDatabase, task: Task, expected: list[str | None]
) -> None:
    people = People("tenant_1")
    with Fabric.open(distributed.owner, master_keys=MASTER_KEYS) as fabric:
        promoted(fabric, people, predicate=f"prefers_{task}")

    async def settings() -> list[str | None]:
        async with (
            storage_of(distributed) as storage,
            storage.transaction(people.tenant_id, task, datetime.now(UTC)) as tx,
        ):
            await tx.rows("tenant.clock")
            (reply,) = await tx.connection.exchange([(READ, [list(NAMES), people.tenant_id])])
            return list(reply.rows[0]["array_agg"])

    assert asyncio.run(settings()) == expected
