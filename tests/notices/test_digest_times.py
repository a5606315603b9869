"""When a digest goes out: at the hour of the person's own clock, whatever happens to that clock."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from muniment import Fabric
from muniment.errors import InvalidInput
from muniment.model.zones import next_midnight_in
from muniment.notices.rules import Schedule
from muniment.testing import FakeClock, People, TestServer
from tests.notices.mailbox import Mailbox, doubted, fabric, mailbox, settings

__all__ = ["fabric", "mailbox", "settings"]  # fixtures

TO = "boris@example.com"
VIENNA = "Europe/Vienna"


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def times(schedule: Schedule, start: str, count: int) -> list[str]:
    """When the next digests go out, in UTC."""
    now, found = utc(start), list[str]()
    for _ in range(count):
        following = schedule.next_after(now)
        assert following is not None
        assert following > now
        now = following
        found.append(f"{now:%m-%d %H:%M}")
    return found


@pytest.mark.parametrize(
    ("at", "zone", "start", "expected"),
    [
        ("07:00", "UTC", "2026-01-05 07:00", ["01-06 07:00", "01-07 07:00"]),
        ("07:00", "UTC", "2026-01-05 06:59", ["01-05 07:00", "01-06 07:00"]),
        # Seven stays seven as clocks are put forward and back.
        ("07:00", VIENNA, "2026-03-27 12:00", ["03-28 06:00", "03-29 05:00", "03-30 05:00"]),
        ("07:00", VIENNA, "2026-10-23 12:00", ["10-24 05:00", "10-25 06:00", "10-26 06:00"]),
        # 02:30 is skipped on the 29th of March: it is 03:30 then.
        ("02:30", VIENNA, "2026-03-28 00:00", ["03-28 01:30", "03-29 01:30", "03-30 00:30"]),
        # It comes twice on the 25th of October: the first counts.
        ("02:30", VIENNA, "2026-10-24 12:00", ["10-25 00:30", "10-26 01:30"]),
        ("02:30", VIENNA, "2026-10-25 00:45", ["10-26 01:30"]),
        # Midnight itself is skipped, and comes twice.
        ("00:00", "America/Havana", "2026-03-07 12:00", ["03-08 05:00", "03-09 04:00"]),
        ("00:00", "America/Havana", "2026-10-31 12:00", ["11-01 04:00", "11-02 05:00"]),
        # The 30th of December 2011 is missing in Samoa.
        ("07:00", "Pacific/Apia", "2011-12-29 12:00", ["12-29 17:00", "12-30 17:00", "12-31 17:00"]),
        ("23:59", "Pacific/Kiritimati", "2026-01-05 09:58", ["01-05 09:59", "01-06 09:59"]),
        # A zone that this machine does not know.
        ("07:00", "Europe/Atlantis", "2026-01-05 08:00", ["01-06 07:00"]),
    ],
)
def test_a_daily_digest_goes_out_when_the_persons_clock_shows_the_time(
    at: str, zone: str, start: str, expected: list[str]
) -> None:
    assert times(Schedule("daily", at, zone), start, len(expected)) == expected


@pytest.mark.parametrize(
    ("zone", "start", "expected"),
    [
        ("UTC", "2026-01-05 09:59", ["01-05 10:00", "01-05 11:00"]),
        ("Asia/Kolkata", "2026-01-05 09:59", ["01-05 10:30", "01-05 11:30"]),
        (VIENNA, "2026-03-29 00:10", ["03-29 01:00", "03-29 02:00"]),
        (VIENNA, "2026-10-24 23:10", ["10-25 00:00", "10-25 01:00", "10-25 02:00"]),
        # Half an hour is skipped, and comes twice.
        ("Australia/Lord_Howe", "2026-10-03 15:10", ["10-03 16:00", "10-03 17:00"]),
        ("Australia/Lord_Howe", "2026-04-04 14:10", ["04-04 15:30", "04-04 16:30"]),
    ],
)
def test_an_hourly_digest_goes_out_when_it_shows_a_full_hour(zone: str, start: str, expected: list[str]) -> None:
    assert times(Schedule("hourly", "07:00", zone), start, len(expected)) == expected


@pytest.mark.parametrize(
    ("zone", "now", "ends"),
    [
        ("UTC", "2026-01-05 00:00", "2026-01-06 00:00"),
        (VIENNA, "2026-01-05 23:30", "2026-01-06 23:00"),
        (VIENNA, "2026-03-29 12:00", "2026-03-29 22:00"),
        (VIENNA, "2026-10-24 23:30", "2026-10-25 23:00"),
        ("America/Havana", "2026-03-07 12:00", "2026-03-08 05:00"),
        ("America/Havana", "2026-11-01 04:30", "2026-11-02 05:00"),
        ("Pacific/Apia", "2011-12-29 12:00", "2011-12-30 10:00"),
    ],
)
def test_a_day_ends_when_the_next_begins_there(zone: str, now: str, ends: str) -> None:
    assert next_midnight_in(zone, utc(now)) == utc(ends)


def test_a_digest_comes_at_the_chosen_time_and_counts_what_is_due_on_that_day(
    fabric: Fabric, people: People, mailbox: Mailbox, clock: FakeClock, server: TestServer, database: str
) -> None:
    clock.now = utc("2026-03-27 20:00")
    made = fabric.notices.set(
        people.reviewer, channel="mail", address=TO, digest="daily", at="06:30", time_zone="America/New_York", kinds=[]
    )
    assert (made.at, made.time_zone, made.digest_at) == ("06:30", "America/New_York", utc("2026-03-28 10:30"))
    dues = ("2026-03-28 23:30", "2026-03-29 03:59", "2026-03-29 04:00")
    with server.connect(database) as owner:
        for due in dues:
            item = doubted(fabric, people, due)
            owner.execute(
                "UPDATE proposals SET due_at = %s WHERE tenant_id = %s AND proposal_id = %s",
                [utc(due), people.tenant_id, item.proposal_id],
            )
    clock.now = utc("2026-03-28 10:29")
    assert fabric.notices.deliver(people.tenant_id).sent == 0
    clock.advance(minutes=1)
    assert fabric.notices.deliver(people.tenant_id).sent == 1
    assert "open proposals: 3" in mailbox.texts[0]
    assert "due today: 2" in mailbox.texts[0]
    assert fabric.notices.list(people.reviewer)[0].digest_at == utc("2026-03-29 10:30")


def test_another_time_or_zone_counts_from_the_next_digest_on(fabric: Fabric, people: People, clock: FakeClock) -> None:
    fields: dict[str, Any] = {"channel": "mail", "address": TO, "digest": "daily"}
    first = fabric.notices.set(people.reviewer, **fields)
    assert (first.at, first.time_zone, first.digest_at) == ("07:00", "UTC", utc("2026-01-06 07:00"))
    clock.advance(minutes=1)
    assert fabric.notices.set(people.reviewer, **fields).digest_at == first.digest_at
    assert fabric.notices.set(people.reviewer, **fields, at="18:15").digest_at == utc("2026-01-05 18:15")
    assert fabric.notices.set(people.reviewer, **fields, time_zone=VIENNA).digest_at == utc("2026-01-06 06:00")


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("time_zone", "Europe/Nowhere", "expected the name of a time zone, such as Europe/Vienna, or UTC"),
        ("time_zone", "Vienna", "expected the name of a time zone, such as Europe/Vienna, or UTC"),
        ("time_zone", "America/Argentina", "expected the name of a time zone, such as Europe/Vienna, or UTC"),
        ("at", "7", "expected a time of the day, such as 07:00"),
        ("at", "24:00", "expected a time of the day, such as 07:00"),
    ],
)
def test_a_time_or_a_zone_that_is_none_is_refused_by_its_name(
    fabric: Fabric, people: People, field: str, value: str, says: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        fabric.notices.set(people.reviewer, channel="mail", address=TO, digest="daily", **{field: value})
    assert (caught.value.field, caught.value.message) == (field, says)


@pytest.mark.parametrize("digest", ["hourly", "daily"])
def test_a_clock_that_was_far_ahead_delays_no_digest_and_one_put_back_a_little_repeats_none(
    digest: Any, fabric: Fabric, people: People, mailbox: Mailbox, clock: FakeClock
) -> None:
    clock.now = utc("2026-01-05 06:50")
    fabric.notices.set(people.reviewer, channel="mail", address=TO, digest=digest, kinds=[])
    doubted(fabric, people)
    clock.advance(minutes=10)
    assert fabric.notices.deliver(people.tenant_id).sent == 1
    clock.advance(minutes=-10)
    fabric.notices.deliver(people.tenant_id)
    clock.advance(minutes=10)
    assert fabric.notices.deliver(people.tenant_id).sent == 0, "not twice"
    clock.advance(days=20)
    assert fabric.notices.deliver(people.tenant_id).sent == 1
    clock.advance(days=-20)
    again = fabric.notices.deliver(people.tenant_id)
    wait = timedelta(hours=1) if digest == "hourly" else timedelta(days=1)
    assert again.next_at == clock.now + wait
    clock.advance(seconds=wait.total_seconds())
    assert fabric.notices.deliver(people.tenant_id).sent == 1
