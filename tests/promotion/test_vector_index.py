"""The vector index of a large tenant: made, kept and dropped by its size, of its own vectors alone."""

import random
import time
from collections.abc import Iterator
from typing import Any

import anyio
import psycopg
import pytest

from muniment import Fabric
from muniment.database import vector_index
from muniment.database.address import Address
from muniment.database.statements import statement
from muniment.database.vector_index import index_name
from muniment.erasure import purge
from muniment.language.embedding import BUILTIN_EMBEDDER
from muniment.testing import FakeClock, People, TestServer
from tests.cluster.server import NODES
from tests.recall.test_large_scopes import opened, sentence, stated
from tests.security.catalogue import Connection
from tests.stories import run_job

pytestmark = pytest.mark.skipif(
    bool(NODES), reason="on a cluster the index is in shards: tests/cluster/test_vector_index.py"
)
STATE = """
SELECT c.relname, i.indisvalid, a.attstattarget, i.indrelid::regclass::text, pg_get_expr(i.indpred, i.indrelid)
FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = 1
WHERE c.relnamespace = 'muniment'::regnamespace AND c.relname LIKE 'memory_vectors_near%'
"""


@pytest.fixture
def owner(server: TestServer, fresh_database: str) -> Iterator[Connection]:
    with server.connect(fresh_database) as connection:
        yield connection


@pytest.fixture
def own(server: TestServer, fresh_database: str, clock: FakeClock) -> Iterator[Fabric]:
    """A fabric with a database of its own: an index waits for whatever transaction is open in its database."""
    with opened(server, fresh_database, clock) as fabric:
        yield fabric


@pytest.fixture(autouse=True)
def scaled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_index, "MADE_ABOVE", 20)
    monkeypatch.setattr(vector_index, "DROPPED_BELOW", 10)


def sentences(count: int, seed: int = 1) -> list[str]:
    chance = random.Random(seed)
    return [sentence(chance) for _ in range(count)]


def indexes(owner: Connection) -> dict[str, tuple[Any, ...]]:
    return {str(row[0]): row[1:] for row in owner.execute(STATE).fetchall()}


def samples(owner: Connection) -> list[tuple[object, ...]]:
    return owner.execute("SELECT tablename FROM pg_stats WHERE tablename LIKE 'memory_vectors_near%'").fetchall()


def ran(fabric: Fabric, people: People) -> int:
    return run_job(fabric, "embed", people.tenant_id).counts["indexes"]


@pytest.mark.rule("JOB-11")
def test_an_index_is_made_above_a_size_kept_down_to_another_and_dropped_below(
    own: Fabric, people: People, others: People, owner: Connection
) -> None:
    ids = stated(own, people, sentences(20))
    stated(own, others, sentences(5))
    assert (ran(own, people), indexes(owner)) == (0, {}), "twenty are compared exactly"
    ids += stated(own, people, sentences(2, seed=2))
    assert (ran(own, people), ran(own, others)) == (1, 0)
    ((name, (valid, statistics, table, predicate)),) = indexes(owner).items()
    assert (name, valid, statistics) == (index_name(people.tenant_id), True, 0)
    held = owner.execute(
        "SELECT DISTINCT tableoid::regclass::text FROM memory_vectors WHERE tenant_id = %s", [people.tenant_id]
    ).fetchall()
    assert [(table,)] == held, "it is on the tenant's partition"
    assert f"'{people.tenant_id}'" in predicate and BUILTIN_EMBEDDER in predicate
    assert ran(own, people) == 0, "it is there already"
    owner.execute("DELETE FROM memory_vectors WHERE memory_id = ANY (%s)", [ids[:12]])
    assert (ran(own, people), len(indexes(owner))) == (0, 1), "ten are not fewer than ten"
    owner.execute("DELETE FROM memory_vectors WHERE memory_id = ANY (%s)", [ids[:13]])
    assert (ran(own, people), indexes(owner)) == (1, {})
    assert ran(own, people) == 0


