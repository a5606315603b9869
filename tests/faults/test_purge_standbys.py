"""A purge gives no receipt while a server that has a copy is not cleared, wherever that server is (SCL-6, ERA-3)."""

from collections.abc import Awaitable, Iterator
from pathlib import Path

import anyio
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from muniment import Fabric
from muniment.database.cluster.nodes import Node
from muniment.erasure import purge
from muniment.erasure.purge_nodes import Servers as PurgedServers
from muniment.errors import PurgeIncomplete
from muniment.testing import People
from muniment.testing.database import MASTER_KEYS
from tests.faults.replicas import SETTINGS, Servers, primary_and_standby
from tests.faults.servers import eventually, follower_of, value
from tests.faults.test_purge_settings import in_log
from tests.faults.test_standby import erased, purged


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    with primary_and_standby(tmp_path_factory.mktemp("replica")) as found:
        yield found


def owner(*places: str) -> str:
    """The owner's address of one server or several."""
    hosts = ",".join(str(conninfo_to_dict(place)["host"]) for place in places)
    return make_conninfo(host=hosts, user="muniment_owner", dbname="muniment")


def awaited(step: Awaitable[None]) -> None:
    async def run() -> None:
        await step

    anyio.run(run)


def followed(place: str, count: int) -> None:
    eventually(lambda: value(place, "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'") == count)


@pytest.mark.rule("SCL-6", "ERA-3")
def test_no_receipt_while_the_standby_that_auditors_read_was_promoted(
    servers: Servers, tenant: str, tmp_path: Path
) -> None:
    people = People(tenant)
    with follower_of(servers.primary, tmp_path / "read", *SETTINGS) as read:
        followed(servers.primary, 2)
        with Fabric.open(owner(servers.primary), master_keys=MASTER_KEYS, replica_url=read) as fabric:
            erased(fabric, people, servers.primary)
            with psycopg.connect(read, autocommit=True) as connection:
                connection.execute("SELECT pg_promote()")
            # It has a copy of its own now, and knows nothing of the standby that the address does not name.
            with pytest.raises(PurgeIncomplete, match="the server that MUNIMENT_REPLICA_URL names is no standby"):
                purged(fabric, people)
            assert fabric.erasures(people.auditor)[0].purged_at is None
            # The slot that it does not use any more keeps the log for it.
            with pytest.raises(PurgeIncomplete, match=r"kept by the server, .* slots that nobody uses: standby_"):
                awaited(purge.clear_log(owner(servers.primary, servers.standby)))
            unused = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE NOT active"
            servers.on_primary(unused)
            # Where it took over as a host of the address it is the primary itself, and is cleared as such.
            awaited(purge.clear_log(owner(servers.primary, servers.standby), named=(owner(servers.primary),)))
        # As a host of the address it is a second primary.
        with pytest.raises(PurgeIncomplete, match="more than one is no standby of another"):
            awaited(purge.clear_log(owner(servers.primary, servers.standby, read)))


@pytest.mark.rule("SCL-6", "ERA-3")
def test_a_standby_of_a_standby_is_cleared_too_and_hides_no_other(servers: Servers, tmp_path: Path) -> None:
    with follower_of(servers.standby, tmp_path / "behind", *SETTINGS) as behind:
        followed(servers.standby, 1)
        place, behind = owner(servers.primary), owner(behind)
        with pytest.raises(PurgeIncomplete, match="1 standbys follow the primary, or another standby"):
            awaited(purge.clear_log(owner(servers.primary, servers.standby)))
        with pytest.raises(PurgeIncomplete, match="a standby follows a server that the address does not name"):
            awaited(purge.clear_log(place, named=(behind,)))
        with follower_of(servers.primary, tmp_path / "other", *SETTINGS):
            followed(servers.primary, 2)
            with pytest.raises(PurgeIncomplete, match="1 standbys follow the primary, or another standby"):
                awaited(purge.clear_log(owner(servers.primary, servers.standby), named=(behind,)))
        followed(servers.primary, 1)
        awaited(purge.clear_log(owner(servers.primary, servers.standby), named=(behind,)))


@pytest.mark.rule("SCL-6", "ERA-3")
def test_the_standby_that_auditors_read_does_not_count_as_one_of_a_node(servers: Servers, tmp_path: Path) -> None:
    with primary_and_standby(tmp_path) as node:
        followed(servers.primary, 1)
        host = str(conninfo_to_dict(node.primary)["host"])
        cluster = PurgedServers(owner(servers.primary), (Node(1, ((host, 5432),)),))
        with pytest.raises(PurgeIncomplete, match=f"node {host}:5432: 1 standbys follow the primary"):
            awaited(cluster.clear_logs((owner(servers.standby),)))


def later_with(secret: str, data: Path, servers: Servers, place: str) -> bool:
    """Whether a standby has renamed a segment with this for later use, after it took over another."""
    servers.on_primary("SELECT pg_switch_wal()", "CHECKPOINT")
    reached = value(servers.primary, "SELECT pg_current_wal_lsn()::text")
    eventually(lambda: value(place, f"SELECT pg_last_wal_replay_lsn() >= '{reached}'::pg_lsn"))
    with psycopg.connect(place, autocommit=True) as connection:
        connection.execute("CHECKPOINT")
    current = str(value(servers.primary, "SELECT pg_walfile_name(pg_current_wal_insert_lsn())"))
    return any(name > current for name in in_log(data, {secret.encode()}))


@pytest.mark.rule("SCL-6", "ERA-3")
def test_segments_that_a_standby_renamed_are_written_over(servers: Servers, tmp_path: Path) -> None:
    renames, secret = tmp_path / "renames", "the violet giraffe sings at noon"
    with follower_of(servers.primary, renames, "autovacuum=off", "max_wal_size=96MB", "min_wal_size=96MB") as place:
        followed(servers.primary, 2)
        everyone = owner(servers.primary, servers.standby, place)
        servers.on_primary(f"SELECT pg_logical_emit_message(true, 'muniment', '{secret}')")
        eventually(lambda: later_with(secret, renames / "data", servers, place))
        with pytest.raises(PurgeIncomplete, match="wal_recycle is on"):
            awaited(purge.clear_log(everyone))
        with psycopg.connect(place, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET wal_recycle = off")
            connection.execute("SELECT pg_reload_conf()")
        eventually(lambda: value(place, "SHOW wal_recycle") == "off")
        awaited(purge.clear_log(everyone))
        assert in_log(renames / "data", {secret.encode()}) == set()
