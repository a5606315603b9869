"""A whole cluster comes back from copies of its nodes and their logs, as docs/how-to/scale-out.md says (SCL-5)."""

import contextlib
from collections.abc import Generator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from muniment import Fabric
from muniment.opening import OWNER
from muniment.testing import FakeClock, People
from muniment.testing.database import MASTER_KEYS
from tests.cluster.databases import ClusterDatabase, wait_until_nodes_know
from tests.cluster.node_copies import NodeCopy, copy_of
from tests.faults.servers import eventually, value
from tests.stories import promoted, run_job, values

POINT = "before the accident"


def _opened(owner: str) -> Fabric:
    return Fabric.open(owner, clock=FakeClock(), master_keys=MASTER_KEYS)


def _remembered(fabric: Fabric, people: People, value: str, **fields: str) -> None:
    promoted(fabric, people, value, **fields)
    run_job(fabric, "seal", people.tenant_id)


def _received(node: str, archive: Path) -> None:
    """Wait until the archive has the node's log up to now."""
    with psycopg.connect(node, autocommit=True) as connection:
        row = connection.execute("SELECT pg_walfile_name(pg_switch_wal())").fetchone()
    assert row is not None
    eventually(lambda: (archive / str(row[0])).exists())


@contextlib.contextmanager
def _recovered(copies: dict[str, tuple[NodeCopy, Path]]) -> Generator[dict[str, str]]:
    """Servers on the copies, each brought to the point; the new address of each node by its old one."""
    with contextlib.ExitStack() as running:
        places: dict[str, str] = {}
        for node, (copy, archive) in copies.items():
            copy.write("recovery.signal")
            places[node] = running.enter_context(
                copy.serving(
                    f"restore_command=cp {archive}/%f %p",
                    f"recovery_target_name={POINT}",
                    "recovery_target_action=promote",
                    # It still knows the nodes that it was copied from, which are running.
                    "citus.recover_2pc_interval=-1",
                )
            )
        for place in places.values():
            eventually(lambda place=place: value(place, "SELECT pg_is_in_recovery()") is False)
        yield places


def _correct_addresses(distributed: ClusterDatabase, places: dict[str, str]) -> None:
    """Tell the recovered coordinator where its nodes are now."""
    known = dict.fromkeys(places, 0)
    for node in places:
        known[node] = int(str(conninfo_to_dict(node)["port"]))
    known[distributed.workers[-1]] = distributed.last.port
    with psycopg.connect(places[distributed.coordinator], autocommit=True) as connection:
        for node, place in places.items():
            connection.execute(
                "SELECT citus_update_node(nodeid, '127.0.0.1', %s::int) FROM pg_dist_node WHERE nodeport = %s",
                [conninfo_to_dict(place)["port"], known[node]],
            )
        wait_until_nodes_know(connection)


@pytest.mark.rule("SCL-5", "ERA-3", "AUD-2")
def test_a_whole_cluster_is_recovered_to_a_restore_point_and_goes_on_from_there(distributed: ClusterDatabase) -> None:
    (far_name,), (near_name,) = distributed.tenants(1)
    everybody = far, near = People(far_name), People(near_name)
    with contextlib.ExitStack() as kept:
        copies: dict[str, tuple[NodeCopy, Path]] = {}
        for node in (distributed.coordinator, *distributed.workers):
            copy = kept.enter_context(copy_of(node))
            archive = kept.enter_context(copy.receiving())
            copy.copy("-X", "none")
            copies[node] = copy, archive
        with _opened(distributed.owner) as fabric:
            for people in everybody:
                _remembered(fabric, people, "email")
            heads = [fabric.chain_head(people.auditor) for people in everybody]
            distributed.execute(f"SELECT citus_create_restore_point('{POINT}')")
            fabric.erase(near.officer, user_id="cust_1")
            _remembered(fabric, far, "de", predicate="prefers_language")
            assert len(fabric.erasures(near.auditor)) == 1
            later = fabric.chain_head(far.auditor)
        for node, (_, archive) in copies.items():
            _received(node, archive)

        with _recovered(copies) as places:
            _correct_addresses(distributed, places)
            with _opened(make_conninfo(places[distributed.coordinator], user=OWNER)) as fabric:
                for people, head in zip(everybody, heads, strict=True):
                    assert values(fabric, people) == ["email"]
                    assert fabric.verify(people.auditor, head=head).ok
                assert [one.kind for one in fabric.verify(far.auditor, head=later).breaks] == ["head_mismatch"]
                # What was erased after the point is erased again, and numbers go on.
                assert fabric.erasures(near.auditor) == []
                fabric.erase(near.officer, user_id="cust_1")
                run_job(fabric, "purge", near.tenant_id)
                assert values(fabric, near) == []
                assert [one.purged_at is not None for one in fabric.erasures(near.auditor)] == [True]
                for people, head in zip(everybody, heads, strict=True):
                    _remembered(fabric, people, "fax", predicate="later")
                    assert "fax" in values(fabric, people)
                    assert fabric.verify(people.auditor, head=head).ok
