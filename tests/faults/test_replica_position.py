"""How a standby's position is told from the primary's log: by this process's samples, and by no clock but its own."""

from collections.abc import Iterator
from pathlib import Path

import anyio
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from muniment import Fabric
from muniment.database import replica
from muniment.database.address import Address
from muniment.database.replica import ReplicaSettings
from muniment.database.storage import Storage
from muniment.errors import StorageUnavailable
from muniment.opening import replica_state
from muniment.testing import People
from muniment.testing.database import MASTER_KEYS
from tests.faults.replicas import READS, SETTINGS, Servers, history, opened, primary_and_standby, read
from tests.faults.servers import eventually, follower_of, kill_server, value

# What comes first in a page of the log: 40 bytes in the first of a segment, 24 in another.
SEGMENT, PAGE = 16 * 1024 * 1024, 8192
INSERTED = "SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint"


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    with primary_and_standby(tmp_path_factory.mktemp("replica")) as found:
        yield found


def inserted(connection: "psycopg.Connection[tuple[int]]") -> int:
    row = connection.execute(INSERTED.encode()).fetchone()
    assert row is not None
    return row[0]


def test_a_caller_finds_its_recall_although_the_primary_has_not_flushed_it(servers: Servers, tenant: str) -> None:
    people = People(tenant)
    with opened(servers) as fabric:
        history(fabric, people)
        # Recalls are committed asynchronously: from here on nothing flushes them.
        servers.on_primary("ALTER SYSTEM SET wal_writer_delay = '10s'", "SELECT pg_reload_conf()")
        eventually(lambda: value(servers.primary, "SHOW wal_writer_delay") == "10s")
        try:
            servers.caught_up()
            unflushed = waited = 0
            for _ in range(5):
                recall_id = fabric.recall(people.run()).recall_id
                flushed = "SELECT pg_current_wal_insert_lsn() - pg_current_wal_flush_lsn()"
                unflushed += int(str(value(servers.primary, flushed))) > 0
                found, where = read(READS["recalls.list"], fabric, people)
                assert recall_id in {one.recall_id for one in found}
                waited += where.why == "behind"
            assert unflushed, "every recall was flushed at once"
            assert waited, "the standby was asked, and had not got what was written"
        finally:
            servers.on_primary("ALTER SYSTEM RESET wal_writer_delay", "SELECT pg_reload_conf()")


@pytest.mark.parametrize("header", [40, 24])
def test_an_idle_standby_has_caught_up_where_the_primarys_log_ends_with_a_page(
    servers: Servers, tenant: str, header: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replica, "CATCH_UP_SECONDS", 2.0)
    people = People(tenant)
    with opened(servers) as fabric:
        history(fabric, people)
        servers.caught_up()
        with psycopg.connect(servers.primary, autocommit=True) as connection:
            for _ in range(40):
                if header == 40:
                    connection.execute("SELECT pg_switch_wal()")
                else:
                    _fill_page(connection)
                position = inserted(connection)
                if position % (SEGMENT if header == 40 else PAGE) != header:
                    continue
                _, where = read(READS["events"], fabric, people)
                # Else something was written meanwhile, and the log ends elsewhere.
                if inserted(connection) == position:
                    break
            else:
                pytest.fail("the log never ended with a page for long enough")
            assert where.source == "standby"


def _fill_page(connection: "psycopg.Connection[tuple[int]]") -> None:
    """Write one record that ends where the page does."""
    emit = b"SELECT pg_logical_emit_message(false, 'm', repeat('x', %s), true)"
    connection.execute("SELECT pg_switch_wal()")
    connection.execute(emit, [1000])
    before = inserted(connection)
    connection.execute(emit, [1000])
    overhead = inserted(connection) - before - 1000
    connection.execute(emit, [PAGE - inserted(connection) % PAGE - overhead])


