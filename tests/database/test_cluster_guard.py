"""What an open process does while a cluster keeps less than is promised (SCL-2); on one server that says it is one.

The checks run as on a cluster, on this server's own catalogue. `tests/cluster/test_weakened.py` does it on a real one.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from psycopg import AsyncConnection
from psycopg.conninfo import make_conninfo

from muniment import AsyncFabric, Fabric, Principal
from muniment.database.address import Address
from muniment.database.cluster import checks, guard
from muniment.database.cluster.guard import ClusterGuard, ClusterRepair
from muniment.erasure import job as purge
from muniment.errors import PurgeIncomplete, StorageUnavailable
from muniment.testing import People, TestServer
from muniment.testing.database import MASTER_KEYS
from muniment.worker.worker import Worker
from tests.cluster.server import NODES
from tests.database.coordinator import CATALOGUE, Change, changes
from tests.interfaces.command import MASTER_KEY, run
from tests.outcomes import outcome
from tests.server_thread import ServerThread

pytestmark = pytest.mark.skipif(bool(NODES), reason="the tests' server is a cluster")
WEAKEN = "CREATE POLICY narrow ON muniment.memories AS RESTRICTIVE FOR SELECT USING (true)"
MEND = "DROP POLICY narrow ON muniment.memories"
# A shard of `webhooks` that has lost what keeps samples of its content out of the statistics.
LOST = """
CREATE TABLE muniment.webhooks_101 (LIKE muniment.webhooks);
ALTER TABLE muniment.webhooks_101 OWNER TO muniment_owner, ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
INSERT INTO pg_catalog.pg_dist_shard VALUES ('muniment.webhooks', 101);
"""
# The policies that the shard has from its table.
POLICIES = """
DO $$
DECLARE one record;
BEGIN
  FOR one IN SELECT polname, array_to_string(polroles::regrole[], ', ') AS logins,
    CASE polcmd WHEN 'a' THEN 'INSERT' WHEN 'r' THEN 'SELECT' WHEN 'w' THEN 'UPDATE' ELSE 'DELETE' END AS command,
    ' USING (' || pg_get_expr(polqual, polrelid) || ')' AS sees,
    ' WITH CHECK (' || pg_get_expr(polwithcheck, polrelid) || ')' AS writes
    FROM pg_policy WHERE polrelid = 'muniment.webhooks'::regclass
  LOOP
    EXECUTE concat(format('CREATE POLICY %I ON muniment.webhooks_101 FOR %s TO %s', one.polname, one.command, one.logins),
      one.sees, one.writes);
  END LOOP;
END $$
"""
LOSE_AGAIN = "ALTER TABLE muniment.webhooks_101 ALTER COLUMN secret SET STATISTICS 100"
SAMPLED = """
SELECT count(*) FROM pg_attribute w JOIN pg_attribute s USING (attname)
WHERE w.attrelid = 'muniment.webhooks'::regclass AND s.attrelid = 'muniment.webhooks_101'::regclass AND w.attnum > 0
  AND w.attstattarget = 0 AND s.attstattarget IS DISTINCT FROM 0
"""


@pytest.fixture
def change(server: TestServer, fresh_database: str) -> Change:
    """Run statements as superuser on the server, which says that it is a coordinator."""
    change = changes(make_conninfo(server.conninfo, dbname=fresh_database))
    change(CATALOGUE)
    return change


@pytest.fixture
def checks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A check is due with each call."""
    monkeypatch.setattr(guard, "CHECK_EVERY", 0.0)
    monkeypatch.setattr(guard, "CHECK_AGAIN_AFTER", 0.0)


def opened(server: TestServer, database: str) -> AsyncFabric:
    return AsyncFabric.open(server.url(database), master_keys=MASTER_KEYS)


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    give_up_at = time.monotonic() + 20
    while not await holds():
        assert time.monotonic() < give_up_at
        await asyncio.sleep(0.01)


@pytest.mark.rule("SCL-2")
@pytest.mark.usefixtures("checks_often")
def test_an_open_process_refuses_every_call_while_something_is_found_and_serves_again_after(
    server: TestServer, fresh_database: str, change: Change, people: People
) -> None:
    async def story() -> None:
        async with opened(server, fresh_database) as fabric:

            def calls() -> tuple[Awaitable[Any], ...]:
                said = {"kind": "statement", "text": "It is late.", "classification": "PUBLIC"}
                return (
                    fabric.capture(people.run(), **said),
                    fabric.recall(people.run(), "late"),
                    fabric.queue.list(people.reviewer),
                    fabric.events(people.auditor),
                )

            async def codes() -> set[str]:
                return {(await outcome(call))[0] for call in calls()}

            async def all_are(code: str) -> bool:
                return await codes() == {code}

            assert await codes() == {"ok"}
            change(WEAKEN)
            await until(lambda: all_are("storage_unavailable"))
            with pytest.raises(
                StorageUnavailable, match=r"not safe to use: here:1: 1 restrictive .*; `muniment db distribute`"
            ):
                await fabric.recall(people.run(), "late")
            change(MEND)
            await until(lambda: all_are("ok"))

    asyncio.run(story())


