"""Metrics: small histories with known numbers, by window and tenant, each metric as the specification defines it."""

from collections.abc import Callable, Iterator
from datetime import date, timedelta
from typing import Any

import pytest
from psycopg.types.json import Jsonb

from muniment import Fabric
from muniment.errors import InvalidInput, RoleMissing
from muniment.language.embedding.tokenizers import builtin_tokenizer
from muniment.metrics.intervals import wilson
from muniment.model.consent import Consent
from muniment.model.metrics import GoldenResult, Metrics
from muniment.testing import FakeClock, People, TestServer
from tests.conftest import Opener
from tests.stories import CONSENT, KEY, promoted, proposed, refused

Sql = Callable[..., list[tuple[Any, ...]]]
MESSAGES = """memory_layer:
  statements_from: [message, statement]
  extraction: {messages: false}
"""


@pytest.fixture
def sql(server: TestServer, database: str) -> Iterator[Sql]:
    """As somebody who may do anything: for what only a job, or an accident, would write."""
    with server.connect(database) as owner:

        def run(text: str, *given: Any) -> list[tuple[Any, ...]]:
            done = owner.execute(text, given)
            return done.fetchall() if done.description else []

        yield run


def measured(fabric: Fabric, people: People, **window: Any) -> Metrics:
    return fabric.metrics(people.auditor, **window)


def said(fabric: Fabric, people: People, text: str, **fields: Any) -> str:
    given: dict[str, Any] = {"kind": "message", "classification": "INTERNAL", **fields}
    return fabric.capture(people.run(), text=text, **given).capture_id


# ---- the window, the tenant, who may ask ----


@pytest.mark.rule("RED-4", "MET-10")
def test_what_went_through_is_counted_within_the_window_and_the_tenant_alone(
    under: Opener, people: People, others: People, clock: FakeClock
) -> None:
    budgets = (
        "memory_layer: {budgets: [{tier: semantic, records: 4, bytes: 100000}, {write_class: statement, records: 9}]}"
    )
    with under(budgets) as fabric:

        def history(of: People, channel: str) -> None:
            """Two memories of which one is withdrawn, a duplicate, a refusal, two masks, a capture that waits."""
            promoted(fabric, of, channel)
            fabric.retract(of.reviewer, promoted(fabric, of, "blue", predicate="colour"), reason="wrong")
            proposed(fabric, of.run(), **KEY, value=channel)
            refused(fabric, of.run(), **KEY, value="pigeon", classification="PII")
            text = "Write to ada@example.com or bob@example.com about the office in Lyon."
            fabric.consent.grant(of.officer, subject="customer:cust_9", **CONSENT)
            proposed(fabric, of.run(), write_class="statement", text=text, subject="customer:cust_9")
            fabric.capture(of.run(), kind="effect", payload={"sent": True}, classification="INTERNAL")

        history(people, "email")
        first = clock.now
        history(others, "email")
        clock.advance(days=40)
        promoted(fabric, people, "tea", predicate="drink")

        early = measured(fabric, people, since=first - timedelta(days=1), until=first)
        assert early.captures.by_kind == {"effect": 1, "statement": 5}
        assert early.flow.proposals == {"preference": 3, "statement": 1}
        assert early.flow.duplicates == {"preference": 1}
        assert [(one.gate, one.count) for one in early.flow.refusals] == [("consent", 1)]
        assert [(one.kind, one.write_class, one.count) for one in early.flow.redactions] == [("email", "statement", 2)]
        promotions = [(one.tier, one.write_class, one.auto, one.count) for one in early.flow.promotions]
        assert promotions == [("semantic", "preference", False, 2)]
        assert [(one.name, one.count) for one in early.flow.retractions] == [("wrong", 1)]
        assert [(one.tier, one.write_class, one.records) for one in early.storage] == [("semantic", "preference", 1)]

        late = measured(fabric, people)
        assert (late.since, late.until, late.at) == (clock.now - timedelta(days=30), clock.now, clock.now)
        assert (late.captures.by_kind, late.flow.proposals) == ({"statement": 1}, {"preference": 1})
        assert (late.flow.refusals, late.flow.redactions, late.flow.retractions) == ((), (), ())
        assert (late.captures.waiting, late.captures.oldest_waiting) == (1, 40 * 86_400)
        (kept,) = late.storage
        assert (kept.records, kept.bytes > 150) == (2, True)
        semantic, statements = late.budgets
        assert (semantic.records, semantic.most_records, semantic.bytes, semantic.share) == (2, 4, kept.bytes, 0.5)
        assert (statements.records, statements.share) == (0, 0.0)


