"""Rows in the log as callers see them: at most 500 per event, not sent to anybody; an upgrade lists existing rows."""

import asyncio
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest

from muniment import Fabric
from muniment.database import event_rows, row_digests
from muniment.database.row_forms import FORMS
from muniment.database.row_lists import AT_MOST, unpack
from muniment.erasure import key_rotation as rotation
from muniment.errors import InvalidInput
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS
from muniment.webhooks.messages import cloud_event
from tests.connections import Connections
from tests.faults.forging import begin_unchecked
from tests.stories import promoted, proposed

MESSAGE: dict[str, Any] = {"kind": "message", "text": "hello", "classification": "INTERNAL"}


def listed(rows: Any) -> list[tuple[str, int]]:
    """Type and number of listed rows of each event."""
    return [
        (
            event["type"],
            sum(len(one.ids) for one in unpack(event["rows"]).rows.values()) if event["rows"] else 0,
        )
        for event in sorted(rows("events"), key=lambda event: (event["seq"], event["n"]))
    ]


@pytest.mark.rule("AUD-4", "AUD-1")
def test_an_event_lists_its_rows_and_a_batch_is_an_event_for_each_five_hundred(
    fabric: Fabric, people: People, rows: Any
) -> None:
    fabric.capture_many(people.run(), [MESSAGE] * (2 * AT_MOST + 1))
    captured = [count for type_, count in listed(rows) if type_ == "memory.captured"]
    assert captured == [AT_MOST, AT_MOST, 1]
    result = [event.data["count"] for event in fabric.events(people.auditor) if event.type == "memory.captured"]
    assert result == captured
    promoted(fabric, people)
    last = listed(rows)[-3:]
    assert last == [("memory.proposed", 2), ("memory.reviewed", 1), ("memory.promoted", 2)]
    assert fabric.verify(people.auditor).ok


@pytest.mark.rule("AUD-4", "EVT-2")
def test_digests_are_sent_to_nobody(fabric: Fabric, people: People, rows: Any) -> None:
    promoted(fabric, people)
    assert all(event["rows"] for event in rows("events"))
    for event in fabric.events(people.auditor):
        assert "rows" not in event.model_dump()
        assert "rows" not in str(cloud_event(event))


@pytest.fixture
def tamper(server: TestServer, database: str, tenant: str) -> Callable[..., None]:
    """As somebody who can write anything in the database, and has no key."""

    def run(*statements: str) -> None:
        with server.connect(database) as owner:
            begin_unchecked(owner)
            for statement in statements:
                changed = owner.execute(statement.replace(":tenant", f"'{tenant}'"))  # type: ignore[arg-type]
                assert changed.rowcount != 0, statement

    return run


@pytest.fixture
def upgraded(
    fabric: Fabric, people: People, tamper: Callable[..., None], connections: Connections, clock: FakeClock
) -> Iterator[Fabric]:
    """A fabric on a tenant whose history was written by a version that listed no rows."""
    promoted(fabric, people)
    tamper(
        "DELETE FROM audit_keys WHERE tenant_id = :tenant",
        "UPDATE events SET rows = NULL WHERE tenant_id = :tenant",
    )
    with connections.fabric(clock=clock) as opened:
        yield opened


@pytest.mark.rule("AUD-4")
def test_rows_of_before_an_upgrade_are_listed_once_at_the_first_seal(
    upgraded: Fabric, people: People, tamper: Callable[..., None]
) -> None:
    upgraded.capture(people.run(), **MESSAGE)
    found = upgraded.verify(people.auditor)
    assert (found.ok, found.rows, found.covered_from) == (True, 0, None)
    last = upgraded.events(people.auditor)[-1].seq
    upgraded.seal(people.tenant_id)
    upgraded.capture(people.run(), **MESSAGE)
    found = upgraded.verify(people.auditor)
    assert (found.ok, found.covered_from) == (True, last + 1)
    (note,) = [one.data for one in upgraded.events(people.auditor) if one.data.get("about") == "rows_adopted"]
    assert found.rows == note["rows"] + 1
    tamper("UPDATE memories SET approver = 'eve' WHERE tenant_id = :tenant")
    (wrong,) = upgraded.verify(people.auditor).breaks
    assert (wrong.kind, wrong.table) == ("row_changed", "memories")


