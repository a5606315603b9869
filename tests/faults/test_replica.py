"""Auditors' reads on a standby: which ones, how far behind, and when the primary answers instead (SCL-4, TIR-5)."""

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from muniment import Fabric
from muniment.audit import provenance_store
from muniment.audit import verify as verification
from muniment.database.address import Address
from muniment.database.migrate import migrate
from muniment.database.replica import ContentOnStandby
from muniment.database.statements import Statement
from muniment.database.storage import Transaction
from muniment.errors import InvalidInput, NotFound
from muniment.model.reads import ReadFrom, noting_reads
from muniment.testing import People
from muniment.testing.database import MASTER_KEYS
from tests.faults.replicas import READS, SETTINGS, Servers, history, opened, primary_and_standby, read
from tests.faults.servers import eventually, kill_server, separate, standby_of


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    with primary_and_standby(tmp_path_factory.mktemp("replica")) as found:
        yield found


@pytest.mark.rule("TIR-5")
@pytest.mark.parametrize("name", READS)
def test_an_auditors_read_is_answered_by_the_standby_and_says_how_far_behind_it_is(
    servers: Servers, tenant: str, name: str
) -> None:
    people = People(tenant)
    with opened(servers) as fabric:
        history(fabric, people)
        servers.caught_up()
        found, where = read(READS[name], fabric, people)
        assert where.source == "standby" and where.lag_s is not None and where.lag_s < 5
        with Fabric.open(servers.url, master_keys=MASTER_KEYS) as plain:
            expected = READS[name](plain, people)
    if name == "metrics":
        changing = {"read_from", "since", "until", "at"}
        assert found.read_from == where and expected.read_from is None
        assert found.model_dump(exclude=changing) == expected.model_dump(exclude=changing)
    elif name == "verify":
        assert found.ok and found.read_from == where and found == expected.model_copy(update={"read_from": where})
    else:
        assert found == expected


@pytest.mark.rule("SCL-4", "TIR-5")
def test_recall_and_what_opens_content_read_the_primary_while_the_standby_is_behind(
    servers: Servers, tenant: str
) -> None:
    people = People(tenant)
    with opened(servers) as fabric:
        history(fabric, people)
        servers.caught_up()
        (memory,) = fabric.memories.list(people.auditor)
        with servers.paused(), noting_reads() as noted:
            fabric.retract(people.reviewer, memory.memory_id, reason="wrong")
            assert fabric.recall(people.run()).records == ()
            assert fabric.memories.list(people.auditor) == []
            assert fabric.get(people.auditor, memory.memory_id).dead_seq is not None
            assert fabric.trail(people.auditor, memory.memory_id).memory.dead_seq is not None
            fabric.erase(people.officer, user_id="cust_1")
            assert len(fabric.erasures(people.auditor)) == 1
        assert noted == []


def test_a_caller_finds_what_it_wrote_and_what_it_names_on_the_primary_until_the_standby_has_it(
    servers: Servers, tenant: str
) -> None:
    people = People(tenant)
    with opened(servers) as fabric, opened(servers) as another:
        history(fabric, people)
        servers.caught_up()
        assert read(READS["events"], another, people)[1].source == "standby"
        with servers.paused():
            fabric.capture(people.service, kind="message", text="hello", classification="INTERNAL")
            recall_id = fabric.recall(people.run()).recall_id
            for name in ("events", "recalls.list", "metrics", "verify"):
                _, where = read(READS[name], fabric, people)
                assert (where.source, where.why) == ("primary", "behind"), name
            found, where = read(lambda one, who: one.events(who.auditor, latest=True, limit=1), fabric, people)
            assert where.why == "behind"
            last = found[0].seq
            # Another process wrote nothing: it may be told of the past, unless it names what the standby lacks.
            stale, where = read(lambda one, who: one.events(who.auditor, latest=True, limit=1), another, people)
            assert where.source == "standby" and stale[0].seq < last
            _, where = read(lambda one, who: one.events(who.auditor, after=last), another, people)
            assert where.why == "behind"
            _, where = read(lambda one, who: one.recalls.list(who.auditor, after=recall_id), another, people)
            assert where.why == "behind"
            with pytest.raises(NotFound):
                another.recalls.list(people.auditor, after="rcl_nowhere")
        servers.caught_up()
        _, where = read(READS["events"], fabric, people)
        assert where.source == "standby"


