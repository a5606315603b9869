"""Migrations and logins, on databases of their own."""

import asyncio
from collections.abc import Iterator

import psycopg
import pytest

from muniment import Fabric
from muniment.database import migrate as migrating
from muniment.database.address import Address
from muniment.database.master import LocalMasterKeys
from muniment.database.migrate import gate_names, migrate, migrations, require_ready, status
from muniment.database.storage import TASKS
from muniment.errors import KeyUnavailable, SchemaMissing, SchemaNewer, StorageUnavailable
from muniment.testing import People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.database.databases import empty_database, migrate_to
from tests.stories import promoted, texts


@pytest.fixture
def empty(server: TestServer) -> Iterator[str]:
    with empty_database(server) as name:
        yield name


def schema(server: TestServer, database: str) -> list[tuple[object, ...]]:
    """Every column, constraint, index, policy and grant, who is held to the policies, and what the planner may sample."""
    with server.connect(database) as connection:
        return connection.execute(
            """SELECT 'column', attrelid::regclass::text, attname::text, format_type(atttypid, atttypmod) || attnotnull::text
                 FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid WHERE relnamespace = 'muniment'::regnamespace AND attnum > 0
               UNION ALL SELECT 'constraint', conrelid::regclass::text, conname::text, pg_get_constraintdef(oid)
                 FROM pg_constraint WHERE connamespace = 'muniment'::regnamespace
               UNION ALL SELECT 'index', tablename::text, indexname::text, indexdef FROM pg_indexes WHERE schemaname = 'muniment'
               UNION ALL SELECT 'policy', tablename::text, policyname::text, concat(permissive, roles, cmd, qual, with_check) FROM pg_policies WHERE schemaname = 'muniment'
               UNION ALL SELECT 'row security', relname::text, '', concat(relrowsecurity, relforcerowsecurity)
                 FROM pg_class WHERE relnamespace = 'muniment'::regnamespace AND relkind IN ('r', 'p')
               UNION ALL SELECT 'statistics', attrelid::regclass::text, attname::text, attstattarget::text
                 FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid WHERE relnamespace = 'muniment'::regnamespace AND attnum > 0
               UNION ALL SELECT 'grant', relname::text, '', relacl::text FROM pg_class WHERE relnamespace = 'muniment'::regnamespace
               ORDER BY 1, 2, 3, 4"""
        ).fetchall()


def test_migrating_applies_everything_once(server: TestServer, empty: str) -> None:
    address = Address.parse(server.url(empty), None)
    before = asyncio.run(status(address))
    assert (before.current, before.ready, len(before.pending)) == (0, False, len(migrations()))
    assert len(asyncio.run(migrate(address))) == len(migrations())
    assert asyncio.run(migrate(address)) == ()
    after = asyncio.run(status(address))
    assert after.ready and after.pending == () and after.changed == ()


def test_two_migrations_at_once_apply_everything_once(server: TestServer, empty: str) -> None:
    address = Address.parse(server.url(empty), None)

    async def both() -> list[tuple[str, ...]]:
        return list(await asyncio.gather(migrate(address), migrate(address)))

    assert sorted(len(done) for done in asyncio.run(both())) == [0, len(migrations())]


def test_a_database_migrated_step_by_step_equals_a_fresh_one(
    server: TestServer, empty: str, fresh_database: str
) -> None:
    for step in migrations():
        assert len(migrate_to(server, empty, step.version)) == 1
    assert schema(server, empty) == schema(server, fresh_database)
    assert len(schema(server, empty)) > 500


def test_a_newer_schema_is_refused_with_a_clear_message(server: TestServer, fresh_database: str) -> None:
    with server.connect(fresh_database) as owner:
        owner.execute("INSERT INTO schema_migrations (version, name, digest) VALUES (9000, 'from_the_future', '')")
    with pytest.raises(SchemaNewer, match=r"schema 9000.*upgrade muniment"):
        Fabric.open(server.url(fresh_database), master_keys=MASTER_KEYS)
    with pytest.raises(SchemaNewer):
        asyncio.run(migrate(Address.parse(server.url(fresh_database), None)))


def test_a_database_that_was_never_migrated_says_what_to_do(server: TestServer, empty: str) -> None:
    with pytest.raises(SchemaMissing, match="muniment db migrate"):
        Fabric.open(server.url(empty), master_keys=MASTER_KEYS)


