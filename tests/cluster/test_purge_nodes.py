"""A purge clears the log of every node, or says on which node it could not (ERA-3, SCL-6)."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Generator

import pytest
from psycopg.conninfo import make_conninfo

from muniment.database.address import Address
from muniment.erasure import purge
from muniment.erasure.purge_nodes import Servers
from muniment.errors import PurgeIncomplete
from muniment.opening import OWNER
from tests.cluster.databases import ClusterDatabase

SECRET = "the violet giraffe sings at noon"
_IN_LOG = """
SELECT count(*) FROM pg_ls_waldir() w
WHERE position('{}'::bytea IN pg_read_binary_file('pg_wal/' || w.name)) > 0
"""


def in_log(cluster: ClusterDatabase, place: str) -> int:
    ((count,),) = cluster.execute(_IN_LOG.format(SECRET), place=place)
    return int(count)


def told(cluster: ClusterDatabase, story: Callable[[Servers], Awaitable[None]]) -> None:
    async def run() -> None:
        await story(await Servers.of(Address.parse(cluster.owner, None).for_owner()))

    asyncio.run(run())


def insert(cluster: ClusterDatabase, tenant: str) -> None:
    cluster.execute(
        f"INSERT INTO muniment.requests (tenant_id, principal, key, content) VALUES ('{tenant}', 'a', '1', '{SECRET}')"
    )


@contextlib.contextmanager
def setting(cluster: ClusterDatabase, place: str, value: str) -> Generator[None]:
    """A setting of one node's server, which other databases on it have too for that time."""
    name = value.split()[0]
    written = f"SELECT setting FROM pg_file_settings WHERE name = '{name}' AND sourcefile LIKE '%.auto.conf'"
    before = cluster.execute(written, place=place)
    try:
        cluster.execute(f"ALTER SYSTEM SET {value}", place=place)
        cluster.execute("SELECT pg_reload_conf()", place=place)
        yield
    finally:
        undo = f"SET {name} = '{before[-1][0]}'" if before else f"RESET {name}"
        cluster.execute(f"ALTER SYSTEM {undo}", place=place)
        cluster.execute("SELECT pg_reload_conf()", place=place)


@pytest.mark.rule("SCL-6", "ERA-3")
def test_the_log_of_every_node_is_cleared(divided: ClusterDatabase) -> None:
    far, near = divided.tenants(1)
    for tenant in (*far, *near):
        insert(divided, tenant)
    assert all(in_log(divided, place) for place in divided.workers)
    divided.execute("DELETE FROM muniment.requests")

    async def story(servers: Servers) -> None:
        await servers.each(purge.clear_log)

    told(divided, story)
    assert [in_log(divided, place) for place in (divided.coordinator, *divided.workers)] == [0, 0, 0]


@pytest.mark.rule("SCL-6", "SCL-2")
def test_a_node_that_renames_its_log_or_refuses_the_owner_is_named(divided: ClusterDatabase) -> None:
    worker = divided.workers[0]

    async def story(servers: Servers) -> None:
        name = servers.nodes[0].name
        with setting(divided, worker, "wal_recycle = on"):
            with pytest.raises(PurgeIncomplete, match=f"node {name}: wal_recycle is on"):
                await servers.each(purge.require_possible)
            with pytest.raises(PurgeIncomplete, match=f"node {name}: wal_recycle is on"):
                await servers.each(purge.clear_log)
            (problem,) = await servers.problems()
            assert problem.startswith(f"node {name}: wal_recycle is on")
        divided.execute(f"REVOKE EXECUTE ON FUNCTION pg_switch_wal() FROM {OWNER}", place=worker)
        with pytest.raises(PurgeIncomplete, match=f"node {name}: the owner's login may not"):
            await servers.each(purge.require_possible)
        divided.execute(f"GRANT EXECUTE ON FUNCTION pg_switch_wal() TO {OWNER}", place=worker)
        assert await servers.problems() == []

    told(divided, story)


@pytest.mark.rule("SCL-6", "SCL-3")
def test_a_node_that_cannot_be_reached_is_named(divided: ClusterDatabase) -> None:
    async def story(servers: Servers) -> None:
        divided.last.cut()
        with pytest.raises(PurgeIncomplete, match=rf"node 127\.0\.0\.1:{divided.last.port} does not answer"):
            await servers.each(purge.clear_log)
        (problem,) = await servers.problems()
        assert "its log is not cleared" in problem
        divided.last.restore()
        await servers.each(purge.clear_log)

    told(divided, story)


@pytest.mark.rule("SCL-6", "ERA-3")
def test_a_shard_that_was_moved_is_gone_from_its_old_node_before_the_log_is_cleared(divided: ClusterDatabase) -> None:
    (tenant,), _ = divided.tenants(1)
    insert(divided, tenant)
    find = f"SELECT get_shard_id_for_distribution_column('muniment.requests', '{tenant}'::text)"
    ((shard,),) = divided.execute(find)
    ((host, port),) = divided.execute(
        f"SELECT nodename, nodeport FROM pg_dist_node WHERE groupid <> 0 AND nodeport <> {divided.last.port} LIMIT 1"
    )
    there = f"SELECT to_regclass('muniment.requests_{shard}') IS NOT NULL"
    with setting(divided, divided.coordinator, "citus.defer_shard_delete_interval = -1"):
        divided.execute(
            f"SELECT citus_move_shard_placement({shard}, '127.0.0.1', {divided.last.port}, '{host}', {port},"
            " shard_transfer_mode => 'block_writes')"
        )
        assert divided.execute(there, place=divided.workers[-1]) == [(True,)], "Citus removes it later"

        async def story(servers: Servers) -> None:
            await servers.require_nothing_left_behind()

        told(divided, story)
    assert divided.execute(there, place=divided.workers[-1]) == [(False,)]


@pytest.mark.rule("SCL-6", "ERA-3")
def test_rows_that_the_coordinator_kept_when_they_were_distributed_leave_the_receipt_open(
    divided: ClusterDatabase,
) -> None:
    divided.execute(
        f"CREATE TABLE muniment.kept (tenant_id text, content text); ALTER TABLE muniment.kept OWNER TO {OWNER}"
    )
    divided.execute(f"INSERT INTO muniment.kept VALUES ('tenant_1', '{SECRET}')")
    divided.execute("SELECT create_distributed_table('muniment.kept', 'tenant_id', colocate_with => 'none')")

    async def story(servers: Servers) -> None:
        with pytest.raises(PurgeIncomplete, match=r"the coordinator still has rows .* each of kept"):
            await servers.require_nothing_left_behind()
        divided.execute("SELECT truncate_local_data_after_distributing_table('muniment.kept')")
        await servers.require_nothing_left_behind()

    told(divided, story)


@pytest.mark.rule("SCL-6")
def test_the_owner_connects_to_the_nodes_that_the_catalogue_names_with_the_rest_of_the_address(
    divided: ClusterDatabase,
) -> None:
    async def story(servers: Servers) -> None:
        place = servers.nodes[-1].conninfo(make_conninfo(divided.owner, password="secret", sslmode="prefer"))
        assert f"port={divided.last.port}" in place
        assert f"dbname={divided.name}" in place and "password=secret" in place and "sslmode=prefer" in place

    told(divided, story)
