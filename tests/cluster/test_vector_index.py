"""The vector index of a large tenant on a cluster: whole in the tenant's shard, and sampled by no node (JOB-11, ERA-1)."""

import asyncio
import random
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from muniment import Fabric
from muniment.database import vector_index
from muniment.database.address import Address
from muniment.database.cluster import moving
from muniment.database.vector_index import index_name
from muniment.testing import FakeClock, People
from muniment.testing.database import MASTER_KEYS
from tests.cluster.databases import ClusterDatabase
from tests.cluster.server import SHARDS
from tests.recall.test_large_scopes import PACK, sentence, stated
from tests.stories import run_job

# The indexes of that name on a node, under the numbers of their shards: whether each is whole, is sampled, and has rows.
STATE = """
SELECT i.indisvalid, a.attstattarget, pg_relation_size(i.indexrelid) > 2 * 8192,
  (SELECT count(*) FROM pg_stats s WHERE s.schemaname = 'muniment' AND s.tablename = c.relname)
FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = 1
WHERE c.relnamespace = 'muniment'::regnamespace AND c.relname LIKE '{}%'
"""
WHOLE = (True, 0)


@pytest.fixture(autouse=True)
def scaled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_index, "MADE_ABOVE", 20)
    monkeypatch.setattr(vector_index, "DROPPED_BELOW", 10)


@pytest.fixture(scope="module")
def fabric(distributed: ClusterDatabase) -> Iterator[Fabric]:
    with Fabric.open(distributed.owner, pack=PACK, clock=FakeClock(), master_keys=MASTER_KEYS) as opened:
        yield opened


@pytest.fixture(scope="module")
def large(distributed: ClusterDatabase, fabric: Fabric) -> list[People]:
    """Tenants with as many vectors as ask for an index, one of the last node and one of another."""
    everybody = [People(names[0]) for names in distributed.tenants(1)]
    chance = random.Random(1)
    for people in everybody:
        stated(fabric, people, [sentence(chance) for _ in range(25)])
    return everybody


def ran(fabric: Fabric, people: People) -> int:
    return run_job(fabric, "embed", people.tenant_id).counts["indexes"]


def indexes(cluster: ClusterDatabase, people: People) -> dict[str, list[tuple[Any, ...]]]:
    """What each server has of a tenant's index, by its place."""
    found: dict[str, list[tuple[Any, ...]]] = {}
    for place in (cluster.coordinator, *cluster.workers):
        with psycopg.connect(place, autocommit=True) as connection:
            connection.execute("SET citus.override_table_visibility = off")
            found[place] = connection.execute(STATE.format(index_name(people.tenant_id)).encode()).fetchall()
    return found


def analyse(cluster: ClusterDatabase) -> None:
    for place in cluster.workers:
        cluster.execute("ANALYZE", place=place)


@pytest.mark.rule("JOB-11", "SCL-1", "ERA-1")
def test_an_index_is_made_in_the_tenant_s_shard_and_no_node_takes_samples_of_it(
    distributed: ClusterDatabase, fabric: Fabric, large: list[People]
) -> None:
    for people in large:
        assert ran(fabric, people) == 1
        analyse(distributed)
        coordinator, *nodes = indexes(distributed, people).values()
        assert [row[:2] for row in coordinator] == [WHOLE]
        shards = [row for rows in nodes for row in rows]
        assert len(shards) == SHARDS + len(nodes), "each node has the definition too"
        assert {row[:2] for row in shards} == {WHOLE}
        assert [row[2] for row in shards].count(True) == 1, "only the tenant's own shard has rows in it"
        assert all(row[3] == 0 for row in shards), "and none has samples"
        assert ran(fabric, people) == 0, "it is there already"
        assert len(fabric.recall(people.run(), "the amber kettle in Oslo").records) > 0


@pytest.mark.rule("JOB-11")
def test_what_a_killed_build_left_is_dropped_and_made_again(
    distributed: ClusterDatabase, fabric: Fabric, large: list[People]
) -> None:
    people = large[0]
    ran(fabric, people)
    distributed.execute(
        f"UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'muniment.{index_name(people.tenant_id)}'::regclass"
    )
    assert ran(fabric, people) == 1
    assert {row[:2] for rows in indexes(distributed, people).values() for row in rows} == {WHOLE}


@pytest.mark.rule("JOB-11", "SCL-3", "ERR-3")
def test_a_build_while_the_node_is_away_fails_and_the_next_one_makes_it(
    distributed: ClusterDatabase, fabric: Fabric, large: list[People]
) -> None:
    people = large[0]
    distributed.execute(f"DROP INDEX IF EXISTS muniment.{index_name(people.tenant_id)}")
    address = Address.parse(distributed.owner, None)
    distributed.last.cut()
    try:
        with pytest.raises(psycopg.OperationalError):
            asyncio.run(vector_index.take(address, people.tenant_id, "make"))
    finally:
        distributed.last.restore()
    assert not any(indexes(distributed, people).values())
    assert ran(fabric, people) == 1


@pytest.mark.rule("JOB-11")
def test_the_index_of_a_tenant_that_is_no_longer_large_is_dropped_on_every_node(
    distributed: ClusterDatabase, fabric: Fabric, large: list[People]
) -> None:
    people = large[1]
    ran(fabric, people)
    assert all(indexes(distributed, people).values())
    distributed.execute(f"DELETE FROM muniment.memory_vectors WHERE tenant_id = '{people.tenant_id}'")
    assert ran(fabric, people) == 1
    assert not any(indexes(distributed, people).values())


@pytest.mark.rule("JOB-11", "SCL-2", "ERA-1")
def test_a_tenant_that_moves_takes_its_index_along(
    distributed: ClusterDatabase, fabric: Fabric, large: list[People]
) -> None:
    """The last test here: what was moved stays on its old node for a while, with the indexes of all."""
    people = large[0]
    ran(fabric, people)
    ((host, port),) = distributed.execute(
        f"SELECT nodename, nodeport FROM pg_dist_node WHERE groupid <> 0 AND nodeport <> {distributed.last.port} LIMIT 1"
    )
    asyncio.run(moving.move(Address.parse(distributed.coordinator, None), people.tenant_id, f"{host}:{port}"))
    analyse(distributed)
    found = [row for rows in list(indexes(distributed, people).values())[1:] for row in rows if row[2]]
    assert found and {(*row[:2], row[3]) for row in found} == {(*WHOLE, 0)}
    assert ran(fabric, people) == 0
    assert len(fabric.recall(people.run(), "the amber kettle in Oslo").records) > 0
