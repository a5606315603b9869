"""The metrics of review: the queue, samples of what policy promoted, and repeated messages."""

from datetime import date, timedelta

import pytest
from psycopg.types.json import Jsonb

from muniment import Fabric
from muniment.model.metrics import wilson
from muniment.testing import FakeClock, People, TestServer
from tests.conftest import Opener
from tests.metrics.figures import MESSAGES, Sql, capture_message, measure
from tests.stories import KEY, promoted, proposed


@pytest.mark.rule("MET-7")
def test_the_queue_is_counted_by_operator_and_day_by_age_and_by_what_was_late(
    fabric: Fabric, people: People, others: People, clock: FakeClock
) -> None:
    def waits(of: People, predicate: str) -> str:
        return proposed(fabric, of.run(), entity="customer:cust_1", predicate=predicate, value="x").proposal_id

    items = [waits(people, f"p{number}") for number in range(4)]
    waits(others, "p")
    fabric.queue.approve(people.reviewer, items[0])
    fabric.queue.reject(people.reviewer, items[1], reason="no")
    first = clock.now.date()
    clock.advance(hours=24)
    fabric.queue.approve(people.second_reviewer, items[2])
    text = "The shop is closed."
    statement = proposed(fabric, people.run(), write_class="statement", text=text).proposal_id
    clock.advance(hours=60)
    fabric.queue.approve(people.reviewer, items[3])  # due after 72 hours
    waits(people, "p5")
    clock.advance(hours=2)
    queue = measure(fabric, people).queue
    days = {(one.operator, one.day): one.decided for one in queue.by_operator}
    assert days == {("boris", first): 2, ("clara", date(2026, 1, 6)): 1, ("boris", date(2026, 1, 8)): 1}
    # In Auckland, thirteen hours ahead, it was the next day at eleven.
    there = fabric.metrics(people.auditor, zone="Pacific/Auckland").queue.by_operator
    assert {(one.operator, one.day) for one in there} == {
        ("boris", first), ("clara", date(2026, 1, 6)), ("boris", date(2026, 1, 9))
    }  # fmt: skip
    assert (queue.decided, queue.in_time, queue.sla_kept, queue.operators) == (4, 3, 0.75, 2)
    assert (queue.waiting.count, queue.waiting.median, queue.waiting.longest) == (2, 32 * 3600, 62 * 3600)
    classes = {one.write_class: one for one in queue.by_class}
    assert (classes["preference"].decided, classes["preference"].in_time) == (4, 3)
    assert (classes["preference"].waiting.count, classes["statement"].waiting.longest) == (1, 62 * 3600)
    assert (queue.past_due, classes["statement"].past_due) == (0, 0)
    clock.advance(hours=11)
    late = measure(fabric, people).queue
    assert (late.past_due, {one.write_class: one.past_due for one in late.by_class}) == (
        1,
        {"preference": 0, "statement": 1},
    )
    fabric.queue.reject(people.reviewer, statement, reason="no")
    clock.advance(days=31)
    later = measure(fabric, people).queue
    assert (later.decided, later.waiting.count, later.past_due) == (0, 1, 1)


@pytest.mark.rule("MET-8", "MET-10")
def test_what_the_jobs_write_down_is_counted_by_class_source_and_day(
    fabric: Fabric, people: People, others: People, clock: FakeClock, sql: Sql
) -> None:
    for of in (people, others):
        _jobs_wrote(fabric, of, sql)
    clock.advance(hours=1)
    found = measure(fabric, people)
    (preference,) = found.auto
    assert (preference.write_class, preference.suspended) == ("preference", True)
    assert (preference.confirmed, preference.refuted, preference.waiting) == (2, 1, 1)
    assert preference.accuracy == pytest.approx(2 / 3)
    assert (preference.low, preference.high) == wilson(2, 3)
    assert found.flow.proposals == {"preference": 4}, "a sample is no new proposal"
    assert [(one.extractor, one.day, one.calls) for one in found.model_calls] == [("llm@1", date(2026, 1, 5), 1)]
    (curve,) = found.calibrations
    assert (curve.source, curve.verdicts, curve.approved) == ("agent llm@1", 12, 9)
    assert [(point.raw, point.estimate, point.verdicts, point.approved) for point in curve.points] == [
        (0.5, 0.5, 4, 2),
        (0.8, 0.8, 8, 7),
    ]
    assert (found.captures.retrying, found.captures.parked) == (1, 1)
    assert (found.erasures.erasures, found.erasures.purged.count) == (2, 1)
    assert (found.erasures.purged.median, found.erasures.purged.longest) == (90, 90)
    clock.advance(days=31)
    later = measure(fabric, people)
    assert (later.model_calls, later.erasures.erasures) == ((), 0)
    assert (later.auto[0].confirmed, later.auto[0].refuted, later.auto[0].suspended) == (0, 0, True)
    assert later.auto[0].waiting == 1


