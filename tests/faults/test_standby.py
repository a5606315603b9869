"""A standby takes over from a primary that is killed: nothing that was acknowledged is lost (SCL-4, SCL-5, SCL-6)."""

import asyncio
import base64
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from muniment import AsyncFabric, Fabric
from muniment.database.address import Address
from muniment.database.migrate import migrate
from muniment.database.primaries import server_states
from muniment.erasure import job as purge
from muniment.erasure import purge as purging
from muniment.errors import InvalidInput, MunimentError, PurgeIncomplete, StorageUnavailable
from muniment.testing import People
from muniment.testing.database import MASTER_KEYS
from muniment.worker.worker import Worker
from tests.faults.forging import assert_refuses_earlier_numbers, in_tenant, insert, rows
from tests.faults.servers import back_at, environment, eventually, kill_server, separate, standby_of, value
from tests.faults.test_point_in_time import MASTER_KEY
from tests.faults.test_purge_settings import SUBJECT, in_log, sealed
from tests.interfaces.command import run
from tests.stories import promoted, submitted, values

TENANTS = ("acme", "globex", "initech")
SETTINGS = ("wal_recycle=off", "autovacuum=off", "max_wal_size=96MB", "min_wal_size=32MB")
# SCL-4: an open process serves again within this time.
SERVES_AGAIN_WITHIN = 10.0


@dataclass
class Pair:
    """A primary and its synchronous standby: the folders, and the superuser's addresses."""

    primary_folder: Path
    primary: str
    standby: str

    def url(self, *, standby_first: bool = False) -> str:
        hosts = [str(conninfo_to_dict(place)["host"]) for place in (self.primary, self.standby)]
        named = ",".join(reversed(hosts) if standby_first else hosts)
        return make_conninfo(host=named, user="muniment_owner", dbname="muniment")

    def fail_over(self) -> None:
        kill_server(self.primary_folder)
        with psycopg.connect(self.standby, autocommit=True) as connection:
            connection.execute("SELECT pg_promote()")


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    folder = tmp_path / "primary"
    with separate(folder, *SETTINGS) as primary:
        address = Address.parse(make_conninfo(primary, user="muniment_owner"), MASTER_KEYS.login_secret())
        anyio.run(migrate, address)
        with standby_of(primary, tmp_path / "standby", *SETTINGS) as standby:
            yield Pair(folder, primary, standby)


@dataclass
class Acknowledged:
    """What callers were told is done, by tenant; and when a call last failed or succeeded."""

    captures: dict[str, list[str]] = field(default_factory=lambda: {one: [] for one in TENANTS})
    verdicts: dict[str, list[str]] = field(default_factory=lambda: {one: [] for one in TENANTS})
    consents: dict[str, list[str]] = field(default_factory=lambda: {one: [] for one in TENANTS})
    erasures: dict[str, list[str]] = field(default_factory=lambda: {one: [] for one in TENANTS})
    failures: list[str] = field(default_factory=list)
    served_at: list[float] = field(default_factory=list)

    async def tried(self, call: Awaitable[Any]) -> Any:
        try:
            done = await call
        except MunimentError as error:
            self.failures.append(error.code)
            await asyncio.sleep(0.05)
            return None
        self.served_at.append(time.monotonic())
        return done


async def _until(holds: Callable[[], bool]) -> None:
    while True:
        if holds():
            return
        await asyncio.sleep(0.05)


async def _work(fabric: AsyncFabric, people: People, told: Acknowledged, until: asyncio.Event) -> None:
    tenant, n = people.tenant_id, 0
    while not until.is_set():
        n += 1
        run = people.run(f"user_{n}")
        said = {"kind": "statement", "classification": "INTERNAL", "text": f"Parcel {n} is in the depot {tenant}."}
        if (receipt := await told.tried(fabric.capture(run, **said))) is not None:
            told.captures[tenant].append(receipt.capture_id)
        fact = {"write_class": "statement", "text": f"Customer {n} prefers lamp {n}.", "classification": "INTERNAL"}
        made = await told.tried(fabric.propose(run, **fact))
        if made is not None:
            done = await told.tried(fabric.queue.approve(people.reviewer, made.proposal_id))
            if done is not None and done.memory_id is not None:
                told.verdicts[tenant].append(done.memory_id)
        terms = {"purpose": "support", "predicates_allowed": ["*"], "data_classifications_allowed": ["PII"]}
        given = {**terms, "subject": f"customer:c_{n}", "basis": "user_opt_in", "evidence_refs": ["screen:v3"]}
        if (consent := await told.tried(fabric.consent.grant(people.officer, **given))) is not None:
            told.consents[tenant].append(consent.consent_id)
        if n % 5 == 0:
            gone = await told.tried(fabric.erase(people.officer, user_id=f"user_{n - 1}"))
            if gone is not None:
                told.erasures[tenant].append(gone.erasure_id)


