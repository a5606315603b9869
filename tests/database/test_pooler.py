"""Behind PgBouncer, which gives each transaction any server connection: nothing depends on a session.

The stories of tests/scenarios run through it too.
"""

from collections.abc import Generator

import psycopg
import pytest
from bench.pgbouncer import PGBOUNCER, pooler_before

from muniment import Fabric
from muniment.database.address import Address
from muniment.database.statements import Statement
from muniment.errors import InvalidInput
from muniment.testing import People, TestServer
from muniment.testing.database import MASTER_KEYS
from muniment.worker.worker import Worker

SHOW = Statement("show", "SHOW synchronous_commit", planned_once=False)


@pytest.fixture
def pooler(server: TestServer, fresh_database: str) -> Generator[str]:
    """The address of a pooler before a database of the test's own."""
    if PGBOUNCER is None:
        pytest.skip("pgbouncer is not installed")
    with pooler_before(server.conninfo, fresh_database) as running:
        yield running.address


@pytest.fixture
def fabric(pooler: str, server: TestServer, fresh_database: str, monkeypatch: pytest.MonkeyPatch) -> Generator[Fabric]:
    monkeypatch.setenv("MUNIMENT_POOLER", "transaction")
    monkeypatch.setenv("MUNIMENT_OWNER_URL", server.url(fresh_database))
    with Fabric.open(pooler, master_keys=MASTER_KEYS) as fabric:
        yield fabric


def test_a_memory_goes_through_a_pooler_from_capture_to_recall_and_the_worker_runs(
    fabric: Fabric, server: TestServer, fresh_database: str
) -> None:
    opened = fabric._fabric._opened
    assert opened is not None
    tenants = [People("acme"), People("globex")]
    for people in tenants:
        text = f"Parcels of {people.tenant_id} leave at noon."
        fabric.propose(people.run(), write_class="statement", text=text, classification="INTERNAL")
        fabric.capture(people.service, kind="message", text="hello", classification="INTERNAL")
        assert fabric._portal.call(Worker(opened).until_idle, [people.tenant_id]) > 0
        for waiting in fabric.queue.list(people.reviewer):
            fabric.queue.approve(people.reviewer, waiting.proposal_id)
    for people in tenants:
        records = fabric.recall(people.run(), "when do parcels leave?").records
        assert f"Parcels of {people.tenant_id} leave at noon." in [record.text for record in records]
    with server.connect(fresh_database) as owner:
        listening = owner.execute("SELECT FROM pg_stat_activity WHERE query ~ '^LISTEN'").fetchall()
    assert listening == [], "no session is kept for notifications"


def test_the_settings_of_a_task_hold_in_each_transaction_and_not_after_it(fabric: Fabric, pooler: str) -> None:
    people = People("acme")
    fabric.capture(people.service, kind="message", text="hello", classification="INTERNAL")

    async def setting() -> str:
        async with fabric._fabric._context.transaction(people.tenant_id, "recall") as tx:
            await tx.rows("tenant.clock")
            (reply,) = await tx._connection.exchange([(SHOW, [])])
            return str(reply.rows[0]["synchronous_commit"])

    assert fabric._portal.call(setting) == "off"
    with psycopg.connect(pooler, prepare_threshold=None) as session:
        assert session.execute("SHOW search_path").fetchone() == ('"$user", public',)


def test_a_pooler_needs_the_owners_own_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUNIMENT_POOLER", "transaction")
    with pytest.raises(InvalidInput, match="MUNIMENT_OWNER_URL: set it"):
        Address.parse("postgresql://pooler/memory", None)
    monkeypatch.setenv("MUNIMENT_POOLER", "session")
    with pytest.raises(InvalidInput, match="MUNIMENT_POOLER: expected transaction"):
        Address.parse("postgresql://pooler/memory", None)
