"""A standby takes the place of a node: numbers go on, and a purge clears the standby's log too (SCL-5, SCL-6)."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from muniment import Fabric
from muniment.erasure import job as purge
from muniment.erasure import purge as purging
from muniment.errors import MunimentError, PurgeIncomplete
from muniment.testing import People
from muniment.testing.database import MASTER_KEYS
from tests.cluster.databases import ClusterDatabase, cluster_database
from tests.cluster.standbys import Standby, standby_of_last
from tests.cluster.test_purge_erasures import erased, left_on
from tests.cluster.test_purge_nodes import setting
from tests.faults.forging import assert_refuses_earlier_numbers
from tests.faults.servers import eventually, value
from tests.stories import promoted, run_job, values


@pytest.fixture(scope="module")
def distributed() -> Iterator[ClusterDatabase]:
    """A cluster of the module's own, whose last node is another server at the end."""
    with cluster_database(distributed=True) as made:
        yield made


@pytest.fixture(scope="module")
def standby(distributed: ClusterDatabase) -> Iterator[Standby]:
    with standby_of_last(distributed) as made:
        yield made


@pytest.fixture(scope="module")
def fabric(distributed: ClusterDatabase) -> Iterator[Fabric]:
    with Fabric.open(distributed.owner, master_keys=MASTER_KEYS) as opened:
        yield opened


@pytest.fixture(scope="module")
def far(distributed: ClusterDatabase) -> People:
    return People(distributed.tenants(1)[0][0])


def purged(fabric: Fabric, people: People) -> None:
    opened: Any = fabric._fabric._opened
    fabric._portal.call(purge.run, opened, people.tenant_id)


def open_receipts(fabric: Fabric, people: People) -> int:
    return sum(one.purged_at is None for one in fabric.erasures(people.auditor))


@pytest.mark.rule("SCL-6", "ERA-3")
def test_a_purge_clears_the_log_of_a_node_s_standby_and_says_nothing_before(
    fabric: Fabric, distributed: ClusterDatabase, standby: Standby, far: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(purging, "TRIES", 5)
    before = erased(fabric, distributed, far)
    standby.wait_for_all()
    assert left_on(standby.place, before)
    with pytest.raises(PurgeIncomplete, match="1 standbys follow the primary, or another standby, that"):
        purged(fabric, far)
    standby.register()
    with psycopg.connect(standby.place, autocommit=True) as connection:
        connection.execute("SELECT pg_wal_replay_pause()")
        eventually(lambda: value(standby.place, "SELECT pg_get_wal_replay_pause_state()") == "paused")
        try:
            with pytest.raises(PurgeIncomplete, match="a standby has not taken over the purge yet"):
                purged(fabric, far)
        finally:
            connection.execute("SELECT pg_wal_replay_resume()")
    assert open_receipts(fabric, far) == 1
    monkeypatch.setattr(purging, "TRIES", 50)
    purged(fabric, far)
    assert open_receipts(fabric, far) == 0
    places = (distributed.coordinator, *distributed.workers, standby.place)
    assert [left_on(place, before) for place in places] == [[], [], [], []]


@pytest.mark.rule("SCL-5", "SCL-6", "SCL-3", "AUD-1")
def test_after_a_node_s_failover_numbers_go_on_and_a_receipt_is_issued_for_the_new_server_alone(
    fabric: Fabric, distributed: ClusterDatabase, standby: Standby, far: People
) -> None:
    standby.register()  # Once more changes nothing.
    promoted(fabric, far)
    run_job(fabric, "seal", far.tenant_id)
    before = erased(fabric, distributed, far)
    last = max(one.seq for one in fabric.events(far.auditor, limit=1000))
    mark = value(distributed.workers[-1], "SELECT muniment.server_mark()")
    standby.take_over()
    assert value(standby.place, "SELECT muniment.server_mark()") != mark
    tried = assert_refuses_earlier_numbers(standby.place, far.tenant_id, shards=True)
    tables = {name.rstrip("0123456789").rstrip("_") for name in tried}
    assert tables >= {"ticks", "events", "verdicts", "memories", "erasures"}
    eventually(lambda: _is_served(fabric, far))
    first = fabric.capture(far.run(), kind="statement", text="The depot is closed.", classification="INTERNAL")
    assert first.seq == last + 1
    promoted(fabric, far, "de", predicate="prefers_language")
    assert set(values(fabric, far)) == {"email", "de"}
    run_job(fabric, "seal", far.tenant_id)
    assert fabric.verify(far.auditor).ok
    fabric.consolidate(far.tenant_id)
    with (
        setting(distributed, standby.place, "wal_recycle = on"),
        pytest.raises(PurgeIncomplete, match=f"node 127.0.0.1:{standby.port}: wal_recycle is on"),
    ):
        purged(fabric, far)
    assert open_receipts(fabric, far) == 1
    eventually(lambda: value(standby.place, "SHOW wal_recycle") == "off")
    purged(fabric, far)
    assert open_receipts(fabric, far) == 0
    assert left_on(standby.place, before) == []


def _is_served(fabric: Fabric, people: People) -> bool:
    try:
        fabric.recall(people.run())
    except MunimentError:
        return False
    return True