@pytest.mark.rule("ISO-5")
def test_auditors_reviewers_and_admins_may_ask_and_nobody_else(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    for asker in (people.auditor, people.reviewer, people.admin):
        assert fabric.metrics(asker).tenant_id == people.tenant_id
    for asker in (people.run(), people.author, people.officer):
        with pytest.raises(RoleMissing):
            fabric.metrics(asker)
    for window in ({"since": clock.now}, {"since": clock.now, "until": clock.now - timedelta(days=1)}):
        with pytest.raises(InvalidInput) as error:
            fabric.metrics(people.auditor, **window)
        assert error.value.field == "since"


# ---- recall ----


@pytest.mark.rule("MET-1")
def test_golden_queries_are_counted_by_their_last_asking_and_regressions_by_all_before(
    fabric: Fabric, people: People, others: People, clock: FakeClock
) -> None:
    assert measured(fabric, people).golden is None

    def ask(of: People, **results: bool) -> None:
        answers = [GoldenResult(query=name, passed=ok, precision=0.5, recall=float(ok)) for name, ok in results.items()]
        fabric.record_golden(of.admin, answers)
        clock.advance(days=1)

    ask(people, a=False, b=True, c=False)
    ask(people, a=True, b=False, c=False)
    ask(people, a=True, b=True, c=False, d=False)
    last = clock.now - timedelta(days=1)
    ask(others, d=False)
    found = measured(fabric, people).golden
    assert found is not None
    assert (found.at, found.queries, found.passed, found.precision, found.recall) == (last, 4, 2, 0.5, 0.5)
    assert (found.regression, found.regression_passed) == (3, 2), "d fails for the first time: it had not before"
    assert measured(fabric, people, since=last, until=clock.now).golden is None, "it begins after `since`"
    for wrong in ([], [GoldenResult(query="a", passed=True)] * 2):
        with pytest.raises(InvalidInput):
            fabric.record_golden(people.admin, wrong)


@pytest.mark.rule("ISO-5")
def test_only_an_admin_writes_down_how_golden_queries_were_answered(fabric: Fabric, people: People) -> None:
    answers = [GoldenResult(query="a", passed=True)]
    for asker in (people.run(), people.run().principal, people.reviewer, people.auditor, people.author, people.officer):
        with pytest.raises(RoleMissing):
            fabric.record_golden(asker, answers)
    assert measured(fabric, people).golden is None
    fabric.record_golden(people.admin, answers)
    assert measured(fabric, people).golden is not None


@pytest.mark.rule("MET-2")
def test_a_recall_hit_when_a_later_capture_of_its_run_cites_a_plain_record(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    def recalled(workflow: str, run_id: str, **fields: Any) -> str:
        return fabric.recall(people.run(workflow_id=workflow, run_id=run_id, **fields)).recall_id

    def cites(run_id: str, *refs: str, recall_id: str | None = None) -> None:
        run = people.run(run_id=run_id)
        said: dict[str, Any] = {"kind": "decision", "text": "so be it", "classification": "INTERNAL"}
        fabric.capture(run, **said, evidence_refs=refs, recall_id=recall_id)

    recalled("refunds", "r0")  # nothing is there yet
    memory = promoted(fabric, people, "email")
    doubtful = promoted(fabric, people, "blue", predicate="colour", confidence=0.4)
    cites("r1", memory)  # before the recall
    recalled("refunds", "r1")
    cites("r9", memory)  # likewise, with an earlier recall of another run
    recalled("refunds", "r9")
    named = recalled("refunds", "r2")
    cites("r2", recall_id=named)
    recalled("refunds", "r3")
    cites("r3", "order:77", f"memory:{memory}")
    recalled("offers", "r4")
    cites("r4", doubtful)  # of low confidence: no plain record
    other_run = recalled("offers", "r5")
    cites("r6", memory, recall_id=other_run)
    found = {hits.workflow_id: hits for hits in measured(fabric, people).hits}
    refunds, offers = found["refunds"], found["offers"]
    assert (refunds.recalls, refunds.looked_at, refunds.found, refunds.cited) == (5, 5, 4, 2)
    assert (refunds.found_rate, refunds.hit_rate) == (0.8, 0.4)
    assert (offers.recalls, offers.found, offers.cited) == (2, 2, 0)
    recalls = measured(fabric, people).recalls
    assert (recalls.recalls, recalls.median_results) == (7, 2)
    # Two that contradict each other are shown, but neither as a plain record.
    promoted(fabric, people, "phone")
    recalled("conflicts", "r7")
    cites("r7", memory)
    (conflicts,) = (hits for hits in measured(fabric, people).hits if hits.workflow_id == "conflicts")
    assert (conflicts.found, conflicts.cited) == (1, 0)
    clock.advance(days=31)
    assert measured(fabric, people).hits == ()


@pytest.mark.rule("MET-3")
def test_compiled_memory_is_weighed_against_the_captures_the_run_could_have_been_shown(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    too_old = "A message that was said long before the others."
    said(fabric, people, too_old)
    clock.advance(days=31)
    near = "The parcel to Lyon was late again."
    far = "She plays chess on Sundays."
    said(fabric, people, near)
    said(fabric, people, far)
    fabric.capture(people.run("cust_2"), kind="message", text="Of somebody else.", classification="INTERNAL")
    fabric.capture(people.run(), kind="message", text="For few eyes.", classification="RESTRICTED")
    item = proposed(fabric, people.run(None), write_class="statement", text="Parcels go out on Mondays.")
    fabric.queue.approve(people.reviewer, item.proposal_id)
    clock.advance(minutes=1)
    run = people.run(classification_allowed={"PUBLIC", "INTERNAL"})
    whole = fabric.compile(run, "Why was the parcel to Lyon late?", token_budget=2000)
    count = builtin_tokenizer().count
    everything = sum(count(f"\n{text}") for text in (near, far, "Parcels go out on Mondays."))
    found = measured(fabric, people).tokens
    assert (found.prompts, found.skipped, found.compiled) == (1, 0, whole.budget.used)
    assert found.captures == everything
    assert found.ratio == whole.budget.used / everything
    # What is captured after the prompt was compiled does not count; with less room it is filled and no more.
    said(fabric, people, "Said too late to matter.")
    clock.advance(minutes=1)
    narrow = fabric.compile(run, token_budget=64)
    both = measured(fabric, people).tokens
    assert (both.prompts, both.compiled) == (2, whole.budget.used + narrow.budget.used)
    assert everything < both.captures <= everything + 64


# ---- governance ----


@pytest.mark.rule("MET-4")
def test_what_no_consent_covered_at_its_promotion_is_a_violation(
    fabric: Fabric, people: People, clock: FakeClock, sql: Sql
) -> None:
    def granted(number: int, **fields: Any) -> Consent:
        return fabric.consent.grant(people.officer, subject=f"customer:cust_{number}", **CONSENT, **fields)

    consents = [granted(number) for number in (1, 2, 3)]
    revoked, renewed = granted(4), granted(5)
    fabric.consent.revoke(people.officer, revoked.consent_id)
    clock.advance(minutes=1)
    consents += [granted(4), granted(5, supersedes=renewed.consent_id)]
    fact: dict[str, Any] = {"predicate": "size", "classification": "PII"}
    clock.advance(days=1)
    memories = [promoted(fabric, people, "L", **fact, subject=one.subject, entity=one.subject) for one in consents]
    assert measured(fabric, people).pii.violations == 0
    clock.advance(days=1)
    # One that is revoked afterwards was there at the time. One that had run out, or never covered it, was not; nor does
    # one before it count that was revoked or renewed by then.
    fabric.consent.revoke(people.officer, consents[0].consent_id)
    ended = "UPDATE muniment.consents SET valid_until = valid_from + interval '1 hour' WHERE consent_id = %s"
    sql(ended, consents[1].consent_id)
    narrowed = "UPDATE muniment.consents SET labels = '{CONFIDENTIAL}' WHERE consent_id = ANY (%s)"
    sql(narrowed, [one.consent_id for one in consents[2:]])
    found = measured(fabric, people).pii
    assert (found.violations, found.without_consent, found.unmasked) == (4, 4, 0)
    assert found.memory_ids == tuple(sorted(memories[1:]))
    clock.advance(days=40)
    assert measured(fabric, people).pii.violations == 0


@pytest.mark.rule("MET-4")
def test_personal_data_that_was_not_masked_is_found_by_a_scan_of_its_own(
    fabric: Fabric, under: Opener, people: People, others: People, clock: FakeClock, sql: Sql
) -> None:
    off = "policy_layer: {guardrails: {redaction_rules: [{name: email, detector: email, enabled: false}]}}"
    leaks: list[str] = []
    with under(off) as lenient:
        for of in (people, others):
            leaks.append(promoted(lenient, of, {"mail": "ada@example.com"}, predicate="contact"))
            promoted(lenient, of, "tea", predicate="drink")
        allowed = measured(lenient, people).pii
        assert (allowed.violations, allowed.waiting) == (0, 0), "what the pack does not want masked is no violation"
    # Nobody can turn a rule on in a pack that is registered; here that stands for a redactor that failed.
    rule = "{policy_layer,guardrails,redaction_rules,0,enabled}"
    sql(
        "UPDATE muniment.packs SET document = jsonb_set(document, %s, 'true') WHERE tenant_id = %s",
        rule,
        people.tenant_id,
    )
    for scanned in (0, 2, 0):
        found = measured(fabric, people).pii
        assert (found.violations, found.unmasked, found.memory_ids, found.waiting) == (1, 1, (leaks[0],), 0)
        assert [(one.name, one.count) for one in found.unmasked_kinds] == [("email", 1)]
        if scanned:
            passed = fabric.scan_pii(people.tenant_id)
            assert (passed.scanned, passed.found, passed.done) == (scanned, {leaks[0]: ("email",)}, True)
            assert fabric.scan_pii(people.tenant_id).scanned == 0
    assert sql("SELECT scanned FROM muniment.pii_scans WHERE tenant_id = %s", people.tenant_id) == [(2,)]
    clock.advance(days=31)
    assert measured(fabric, people).pii.violations == 0
    assert measured(fabric, people, since=clock.now - timedelta(days=60)).pii.unmasked == 1


@pytest.mark.rule("MET-5", "MET-6")
def test_contradictions_and_corrections_are_timed_and_counted(fabric: Fabric, people: People, clock: FakeClock) -> None:
    begun = clock.now

    def contradiction(predicate: str) -> str:
        """The id of a proposal that contradicts a memory."""
        promoted(fabric, people, "yes", predicate=predicate)
        return proposed(fabric, people.run(), entity="customer:cust_1", predicate=predicate, value="no").proposal_id

    for number, hours in enumerate((1, 2, 10)):
        waits = contradiction(f"likes_{number}")
        clock.advance(hours=hours)
        fabric.queue.reject(people.reviewer, waits, reason="hearsay")
    contradiction("likes_opera")
    clock.advance(hours=4)
    contradiction("likes_jazz")
    clock.advance(hours=2)
    found = measured(fabric, people).contradictions
    hour = 3600
    assert (found.resolved.count, found.resolved.median) == (3, 2 * hour)
    assert found.resolved.ninetieth == pytest.approx((2 + 0.8 * 8) * hour)
    assert [(one.name, one.count) for one in found.outcomes] == [("rejected", 3)]
    assert found.resolved.longest == 10 * hour
    assert (found.open.count, found.open.median, found.open.longest) == (2, 4 * hour, 6 * hour)
    assert found.open.ninetieth == pytest.approx((2 + 0.9 * 4) * hour)
    then = measured(fabric, people, since=begun, until=begun + timedelta(hours=2)).contradictions
    assert (then.resolved.count, then.open.count, then.open.longest) == (1, 1, hour), "as it stood at the window's end"

    assert measured(fabric, people).adoption.corrections == 0
    fix = fabric.correct(people.author, **KEY, value="fax", user_id="cust_1", classification="INTERNAL")
    fabric.queue.approve(people.reviewer, fix.proposal_id)  # type: ignore[union-attr]  # no gate refuses it
    assert measured(fabric, people).adoption.corrections == 1
    clock.advance(days=31)
    assert (measured(fabric, people).adoption.corrections, fabric.adoption(people.auditor).corrections) == (0, 1)


# ---- review ----


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
    queue = measured(fabric, people).queue
    days = {(one.operator, one.day): one.decided for one in queue.by_operator}
    assert days == {("boris", first): 2, ("clara", date(2026, 1, 6)): 1, ("boris", date(2026, 1, 8)): 1}
    assert (queue.decided, queue.in_time, queue.sla_kept, queue.operators) == (4, 3, 0.75, 2)
    assert (queue.waiting.count, queue.waiting.median, queue.waiting.longest) == (2, 32 * 3600, 62 * 3600)
    classes = {one.write_class: one for one in queue.by_class}
    assert (classes["preference"].decided, classes["preference"].in_time) == (4, 3)
    assert (classes["preference"].waiting.count, classes["statement"].waiting.longest) == (1, 62 * 3600)
    assert (queue.past_due, classes["statement"].past_due) == (0, 0)
    clock.advance(hours=11)
    late = measured(fabric, people).queue
    assert (late.past_due, {one.write_class: one.past_due for one in late.by_class}) == (
        1,
        {"preference": 0, "statement": 1},
    )
    fabric.queue.reject(people.reviewer, statement, reason="no")
    clock.advance(days=31)
    later = measured(fabric, people).queue
    assert (later.decided, later.waiting.count, later.past_due) == (0, 1, 1)


@pytest.mark.rule("MET-8", "MET-10")
def test_what_the_jobs_write_down_is_counted_by_class_source_and_day(
    fabric: Fabric, people: People, others: People, clock: FakeClock, sql: Sql
) -> None:
    for of in (people, others):
        _jobs_wrote(fabric, of, sql)
    clock.advance(hours=1)
    found = measured(fabric, people)
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
    later = measured(fabric, people)
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
        said(fabric, people, "I always travel by train.")
        fabric.capture(people.run(), kind="message", payload={"shape": "no text"}, classification="INTERNAL")
        done = fabric.consolidate(people.tenant_id)
        fabric.queue.approve(people.reviewer, done.proposals[0])
        clock.advance(days=1)
        said(fabric, people, "I always travel by train.")
        said(fabric, people, "I always travel by train.", kind="statement")
        said(fabric, people, "My dog is called Rex.")
        fabric.consolidate(people.tenant_id)
        found = measured(fabric, people).telling
        assert (found.messages, found.with_candidates, found.repeated) == (4, 3, 1)
        assert (found.share, found.share_of_all) == (pytest.approx(1 / 3), 0.25)
        lately = measured(fabric, people, since=clock.now - timedelta(hours=1)).telling
        assert (lately.messages, lately.repeated) == (2, 1)


@pytest.mark.rule("MET-7")
@pytest.mark.parametrize("count", [1, 2, 18])
def test_every_part_of_a_spread_is_told_as_soon_as_there_is_one_to_measure(
    fabric: Fabric, people: People, clock: FakeClock, server: TestServer, database: str, count: int
) -> None:
    for n in range(count):
        proposed(fabric, people.run(), entity="customer:cust_1", predicate=f"p_{n}", value=n)
        clock.advance(hours=1)
    whole = measured(fabric, people).queue
    hour = 3600
    for waiting in (whole.waiting, whole.by_class[0].waiting):
        assert (waiting.count, waiting.longest) == (count, count * hour)
        assert waiting.median == pytest.approx((count + 1) / 2 * hour)
        assert waiting.ninetieth == pytest.approx((1 + 0.9 * (count - 1)) * hour)
    assert measured(fabric, people).erasures.purged.ninetieth is None, "nothing was purged"
    fabric.erase(people.officer, subject="customer:nobody")
    with server.connect(database) as owner:
        owner.execute(
            "UPDATE erasures SET purged_at = erased_at + interval '2 hours' WHERE tenant_id = %s", [people.tenant_id]
        )
    purged = measured(fabric, people).erasures.purged
    assert (purged.count, purged.median, purged.ninetieth, purged.longest) == (1, *[2 * hour] * 3)