def test_what_the_standby_says_of_time_does_not_count(
    servers: Servers, tenant: str, caplog: pytest.LogCaptureFixture
) -> None:
    people = People(tenant)
    with opened(servers) as fabric:
        history(fabric, people)
        servers.caught_up()
        with servers.paused():
            fabric.capture(people.service, kind="message", text="hello", classification="INTERNAL")
            # It has replayed a commit of a moment ago, and no position that this program knows of.
            with opened(servers) as another:
                assert "leads to a standby that is too far behind" in caplog.text
                _, where = read(READS["events"], another, people)
                assert (where.source, where.why) == ("primary", "lag")
                servers.on_standby("SELECT pg_wal_replay_resume()")
                servers.caught_up()
                assert read(READS["events"], another, people)[1].source == "standby"


def test_a_write_that_was_noted_long_ago_is_still_waited_for(
    servers: Servers, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replica, "_TENANTS_NOTED", 1)
    people, others = People(tenant), People(f"{tenant}_other")
    with opened(servers) as fabric:
        history(fabric, people)
        servers.caught_up()
        assert read(READS["events"], fabric, people)[1].source == "standby"
        with servers.paused():
            for one in (people, others):
                fabric.capture(one.service, kind="message", text="hello", classification="INTERNAL")
            for one in (people, others):
                _, where = read(READS["events"], fabric, one)
                assert (where.source, where.why) == ("primary", "behind")


def test_right_after_a_failover_a_program_starts_and_reads_the_standby_once_it_knows_the_new_timeline(
    tenant: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    people = People(tenant)
    with (
        primary_and_standby(tmp_path) as pair,
        follower_of(pair.standby, tmp_path / "third", *SETTINGS) as third,
    ):
        with opened(pair) as fabric:
            history(fabric, people)
        pair.caught_up()
        kill_server(tmp_path / "primary")
        with psycopg.connect(pair.standby, autocommit=True) as connection:
            connection.execute("SELECT pg_promote()")
        alone = make_conninfo(host=conninfo_to_dict(pair.standby)["host"], user="muniment_owner", dbname="muniment")
        with Fabric.open(alone, master_keys=MASTER_KEYS, replica_url=third) as fabric:
            _, where = read(READS["events"], fabric, people)
            assert (where.source, where.why) == ("primary", "timeline")
            assert "does not follow this primary yet" in caplog.text
            settings, address = ReplicaSettings(third), Address.parse(alone, MASTER_KEYS.login_secret())
            state = anyio.run(replica_state, settings, address)
            assert state.words.startswith("not read: leads to a standby that does not follow this primary yet")
            for place in (pair.standby, third):
                with psycopg.connect(place, autocommit=True) as connection:
                    connection.execute("CHECKPOINT")
                reached = value(pair.standby, "SELECT pg_current_wal_flush_lsn()::text")
                eventually(lambda at=reached: value(third, f"SELECT pg_last_wal_replay_lsn() >= '{at}'::pg_lsn"))
            eventually(lambda: read(READS["events"], fabric, people)[1].source == "standby")


@pytest.mark.rule("ERR-3")
def test_a_primary_that_is_away_does_not_count_as_the_standby_being_away(tenant: str, tmp_path: Path) -> None:
    people = People(tenant)
    with primary_and_standby(tmp_path) as pair, opened(pair) as fabric:
        history(fabric, people)
        eventually(lambda: read(READS["metrics"], fabric, people)[1].source == "standby")
        found = fabric._fabric._context.storage.replica
        assert found is not None
        kill_server(tmp_path / "primary")
        for name in ("metrics", "verify"):
            with pytest.raises(StorageUnavailable):
                READS[name](fabric, people)
        assert found.reads["away"] == 0
        assert read(READS["events"], fabric, people)[1].source == "standby"


def test_what_cannot_be_closed_leaves_nothing_else_open(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        address = Address.parse(make_conninfo(servers.primary, user="muniment_owner"), MASTER_KEYS.login_secret())
        storage = Storage(address, replica=ReplicaSettings(servers.standby))
        await storage.answers()

        async def fails() -> None:
            raise OSError

        monkeypatch.setattr(storage.replica, "close", fails)
        pools = list(storage._pools.values())
        assert pools and all(one.is_open for one in pools)
        with pytest.raises(OSError):
            await storage.close()
        assert not any(one.is_open for one in pools)

    anyio.run(story)