@pytest.mark.rule("AUD-2")
def test_a_head_or_a_cursor_that_the_standby_lacks_is_followed_on_the_primary(
    servers: Servers, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verification, "_BATCHES_AT_ONCE", 1)
    people = People(tenant)
    with opened(servers) as fabric, opened(servers) as another:
        history(fabric, people)
        servers.caught_up()
        assert read(READS["events"], another, people)[1].source == "standby"
        with servers.paused():
            fabric.capture(people.service, kind="message", text="hello", classification="INTERNAL")
            fabric.seal(people.tenant_id)
            head = fabric.chain_head(people.auditor)
            found, where = read(lambda one, who: one.verify(who.auditor, head=head), another, people)
            assert found.ok and (where.source, where.why) == ("primary", "behind")
            fabric.capture(people.service, kind="message", text="hello", classification="INTERNAL")
            fabric.seal(people.tenant_id)
            part = fabric.verify(people.auditor, count=found.events)
            assert part.cursor is not None
            whole, where = read(lambda one, who: one.verify(who.auditor, cursor=part.cursor), another, people)
            assert whole.ok and whole.head == fabric.chain_head(people.auditor)
            assert (where.source, where.why) == ("primary", "behind")


@pytest.mark.rule("AUD-2")
def test_a_break_that_the_standby_shows_is_looked_at_again_on_the_primary(servers: Servers, tenant: str) -> None:
    people = People(tenant)
    with opened(servers) as fabric, opened(servers) as another:
        history(fabric, people)
        # A superuser can get past every constraint.
        forged = f"UPDATE muniment.verdicts SET by = 'mallory' WHERE tenant_id = '{tenant}'"
        servers.on_primary("SET session_replication_role = replica", forged)
        servers.caught_up()
        found, where = read(READS["verify"], another, people)
        assert not found.ok and {one.kind for one in found.breaks} == {"row_changed"}
        assert (where.source, where.why) == ("primary", "to_confirm")