async def _check_nothing_is_lost(fabric: AsyncFabric, people: People, told: Acknowledged) -> None:
    tenant, auditor = people.tenant_id, people.auditor
    for capture_id in told.captures[tenant]:
        assert (await fabric.captures.get(auditor, capture_id)).capture_id == capture_id
    for memory_id in told.verdicts[tenant]:
        assert (await fabric.get(auditor, memory_id)).memory_id == memory_id
    known = {one.consent_id for one in await fabric.consent.list(auditor, limit=1000)}
    assert set(told.consents[tenant]) <= known
    assert set(told.erasures[tenant]) <= {one.erasure_id for one in await fabric.erasures(auditor, limit=1000)}
    await fabric.seal(tenant)
    assert (await fabric.verify(auditor)).ok


@pytest.mark.rule("SCL-4", "SCL-5", "TIR-5")
def test_a_standby_takes_over_under_load_and_nothing_acknowledged_is_lost(pair: Pair) -> None:
    async def story() -> None:
        told, until = Acknowledged(), asyncio.Event()
        everyone = [People(tenant) for tenant in TENANTS]
        async with AsyncFabric.open(pair.url(), master_keys=MASTER_KEYS) as fabric:
            at_work = [asyncio.create_task(_work(fabric, people, told, until)) for people in everyone]
            await _until(lambda: all(told.verdicts[one] and told.erasures[one] for one in TENANTS))
            done = {tenant: len(told.captures[tenant]) for tenant in TENANTS}
            failed_at = time.monotonic()
            await asyncio.to_thread(pair.fail_over)
            await _until(lambda: all(len(told.captures[one]) > done[one] + 5 for one in TENANTS))
            until.set()
            await asyncio.gather(*at_work)
            between = zip(told.served_at, told.served_at[1:], strict=False)
            assert max(after - before for before, after in between if after > failed_at) < SERVES_AGAIN_WITHIN
            assert told.failures and set(told.failures) <= {"storage_unavailable", "conflict"}
            for people in everyone:
                await _check_nothing_is_lost(fabric, people, told)
                tenant = people.tenant_id
                memory = await fabric.get(people.auditor, told.verdicts[tenant][-1])
                found = await fabric.recall(people.run(memory.scope.user_id))
                assert memory.memory_id in {one.id for one in found.all_records}

    asyncio.run(asyncio.wait_for(story(), 240))


@pytest.mark.rule("SCL-4", "TIR-5")
def test_recall_and_writes_go_to_the_primary_whatever_the_order_of_the_hosts(pair: Pair) -> None:
    people = People("acme")
    with Fabric.open(pair.url(standby_first=True), master_keys=MASTER_KEYS) as fabric:
        made = fabric.propose(people.run(), write_class="statement", text="Lamps are blue.", classification="INTERNAL")
        fabric.queue.approve(people.reviewer, submitted(made))
        assert [one.text for one in fabric.recall(people.run()).records] == ["Lamps are blue."]
    with pytest.raises(InvalidInput, match="read-write"):
        Fabric.open(f"{pair.url()} target_session_attrs=any", master_keys=MASTER_KEYS)


def _history(fabric: Fabric, people: People) -> None:
    """Something in many tables."""
    terms = {"purpose": "support", "predicates_allowed": ["*"], "data_classifications_allowed": ["PII"]}
    fabric.consent.grant(people.officer, subject=SUBJECT, basis="user_opt_in", evidence_refs=["screen:v3"], **terms)
    made = promoted(fabric, people)
    promoted(fabric, people, "post", predicate="second_channel")
    fabric.retract(people.reviewer, made, reason="wrong")
    fabric.erase(people.officer, subject="customer:nobody")
    fabric.seal(people.tenant_id)