@pytest.mark.rule("JOB-11")
@pytest.mark.parametrize(
    "left",
    [
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = %s::regclass",
        "UPDATE pg_attribute SET attstattarget = NULL WHERE attrelid = %s::regclass",
    ],
)
def test_what_a_killed_build_left_is_dropped_and_made_again(
    own: Fabric, people: People, owner: Connection, left: str
) -> None:
    ids = stated(own, people, sentences(21))
    assert ran(own, people) == 1
    oid = owner.execute("SELECT %s::regclass::oid", [index_name(people.tenant_id)]).fetchone()
    owner.execute(left, [index_name(people.tenant_id)])
    owner.execute("DELETE FROM memory_vectors WHERE memory_id = ANY (%s)", [ids[:5]])
    assert ran(own, people) == 1, "sixteen are enough to keep one"
    assert indexes(owner)[index_name(people.tenant_id)][:2] == (True, 0)
    assert owner.execute("SELECT %s::regclass::oid", [index_name(people.tenant_id)]).fetchone() != oid
    owner.execute(left, [index_name(people.tenant_id)])
    owner.execute("DELETE FROM memory_vectors WHERE memory_id = ANY (%s)", [ids[:15]])
    assert (ran(own, people), indexes(owner)) == (1, {})


@pytest.mark.rule("JOB-11")
def test_a_build_that_is_cut_off_leaves_nothing_that_the_next_run_does_not_replace(
    own: Fabric, people: People, owner: Connection, server: TestServer, fresh_database: str
) -> None:
    stated(own, people, sentences(21))
    with server.connect(fresh_database) as writer, writer.transaction():
        # The build waits for whoever writes, and is given up meanwhile.
        writer.execute("LOCK TABLE memory_vectors IN ROW EXCLUSIVE MODE")

        async def cut_off() -> None:
            address = Address.parse(server.url(fresh_database), None)
            with anyio.move_on_after(0.5):
                await vector_index.take(address, people.tenant_id, "make")

        anyio.run(cut_off)
        assert indexes(owner)[index_name(people.tenant_id)][0] is False
        # A build that the server did not hear of in time would come to its end once the writer is done.
        end = (
            "SELECT pg_terminate_backend(l.pid) FROM pg_locks l JOIN pg_database d ON d.oid = l.database"
            " WHERE l.locktype = 'advisory' AND l.objid = %s AND d.datname = current_database()"
        )
        deadline = time.monotonic() + 60
        while owner.execute(end, [vector_index._LOCK]).fetchall():
            assert time.monotonic() < deadline, "the build goes on"
            time.sleep(0.05)
    assert ran(own, people) == 1
    assert indexes(owner)[index_name(people.tenant_id)][:2] == (True, 0)


@pytest.mark.rule("JOB-11")
def test_a_build_that_fails_says_why_and_the_next_run_begins_anew(
    own: Fabric, people: People, owner: Connection
) -> None:
    stated(own, people, sentences(21))
    owner.execute("SET session_replication_role = replica")
    owner.execute(
        "INSERT INTO memory_vectors VALUES (%s, 'pm_short', %s, '[1,2]')", [people.tenant_id, BUILTIN_EMBEDDER]
    )
    with pytest.raises(psycopg.errors.DataException):
        ran(own, people)
    assert indexes(owner)[index_name(people.tenant_id)][0] is False
    owner.execute("DELETE FROM memory_vectors WHERE memory_id = 'pm_short'")
    assert ran(own, people) == 1
    assert indexes(owner)[index_name(people.tenant_id)][:2] == (True, 0)


