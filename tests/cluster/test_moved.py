"""A tenant that was moved to another node: its numbers go on, and its purges reach what was left (SCL-5, SCL-6)."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from muniment import Fabric
from muniment.database.address import Address
from muniment.database.cluster import checks, moving
from muniment.database.cluster.distribute import bring_up_to_date
from muniment.database.cluster.nodes import Shard
from muniment.erasure import job as purge
from muniment.erasure.purge_nodes import Servers
from muniment.errors import PurgeIncomplete, StorageUnavailable
from muniment.testing import People
from muniment.testing.database import MASTER_KEYS
from tests.cluster.databases import ClusterDatabase
from tests.cluster.test_purge_erasures import erased, left_on
from tests.cluster.test_purge_nodes import setting
from tests.faults.forging import assert_refuses_earlier_numbers
from tests.faults.servers import eventually, value
from tests.stories import promoted, run_job, values

# Whether a shard is on a node by the catalogue, which leaves out the old copy of one that was moved.
IS_HERE = """
SELECT EXISTS (SELECT FROM pg_dist_placement JOIN pg_dist_local_group USING (groupid) WHERE shardid = {})
"""


@pytest.fixture
def fabric(distributed: ClusterDatabase) -> Iterator[Fabric]:
    with Fabric.open(distributed.owner, master_keys=MASTER_KEYS) as opened:
        yield opened


def superuser(cluster: ClusterDatabase) -> Address:
    return Address(conninfo_to_dict(cluster.coordinator), None)


async def moved(cluster: ClusterDatabase, people: People) -> str:
    """Move the tenant's shard to the last node, or away from it; the superuser's address of where it is then."""
    ((host, port),) = cluster.execute(
        "SELECT nodename, nodeport FROM pg_dist_node WHERE groupid <> 0 AND groupid <> (SELECT groupid FROM pg_dist_placement"
        f" WHERE shardid = get_shard_id_for_distribution_column('muniment.tenants', '{people.tenant_id}')) LIMIT 1"
    )
    place = await moving.move(superuser(cluster), people.tenant_id, f"{host}:{port}")
    assert place.node == f"{host}:{port}"
    return cluster.workers[-1] if port == cluster.last.port else cluster.workers[0]


def purged(fabric: Fabric, people: People) -> None:
    opened: Any = fabric._fabric._opened
    fabric._portal.call(purge.run, opened, people.tenant_id)


@pytest.mark.rule("SCL-5", "AUD-1")
def test_after_a_move_no_row_can_be_inserted_with_an_earlier_number_and_the_next_ones_go_on(
    fabric: Fabric, distributed: ClusterDatabase
) -> None:
    people = People("tenant_1")
    made = promoted(fabric, people)
    promoted(fabric, people, "post", predicate="second_channel")
    fabric.retract(people.reviewer, made, reason="wrong")
    fabric.erase(people.officer, subject="customer:nobody")
    run_job(fabric, "seal", people.tenant_id)
    last = max(one.seq for one in fabric.events(people.auditor))
    place = asyncio.run(moved(distributed, people))
    tried = assert_refuses_earlier_numbers(place, people.tenant_id, shards=True)
    tables = {name.rstrip("0123456789").rstrip("_") for name in tried}
    assert tables >= {"ticks", "events", "verdicts", "memories", "retractions", "erasures"}
    after = fabric.capture(people.run(), kind="statement", text="The depot is closed.", classification="INTERNAL")
    assert after.seq == last + 1
    run_job(fabric, "seal", people.tenant_id)
    assert fabric.verify(people.auditor).ok


@pytest.mark.rule("SCL-6", "ERA-3")
def test_what_was_erased_before_a_move_is_left_on_no_node_after_its_purge(
    fabric: Fabric, distributed: ClusterDatabase
) -> None:
    people = People("tenant_2")
    before = erased(fabric, distributed, people)
    asyncio.run(moved(distributed, people))
    assert any(left_on(place, before) for place in distributed.workers), "they are there to be found"
    purged(fabric, people)
    (done,) = fabric.erasures(people.auditor)
    assert done.purged_at is not None
    assert [left_on(place, before) for place in (distributed.coordinator, *distributed.workers)] == [[], [], []]


@pytest.mark.rule("SCL-6", "ERA-3")
def test_a_tenant_that_is_moved_during_its_purge_is_purged_again_before_the_receipt(
    fabric: Fabric, distributed: ClusterDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    people = People("tenant_3")
    promoted(fabric, people)
    before = erased(fabric, distributed, people)
    require_unmoved = Servers.require_unmoved

    async def move_and_ask(self: Servers, address: Address, tenant_id: str, shards: dict[str, Shard]) -> None:
        await moved(distributed, people)
        await require_unmoved(self, address, tenant_id, shards)

    with monkeypatch.context() as at_that_moment:
        at_that_moment.setattr(Servers, "require_unmoved", move_and_ask)
        with pytest.raises(PurgeIncomplete, match="the tenant was moved to another node during the purge"):
            purged(fabric, people)
    assert fabric.erasures(people.auditor)[0].purged_at is None
    purged(fabric, people)
    assert fabric.erasures(people.auditor)[0].purged_at is not None
    assert [left_on(place, before) for place in (distributed.coordinator, *distributed.workers)] == [[], [], []]
    assert values(fabric, people) == ["email"]


@pytest.mark.rule("SCL-2")
def test_a_shard_that_is_removed_after_its_move_while_a_check_reads_it_is_no_problem(
    fabric: Fabric, distributed: ClusterDatabase
) -> None:
    people = People("tenant_4")
    promoted(fabric, people)
    find = "SELECT get_shard_id_for_distribution_column('muniment.retractions', '{}'::text)"
    ((shard,),) = distributed.execute(find.format(people.tenant_id))
    with setting(distributed, distributed.coordinator, "citus.defer_shard_delete_interval = -1"):
        asyncio.run(moved(distributed, people))
        (old,) = [
            place
            for place in distributed.workers
            if distributed.execute(f"SELECT to_regclass('muniment.retractions_{shard}') IS NOT NULL", place=place)
            == [(True,)]
            and distributed.execute(IS_HERE.format(shard), place=place) == [(False,)]
        ]
        with ThreadPoolExecutor(1) as threads, psycopg.connect(old) as removing:
            removing.execute("SET citus.enable_manual_changes_to_shards = on")
            removing.execute(f"DROP TABLE muniment.retractions_{shard} CASCADE".encode())
            found = threads.submit(asyncio.run, problems(distributed))
            waits = "SELECT count(*) > 0 FROM pg_locks JOIN pg_database d ON d.oid = database"
            eventually(lambda: value(old, f"{waits} WHERE NOT granted AND datname = current_database()"), 20)
            removing.commit()
            assert found.result(timeout=30) == []


async def problems(cluster: ClusterDatabase) -> list[str]:
    async with await psycopg.AsyncConnection.connect(cluster.coordinator, autocommit=True) as connection:
        return await checks.problems(connection)


def test_a_tenant_is_not_moved_while_a_node_does_not_answer(fabric: Fabric, distributed: ClusterDatabase) -> None:
    people = People("tenant_5")
    promoted(fabric, people)
    far = f"127.0.0.1:{distributed.last.port}"
    distributed.last.cut()
    try:
        with pytest.raises(StorageUnavailable, match="does not answer"):
            asyncio.run(moving.move(superuser(distributed), people.tenant_id, far))
        with pytest.raises(StorageUnavailable, match="a node does not answer"):
            asyncio.run(bring_up_to_date(Address(conninfo_to_dict(distributed.owner), None)))
    finally:
        distributed.last.restore()
    assert values(fabric, people) == ["email"]