async def _captured(fabric: AsyncFabric, people: People) -> Any:
    """A capture, as soon as a primary is found."""
    said = {"kind": "statement", "classification": "INTERNAL", "text": "The parcel is in the depot."}
    while True:
        try:
            return await fabric.capture(people.run(None), **said)
        except MunimentError:
            await asyncio.sleep(0.05)


@pytest.mark.rule("SCL-5", "SCL-4", "AUD-1")
def test_after_a_failover_no_row_can_be_inserted_with_an_earlier_number_and_the_next_ones_go_on(pair: Pair) -> None:
    people = People("acme")
    with Fabric.open(pair.url(), master_keys=MASTER_KEYS) as fabric:
        _history(fabric, people)
        last = fabric._portal.call(_captured, fabric._fabric, people)
        mark = value(pair.primary, "SELECT muniment.server_mark()")
        pair.fail_over()
        assert value(pair.standby, "SELECT muniment.server_mark()") != mark
        tried = assert_refuses_earlier_numbers(pair.standby, people.tenant_id)
        assert tried >= {"ticks", "events", "verdicts", "memories", "retractions", "consents", "erasures"}
        done = fabric._portal.call(_captured, fabric._fabric, people)
        assert done.seq == last.seq + 1
        fabric.seal(people.tenant_id)
        assert fabric.verify(people.auditor).ok
        # Rows of the stages before promotion are bound by the log, which lists each: one more is found.
        (row, *_) = rows(pair.standby, people.tenant_id, "captures")
        place = make_conninfo(pair.standby, user="muniment_writer", options=in_tenant(people.tenant_id))
        with psycopg.connect(place) as forger:
            insert(forger, "captures", row | {"capture_id": "cap_forged"})
        (broken,) = fabric.verify(people.auditor).breaks
        assert (broken.kind, broken.row_id) == ("row_added", "cap_forged")


def purged(fabric: Fabric, people: People) -> None:
    opened: Any = fabric._fabric._opened
    fabric._portal.call(purge.run, opened, people.tenant_id)


def erased(fabric: Fabric, people: People, superuser: str) -> set[bytes]:
    """Have somebody erased about whom something was captured; what lay sealed in the tables."""
    said = {"kind": "statement", "text": "the violet giraffe sings at noon", "classification": "INTERNAL"}
    fabric.capture(people.run(None), **said, subject=SUBJECT)
    fabric.consolidate(people.tenant_id)
    before = sealed(superuser)
    fabric.erase(people.officer, subject=SUBJECT)
    assert before and sealed(superuser) == set()
    return before


