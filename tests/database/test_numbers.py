"""Numbers belong to the server that gave them: after a restore or a failover none of before can be used again (SCL-5)."""

import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, LiteralString

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from muniment import Fabric
from muniment.database import embedded, postmaster
from muniment.opening import DATABASE
from muniment.testing import People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.database.test_backup import program
from tests.security.catalogue import Connection
from tests.stories import promoted, texts

ACME = People("acme")
# Of the transaction alone, without the server's mark.
_LOW = 2**40 - 1


def row(connection: Connection, statement: LiteralString, *given: Any) -> Any:
    return connection.execute(statement, given or None).fetchone()


def burn(connection: Connection, upto: int) -> None:
    """Use up transaction ids, one by one, until the next is that one."""
    current = int(row(connection, "SELECT pg_current_xact_id()::text")[0])
    assert current < upto, "the server is past it already"
    while current < upto - 1:
        current = int(row(connection, "SELECT pg_current_xact_id()::text")[0])


@contextmanager
def writing(conninfo: str) -> Generator[Connection]:
    place = make_conninfo(
        conninfo,
        dbname=DATABASE,
        user="muniment_writer",
        options="-c search_path=muniment,public -c muniment.tenant=acme",
    )
    with psycopg.connect(place, autocommit=True) as connection:
        yield connection


@pytest.fixture
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.mark.rule("SCL-5", "AUD-1")
def test_after_a_restore_on_a_fresh_server_no_old_number_can_be_used_though_its_transaction_comes_again(
    tmp_path: Path, home: Path
) -> None:
    with TestServer(home / "first") as first:
        with first.connect("postgres") as busy:
            burn(busy, int(row(busy, "SELECT pg_current_xact_id()::text")[0]) + 1500)
        with Fabric.open(first.url(DATABASE), master_keys=MASTER_KEYS) as fabric:
            promoted(fabric, ACME, "email")
        with first.connect(DATABASE) as owner:
            old = row(owner, "SELECT seq, at, txid::text, actor, body FROM events ORDER BY seq DESC LIMIT 1")
        subprocess.run(
            [program("pg_dump"), "-Fc", "-f", tmp_path / "dump", make_conninfo(first.conninfo, dbname=DATABASE)],
            check=True,
        )
    again = int(old[2]) & _LOW
    with TestServer(home / "second") as second:
        with second.connect("postgres") as owner:
            owner.execute(f"DROP DATABASE {DATABASE}")
            owner.execute(f"CREATE DATABASE {DATABASE} OWNER muniment_owner")
        subprocess.run(
            [program("pg_restore"), "-1", "-d", make_conninfo(second.conninfo, dbname=DATABASE), tmp_path / "dump"],
            check=True,
        )
        with writing(second.conninfo) as writer:
            burn(writer, again)
            forged = "INSERT INTO events (tenant_id, seq, n, event_id, type, at, actor, body, txid)"
            with writer.transaction(force_rollback=True):
                assert int(row(writer, "SELECT pg_current_xact_id()::text")[0]) == again, "it came round again"
                assert row(writer, "SELECT count(*) FROM ticks WHERE txid = %s::xid8", old[2]) == (1,)
                with pytest.raises(psycopg.errors.InsufficientPrivilege), writer.transaction():
                    writer.execute(
                        f"{forged} VALUES ('acme', %s, 99, 'evt_forged', 'memory.note', %s, 'eve', '{{}}', %s::xid8)",
                        old[:3],
                    )
                with pytest.raises(psycopg.errors.ForeignKeyViolation), writer.transaction():
                    writer.execute(
                        f"{forged} VALUES ('acme', %s, 99, 'evt_forged', 'memory.note', %s, 'eve', '{{}}', transaction_mark())",
                        old[:2],
                    )
        # What goes on goes on.
        with Fabric.open(second.url(DATABASE), master_keys=MASTER_KEYS) as fabric:
            promoted(fabric, ACME, "post", predicate="second_channel")
            assert len(texts(fabric, ACME.run())) == 2
            fabric.seal(ACME.tenant_id)
            assert fabric.verify(ACME.auditor).ok


@pytest.mark.rule("SCL-5", "SCL-4")
def test_after_a_failover_the_timeline_makes_it_another_server_and_work_goes_on(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The data is recovered from its log, as by a standby that takes over."""
    # An embedded server keeps no log to follow it by.
    followed = tuple(one for one in postmaster._TUNING if not one.startswith(("wal_level", "max_wal_senders")))
    monkeypatch.setattr(postmaster, "_TUNING", followed)
    with TestServer(home / "first", durable=True) as first:
        with Fabric.open(first.url(DATABASE), master_keys=MASTER_KEYS) as fabric:
            promoted(fabric, ACME, "email")
        with first.connect(DATABASE) as owner:
            before = row(owner, "SELECT server_mark(), (SELECT system_identifier FROM pg_control_system())")
            old = row(owner, "SELECT seq, at, txid::text FROM ticks ORDER BY seq DESC LIMIT 1")
    data = home / "first" / "data"
    (data / "recovery.signal").touch()
    with (data / "postgresql.auto.conf").open("a") as settings:
        settings.write("restore_command = 'false'\nhot_standby = off\n")
    with embedded.acquire(home / "first") as standby:
        place = make_conninfo(standby.conninfo, dbname=DATABASE, options="-c search_path=muniment,public")
        with psycopg.connect(place, autocommit=True) as owner:
            after = row(owner, "SELECT server_mark(), (SELECT system_identifier FROM pg_control_system())")
            assert row(owner, "SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8)") == ("00000002",)
        assert after[1] == before[1] and after[0] != before[0]
        with writing(standby.conninfo) as writer, pytest.raises(psycopg.errors.InsufficientPrivilege):
            writer.execute(
                "INSERT INTO events (tenant_id, seq, n, event_id, type, at, actor, body, txid)"
                " VALUES ('acme', %s, 99, 'evt_forged', 'memory.note', %s, 'eve', '{}', %s::xid8)",
                old,
            )
        owner_place = make_conninfo(standby.conninfo, dbname=DATABASE, user="muniment_owner")
        with Fabric.open(owner_place, master_keys=MASTER_KEYS) as fabric:
            promoted(fabric, ACME, "post", predicate="second_channel")
            assert len(texts(fabric, ACME.run())) == 2
            assert fabric.verify(ACME.auditor).ok


@pytest.mark.rule("SCL-5")
def test_whatever_belongs_to_a_transaction_belongs_to_that_of_this_server(server: TestServer, database: str) -> None:
    with server.connect(database) as owner:
        policies = owner.execute(
            "SELECT tablename, policyname FROM pg_policies WHERE schemaname = 'muniment'"
            " AND coalesce(qual, '') || coalesce(with_check, '') LIKE '%%pg_current_xact_id%%'"
        ).fetchall()
        functions = owner.execute(
            "SELECT proname FROM pg_proc WHERE pronamespace = 'muniment'::regnamespace"
            " AND prosrc LIKE '%%pg_current_xact_id%%'"
        ).fetchall()
        bound = row(
            owner,
            "SELECT count(*) FROM pg_policies WHERE schemaname = 'muniment' AND with_check LIKE '%%transaction_mark()%%'",
        )
        marked = row(owner, "SELECT count(*) FROM ticks WHERE (txid::text::bigint >> 40) = 0")
    assert policies == [] and functions == []
    assert bound[0] >= 17 and marked == (0,)
