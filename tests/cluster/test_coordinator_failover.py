"""A standby takes the place of the coordinator, as docs/how-to/scale-out.md says, and open processes find it (SCL-4)."""

import time

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from muniment import Fabric
from muniment.errors import MunimentError
from muniment.opening import OWNER
from muniment.testing import People
from muniment.testing.database import MASTER_KEYS
from tests.cluster.databases import cluster_database, wait_until_nodes_know
from tests.cluster.node_copies import copy_of
from tests.cluster.proxies import proxy
from tests.faults.servers import eventually, value
from tests.stories import promoted, run_job, values

# SCL-4: an open process serves again within this time.
SERVES_AGAIN_WITHIN = 10.0


def _serves(fabric: Fabric, people: People) -> bool:
    try:
        fabric.recall(people.run())
    except MunimentError:
        return False
    return True


@pytest.mark.rule("SCL-4", "SCL-5", "AUD-2")
def test_a_standby_of_the_coordinator_takes_over_and_nothing_acknowledged_is_lost() -> None:
    with cluster_database(distributed=True) as cluster, copy_of(cluster.coordinator) as made:
        (far,), (near,) = cluster.tenants(1)
        everybody = People(far), People(near)
        here = conninfo_to_dict(cluster.coordinator)
        made.copy("-R", "-X", "stream")
        with (
            proxy((str(here["host"]), int(str(here.get("port", 5432))))) as coordinator,
            # The coordinator of the other tests keeps its part of their commits.
            made.serving("citus.recover_2pc_interval=-1") as standby,
        ):
            port = str(conninfo_to_dict(standby)["port"])
            both = {"host": "127.0.0.1,127.0.0.1", "port": f"{coordinator.port},{port}"}
            with Fabric.open(make_conninfo(dbname=cluster.name, user=OWNER, **both), master_keys=MASTER_KEYS) as fabric:
                for people in everybody:
                    promoted(fabric, people)
                    run_job(fabric, "seal", people.tenant_id)
                heads = [fabric.chain_head(people.auditor) for people in everybody]
                written = value(cluster.coordinator, "SELECT pg_current_wal_insert_lsn()")
                eventually(lambda: value(standby, f"SELECT pg_last_wal_replay_lsn() >= '{written}'"))
                coordinator.cut()
                with psycopg.connect(standby, autocommit=True) as connection:
                    connection.execute("SELECT pg_promote()")
                    began = time.monotonic()
                    connection.execute(
                        "SELECT citus_update_node(nodeid, '127.0.0.1', %s::int, force => true) FROM pg_dist_node"
                        " WHERE groupid = 0",
                        [port],
                    )
                    for people in everybody:
                        eventually(lambda people=people: _serves(fabric, people))
                    assert time.monotonic() - began < SERVES_AGAIN_WITHIN
                    wait_until_nodes_know(connection)
                for people, head in zip(everybody, heads, strict=True):
                    assert values(fabric, people) == ["email"]
                    promoted(fabric, people, "de", predicate="prefers_language")
                    run_job(fabric, "seal", people.tenant_id)
                    assert set(values(fabric, people)) == {"email", "de"}
                    assert fabric.verify(people.auditor, head=head).ok