@pytest.mark.rule("SCL-6", "ERA-3")
def test_a_purge_clears_the_log_of_every_standby_and_says_nothing_before(
    pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    people = People("acme")
    alone = make_conninfo(pair.primary, user="muniment_owner")
    monkeypatch.setattr(purging, "TRIES", 5)

    def refused(url: str, why: str, **options: Any) -> None:
        with Fabric.open(url, master_keys=MASTER_KEYS, **options) as fabric:
            with pytest.raises(PurgeIncomplete, match=why):
                purged(fabric, people)
            assert fabric.erasures(people.auditor)[0].purged_at is None

    with Fabric.open(pair.url(), master_keys=MASTER_KEYS) as fabric:
        before = erased(fabric, people, pair.primary)
        assert in_log(tmp_path / "standby" / "data", before)
    refused(alone, "1 standbys follow the primary, or another standby, that the address does not name")
    # One that is named and gets the log, but has not taken it over.
    with psycopg.connect(pair.standby, autocommit=True) as connection:
        connection.execute("SELECT pg_wal_replay_pause()")
        eventually(lambda: value(pair.standby, "SELECT pg_get_wal_replay_pause_state()") == "paused")
        refused(pair.url(), "a standby has not taken over the purge yet")
        connection.execute("SELECT pg_wal_replay_resume()")
    monkeypatch.setattr(purging, "TRIES", 50)
    # The standby that auditors read counts as named, once however often it is named.
    for url, replica in ((alone, pair.standby), (pair.url(), pair.standby)):
        with Fabric.open(url, master_keys=MASTER_KEYS, replica_url=replica) as fabric:
            purged(fabric, people)
            assert fabric.erasures(people.auditor)[0].purged_at is not None
            for folder in (pair.primary_folder, tmp_path / "standby"):
                assert in_log(folder / "data", before) == set()
            before = erased(fabric, people, pair.primary)
    # One that is named and away, and that the primary knows nothing of.
    with psycopg.connect(pair.primary, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM RESET synchronous_standby_names")
        connection.execute("SELECT pg_reload_conf()")
    kill_server(tmp_path / "standby")
    eventually(lambda: value(pair.primary, "SELECT count(*) FROM pg_stat_replication") == 0)
    refused(pair.url(), "a server that the address names does not answer")
    refused(alone, "a server that the address names does not answer", replica_url=pair.standby)


@pytest.mark.rule("SCL-6", "SCL-4", "ERA-3")
def test_after_a_failover_a_purge_is_receipted_once_no_server_that_is_named_is_left_out(
    pair: Pair, tmp_path: Path
) -> None:
    people = People("acme")
    alone = make_conninfo(pair.standby, user="muniment_owner")
    with Fabric.open(pair.url(), master_keys=MASTER_KEYS) as fabric:
        before = erased(fabric, people, pair.primary)
    pair.fail_over()
    eventually(lambda: value(pair.standby, "SELECT pg_is_in_recovery()") is False)
    with Fabric.open(pair.url(), master_keys=MASTER_KEYS) as fabric:
        with pytest.raises(PurgeIncomplete, match="does not answer: its log is not cleared"):
            purged(fabric, people)
        assert fabric.erasures(people.auditor)[0].purged_at is None
        before |= erased(fabric, people, pair.standby)
    # The old primary was done away with, and the address names it no more.
    with Fabric.open(alone, master_keys=MASTER_KEYS) as fabric:
        purged(fabric, people)
        assert all(one.purged_at is not None for one in fabric.erasures(people.auditor))
        assert in_log(tmp_path / "standby" / "data", before) == set()


def _states(pair: Pair) -> list[str]:
    """What `db status` says of each server."""
    servers = Address.parse(pair.url(), MASTER_KEYS.login_secret()).servers()
    return [one.state for one in anyio.run(server_states, servers)]


@pytest.mark.rule("SCL-4", "SCL-6")
def test_status_names_standbys_for_which_no_log_is_kept(pair: Pair) -> None:
    """A checkpoint, and each purge makes some, removes log that such a standby may not have received."""
    assert _states(pair) == ["primary", "standby"]
    with psycopg.connect(pair.standby, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET primary_slot_name = ''")
        connection.execute("SELECT pg_reload_conf()")
    unkept = "primary; standbys without a replication slot: 1; a purge can cut them off"
    eventually(lambda: _states(pair) == [unkept, "standby"])
    # A name that no standby has: writes wait for it.
    with psycopg.connect(pair.primary, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET synchronous_standby_names = 'db2'")
        connection.execute("SELECT pg_reload_conf()")
        named = (
            "writes wait, because no standby confirms them: synchronous_standby_names is db2; following: walreceiver"
        )
        eventually(lambda: named in _states(pair)[0])
        connection.execute("ALTER SYSTEM RESET synchronous_standby_names")
        connection.execute("SELECT pg_reload_conf()")
    with psycopg.connect(pair.standby, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET primary_slot_name = 'not_there'")
        connection.execute("SELECT pg_reload_conf()")
    eventually(lambda: _states(pair) == ["primary", "standby; receives nothing; its server's log says why"])
    with psycopg.connect(pair.standby, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET primary_slot_name = ''")
        connection.execute("SELECT pg_reload_conf()")
    eventually(lambda: _states(pair) == [unkept, "standby"])


@pytest.mark.rule("SCL-4")
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_a_command_that_waits_for_the_standby_ends_when_it_is_told_to(
    pair: Pair, tmp_path: Path, ending: signal.Signals
) -> None:
    with Fabric.open(pair.url(), master_keys=MASTER_KEYS) as fabric:
        fabric.capture(People("acme").run(None), kind="message", text="hello", classification="INTERNAL")
    kill_server(tmp_path / "standby")
    known = {"MUNIMENT_DATABASE_URL": pair.url(), "MUNIMENT_MASTER_KEY": base64.b64encode(MASTER_KEY).decode()}
    command = [sys.executable, "-m", "muniment", "capture", "again", "--capture-kind", "message", "-c", "INTERNAL"]
    with subprocess.Popen([*command, "--tenant", "acme"], env=environment() | known) as process:
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
        try:
            eventually(lambda: value(pair.primary, waiting))
            process.send_signal(ending)
            assert process.wait(15) == 128 + ending
        finally:
            process.kill()


@pytest.mark.rule("SCL-4")
def test_a_write_whose_wait_for_the_standby_was_cancelled_is_not_acknowledged(pair: Pair, tmp_path: Path) -> None:
    """PostgreSQL calls such a commit successful and warns: a failover would lose what a caller was told is done."""
    people = People("acme")
    said = {"kind": "statement", "classification": "INTERNAL", "text": "The parcel is in the depot."}
    with Fabric.open(pair.url(), master_keys=MASTER_KEYS) as fabric, ThreadPoolExecutor(1) as caller:
        fabric.capture(people.run(None), **said)
        kill_server(tmp_path / "standby")
        call = caller.submit(fabric.capture, people.run(None), **said, idempotency_key="depot-1")
        waiting = "SELECT max(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND usename = 'muniment_writer'"
        eventually(lambda: value(pair.primary, waiting))
        assert not call.done()
        waits = (
            "primary; writes wait, because no standby confirms them: synchronous_standby_names is *; following: none"
        )
        assert _states(pair) == [waits, "does not answer"]
        value(pair.primary, f"SELECT pg_cancel_backend(({waiting}))")
        with pytest.raises(StorageUnavailable, match="the wait for the standby was cancelled: a failover may lose it"):
            call.result(30)
        with psycopg.connect(pair.primary, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM RESET synchronous_standby_names")
            connection.execute("SELECT pg_reload_conf()")
        again = fabric.capture(people.run(None), **said, idempotency_key="depot-1")
        assert again.capture_id in {one.capture_id for one in fabric.captures.list(people.auditor)}
        assert len(list(fabric.captures.list(people.auditor))) == 2


@pytest.mark.rule("SCL-4", "TIR-5")
def test_a_former_primary_that_comes_back_beside_the_new_one_is_never_read_or_written(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    people = People("acme")
    with Fabric.open(pair.url(), master_keys=MASTER_KEYS) as fabric:
        promoted(fabric, people)
        pair.fail_over()
        said = {"kind": "statement", "classification": "INTERNAL", "text": "The parcel is in the depot."}
        fabric._portal.call(_captured, fabric._fabric, people)
        fabric.erase(people.officer, subject="customer:cust_1")
        assert values(fabric, people) == []
        with back_at(pair.primary, pair.primary_folder, *SETTINGS):
            # As it was: it accepts writes, waits for no standby, and has what was erased.
            with psycopg.connect(pair.primary, autocommit=True) as connection:
                connection.execute("ALTER SYSTEM RESET synchronous_standby_names")
                connection.execute("SELECT pg_reload_conf()")
            # A program that was open before, with connections that it has to make anew; and others that start now.
            rows = value(
                pair.standby,
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename LIKE 'muniment%'",
            )
            assert rows
            for url in (None, pair.url(), pair.url(standby_first=True)):
                with Fabric.open(url, master_keys=MASTER_KEYS) if url else nullcontext(fabric) as asked:
                    assert values(asked, people) == []
                    told = asked.capture(people.run(None), **said)
                    assert (
                        value(
                            pair.standby,
                            f"SELECT count(*) FROM muniment.captures WHERE capture_id = '{told.capture_id}'",
                        )
                        == 1
                    )
                    assert asked._portal.call(Worker(asked._fabric.opened).until_idle, [people.tenant_id]) > 0
            assert value(pair.primary, "SELECT count(*) FROM pg_stat_activity WHERE usename LIKE 'muniment%'") == 0
            monkeypatch.setenv("MUNIMENT_DATABASE_URL", pair.url())
            monkeypatch.setenv("MUNIMENT_MASTER_KEY", base64.b64encode(MASTER_KEY).decode())
            told = run("db", "status", "--json").json["servers"]
            assert [one["state"] for one in told] == _states(pair)
            assert _states(pair) == ["former primary, not used: stop it, and make it a standby", "primary"]
            # Alone it is not used either by a program that knows the new one.
            kill_server(Path(str(value(pair.standby, "SHOW data_directory"))).parent)
            assert _states(pair) == ["primary", "does not answer"], "nobody else is there to compare it with"
            with pytest.raises(StorageUnavailable, match="only a former primary answers"):
                fabric.recall(people.run())
