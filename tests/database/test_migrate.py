"""Migrations and logins, on databases of their own."""

import asyncio
from collections.abc import Iterator

import psycopg
import pytest

from muniment import Fabric
from muniment.database import migrate as migrating
from muniment.database.address import Address
from muniment.database.master import LocalMasterKeys
from muniment.database.migrate import FIRST_RELEASE, gate_names, migrate, migrations, require_ready, status
from muniment.database.storage import TASKS
from muniment.errors import KeyUnavailable, SchemaMissing, SchemaNewer, StorageUnavailable
from muniment.testing import People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.database.databases import empty_database, migrate_to, new_database
from tests.database.schema_dump import read_schema, schema
from tests.stories import promoted, texts

LATEST = migrations()[-1].version
# What makes a database differ from another, each of its own kind.
CHANGES = (
    "ALTER TABLE captures ALTER COLUMN content SET STORAGE EXTERNAL",
    "ALTER TABLE captures ALTER COLUMN content SET STATISTICS 100",
    "ALTER TABLE captures ALTER COLUMN content SET COMPRESSION pglz",
    "ALTER TABLE captures ALTER COLUMN holder DROP NOT NULL",
    "ALTER TABLE captures ALTER COLUMN holder SET DEFAULT ''",
    'ALTER TABLE captures ALTER COLUMN session_id TYPE text COLLATE "POSIX"',
    "ALTER TABLE captures ADD COLUMN more text",
    "ALTER TABLE captures_3 NO FORCE ROW LEVEL SECURITY",
    "ALTER TABLE captures DETACH PARTITION captures_3",
    "ALTER TABLE retries DISABLE ROW LEVEL SECURITY",
    "ALTER TABLE retries ADD CHECK (seq > 0)",
    "ALTER TABLE retries ADD CHECK (seq > 0) NOT VALID",
    "ALTER TABLE retries RENAME CONSTRAINT retries_tries_check TO tries",
    "ALTER TABLE retries SET (fillfactor = 50)",
    "ALTER TABLE retries CLUSTER ON retries_pkey",
    "ALTER TABLE retries OWNER TO postgres",
    "ALTER TABLE retractions ALTER CONSTRAINT retractions_tenant_id_memory_id_seq_fkey NOT DEFERRABLE",
    "ALTER TABLE events DISABLE TRIGGER ALL",
    "CREATE TRIGGER one AFTER INSERT ON events EXECUTE FUNCTION suppress_redundant_updates_trigger()",
    "CREATE RULE one AS ON INSERT TO retries DO ALSO NOTHING",
    "CREATE INDEX one ON events (tenant_id)",
    "ALTER INDEX retries_due RENAME TO one",
    "CREATE STATISTICS one ON tenant_id, seq FROM events",
    "CREATE TYPE one AS ENUM ('one')",
    "CREATE SEQUENCE one",
    "CREATE VIEW one AS SELECT 1",
    "ALTER POLICY tenant ON retries USING (true)",
    "ALTER POLICY tenant ON retries TO muniment_jobs",
    "ALTER POLICY tenant ON retries RENAME TO one",
    "GRANT UPDATE ON retries TO muniment_jobs",
    "REVOKE DELETE ON retries FROM muniment_writer",
    "GRANT SELECT (wrapped) ON audit_keys TO muniment_jobs",
    "GRANT SELECT ON retries TO muniment_jobs WITH GRANT OPTION",
    "GRANT CREATE ON SCHEMA muniment TO muniment_jobs",
    "GRANT EXECUTE ON FUNCTION erase_content TO muniment_jobs",
    "ALTER FUNCTION erase_content SECURITY INVOKER",
    "ALTER FUNCTION erase_content RESET search_path",
    "ALTER FUNCTION erase_content OWNER TO postgres",
    "CREATE OR REPLACE FUNCTION required_gates() RETURNS jsonb LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN '[]'::jsonb",
    "ALTER DEFAULT PRIVILEGES IN SCHEMA muniment GRANT SELECT ON TABLES TO muniment_jobs",
    "COMMENT ON TABLE events IS 'one'",
    "COMMENT ON COLUMN events.seq IS 'one'",
    "COMMENT ON FUNCTION erase_content IS 'one'",
    "COMMENT ON POLICY tenant ON retries IS 'one'",
    "COMMENT ON CONSTRAINT retries_pkey ON retries IS 'one'",
    "COMMENT ON SCHEMA muniment IS 'one'",
)