@pytest.mark.rule("AUD-4")
def test_two_who_seal_first_after_an_upgrade_list_the_rows_once(
    upgraded: Fabric, people: People, server: TestServer, database: str, clock: FakeClock
) -> None:
    with Fabric.open(server.url(database), clock=clock, master_keys=MASTER_KEYS) as other:

        async def both() -> None:
            await asyncio.gather(*(asyncio.to_thread(one.seal, people.tenant_id) for one in (upgraded, other)))

        asyncio.run(both())
        about = [one.data.get("about") for one in other.events(people.auditor)]
        assert about.count("rows_adopted") == 1
        assert other.verify(people.auditor).ok


@pytest.mark.rule("AUD-4")
def test_an_audit_key_that_was_taken_away_or_changed_is_reported_and_never_made_anew(
    fabric: Fabric, people: People, tamper: Callable[..., None], connections: Connections, clock: FakeClock
) -> None:
    promoted(fabric, people)
    fabric.seal(people.tenant_id)
    tamper("UPDATE audit_keys SET wrapped = sha256(wrapped) WHERE tenant_id = :tenant")
    with connections.fabric(clock=clock) as fresh:
        assert [one.kind for one in fresh.verify(people.auditor).breaks] == ["row_key_broken"]
    tamper(
        "DELETE FROM audit_keys WHERE tenant_id = :tenant",
        "UPDATE memories SET approver = 'eve' WHERE tenant_id = :tenant",
    )
    with connections.fabric(clock=clock) as fresh:
        fresh.seal(people.tenant_id)
        assert [one.kind for one in fresh.verify(people.auditor).breaks] == ["row_key_broken"]


@pytest.mark.rule("AUD-4", "ERA-4")
def test_the_audit_key_outlives_rotations_and_erasures(
    fabric: Fabric, people: People, rows: Any, connections: Connections, clock: FakeClock
) -> None:
    promoted(fabric, people, user_id="cust_1")
    before = rows("audit_keys")[0]
    fabric._portal.call(rotation.rotate, fabric._fabric._context, people.tenant_id)
    after = rows("audit_keys")[0]
    assert after["key_version"] > before["key_version"] and after["wrapped"] != before["wrapped"]
    fabric.erase(people.officer, user_id="cust_1")
    with connections.fabric(clock=clock) as fresh:
        promoted(fresh, people, user_id="cust_2")
        assert fresh.verify(people.auditor).ok


@pytest.mark.rule("AUD-4")
def test_a_verification_goes_on_where_it_was_interrupted(
    fabric: Fabric, people: People, others: People, tamper: Callable[..., None]
) -> None:
    for _ in range(40):
        fabric.capture(people.run(), **MESSAGE)
        fabric.seal(people.tenant_id)
    whole = fabric.verify(people.auditor)
    parts = [fabric.verify(people.auditor, count=1)]
    assert parts[0].cursor is not None and not parts[0].ok, "not all was looked at yet"
    first = parts[0].cursor
    while (cursor := parts[-1].cursor) is not None:
        parts.append(fabric.verify(people.auditor, count=1, cursor=cursor))
    assert len(parts) > 2 and parts[-1] == whole
    # What was found before the interruption is told after it.
    tamper(
        "DELETE FROM captures WHERE tenant_id = :tenant AND seq < 4",
        "DELETE FROM events WHERE tenant_id = :tenant AND seq = 5",
    )
    begun = fabric.verify(people.auditor, count=1)
    assert [one.kind for one in begun.breaks] == ["removed"]
    found = fabric.verify(people.auditor, cursor=begun.cursor)
    assert sorted((one.kind, one.table) for one in found.breaks if one.table) == [
        ("row_added", "captures"),
        ("row_removed", "captures"),
        ("row_removed", "captures"),
    ]
    fabric.capture(others.run(), **MESSAGE)
    for asker, wrong in ((others.auditor, first), (people.auditor, "x"), (people.auditor, first[:-9] + "AAAAAAAA=")):
        with pytest.raises(InvalidInput, match="cursor"):
            fabric.verify(asker, cursor=wrong)
    for count in (0, -1, True, "1"):
        with pytest.raises(InvalidInput, match="count"):
            fabric.verify(people.auditor, count=count)  # type: ignore[arg-type]