@pytest.mark.rule("SCL-2")
def test_verify_tells_what_is_below_the_promise_before_the_next_check_and_nothing_is_served_from_then_on(
    server: TestServer, fresh_database: str, change: Change, people: People
) -> None:
    async def story() -> None:
        async with opened(server, fresh_database) as fabric:
            await fabric.capture(people.run(), kind="statement", text="It is late.", classification="PUBLIC")
            await fabric.seal(people.tenant_id)
            assert (await fabric.verify(people.auditor)).below_promise == ()
            change(WEAKEN)
            found = await fabric.verify(people.auditor)
            assert found.ok, "the chain is what it was"
            assert found.below_promise == ("here:1: 1 restrictive policies, which shards have as permissive ones",)
            assert (await outcome(fabric.recall(people.run(), "late")))[0] == "storage_unavailable"

    asyncio.run(story())


@pytest.mark.rule("SCL-2")
def test_verify_through_a_server_tells_it_at_the_command_line(
    server: TestServer, fresh_database: str, change: Change, people: People
) -> None:
    admin = Principal(tenant_id=people.tenant_id, id="keeper", kind="operator", roles={"admin"})
    with Fabric.open(server.url(fresh_database), master_keys=MASTER_KEYS) as fabric:
        made = fabric.keys.create(admin, principal_id="anton", kind="operator", roles={"auditor"})
    with ServerThread.on(server.url(fresh_database)) as running:
        change(WEAKEN)
        ran = run("verify", "--server", running.url, "--key", made.token)
        assert ran.code == 0
        assert "below what is promised: here:1: 1 restrictive policies" in " ".join(ran.err.split())
        refused = run("verify", "--server", running.url, "--key", made.token, "--json")
        assert (refused.code, refused.error["code"]) == (1, "storage_unavailable")
        assert "here:1: 1 restrictive policies" in refused.error["message"]


@pytest.mark.rule("SCL-2", "SCL-3")
@pytest.mark.usefixtures("checks_often")
def test_a_cluster_that_cannot_be_checked_is_served_until_five_checks_have_failed(
    server: TestServer, fresh_database: str, change: Change
) -> None:
    async def story() -> None:
        guarding = ClusterGuard(server.task_url(fresh_database, "recall"))

        async def checked() -> None:
            guarding.require()
            assert guarding._check is not None
            await guarding._check

        await checked()
        change("ALTER FUNCTION pg_catalog.master_run_on_worker RENAME TO gone")
        for _ in range(5):
            await checked()
        with pytest.raises(StorageUnavailable, match="the last 5 checks of it failed"):
            guarding.require()
        change("ALTER FUNCTION pg_catalog.gone RENAME TO master_run_on_worker")
        # The check that the refused call began.
        assert guarding._check is not None
        await guarding._check
        guarding.require()
        await guarding.close()

    asyncio.run(story())


@pytest.mark.rule("SCL-2", "SCL-3")
def test_a_node_that_cannot_be_connected_to_stops_nobody_else_and_one_that_cannot_be_checked_does(
    server: TestServer, fresh_database: str, change: Change
) -> None:
    place = server.task_url(fresh_database, "recall")

    async def found(*, serving: bool) -> list[str]:
        async with await AsyncConnection.connect(place, autocommit=True) as connection:
            return await checks.problems(connection, serving=place if serving else None)

    change("UPDATE pg_catalog.pg_dist_node SET nodename = 'gone' WHERE groupid = 2")
    assert asyncio.run(found(serving=True)) == []
    assert asyncio.run(found(serving=False)) == ["gone:3: cannot be checked (it failed)"]
    change("UPDATE pg_catalog.pg_dist_node SET nodename = 'deaf' WHERE groupid = 2")
    assert asyncio.run(found(serving=True)) == ["deaf:3: cannot be checked (it failed)"]


# What weakens a cluster, and how that is named.
WEAKENED = [
    (WEAKEN, ["here:1: 1 restrictive policies, which shards have as permissive ones"]),
    (
        "ALTER TABLE muniment.memories NO FORCE ROW LEVEL SECURITY",
        ["here:1: 1 tables or shards without forced row-level security"],
    ),
    (
        LOST,
        [
            "here:1: 1 shards with other policies than their table",
            "here:1: the planner may keep samples of 3 columns with content",
        ],
    ),
    (
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET log_min_duration_statement = 500', current_database()); END $$",
        [
            "here:1: its log may contain values, because of log_min_duration_statement: have a superuser run the output"
            " of muniment db distribute --script"
        ],
    ),
    (
        "CREATE FUNCTION pg_catalog.citus_move_shard_placement() RETURNS void LANGUAGE sql RETURN NULL::void",
        [
            "the owner of the tables may call citus_move_shard_placement(), which would lose rows: revoke it, as the"
            " superuser's script does"
        ],
    ),
]