@pytest.fixture
def empty(server: TestServer) -> Iterator[str]:
    with empty_database(server) as name:
        yield name


def test_a_new_database_gets_the_schema_and_counts_as_migrated(server: TestServer, empty: str) -> None:
    address = Address.parse(server.url(empty), None)
    before = asyncio.run(status(address))
    assert (before.current, before.ready, before.pending) == (0, False, ("schema",))
    assert asyncio.run(migrate(address)) == ("schema",)
    assert asyncio.run(migrate(address)) == ()
    after = asyncio.run(status(address))
    assert after.ready and after.pending == () and after.changed == () and after.current == LATEST
    with server.connect(empty) as owner:
        recorded = owner.execute("SELECT version, name, digest FROM schema_migrations ORDER BY version").fetchall()
    assert [row[0] for row in recorded] == [*range(1, LATEST + 1)]
    assert {row[1] for row in recorded[:FIRST_RELEASE]} == {"schema"}
    assert recorded[FIRST_RELEASE:] == [(step.version, step.name, step.digest) for step in migrations()]


def test_a_home_of_0_1_0_gets_the_migrations_after_it(server: TestServer, empty: str) -> None:
    migrate_to(server, empty, FIRST_RELEASE)
    address = Address.parse(server.url(empty), None)
    before = asyncio.run(status(address))
    names = tuple(f"{step.version:04d}_{step.name}" for step in migrations())
    assert (before.current, before.ready, before.pending) == (FIRST_RELEASE, False, names)
    assert names[0] == "0021_pack_in_force"
    assert asyncio.run(migrate(address)) == names
    assert asyncio.run(migrate(address)) == ()
    assert asyncio.run(status(address)).ready


@pytest.mark.parametrize("version", [1, FIRST_RELEASE - 1])
def test_a_database_from_before_0_1_0_is_refused_and_left_as_it_is(
    server: TestServer, empty: str, version: int
) -> None:
    migrate_to(server, empty, version)
    before = schema(server, empty)
    with pytest.raises(SchemaMissing, match=rf"{version} of the 20 migrations of 0\.1\.0.*migrate of 0\.1\.0 first"):
        asyncio.run(migrate(Address.parse(server.url(empty), None)))
    assert schema(server, empty) == before


def test_two_migrations_at_once_apply_everything_once(server: TestServer, empty: str) -> None:
    address = Address.parse(server.url(empty), None)

    async def both() -> list[tuple[str, ...]]:
        return list(await asyncio.gather(migrate(address), migrate(address)))

    assert sorted(asyncio.run(both())) == [(), ("schema",)]


def test_two_migrations_of_a_home_of_0_1_0_at_once_apply_everything_once(server: TestServer, empty: str) -> None:
    migrate_to(server, empty, FIRST_RELEASE)
    address = Address.parse(server.url(empty), None)

    async def both() -> list[tuple[str, ...]]:
        return list(await asyncio.gather(migrate(address), migrate(address)))

    assert sorted(len(done) for done in asyncio.run(both())) == [0, len(migrations())]


def test_a_home_of_0_1_0_migrated_step_by_step_equals_a_new_database(server: TestServer, empty: str) -> None:
    migrate_to(server, empty, FIRST_RELEASE)
    for step in migrations():
        assert len(migrate_to(server, empty, step.version)) == 1
    with new_database(server) as new:
        made, migrated = schema(server, new), schema(server, empty)
    assert sorted({*made} ^ {*migrated}) == []
    assert made == migrated and len(made) > 5000


def test_what_is_compared_shows_every_change(server: TestServer, fresh_database: str) -> None:
    with server.connect(fresh_database) as owner:
        before = read_schema(owner)
        for change in CHANGES:
            with owner.transaction(force_rollback=True):
                owner.execute(change.encode())
                assert read_schema(owner) != before, change