@pytest.mark.rule("AUD-4")
def test_rows_without_an_event_are_listed_when_the_chain_is_sealed(
    fabric: Fabric, people: People, clock: FakeClock, rows: Any
) -> None:
    promoted(fabric, people)
    fabric.seal(people.tenant_id)
    for _ in range(3):
        fabric.recall(people.run())
    assert fabric.verify(people.auditor).ok, "they wait for their batch"
    assert fabric.seal(people.tenant_id) == 0
    batches = sorted(rows("chain_batches"), key=lambda batch: batch["number"])
    assert [(batch["events"], batch["rows"] is not None) for batch in batches][1:] == [(0, True)]
    fabric.recall(people.run())
    clock.advance(hours=3)
    fabric.compile(people.run(), "Which channel?")
    fabric.seal(people.tenant_id)
    fabric.seal(people.tenant_id)
    found = fabric.verify(people.auditor)
    assert found.ok
    result: dict[str, list[str]] = {}
    for batch in rows("chain_batches"):
        for (name, _), some in (unpack(batch["rows"]).rows if batch["rows"] else {}).items():
            result.setdefault(name, []).extend(some.ids)
    assert sorted(result["recalls"]) == sorted(row["recall_id"] for row in rows("recalls"))
    assert len(result["compiles"]) == 1


@pytest.mark.rule("AUD-4")
def test_what_waits_in_a_queue_and_what_was_withdrawn_by_an_erasure_is_as_the_log_says(
    fabric: Fabric, people: People
) -> None:
    proposed(fabric, people.run("cust_1"), entity="customer:cust_1", predicate="likes", value="tea")
    fabric.recall(people.run("cust_1"), query="tea")
    fabric.erase(people.officer, subject="customer:cust_1", user_id="cust_1")
    fabric.seal(people.tenant_id)
    assert fabric.verify(people.auditor).breaks == ()


@contextmanager
def first_forms() -> Generator[None]:
    """The program digests rows in the first version of their forms, as it did before columns were added."""
    first = {
        table: replace(form, lasting=" ".join(one for one in form.lasting.split() if "@" not in one))
        for table, form in row_digests.BY_TABLE.items()
    }
    caches = (row_digests.insert_plan, event_rows._plan)
    try:
        with patch.object(row_digests, "BY_TABLE", first):
            for one in caches:
                one.cache_clear()
            yield
    finally:
        for one in caches:
            one.cache_clear()


@pytest.mark.rule("AUD-4")
def test_rows_that_were_listed_before_columns_were_added_still_match(
    fabric: Fabric, people: People, rows: Any, tamper: Callable[..., None]
) -> None:
    def versions() -> set[int]:
        added = {form.name for form in FORMS if form.version > 1}
        return {n for event in rows("events") for name, n in unpack(event["rows"]).rows if name in added}

    with first_forms():
        promoted(fabric, people)
        assert versions() == {1}
    promoted(fabric, people, "x", predicate="other")
    assert versions() == {1, *(form.version for form in FORMS if form.version > 1)}
    assert fabric.verify(people.auditor).ok
    tamper("UPDATE memories SET valid_until = 'infinity' WHERE tenant_id = :tenant AND predicate = 'other'")
    assert {(one.kind, one.table) for one in fabric.verify(people.auditor).breaks} >= {("row_changed", "memories")}
