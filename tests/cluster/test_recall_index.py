"""A recall that is ranked from the index in a process, on a cluster: one round trip, and nothing outdated (REC-8, TIR-5)."""

from collections.abc import Iterator

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from muniment import Fabric
from muniment.database.connection import Command, Connection, Reply
from muniment.testing import FakeClock, People
from muniment.testing.database import MASTER_KEYS
from tests.cluster.databases import ClusterDatabase
from tests.stories import promoted

QUESTION = "which channel is preferred?"


@pytest.fixture
def fabrics(distributed: ClusterDatabase) -> Iterator[tuple[Fabric, Fabric]]:
    """Two processes' worth, each with an index of its own."""
    with (
        Fabric.open(distributed.owner, clock=FakeClock(), master_keys=MASTER_KEYS) as one,
        Fabric.open(distributed.owner, clock=FakeClock(), master_keys=MASTER_KEYS) as other,
    ):
        yield one, other


def answered(fabric: Fabric, people: People) -> set[str]:
    return {record.id for record in fabric.recall(people.run(), QUESTION).records}


def recorded(cluster: ClusterDatabase, people: People) -> int:
    ((count,),) = cluster.execute(f"SELECT count(*) FROM muniment.recalls WHERE tenant_id = '{people.tenant_id}'")
    return int(count)


@pytest.mark.rule("SCL-1", "REC-8")
def test_a_warm_recall_is_checked_and_recorded_in_one_round_trip_by_an_insert_without_a_query(
    distributed: ClusterDatabase, fabrics: tuple[Fabric, Fabric], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row that is inserted by a query is planned once for each shard: a long query would grow with their number."""
    people, (fabric, _) = People("tenant_1"), fabrics
    memory_id = promoted(fabric, people)
    assert answered(fabric, people) == {memory_id}
    before, trips = recorded(distributed, people), list[list[str]]()
    exchange = Connection.exchange

    async def watched(self: Connection, commands: list[Command]) -> list[Reply]:
        trips.append([statement.name for statement, _ in commands])
        return await exchange(self, commands)

    monkeypatch.setattr(Connection, "exchange", watched)
    assert answered(fabric, people) == {memory_id}
    (names,) = trips
    assert names[-4:] == ["scopes.require", "recall.bodies", "recall.record_by_values", "commit"]
    assert recorded(distributed, people) == before + 1


@pytest.mark.rule("TIR-5", "REC-8")
def test_an_answer_that_another_process_made_wrong_is_neither_given_nor_recorded(
    distributed: ClusterDatabase, fabrics: tuple[Fabric, Fabric]
) -> None:
    people, (fabric, other) = People("tenant_2"), fabrics
    first = promoted(fabric, people)
    assert answered(fabric, people) == {first}
    other.retract(people.reviewer, first, reason="wrong")
    second = promoted(other, people, "post", predicate="prefers_paper")
    before = recorded(distributed, people)
    assert answered(fabric, people) == {second}
    assert recorded(distributed, people) == before + 1


@pytest.mark.rule("SCL-1")
def test_tenants_of_other_shards_are_served_while_a_shard_is_moved(
    distributed: ClusterDatabase, fabrics: tuple[Fabric, Fabric]
) -> None:
    """Citus locks all shards of a table for a row that is inserted by a query, and a move holds one of these locks."""
    far, near = (names[-1] for names in distributed.tenants(6))
    fabric, _ = fabrics
    memory_id = promoted(fabric, People(near))
    assert answered(fabric, People(near)) == {memory_id}
    place = int(conninfo_to_dict(distributed.workers[0])["port"])
    with psycopg.connect(distributed.coordinator) as moving:
        moving.execute(
            "SELECT citus_move_shard_placement(get_shard_id_for_distribution_column('muniment.tenants', %s::text),"
            " '127.0.0.1', %s::int, '127.0.0.1', %s::int, shard_transfer_mode => 'block_writes')",
            [far, distributed.last.port, place],
        )
        # The move is not committed: what it locked is locked.
        assert answered(fabric, People(near)) == {memory_id}
        assert len(fabric.recall(People(near).run()).records) == 1
        fabric.capture(People(near).run(), kind="statement", text="The depot is open.", classification="INTERNAL")
        moving.rollback()