def test_a_changed_migration_file_is_noticed(
    server: TestServer, fresh_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with server.connect(fresh_database) as owner:
        owner.execute("UPDATE schema_migrations SET digest = 'other' WHERE version = 2")
    assert asyncio.run(status(Address.parse(server.url(fresh_database), None))).changed == ("capture",)


@pytest.mark.rule("ERR-3")
def test_no_database_at_the_address_fails_at_once_with_a_stable_code(tmp_path: object) -> None:
    with pytest.raises(StorageUnavailable) as caught:
        Fabric.open(f"host={tmp_path} user=nobody dbname=none", master_keys=MASTER_KEYS)
    assert caught.value.code == "storage_unavailable"


@pytest.mark.rule("ERR-3")
def test_a_fabric_recovers_by_itself_when_its_connections_were_cut(
    fabric: Fabric, people: People, server: TestServer, database: str
) -> None:
    promoted(fabric, people)
    with server.connect("postgres") as owner:
        for _ in range(2):
            owner.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s AND usename LIKE 'muniment_%%'",
                [database],
            )
            assert len(texts(fabric, people.run())) == 1
    promoted(fabric, people, "x", predicate="other")


@pytest.mark.rule("ISO-1")
def test_where_passwords_are_asked_each_login_has_its_own_from_the_master_key(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with TestServer(tmp_path_factory.mktemp("pw") / "home") as server:
        database = server.clone()
        logins = ",".join(f"muniment_{task}" for task in TASKS)
        hba = server.home / "data" / "pg_hba.conf"
        hba.write_text(f"local all {logins} scram-sha-256\nlocal all all trust\n")
        with server.connect("postgres") as owner:
            owner.execute("SELECT pg_reload_conf()")
            logged = owner.execute("SELECT count(*) FROM pg_hba_file_rules WHERE error IS NULL").fetchone()
            assert logged == (2,)
        with pytest.raises(SchemaMissing, match="logins"):
            Fabric.open(server.url(database), master_keys=MASTER_KEYS)
        address = Address.parse(server.url(database), MASTER_KEYS.login_secret())
        with pytest.raises(KeyUnavailable, match="--reset-logins"):
            asyncio.run(migrate(address))
        asyncio.run(migrate(address, reset_logins=True))
        asyncio.run(migrate(address))
        asyncio.run(require_ready(address))
        with Fabric.open(server.url(database), master_keys=MASTER_KEYS) as fabric:
            people = People("acme")
            promoted(fabric, people)
            assert len(texts(fabric, people.run())) == 1
        assert len({address.password(task) for task in TASKS}) == len(TASKS)
        with pytest.raises(SchemaMissing):
            Fabric.open(server.url(database), master_keys=LocalMasterKeys(b"another master key of 32 bytes!!"))
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(server.task_url(database, "writer"), password="guess")


@pytest.mark.rule("CAN-4")
def test_a_gate_is_added_without_a_migration_and_an_older_program_is_reported(
    server: TestServer, empty: str, monkeypatch: pytest.MonkeyPatch, people: People
) -> None:
    address = Address.parse(server.url(empty), MASTER_KEYS.login_secret())
    asyncio.run(migrate(address))
    before = gate_names()

    # A later version of the program, with a gate more and no step more.
    monkeypatch.setattr(migrating, "gate_names", lambda: [*before, "horoscope"])
    with pytest.raises(SchemaMissing, match="not migrated"):
        asyncio.run(require_ready(address))
    assert (asyncio.run(status(address)).pending, asyncio.run(status(address)).ready) == (("gates",), False)
    assert asyncio.run(migrate(address)) == ("gates",)
    assert asyncio.run(migrate(address)) == ()
    asyncio.run(require_ready(address))
    # The program of before would write candidates without the record of that gate.
    monkeypatch.setattr(migrating, "gate_names", lambda: before)
    with pytest.raises(SchemaNewer, match="horoscope"):
        asyncio.run(require_ready(address))
    with pytest.raises(SchemaNewer, match="horoscope"):
        asyncio.run(migrate(address))


@pytest.mark.rule("CAN-4", "ERA-2")
def test_a_candidate_that_passed_fewer_gates_long_ago_can_still_be_erased(
    server: TestServer, database: str, fabric: Fabric, people: People
) -> None:
    promoted(fabric, people, subject="customer:cust_1")
    with server.connect(database) as owner:
        owner.execute("UPDATE candidates SET gates = '[]' WHERE tenant_id = %s", [people.tenant_id])
    assert fabric.erase(people.officer, subject="customer:cust_1").rows["candidates"] == 1