def test_a_new_database_that_fails_half_way_has_nothing(
    server: TestServer, empty: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = Address.parse(server.url(empty), None)
    with monkeypatch.context() as failing:
        failing.setattr(migrating, "_schema_files", lambda: ["CREATE TABLE half ()", "SELECT 1 / 0"])
        with pytest.raises(psycopg.errors.DivisionByZero):
            asyncio.run(migrate(address))
    assert asyncio.run(status(address)).pending == ("schema",)
    assert asyncio.run(migrate(address)) == ("schema",)
    with server.connect(empty) as owner:
        assert owner.execute("SELECT to_regclass('muniment.half') IS NULL").fetchone() == (True,)


def test_a_newer_schema_is_refused_with_a_clear_message(server: TestServer, fresh_database: str) -> None:
    with server.connect(fresh_database) as owner:
        owner.execute("INSERT INTO schema_migrations (version, name, digest) VALUES (9000, 'from_the_future', '')")
    with pytest.raises(SchemaNewer, match=r"schema 9000.*upgrade muniment"):
        Fabric.open(server.url(fresh_database), master_keys=MASTER_KEYS)
    with pytest.raises(SchemaNewer):
        asyncio.run(migrate(Address.parse(server.url(fresh_database), None)))


def test_a_program_serves_a_newer_schema_that_older_programs_can_work_with(
    server: TestServer, fresh_database: str, people: People
) -> None:
    latest = migrating.migrations()[-1].version
    with server.connect(fresh_database) as owner:
        owner.execute(
            "INSERT INTO schema_migrations (version, name, digest, oldest) VALUES (9000, 'one_more_column', '', %s)",
            [latest],
        )
    address = Address.parse(server.url(fresh_database), None)
    with Fabric.open(server.url(fresh_database), master_keys=MASTER_KEYS) as fabric:
        assert fabric.capture(people.service, kind="statement", text="The shop opens at 9.", classification="INTERNAL")
    found = asyncio.run(status(address))
    assert (found.current, found.oldest, found.latest, found.ready) == (9000, latest, latest, True)
    assert asyncio.run(migrate(address)) == ()


def test_the_next_migration_that_needs_a_later_program_ends_that(server: TestServer, fresh_database: str) -> None:
    latest = migrating.migrations()[-1].version
    with server.connect(fresh_database) as owner:
        for version, oldest in ((9000, latest), (9001, 9000)):
            owner.execute(
                "INSERT INTO schema_migrations (version, name, digest, oldest) VALUES (%s, 'step', '', %s)",
                [version, oldest],
            )
    with pytest.raises(SchemaNewer, match=r"schema 9001 and needs a program that knows 9000"):
        Fabric.open(server.url(fresh_database), master_keys=MASTER_KEYS)
    assert not asyncio.run(status(Address.parse(server.url(fresh_database), None))).ready


@pytest.mark.parametrize(("text", "oldest"), [("-- oldest program: 45\nSELECT 1", 45), ("SELECT 1", 50)])
def test_a_migration_says_which_programs_work_with_it(text: str, oldest: int) -> None:
    assert migrating.Migration(50, "step", text).oldest == oldest


def test_a_database_that_was_never_migrated_says_what_to_do(server: TestServer, empty: str) -> None:
    with pytest.raises(SchemaMissing, match="muniment db migrate"):
        Fabric.open(server.url(empty), master_keys=MASTER_KEYS)


def test_a_changed_migration_file_is_noticed(
    server: TestServer, fresh_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with server.connect(fresh_database) as owner:
        owner.execute("UPDATE schema_migrations SET digest = 'other' WHERE version = 21")
    assert asyncio.run(status(Address.parse(server.url(fresh_database), None))).changed == ("pack_in_force",)


def test_the_migration_that_includes_a_file_of_the_schema_is_the_one_that_was_applied() -> None:
    """If this fails because schema/02_names.sql changed: write its old text into the migration instead."""
    (names,) = (step for step in migrations() if step.version == 25)
    assert names.digest == "eeb35454142a3df7911a2b6caee80ba2acdc85a4dee0014cdcf1d40e97603566"


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


@pytest.mark.rule("ERR-1")
def test_a_password_that_is_missing_or_wrong_is_named_and_not_repeated(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PGPASSFILE", raising=False)
    with TestServer(tmp_path_factory.mktemp("pw") / "home") as server:
        database = server.clone()
        with server.connect("postgres") as owner:
            (server.home / "data" / "pg_hba.conf").write_text("local all all scram-sha-256\n")
            owner.execute("SELECT pg_reload_conf()")
        for added, said in (
            ("", "asks for this user's password.*PGPASSFILE"),
            (" password=guess", "refuses this user"),
        ):
            address = server.url(database) + added
            with pytest.raises(StorageUnavailable, match=said) as refused:
                asyncio.run(migrate(Address.parse(address, MASTER_KEYS.login_secret())))
            assert "guess" not in str(refused.value)


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
