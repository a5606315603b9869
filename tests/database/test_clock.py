"""Clocks that are ahead: refused by the database, set back by an admin with an event, and distinguished in the past."""

import asyncio
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from muniment import Fabric
from muniment.database.migrate import set_bound
from muniment.errors import ClockAhead, Conflict, InvalidInput, MomentAmbiguous, RoleMissing
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.stories import event_data, promoted, texts

# The bound that the schema is created with.
BOUND = timedelta(minutes=5)

MESSAGE: dict[str, Any] = {"kind": "message", "text": "hello", "classification": "INTERNAL"}
Bounded = Callable[[timedelta], AbstractContextManager[tuple[Fabric, FakeClock]]]


def bind(server: TestServer, database: str, bound: timedelta | None) -> None:
    asyncio.run(set_bound(server.url(database), bound))


@pytest.fixture
def bounded(server: TestServer, fresh_database: str) -> Bounded:
    """A fabric of a home as it is created, whose clock is so far from the database's."""
    bind(server, fresh_database, BOUND)

    @contextmanager
    def opened(ahead: timedelta) -> Generator[tuple[Fabric, FakeClock]]:
        clock = FakeClock(datetime.now(UTC) + ahead)
        with Fabric.open(server.url(fresh_database), clock=clock, master_keys=MASTER_KEYS) as fabric:
            yield fabric, clock

    return opened


@pytest.fixture
def ahead(server: TestServer, fresh_database: str, bounded: Bounded, people: People) -> datetime:
    """A tenant whose clock is a year ahead, from before there was a bound; gives that time."""
    bind(server, fresh_database, None)
    with bounded(timedelta(days=365)) as (fabric, _):
        at = fabric.capture(people.run(), **MESSAGE).captured_at
    bind(server, fresh_database, BOUND)
    return at


# --- the bound


@pytest.mark.rule("AUD-5")
def test_nothing_is_written_by_a_program_whose_clock_is_ahead(bounded: Bounded, people: People) -> None:
    with bounded(timedelta(minutes=4)) as (fabric, clock):
        first = fabric.capture(people.run(), **MESSAGE)
        clock.advance(minutes=2)
        with pytest.raises(ClockAhead) as error:
            fabric.capture(people.run(), **MESSAGE)
        assert error.value.code == "clock_ahead" and "this program's clock is 0:0" in str(error.value)
        clock.advance(minutes=-2)
        assert fabric.capture(people.run(), **MESSAGE).seq == first.seq + 1
        assert [event.seq for event in fabric.events(people.auditor)][-1] == first.seq + 1


@pytest.mark.rule("AUD-5")
def test_a_program_whose_clock_is_behind_goes_on(bounded: Bounded, people: People) -> None:
    with bounded(timedelta(0)) as (fabric, clock):
        first = fabric.capture(people.run(), **MESSAGE)
        clock.advance(hours=-3)
        assert fabric.capture(people.run(), **MESSAGE).captured_at == first.captured_at