def test_a_standby_too_far_behind_is_not_read_and_the_answer_says_so(
    servers: Servers, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUNIMENT_REPLICA_MAX_LAG", "0.8")
    people = People(tenant)
    with opened(servers) as fabric, opened(servers) as another:
        history(fabric, people)
        servers.caught_up()
        assert read(READS["metrics"], fabric, people)[1].source == "standby"
        with servers.paused():
            another.capture(people.service, kind="message", text="hello", classification="INTERNAL")
            seen: list[ReadFrom] = []

            def too_far() -> bool:
                found, where = read(READS["metrics"], fabric, people)
                seen.append(where)
                assert found.read_from == where
                return where.why == "lag"

            eventually(too_far)
            assert all(one.lag_s is not None and one.lag_s <= 0.8 for one in seen if one.source == "standby")
            assert len(READS["events"](fabric, people)) == len(READS["events"](another, people))
        servers.caught_up()
        assert read(READS["metrics"], fabric, people)[1].source == "standby"


@pytest.mark.rule("ERR-2")
def test_what_a_migration_made_is_read_on_the_primary_until_the_standby_has_it(
    servers: Servers, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    people = People(tenant)
    with opened(servers) as fabric, opened(servers) as another:
        history(fabric, people)
        servers.caught_up()
        assert read(READS["events"], another, people)[1].source == "standby"
        with servers.paused():
            servers.on_primary(
                "CREATE VIEW muniment.told AS SELECT * FROM muniment.events",
                "GRANT SELECT ON muniment.told TO muniment_auditor",
            )

            async def newest(tx: Transaction, after: int, limit: int) -> list[Any]:
                await tx.connection.exchange([(Statement("told", "SELECT seq FROM told LIMIT 0"), [])])
                return []

            monkeypatch.setattr(provenance_store, "events_after", newest)
            _, where = read(READS["events"], another, people)
            assert (where.source, where.why) == ("primary", "behind")
        servers.on_primary("DROP VIEW muniment.told")


@pytest.mark.rule("ERR-3")
def test_while_the_standby_is_away_the_primary_answers(servers: Servers, tenant: str, tmp_path: Path) -> None:
    people = People(tenant)
    folder = tmp_path / "second"
    with standby_of(servers.primary, folder, *SETTINGS) as second:
        servers.on_primary("ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")
        with Fabric.open(servers.url, master_keys=MASTER_KEYS, replica_url=second) as fabric:
            history(fabric, people)
            servers.caught_up()
            eventually(lambda: read(READS["events"], fabric, people)[1].source == "standby")
            kill_server(folder)
            for name in READS:
                found, where = read(READS[name], fabric, people)
                assert (where.source, where.why) == ("primary", "away"), name
                assert name != "verify" or found.ok
        # It may come back: a program starts without it.
        with Fabric.open(servers.url, master_keys=MASTER_KEYS, replica_url=second) as fabric:
            assert read(READS["events"], fabric, people)[1].why == "away"


def test_a_standby_that_was_promoted_is_read_no_more(
    servers: Servers, tenant: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    people = People(tenant)
    with standby_of(servers.primary, tmp_path / "second", *SETTINGS) as second:
        servers.on_primary("ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")
        with Fabric.open(servers.url, master_keys=MASTER_KEYS, replica_url=second) as fabric:
            history(fabric, people)
            eventually(lambda: read(READS["events"], fabric, people)[1].source == "standby")
            with psycopg.connect(second, autocommit=True) as connection:
                connection.execute("SELECT pg_promote()")
            _, where = read(READS["events"], fabric, people)
            assert (where.source, where.why) == ("primary", "not_standby")
        # A program starts without it.
        with Fabric.open(servers.url, master_keys=MASTER_KEYS, replica_url=second) as fabric:
            assert read(READS["events"], fabric, people)[1].why == "not_standby"
        assert "MUNIMENT_REPLICA_URL: leads to a primary: name a standby, or leave it out" in caplog.text


@pytest.mark.rule("ERR-1")
def test_an_address_of_another_server_or_database_is_refused_at_the_start(
    servers: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(url: str, words: str) -> None:
        with pytest.raises(InvalidInput, match=words):
            Fabric.open(servers.url, master_keys=MASTER_KEYS, replica_url=url)

    refused("postgresql://[", "MUNIMENT_REPLICA_URL: expected an address")
    refused("postgresql://one,two/muniment", "MUNIMENT_REPLICA_URL: expected one host")
    refused(make_conninfo(servers.standby, dbname="postgres"), "another database")
    with separate(tmp_path / "other", *SETTINGS) as other:
        address = Address.parse(make_conninfo(other, user="muniment_owner"), MASTER_KEYS.login_secret())
        anyio.run(migrate, address)
        refused(other, "MUNIMENT_REPLICA_URL: leads to another server or its standby")
        with standby_of(other, tmp_path / "others", *SETTINGS) as others:
            refused(others, "MUNIMENT_REPLICA_URL: leads to another server or its standby")
    for wrong in ("never", "0", "-1", "nan", "4000"):
        monkeypatch.setenv("MUNIMENT_REPLICA_MAX_LAG", wrong)
        refused(servers.standby, "MUNIMENT_REPLICA_MAX_LAG: expected a number of seconds")


@pytest.mark.rule("TIR-5")
def test_on_a_standby_nothing_is_written_no_key_opened_and_no_sealed_content_read(
    servers: Servers, tenant: str
) -> None:
    people = People(tenant)
    with opened(servers) as fabric:
        history(fabric, people)
        servers.caught_up()
        context = fabric._fabric._context

        async def tried(what: Callable[[Transaction], Awaitable[Any]]) -> None:
            async with context.storage.on_standby(tenant, context.now()) as (tx, _):
                await what(tx)

        async def settings(tx: Transaction) -> None:
            (reply,) = await tx.connection.exchange(
                [
                    (
                        Statement(
                            "whoami", "SELECT current_user AS login, current_setting('transaction_read_only') AS ro"
                        ),
                        [],
                    )
                ]
            )
            assert reply.rows == [{"login": "muniment_auditor", "ro": "on"}]

        fabric._portal.call(tried, settings)
        vault = context.vault
        content: tuple[Callable[[Transaction], Awaitable[Any]], ...] = (
            lambda tx: vault.keys(tx, ["customer:cust_1"]),
            lambda tx: vault.tenant(tx),
            lambda tx: vault.row_key(tx),
            lambda tx: vault.existing_tenant_data_key(tx),
            lambda tx: vault.open_key(tx, "customer:cust_1", b"", 1),
            lambda tx: tx.rows("tenant.subject_keys", holders=["*"]),
            lambda tx: tx.rows("tenant.keys"),
            lambda tx: tx.rows("metrics.to_scan", after_seq=0, after="", last_seq=2**62, count=10),
        )
        for one in content:
            with pytest.raises(ContentOnStandby):
                fabric._portal.call(tried, one)
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            fabric._portal.call(tried, lambda tx: tx.do("tenant.add"))
