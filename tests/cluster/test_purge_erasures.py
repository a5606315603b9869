"""After a purge on a cluster nothing of an erased subject is left on any node, and no receipt says so before (ERA-3)."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from muniment import Fabric
from muniment.erasure import job as purge
from muniment.errors import PurgeIncomplete
from muniment.testing import People
from muniment.testing.database import MASTER_KEYS
from muniment.worker.due import Due
from muniment.worker.worker import run as run_job
from tests.cluster.databases import ClusterDatabase
from tests.cluster.test_purge_nodes import setting

SUBJECT = "customer:cus_77"
SECRET = "the violet giraffe sings at noon"
SEALED = (("captures", "content"), ("candidates", "content"), ("subjects", "wrapped_key"))
# Files of the log and of this database that hold one of these byte strings.
FOUND = """
SELECT f.name FROM (
  SELECT 'pg_wal/' || name AS name FROM pg_ls_waldir()
  UNION ALL SELECT folder.name || '/' || file FROM (SELECT 'base/' || oid AS name FROM pg_database
    WHERE datname = current_database()) folder, pg_ls_dir(folder.name) file WHERE file ~ '^[0-9]+$') f,
  LATERAL (SELECT pg_read_binary_file(f.name, 0, 100000000, true) AS bytes) r
WHERE EXISTS (SELECT FROM unnest(%s::bytea[]) needle WHERE position(needle IN r.bytes) > 0)
"""


def left_on(place: str, wanted: list[bytes]) -> list[str]:
    with psycopg.connect(place, autocommit=True) as connection:
        connection.execute("CHECKPOINT")
        return [str(row[0]) for row in connection.execute(FOUND, [wanted]).fetchall()]


def sealed(cluster: ClusterDatabase, tenant: str) -> list[bytes]:
    """What is sealed of the subject, and its wrapped key, read by the superuser."""
    found: list[bytes] = []
    with psycopg.connect(cluster.coordinator) as connection:
        for table, column in SEALED:
            statement = f"SELECT {column} FROM muniment.{table} WHERE tenant_id = %s AND holder = %s"
            rows = connection.execute(statement.encode(), [tenant, SUBJECT]).fetchall()
            found += [bytes(row[0])[:48] for row in rows if row[0]]
    return found


@pytest.fixture
def fabric(distributed: ClusterDatabase) -> Iterator[Fabric]:
    with Fabric.open(distributed.owner, master_keys=MASTER_KEYS) as opened:
        yield opened


def erased(fabric: Fabric, distributed: ClusterDatabase, people: People) -> list[bytes]:
    """Something of a subject is remembered and erased; the bytes that it left."""
    fabric.capture(people.run(None), kind="statement", text=SECRET, subject=SUBJECT, classification="INTERNAL")
    fabric.consolidate(people.tenant_id)
    before = sealed(distributed, people.tenant_id)
    assert len(before) == 3
    fabric.erase(people.officer, subject=SUBJECT)
    return before


@pytest.mark.rule("SCL-6", "ERA-3", "SCL-2")
def test_an_erasure_is_purged_on_every_node_and_waits_while_one_keeps_its_log(
    fabric: Fabric, distributed: ClusterDatabase
) -> None:
    opened: Any = fabric._fabric._opened
    everybody = [People(tenants[0]) for tenants in distributed.tenants(1)]
    before = [one for people in everybody for one in erased(fabric, distributed, people)]
    assert all(left_on(place, before) for place in distributed.workers), "they are there to be found"
    with setting(distributed, distributed.workers[0], "wal_recycle = on"):
        for people in everybody:
            fabric._portal.call(run_job, opened, Due(people.tenant_id, "purge"))
            (waits,) = fabric.erasures(people.auditor)
            assert waits.purged_at is None
            assert waits.purge_waits is not None
            assert "node " in waits.purge_waits and "wal_recycle is on" in waits.purge_waits
    for people in everybody:
        fabric._portal.call(purge.run, opened, people.tenant_id)
        (done,) = fabric.erasures(people.auditor)
        assert done.purged_at is not None
    assert [left_on(place, before) for place in (distributed.coordinator, *distributed.workers)] == [[], [], []]


@pytest.mark.rule("SCL-6", "SCL-3", "ERA-3")
def test_a_node_that_is_away_keeps_the_receipts_of_all_tenants_open(
    fabric: Fabric, distributed: ClusterDatabase
) -> None:
    opened: Any = fabric._fabric._opened
    _, (_, near) = distributed.tenants(2)
    people = People(near)
    erased(fabric, distributed, people)
    distributed.last.cut()
    with pytest.raises(PurgeIncomplete, match="does not answer, or refuses the owner's login"):
        fabric._portal.call(purge.run, opened, people.tenant_id)
    assert fabric.erasures(people.auditor)[0].purged_at is None
    distributed.last.restore()
    fabric._portal.call(purge.run, opened, people.tenant_id)
    assert fabric.erasures(people.auditor)[0].purged_at is not None


@pytest.mark.rule("SCL-1", "ERA-1")
def test_however_often_a_session_erases_it_goes_to_the_tenant_s_shard_alone(
    fabric: Fabric, distributed: ClusterDatabase
) -> None:
    """After five calls a session plans the statements of a function once, for all tenants."""
    people = People(distributed.tenants(3)[1][2])
    for n in range(9):
        said = {"kind": "statement", "text": f"Parcel {n} is late.", "classification": "INTERNAL"}
        fabric.capture(people.run(None), **said, subject=f"customer:cus_{n}")
    fabric.consolidate(people.tenant_id)
    for n in range(9):
        assert fabric.erase(people.officer, subject=f"customer:cus_{n}").rows["captures"] == 1
