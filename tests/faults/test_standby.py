"""A standby takes over from a primary that is killed: nothing that was acknowledged is lost (SCL-4, SCL-5, SCL-6)."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
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
from muniment.erasure import job as purge
from muniment.errors import InvalidInput, MunimentError, PurgeIncomplete
from muniment.testing import People
from muniment.testing.database import MASTER_KEYS
from tests.faults.servers import kill_server, separate, standby_of
from tests.faults.test_purge_settings import in_log, sealed

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
        fabric.queue.approve(people.reviewer, made.proposal_id)  # pyright: ignore[reportAttributeAccessIssue]
        assert [one.text for one in fabric.recall(people.run()).records] == ["Lamps are blue."]
    with pytest.raises(InvalidInput, match="read-write"):
        Fabric.open(f"{pair.url()} target_session_attrs=any", master_keys=MASTER_KEYS)


@pytest.mark.rule("SCL-6", "ERA-3")
def test_a_purge_clears_the_log_of_every_standby_and_says_nothing_before(pair: Pair, tmp_path: Path) -> None:
    people, subject = People("acme"), "customer:cus_77"
    alone = make_conninfo(pair.primary, user="muniment_owner")

    def purged(fabric: Fabric) -> None:
        opened: Any = fabric._fabric._opened
        fabric._portal.call(purge.run, opened, people.tenant_id)

    with Fabric.open(pair.url(), master_keys=MASTER_KEYS) as fabric:
        said = {"kind": "statement", "text": "the violet giraffe sings at noon", "classification": "INTERNAL"}
        fabric.capture(people.run(None), **said, subject=subject)
        fabric.consolidate(people.tenant_id)
        before = sealed(pair.primary)
        assert in_log(tmp_path / "standby" / "data", before)
        fabric.erase(people.officer, subject=subject)
    with (
        Fabric.open(alone, master_keys=MASTER_KEYS) as fabric,
        pytest.raises(PurgeIncomplete, match="standbys follow the primary"),
    ):
        purged(fabric)
    with Fabric.open(pair.url(), master_keys=MASTER_KEYS) as fabric:
        assert fabric.erasures(people.auditor)[0].purged_at is None
        purged(fabric)
        assert fabric.erasures(people.auditor)[0].purged_at is not None
        for folder in (pair.primary_folder, tmp_path / "standby"):
            assert in_log(folder / "data", before) == set()