@pytest.mark.rule("AUD-5")
@pytest.mark.parametrize("task", ["writer", "privacy", "jobs"])
def test_no_login_dates_anything_ahead_or_moves_the_bound(
    bounded: Bounded, people: People, server: TestServer, fresh_database: str, task: str
) -> None:
    with bounded(timedelta(0)) as (fabric, _):
        last = fabric.capture(people.run(), **MESSAGE)
    with server.connect(fresh_database, f"muniment_{task}") as login:
        login.execute("SELECT set_config('muniment.tenant', %s, false)", [people.tenant_id])
        later = last.captured_at + timedelta(minutes=30)
        tick = "INSERT INTO ticks (tenant_id, seq, at, prev_seq, prev_at, txid) VALUES (%s, %s, %s, %s, %s, transaction_mark())"
        for statement, given in (
            (tick, [people.tenant_id, last.seq + 1, later, last.seq, last.captured_at]),
            ("UPDATE tenant_clock SET at = %s WHERE tenant_id = %s", [later, people.tenant_id]),
            (
                "CREATE OR REPLACE FUNCTION muniment.clock_bound() RETURNS interval LANGUAGE sql RETURN NULL::interval",
                [],
            ),
            ("DROP FUNCTION muniment.clock_bound() CASCADE", []),
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                login.execute(statement, given or None)


@pytest.mark.rule("AUD-5")
def test_verify_says_whether_there_is_a_bound(bounded: Bounded, people: People, fabric: Fabric) -> None:
    with bounded(timedelta(0)) as (own, _):
        own.capture(people.run(), **MESSAGE)
        assert own.verify(people.auditor).clock_bound_s == 300
    assert fabric.verify(people.auditor).clock_bound_s is None


# --- the way back


@pytest.mark.rule("AUD-5")
def test_an_admin_brings_a_clock_back_as_an_event_and_the_numbers_go_on(
    ahead: datetime, bounded: Bounded, people: People
) -> None:
    with bounded(timedelta(0)) as (fabric, clock):
        with pytest.raises(ClockAhead, match=r"the tenant's clock is 36\d days.* muniment work reset-clock"):
            fabric.capture(people.run(), **MESSAGE)
        done = fabric.work.reset_clock(people.admin, reason="node 3 had no time server")
        assert (done.at, done.was_at, done.reset_by) == (clock.now, ahead, "ada")
        receipt = fabric.capture(people.run(), **MESSAGE)
        assert (receipt.seq, receipt.captured_at) == (done.seq + 1, clock.now)
        (event,) = [one for one in fabric.events(people.auditor) if one.type == "memory.clock_reset"]
        assert (event.seq, event.at, event.actor) == (done.seq, clock.now, "ada")
        assert event.data["reason"] == "node 3 had no time server"
        assert datetime.fromisoformat(event.data["was_at"]) == ahead
        fabric.seal(people.tenant_id)
        assert fabric.verify(people.auditor).ok


@pytest.mark.rule("AUD-5", "AUD-2")
def test_a_step_back_without_an_event_is_found_by_verify(
    ahead: datetime, bounded: Bounded, people: People, server: TestServer, fresh_database: str
) -> None:
    with server.connect(fresh_database, "muniment_writer") as writer, writer.transaction():
        writer.execute("SELECT set_config('muniment.tenant', %s, true)", [people.tenant_id])
        row: Any = writer.execute(
            "UPDATE tenant_clock SET seq = seq + 1, prev_at = at, at = now() RETURNING seq, at, prev_at"
        ).fetchone()
        writer.execute(
            "INSERT INTO ticks (tenant_id, seq, at, prev_seq, prev_at, txid, reset)"
            " VALUES (%s, %s, %s, %s, %s, transaction_mark(), %s)",
            [people.tenant_id, row[0], row[1], row[0] - 1, row[2], row[0]],
        )
        writer.execute(
            "INSERT INTO clock_resets (tenant_id, seq, at, prev_at, txid, reset_by, reason)"
            " VALUES (%s, %s, %s, %s, transaction_mark(), 'eve', 'none')",
            [people.tenant_id, *row],
        )
    with bounded(timedelta(0)) as (fabric, _):
        found = fabric.verify(people.auditor)
    assert ("changed", row[0]) in [(one.kind, one.seq) for one in found.breaks]
    assert ("row_added", "clock_resets") in [(one.kind, one.table) for one in found.breaks]


@pytest.mark.rule("AUD-5", "ISO-5")
def test_only_an_admin_and_only_where_it_is_ahead(ahead: datetime, bounded: Bounded, people: People) -> None:
    with bounded(timedelta(hours=1)) as (fabric, clock):
        with pytest.raises(ClockAhead, match="this program's clock"):
            fabric.work.reset_clock(people.admin, reason="mine is ahead too")
        clock.advance(hours=-1)
        wrong: list[Any] = ["", "x" * 300, 5, "mail me at jane@example.com"]
        for reason in wrong:
            with pytest.raises(InvalidInput):
                fabric.work.reset_clock(people.admin, reason=reason)
        fabric.work.reset_clock(people.admin, reason="ahead")
        with pytest.raises(Conflict, match="not ahead"):
            fabric.work.reset_clock(people.admin, reason="again")
        for asker in (people.run(), people.reviewer, people.auditor, people.officer):
            with pytest.raises(RoleMissing):
                fabric.work.reset_clock(asker, reason="no admin")


@pytest.mark.rule("AUD-5")
def test_the_database_takes_no_other_step_back(
    ahead: datetime, bounded: Bounded, people: People, server: TestServer, fresh_database: str
) -> None:
    tick = (
        "INSERT INTO ticks (tenant_id, seq, at, prev_seq, prev_at, txid, reset)"
        " SELECT tenant_id, seq + 1, %(at)s, seq, at, transaction_mark(), %(reset)s FROM ticks ORDER BY seq DESC LIMIT 1"
    )
    recorded = (
        "INSERT INTO clock_resets (tenant_id, seq, at, prev_at, txid, reset_by, reason)"
        " SELECT tenant_id, seq, at, prev_at, txid, 'eve', 'none' FROM ticks ORDER BY seq DESC LIMIT 1"
    )
    with server.connect(fresh_database, "muniment_writer") as writer:
        writer.execute("SELECT set_config('muniment.tenant', %s, false)", [people.tenant_id])
        last = writer.execute("SELECT max(seq) FROM ticks").fetchone()
        assert last is not None
        reset = int(str(last[0])) + 1
        now = datetime.now(UTC)
        with pytest.raises(psycopg.errors.CheckViolation):
            writer.execute(tick, {"at": now, "reset": None})
        with pytest.raises(psycopg.errors.CheckViolation):
            writer.execute(tick, {"at": now, "reset": reset - 1})
        with pytest.raises(psycopg.errors.ForeignKeyViolation):
            writer.execute(tick, {"at": now, "reset": reset})
        with pytest.raises(psycopg.errors.InsufficientPrivilege), writer.transaction():
            # Not to a time before the database's own.
            writer.execute(tick, {"at": now - timedelta(hours=1), "reset": reset})
            writer.execute(recorded)
        with writer.transaction(force_rollback=True):
            writer.execute(tick, {"at": now, "reset": reset})
            writer.execute(recorded)
            writer.execute("SET CONSTRAINTS ALL IMMEDIATE")
    with bounded(timedelta(0)) as (fabric, _):
        fabric.work.reset_clock(people.admin, reason="ahead")
    with server.connect(fresh_database, "muniment_writer") as writer:
        writer.execute("SELECT set_config('muniment.tenant', %s, false)", [people.tenant_id])
        with pytest.raises(psycopg.errors.InsufficientPrivilege), writer.transaction():
            # And not where the clock is right: nothing can be dated back.
            writer.execute(tick, {"at": datetime.now(UTC) - timedelta(minutes=4), "reset": reset + 1})
            writer.execute(recorded)


@pytest.mark.rule("AUD-5", "ISO-1")
def test_a_reset_of_one_tenant_leaves_the_others_alone(
    ahead: datetime, bounded: Bounded, people: People, others: People
) -> None:
    with bounded(timedelta(0)) as (fabric, _):
        first = fabric.capture(others.run(), **MESSAGE)
        fabric.work.reset_clock(people.admin, reason="ahead")
        with pytest.raises(Conflict):
            fabric.work.reset_clock(others.admin, reason="ours too")
        assert fabric.capture(others.run(), **MESSAGE).seq == first.seq + 1
        assert event_data(fabric, others, "clock_reset") == []


# --- the past across it


@pytest.fixture
def twice(fabric: Fabric, people: People, clock: FakeClock) -> dict[str, datetime]:
    """At 9:00 tea, at 10:00 and 10:30 by a clock that was ahead rye and milk; back at 9:30; at 10:10 oats."""
    start = clock.now
    promoted(fabric, people, "tea", predicate="a")
    for minutes, value in ((60, "rye"), (90, "milk")):
        clock.now = start + timedelta(minutes=minutes)
        promoted(fabric, people, value, predicate=value)
    clock.now = start + timedelta(minutes=30)
    fabric.work.reset_clock(people.admin, reason="ahead")
    clock.now = start + timedelta(minutes=70)
    promoted(fabric, people, "oats", predicate="oats")
    clock.now = start + timedelta(minutes=120)
    return {f"{minutes}": start + timedelta(minutes=minutes) for minutes in (15, 45, 65, 75, 100)}


def _values(fabric: Fabric, people: People, as_of: datetime | int) -> set[Any]:
    return {record.value for record in fabric.recall(people.run(), as_of=as_of).records}


@pytest.mark.rule("AUD-5", "REC-7")
def test_a_time_that_was_twice_names_both_numbers_and_a_number_always_works(
    fabric: Fabric, people: People, twice: dict[str, datetime]
) -> None:
    with pytest.raises(MomentAmbiguous) as error:
        fabric.recall(people.run(), as_of=twice["65"])
    earlier, later = error.value.numbers
    assert error.value.code == "moment_ambiguous" and error.value.field == "as_of"
    assert f"as number {earlier} and as number {later}" in str(error.value)
    assert error.value.as_dict()["numbers"] == [earlier, later]
    assert _values(fabric, people, earlier) == {"tea", "rye"}
    assert _values(fabric, people, later) == {"tea", "rye", "milk"}
    with pytest.raises(MomentAmbiguous) as error:
        fabric.memories.list(people.reviewer, as_of=twice["75"])
    assert _values(fabric, people, error.value.numbers[1]) == {"tea", "rye", "milk", "oats"}
    memory = fabric.memories.list(people.reviewer)[0].memory_id
    with pytest.raises(MomentAmbiguous):
        fabric.explain(people.auditor, memory_id=memory, as_of=twice["75"], run=people.run())
    assert fabric.explain(people.auditor, memory_id=memory, as_of=later, run=people.run()) is not None


@pytest.mark.rule("AUD-5", "REC-7")
def test_a_time_that_was_once_is_as_before(fabric: Fabric, people: People, twice: dict[str, datetime]) -> None:
    assert _values(fabric, people, twice["15"]) == {"tea"}
    # Between the reset and the first of what was dated ahead: only the second time round.
    assert _values(fabric, people, twice["45"]) == {"tea", "rye", "milk"}
    # After the clock has come to where it had been before.
    assert _values(fabric, people, twice["100"]) == {"tea", "rye", "milk", "oats"}
    assert len(texts(fabric, people.run())) == 4


@pytest.mark.rule("ERR-1", "REC-7")
@pytest.mark.parametrize("number", [0, -1, 2**62, True, 10**6, "0"])
def test_an_invalid_number_is_reported(fabric: Fabric, people: People, number: Any) -> None:
    promoted(fabric, people)
    with pytest.raises(InvalidInput) as error:
        fabric.recall(people.run(), as_of=number)
    assert error.value.field == "as_of"