def _jobs_wrote(fabric: Fabric, people: People, sql: Sql) -> None:
    """Four samples, of which people confirmed two and refuted one; a breaker; calls, curves, retries, erasures."""
    here = people.tenant_id
    memories = [promoted(fabric, people, "x", predicate=f"p{number}") for number in range(4)]
    samples = [proposed(fabric, people.run(), **KEY, value=f"v{number}").proposal_id for number in range(4)]
    for memory_id, sample in zip(memories, samples, strict=True):
        sql("UPDATE muniment.proposals SET audits = %s WHERE proposal_id = %s", memory_id, sample)
    for sample in samples[:2]:
        fabric.queue.approve(people.reviewer, sample)
    fabric.queue.reject(people.reviewer, samples[2], reason="no")
    tick = sql("SELECT seq, at, txid FROM muniment.ticks WHERE tenant_id = %s ORDER BY seq DESC LIMIT 2", here)
    (seq, at, txid), before = tick
    for (number, when, tx), is_open in ((before, False), ((seq, at, txid), True)):
        sql(
            "INSERT INTO muniment.breakers VALUES (%s, 'preference', %s, %s, %s, %s, %s, 30, 20, 0.5)",
            *(here, number, when, tx, is_open, "auto" if is_open else "boris"),
        )
    sql("INSERT INTO muniment.model_calls VALUES (%s, 'llm@1', %s, 1)", here, at.date())
    old, new = [[0.5, 0.4, 4, 1]], [[0.5, 0.5, 4, 2], [0.8, 0.8, 8, 7]]
    for name, (number, when, tx), count, points in (("a", before, 4, old), ("b", (seq, at, txid), 12, new)):
        sql(
            "INSERT INTO muniment.calibrations VALUES (%s, %s, %s, %s, %s, 'agent llm@1', %s, %s, %s)",
            *(here, f"cal_{name}", number, when, tx, count, 9 if count > 9 else 1, Jsonb(points)),
        )
    for name, parked in (("c1", None), ("c2", at)):
        sql("INSERT INTO muniment.retries VALUES (%s, %s, 1, '*', 1, %s, 'failed', %s)", here, name, at, parked)
    for name, purged in (("e1", None), ("e2", at + timedelta(seconds=90))):
        sql(
            "INSERT INTO muniment.erasures (tenant_id, erasure_id, seq, erased_at, txid, by, subject, holders, names, memories, purged_at)"
            " VALUES (%s, %s, %s, %s, %s, 'petra', 'customer:x', '{customer:x}', '{customer:x}', 0, %s)",
            *(here, name, seq, at, txid, purged),
        )


@pytest.mark.rule("MET-9")
def test_what_end_users_say_again_is_counted_by_message(under: Opener, people: People, clock: FakeClock) -> None:
    with under(MESSAGES) as fabric:
        capture_message(fabric, people, "I always travel by train.")
        fabric.capture(people.run(), kind="message", payload={"shape": "no text"}, classification="INTERNAL")
        done = fabric.consolidate(people.tenant_id)
        fabric.queue.approve(people.reviewer, done.proposals[0])
        clock.advance(days=1)
        capture_message(fabric, people, "I always travel by train.")
        capture_message(fabric, people, "I always travel by train.", kind="statement")
        capture_message(fabric, people, "My dog is called Rex.")
        fabric.consolidate(people.tenant_id)
        found = measure(fabric, people).telling
        assert (found.messages, found.with_candidates, found.repeated) == (4, 3, 1)
        assert (found.share, found.share_of_all) == (pytest.approx(1 / 3), 0.25)
        lately = measure(fabric, people, since=clock.now - timedelta(hours=1)).telling
        assert (lately.messages, lately.repeated) == (2, 1)


@pytest.mark.rule("MET-7")
@pytest.mark.parametrize("count", [1, 2, 18])
def test_every_part_of_a_spread_is_reported_as_soon_as_there_is_one_to_measure(
    fabric: Fabric, people: People, clock: FakeClock, server: TestServer, database: str, count: int
) -> None:
    for n in range(count):
        proposed(fabric, people.run(), entity="customer:cust_1", predicate=f"p_{n}", value=n)
        clock.advance(hours=1)
    whole = measure(fabric, people).queue
    hour = 3600
    for waiting in (whole.waiting, whole.by_class[0].waiting):
        assert (waiting.count, waiting.longest) == (count, count * hour)
        assert waiting.median == pytest.approx((count + 1) / 2 * hour)
        assert waiting.ninetieth == pytest.approx((1 + 0.9 * (count - 1)) * hour)
    assert measure(fabric, people).erasures.purged.ninetieth is None, "nothing was purged"
    fabric.erase(people.officer, subject="customer:nobody")
    with server.connect(database) as owner:
        owner.execute(
            "UPDATE erasures SET purged_at = erased_at + interval '2 hours' WHERE tenant_id = %s", [people.tenant_id]
        )
    purged = measure(fabric, people).erasures.purged
    assert (purged.count, purged.median, purged.ninetieth, purged.longest) == (1, *[2 * hour] * 3)