@pytest.mark.rule("ERA-3", "JOB-11")
def test_a_purge_rewrites_the_index_with_its_partition(
    own: Fabric, people: People, owner: Connection, server: TestServer, fresh_database: str
) -> None:
    stated(own, people, sentences(21))
    assert ran(own, people) == 1
    file = "SELECT pg_relation_filenode(%s::regclass)"
    before = owner.execute(file, [index_name(people.tenant_id)]).fetchone()
    anyio.run(purge.rewrite, Address.parse(server.url(fresh_database), None), people.tenant_id)
    assert owner.execute(file, [index_name(people.tenant_id)]).fetchone() != before
    assert indexes(owner)[index_name(people.tenant_id)][:2] == (True, 0)
    assert samples(owner) == []
    assert ran(own, people) == 0


@pytest.mark.rule("JOB-11")
def test_one_build_at_a_time_and_a_second_run_waits_for_its_turn(
    own: Fabric, people: People, owner: Connection
) -> None:
    stated(own, people, sentences(21))
    owner.execute("SELECT pg_advisory_lock(%s)", [vector_index._LOCK])
    assert (ran(own, people), indexes(owner)) == (0, {})
    owner.execute("SELECT pg_advisory_unlock(%s)", [vector_index._LOCK])
    assert ran(own, people) == 1


@pytest.mark.rule("JOB-11", "ERA-1")
def test_the_planner_keeps_no_samples_of_an_index(own: Fabric, people: People, owner: Connection) -> None:
    stated(own, people, sentences(21))
    assert ran(own, people) == 1
    owner.execute("ANALYZE")
    assert samples(owner) == []


@pytest.mark.rule("JOB-11", "ISO-1")
@pytest.mark.parametrize("tenant_id", ["it's", 'a"b', "'; DROP TABLE memories; --", "\\' %s {}", "x" * 200])
def test_any_tenant_id_is_quoted(server: TestServer, fresh_database: str, owner: Connection, tenant_id: str) -> None:
    address = Address.parse(server.url(fresh_database), None)
    assert anyio.run(vector_index.take, address, tenant_id, "make")
    assert anyio.run(vector_index.take, address, tenant_id, "make"), "nor is it an error to make it twice"
    ((name, (valid, _, _, predicate)),) = indexes(owner).items()
    assert (name, valid) == (index_name(tenant_id), True)
    row = owner.execute(
        f"SELECT {predicate.replace('%', '%%')} FROM (SELECT %s::text AS tenant_id, %s::text AS embedder) v",
        [tenant_id, BUILTIN_EMBEDDER],
    ).fetchone()
    assert row == (True,)
    assert anyio.run(vector_index.take, address, tenant_id, "drop")
    assert anyio.run(vector_index.take, address, tenant_id, "drop")
    assert indexes(owner) == {}


@pytest.mark.rule("REC-2", "JOB-11")
def test_the_planner_uses_the_index_of_the_tenant_and_no_other(
    own: Fabric, people: People, others: People, server: TestServer, fresh_database: str
) -> None:
    for who in (people, others):
        stated(own, who, sentences(21))
    assert ran(own, people) == 1
    with server.connect(fresh_database, "muniment_writer") as writer:
        # So few vectors would be sorted: here the index is the only way, where there is one.
        writer.execute("SET enable_sort = off")
        for who, used in ((people, True), (others, False)):
            writer.execute("SELECT set_config('muniment.tenant', %s, false)", [who.tenant_id])
            assert (index_name(people.tenant_id) in plan(writer, who)) == used


def plan(connection: Connection, people: People) -> str:
    """The plan of the search for neighbours, for these very values as its mark asks for."""
    search = statement("neighbours.near")
    assert not search.planned_once
    values: dict[str, Any] = {
        "tenant_id": people.tenant_id, "vector": str([1.0] * 256), "embedder": BUILTIN_EMBEDDER, "users": None,
        "on_key": False, "about": None, "own": ["customer"], "sensitive": [], "reach": 0.5, "count": 50, "seq": 10**9,
        "at": None, "now": "2027-01-01T00:00:00Z",
    }  # fmt: skip
    found = psycopg.RawCursor(connection).execute(f"EXPLAIN {search.sql}", search.arguments(values)).fetchall()
    return "\n".join(str(row[0]) for row in found)
