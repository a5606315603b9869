"""Metrics: small histories with known numbers, by window and tenant, each metric as the specification defines it."""

from datetime import timedelta
from typing import Any

import pytest

from muniment import Fabric
from muniment.errors import InvalidInput, RoleMissing
from muniment.model.consent import Consent
from muniment.model.metrics import GoldenResult
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.conftest import Opener
from tests.faults.forging import begin_unchecked
from tests.metrics.figures import Sql, capture_message, measure
from tests.stories import CONSENT, KEY, promoted, proposed, refused, submitted

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

        early = measure(fabric, people, since=first - timedelta(days=1), until=first)
        assert early.captures.by_kind == {"effect": 1, "statement": 5}
        assert early.flow.proposals == {"preference": 3, "statement": 1}
        assert early.flow.duplicates == {"preference": 1}
        assert [(one.gate, one.count) for one in early.flow.refusals] == [("consent", 1)]
        assert [(one.kind, one.write_class, one.count) for one in early.flow.redactions] == [("email", "statement", 2)]
        promotions = [(one.tier, one.write_class, one.auto, one.count) for one in early.flow.promotions]
        assert promotions == [("semantic", "preference", False, 2)]
        assert [(one.name, one.count) for one in early.flow.retractions] == [("wrong", 1)]
        assert [(one.tier, one.write_class, one.records) for one in early.storage] == [("semantic", "preference", 1)]

        late = measure(fabric, people)
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
    assert measure(fabric, people).golden is None

    def ask(of: People, **results: bool) -> None:
        answers = [GoldenResult(query=name, passed=ok, precision=0.5, recall=float(ok)) for name, ok in results.items()]
        fabric.record_golden(of.admin, answers)
        clock.advance(days=1)

    ask(people, a=False, b=True, c=False)
    ask(people, a=True, b=False, c=False)
    ask(people, a=True, b=True, c=False, d=False)
    last = clock.now - timedelta(days=1)
    ask(others, d=False)
    found = measure(fabric, people).golden
    assert found is not None
    assert (found.at, found.queries, found.passed, found.precision, found.recall) == (last, 4, 2, 0.5, 0.5)
    assert (found.regression, found.regression_passed) == (3, 2), "d fails for the first time: it had not before"
    assert measure(fabric, people, since=last, until=clock.now).golden is None, "it begins after `since`"
    for wrong in ([], [GoldenResult(query="a", passed=True)] * 2):
        with pytest.raises(InvalidInput):
            fabric.record_golden(people.admin, wrong)


@pytest.mark.rule("ISO-5")
def test_only_an_admin_writes_down_how_golden_queries_were_answered(fabric: Fabric, people: People) -> None:
    answers = [GoldenResult(query="a", passed=True)]
    for asker in (people.run(), people.run().principal, people.reviewer, people.auditor, people.author, people.officer):
        with pytest.raises(RoleMissing):
            fabric.record_golden(asker, answers)
    assert measure(fabric, people).golden is None
    fabric.record_golden(people.admin, answers)
    assert measure(fabric, people).golden is not None


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
    found = {hits.workflow_id: hits for hits in measure(fabric, people).hits}
    refunds, offers = found["refunds"], found["offers"]
    assert (refunds.recalls, refunds.looked_at, refunds.found, refunds.cited) == (5, 5, 4, 2)
    assert (refunds.found_rate, refunds.hit_rate) == (0.8, 0.4)
    assert (offers.recalls, offers.found, offers.cited) == (2, 2, 0)
    recalls = measure(fabric, people).recalls
    assert (recalls.recalls, recalls.median_results) == (7, 2)
    # Two that contradict each other are shown, but neither as a plain record.
    promoted(fabric, people, "phone")
    recalled("conflicts", "r7")
    cites("r7", memory)
    (conflicts,) = (hits for hits in measure(fabric, people).hits if hits.workflow_id == "conflicts")
    assert (conflicts.found, conflicts.cited) == (1, 0)
    clock.advance(days=31)
    assert measure(fabric, people).hits == ()