@pytest.mark.rule("SCL-2")
@pytest.mark.parametrize(("statement", "says"), WEAKENED)
def test_whatever_a_cluster_would_weaken_is_found(
    server: TestServer, fresh_database: str, change: Change, statement: str, says: list[str]
) -> None:
    place = server.task_url(fresh_database, "recall")

    async def found() -> list[str]:
        async with await AsyncConnection.connect(place, autocommit=True) as connection:
            return await checks.problems(connection)

    assert asyncio.run(found()) == []
    change(statement)
    assert asyncio.run(found()) == says


@pytest.mark.rule("SCL-2")
@pytest.mark.usefixtures("checks_often")
def test_one_server_is_never_checked_as_a_cluster(
    server: TestServer, database: str, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[ClusterGuard] = []

    async def story() -> None:
        async with opened(server, database) as fabric:
            monkeypatch.setattr(ClusterGuard, "require", lambda one: looks.append(one))
            await fabric.capture(people.run(), kind="statement", text="It is late.", classification="PUBLIC")
            await fabric.recall(people.run(), "late")
            assert (await fabric.verify(people.auditor)).below_promise == ()

    asyncio.run(story())
    assert looks == []


@pytest.mark.rule("SCL-2", "ERA-3")
def test_lost_settings_are_made_again_when_a_check_is_due_and_not_before(
    server: TestServer, fresh_database: str, change: Change
) -> None:
    change(LOST)
    ((lost,),) = change(SAMPLED)
    assert isinstance(lost, int) and lost > 0

    async def story() -> None:
        repair = ClusterRepair(Address.parse(server.url(fresh_database), None))
        assert await repair.repair_when_due() == lost
        assert change(SAMPLED) == [(0,)]
        change(LOSE_AGAIN)
        assert await repair.repair_when_due() == 0, "it is not due yet"
        assert change(SAMPLED) == [(1,)]
        assert repair._next_at < time.monotonic() + guard.CHECK_EVERY / 2, "other shards may be moved soon"
        repair._next_at = time.monotonic()
        assert await repair.repair_when_due() == 1
        assert change(SAMPLED) == [(0,)]
        away = ClusterRepair(Address.parse("postgresql://muniment_owner@127.0.0.1:1/none", None))
        assert await away.repair_when_due() == 0
        assert away._next_at > time.monotonic() + guard.CHECK_EVERY / 2, "it is tried again later"

    asyncio.run(story())


@pytest.mark.rule("SCL-2", "ERA-3")
@pytest.mark.usefixtures("checks_often")
def test_a_worker_makes_lost_settings_again_also_while_nothing_is_served(
    server: TestServer, fresh_database: str, change: Change, people: People
) -> None:
    async def story() -> None:
        async with opened(server, fresh_database) as fabric:
            change(LOST)

            async def is_refused() -> bool:
                return (await outcome(fabric.recall(people.run(), "late")))[0] == "storage_unavailable"

            async def is_repaired() -> bool:
                return change(SAMPLED) == [(0,)]

            await until(is_refused)
            working = asyncio.create_task(Worker(fabric.opened).forever())
            await until(is_repaired)
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)

    asyncio.run(story())


@pytest.mark.rule("SCL-2", "ERA-3")
def test_a_worker_that_starts_makes_lost_settings_again_and_other_processes_are_refused(
    server: TestServer, fresh_database: str, change: Change, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUNIMENT_MASTER_KEY", MASTER_KEY)
    monkeypatch.setenv("MUNIMENT_DATABASE_URL", server.url(fresh_database))
    change(LOST)
    change(POLICIES)
    refused = run("work", "jobs", "--tenant", "acme")
    assert refused.code == 1 and "keep samples of" in refused.err
    done = run("worker", "--until-idle")
    assert (done.code, change(SAMPLED)) == (0, [(0,)]), done.err
    assert run("work", "jobs", "--tenant", "acme").code == 0
    # What nobody but a person can mend stays refused.
    change(WEAKEN)
    refused = run("worker", "--until-idle")
    assert refused.code == 1 and "restrictive" in refused.err


@pytest.mark.rule("SCL-2", "SCL-6", "ERA-3")
def test_a_purge_issues_no_receipt_while_something_is_found(tmp_path: Path, people: People) -> None:
    async def story() -> None:
        async with AsyncFabric.open(home=tmp_path / "home") as fabric:
            change = changes(fabric.opened.superuser)
            change(CATALOGUE)
            change("DELETE FROM pg_catalog.pg_dist_node WHERE groupid <> 0")
            said = {"kind": "statement", "text": "It is late.", "classification": "PUBLIC"}
            await fabric.capture(people.run(None), **said, subject="customer:cus_77")
            await fabric.consolidate(people.tenant_id)
            await fabric.erase(people.officer, subject="customer:cus_77")
            change(WEAKEN)
            with pytest.raises(PurgeIncomplete, match="the cluster is not safe to use: here:1: 1 restrictive"):
                await purge.run(fabric.opened, people.tenant_id)
            (waits,) = await fabric.erasures(people.auditor)
            assert waits.purged_at is None
            change(MEND)
            await purge.run(fabric.opened, people.tenant_id)
            (done,) = await fabric.erasures(people.auditor)
            assert done.purged_at is not None

    asyncio.run(story())