@pytest.mark.rule("MET-3")
def test_compiled_memory_is_weighed_against_the_captures_the_run_could_have_been_shown(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    too_old = "A message that was said long before the others."
    capture_message(fabric, people, too_old)
    clock.advance(days=31)
    near = "The parcel to Lyon was late again."
    far = "She plays chess on Sundays."
    capture_message(fabric, people, near)
    capture_message(fabric, people, far)
    fabric.capture(people.run("cust_2"), kind="message", text="Of somebody else.", classification="INTERNAL")
    fabric.capture(people.run(), kind="message", text="For few eyes.", classification="RESTRICTED")
    item = proposed(fabric, people.run(None), write_class="statement", text="Parcels go out on Mondays.")
    fabric.queue.approve(people.reviewer, item.proposal_id)
    clock.advance(minutes=1)
    run = people.run(classification_allowed={"PUBLIC", "INTERNAL"})
    whole = fabric.compile(run, "Why was the parcel to Lyon late?", token_budget=2000)
    found = measure(fabric, people).tokens
    assert (found.prompts, found.skipped, found.compiled) == (1, 0, whole.budget.used)
    everything = found.captures
    # Three captures as three blocks in the same frame; the memory is one of them.
    frame = whole.budget.frame
    (block,) = whole.budget.blocks.values()
    assert everything == pytest.approx(frame + 3 * block, rel=0.2)
    assert found.ratio == whole.budget.used / everything < 1
    # What is captured after the prompt was compiled does not count; with less room it is filled and no more.
    capture_message(fabric, people, "Said too late to matter.")
    clock.advance(minutes=1)
    narrow = fabric.compile(run, token_budget=64)
    both = measure(fabric, people).tokens
    assert (both.prompts, both.compiled) == (2, whole.budget.used + narrow.budget.used)
    assert everything <= both.captures <= everything + 64


@pytest.mark.rule("MET-3")
def test_memory_that_says_what_the_captures_say_does_not_count_as_dearer(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    item = proposed(fabric, people.run(), write_class="statement", text="Parcels go out on Mondays.")
    fabric.queue.approve(people.reviewer, item.proposal_id)
    for age in (timedelta(minutes=1), timedelta(days=60)):
        clock.advance(days=age.days, minutes=age.seconds // 60)
        fabric.compile(people.run(), "when do parcels go out?")
        found = measure(fabric, people).tokens
        assert found.ratio is not None
        assert 0.8 < found.ratio <= 1.05, "also where the capture is older than those that are looked at"


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
    assert measure(fabric, people).pii.violations == 0
    clock.advance(days=1)
    # One that is revoked afterwards was there at the time. One that had run out, or never covered it, was not; nor does
    # one before it count that was revoked or renewed by then.
    fabric.consent.revoke(people.officer, consents[0].consent_id)
    ended = "UPDATE muniment.consents SET valid_until = valid_from + interval '1 hour' WHERE consent_id = %s"
    sql(ended, consents[1].consent_id)
    narrowed = "UPDATE muniment.consents SET labels = '{CONFIDENTIAL}' WHERE consent_id = ANY (%s)"
    sql(narrowed, [one.consent_id for one in consents[2:]])
    found = measure(fabric, people).pii
    assert (found.violations, found.without_consent, found.unmasked) == (4, 4, 0)
    assert found.memory_ids == tuple(sorted(memories[1:]))
    clock.advance(days=40)
    assert measure(fabric, people).pii.violations == 0


@pytest.mark.rule("MET-4")
def test_a_sensitive_memory_that_names_no_consent_at_all_is_a_violation(
    server: TestServer, fresh_database: str, people: People
) -> None:
    with (
        Fabric.open(server.url(fresh_database), master_keys=MASTER_KEYS) as fabric,
        server.connect(fresh_database) as owner,
    ):
        fabric.consent.grant(people.officer, subject="customer:cust_1", **CONSENT)
        fact: dict[str, Any] = {"subject": "customer:cust_1", "entity": "customer:cust_1", "predicate": "size"}
        memory = promoted(fabric, people, "L", classification="PII", **fact)
        promoted(fabric, people, "tea", predicate="drink")
        assert measure(fabric, people).pii.violations == 0
        # As after a fault of the program, and without the constraint that would refuse it.
        owner.execute("ALTER TABLE muniment.memories DROP CONSTRAINT memories_consent")
        begin_unchecked(owner)
        for table, columns in (
            ("memories", "consent_id = NULL, consent_root = NULL"),
            ("memory_scope", "consent_root = NULL"),
        ):
            owner.execute(f"UPDATE muniment.{table} SET {columns} WHERE memory_id = %s".encode(), [memory])
        owner.execute("UPDATE muniment.consents SET valid_until = valid_from + interval '1 microsecond'")
        owner.execute("COMMIT")
        found = measure(fabric, people).pii
        assert (found.violations, found.without_consent, found.memory_ids) == (1, 1, (memory,))


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
        allowed = measure(lenient, people).pii
        assert (allowed.violations, allowed.waiting) == (0, 0), "what the pack does not want masked is no violation"
    # Nobody can turn a rule on in a pack that is registered; here that stands for a redactor that failed.
    rule = "{policy_layer,guardrails,redaction_rules,0,enabled}"
    sql(
        "UPDATE muniment.packs SET document = jsonb_set(document, %s, 'true') WHERE tenant_id = %s",
        rule,
        people.tenant_id,
    )
    for scanned in (0, 2, 0):
        found = measure(fabric, people).pii
        assert (found.violations, found.unmasked, found.memory_ids, found.waiting) == (1, 1, (leaks[0],), 0)
        assert [(one.name, one.count) for one in found.unmasked_kinds] == [("email", 1)]
        if scanned:
            passed = fabric.scan_pii(people.tenant_id)
            assert (passed.scanned, passed.found, passed.done) == (scanned, {leaks[0]: ("email",)}, True)
            assert fabric.scan_pii(people.tenant_id).scanned == 0
    assert sql("SELECT scanned FROM muniment.pii_scans WHERE tenant_id = %s", people.tenant_id) == [(2,)]
    clock.advance(days=31)
    assert measure(fabric, people).pii.violations == 0
    assert measure(fabric, people, since=clock.now - timedelta(days=60)).pii.unmasked == 1


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
    found = measure(fabric, people).contradictions
    hour = 3600
    assert (found.resolved.count, found.resolved.median) == (3, 2 * hour)
    assert found.resolved.ninetieth == pytest.approx((2 + 0.8 * 8) * hour)
    assert [(one.name, one.count) for one in found.outcomes] == [("rejected", 3)]
    assert found.resolved.longest == 10 * hour
    assert (found.open.count, found.open.median, found.open.longest) == (2, 4 * hour, 6 * hour)
    assert found.open.ninetieth == pytest.approx((2 + 0.9 * 4) * hour)
    then = measure(fabric, people, since=begun, until=begun + timedelta(hours=2)).contradictions
    assert (then.resolved.count, then.open.count, then.open.longest) == (1, 1, hour), "as it stood at the window's end"

    assert measure(fabric, people).adoption.corrections == 0
    fix = fabric.correct(people.author, **KEY, value="fax", user_id="cust_1", classification="INTERNAL")
    fabric.queue.approve(people.reviewer, submitted(fix))
    assert measure(fabric, people).adoption.corrections == 1
    clock.advance(days=31)
    assert (measure(fabric, people).adoption.corrections, fabric.adoption(people.auditor).corrections) == (0, 1)
