"""Stage 2, candidate: captures become typed facts through the gates, once, whatever is broken beside them."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event
from typing import Any, get_args

import pytest
from psycopg.types.json import Jsonb

from muniment import Fabric, Pack, RunContext
from muniment.errors import InvalidInput, RoleMissing
from muniment.model.candidate import Consolidation, GateName, Passed
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.pack_activation import put_in_force
from tests.stories import CONSENT, proposed, refused

SUBJECT = "customer:cust_1"
FACT: dict[str, Any] = {"entity": SUBJECT, "predicate": "likes", "value": "tea"}
STATEMENT: dict[str, Any] = {"kind": "statement", "text": "it rains", "classification": "INTERNAL"}


def under(fabric: Fabric, people: People, **layer: Any) -> RunContext:
    """A run in a tenant where such a pack is in force."""
    pack = Pack.model_validate({"pack_meta": {"id": "acme", "version": "1.0.0"}, "memory_layer": layer})
    put_in_force(fabric, people.tenant_id, pack)
    return people.run()


def events_of(fabric: Fabric, people: People, type_: str) -> list[dict[str, Any]]:
    return [event.data for event in fabric.events(people.auditor, limit=1000) if event.type == type_]


# --- what a candidate is


@pytest.mark.rule("CAN-1", "CAN-8")
def test_a_direct_proposal_is_captured_first_and_carries_everything_it_was_given(
    fabric: Fabric, people: People
) -> None:
    run = people.run("cust_1", session_id="s", workflow_id="w", intent_id="sales.offer", qualifiers={"region": "de"})
    proposal = proposed(
        fabric,
        run,
        **FACT,
        text="the customer likes tea",
        subject=SUBJECT,
        evidence_refs=["tool:crm:1", "session:s"],
        classification="CONFIDENTIAL",
        confidence=0.66,
        origin="tool:crm.lookup",
    )
    candidate = proposal.candidate
    assert (candidate.write_class, candidate.entity, candidate.predicate, candidate.value) == (
        "preference",
        SUBJECT,
        "likes",
        "tea",
    )
    assert candidate.text == "the customer likes tea"
    assert candidate.evidence_refs == ("tool:crm:1", "session:s")
    assert (candidate.classification, candidate.subject) == ("CONFIDENTIAL", SUBJECT)
    assert (candidate.raw_confidence, candidate.confidence) == (0.66, 0.66)
    assert (candidate.source, candidate.author, candidate.trust) == ("agent", "bot", 0.7)
    assert candidate.scope.model_dump() == {
        "user_id": "cust_1",
        "session_id": "s",
        "workflow_id": "w",
        "intent_id": "sales.offer",
        "qualifiers": {"region": "de"},
        "required": {},
    }
    assert candidate.extractor == "direct@1"
    assert candidate.capture_id.startswith("cap_")
    assert [data["count"] for data in events_of(fabric, people, "memory.captured")] == [1]
    assert fabric.consolidate(people.tenant_id) == Consolidation(), "it must not be proposed a second time"


@pytest.mark.rule("CAN-1")
@pytest.mark.parametrize(
    ("who", "raw", "counts"), [("author", 0.95, 0.80), ("service", 0.85, 0.80), ("run", 0.60, 0.60)]
)
def test_a_plain_statement_has_its_sources_confidence_and_no_key(
    fabric: Fabric, people: People, who: str, raw: float, counts: float
) -> None:
    asker = people.run() if who == "run" else getattr(people, who)
    fabric.capture(asker, **STATEMENT)
    done = fabric.consolidate(people.tenant_id)
    (item,) = fabric.queue.list(people.reviewer)
    assert done.proposals == (item.proposal_id,)
    candidate = item.candidate
    assert (candidate.write_class, candidate.text, candidate.extractor) == (
        "statement",
        "it rains",
        "statement@1",
    )
    assert (candidate.entity, candidate.predicate, candidate.value, candidate.on_key) == (
        None,
        None,
        None,
        False,
    )
    assert (candidate.raw_confidence, candidate.confidence) == (raw, counts)


@pytest.mark.rule("CAN-1")
def test_a_typed_fact_without_words_is_put_into_words(fabric: Fabric, people: People) -> None:
    proposal = proposed(fabric, people.run(), entity=SUBJECT, predicate="lucky_number", value=7)
    assert proposal.candidate.text == "customer:cust_1 lucky number: 7"


@pytest.mark.rule("CAN-6")
@pytest.mark.parametrize(("claimed", "counts"), [(0.79, 0.79), (0.80, 0.80), (0.81, 0.80), (1.0, 0.80)])
def test_a_source_nobody_has_judged_counts_at_most_0_80(
    fabric: Fabric, people: People, claimed: float, counts: float
) -> None:
    candidate = proposed(fabric, people.run(), **FACT, confidence=claimed).candidate
    assert (candidate.raw_confidence, candidate.confidence) == (claimed, counts)


@pytest.mark.rule("CAN-2")
@pytest.mark.parametrize("kind", ["tool_result", "decision", "effect", "message"])
def test_a_capture_that_states_nothing_gives_no_candidate(fabric: Fabric, people: People, kind: Any) -> None:
    fabric.capture(people.run(), kind=kind, text="it rains", classification="INTERNAL")
    done = fabric.consolidate(people.tenant_id)
    assert (done.captures, done.proposals, done.refusals, done.failed) == (1, (), (), ())
    assert fabric.queue.list(people.reviewer) == []


@pytest.mark.rule("CAN-8", "COR-1", "AUD-3")
def test_an_agent_cannot_propose_a_correction(fabric: Fabric, people: People) -> None:
    proposed(fabric, people.run(), **FACT)
    for asker in (people.run(), people.service, people.reviewer):
        with pytest.raises(RoleMissing):
            fabric.propose(asker, **FACT, write_class="correction", classification="INTERNAL")
    output = [(data["verb"], data["code"]) for data in events_of(fabric, people, "memory.security")]
    assert output == [("correct", "role_missing")] * 3
    assert len(fabric.queue.list(people.reviewer)) == 1


# --- the gates, seen from outside


@pytest.mark.rule("CAN-4", "CAN-5")
def test_the_first_gate_that_refuses_is_the_one_recorded(fabric: Fabric, people: People, clock: FakeClock) -> None:
    run = under(
        fabric,
        people,
        write_classes_allowed=["preference"],
        classes={"preference": {"predicates": ["likes"], "evidence_required": 1, "classifications_allowed": ["PII"]}},
    )
    wrong: dict[str, Any] = {**FACT, "write_class": "decision_outcome", "predicate": "outcome", "confidence": 0.1}
    steps: list[tuple[str, str, dict[str, Any]]] = [
        ("allow_list", "class_not_allowed", {"write_class": "preference"}),
        ("allow_list", "predicate_not_allowed", {"predicate": "likes"}),
        ("evidence", "evidence_missing", {"evidence_refs": ["tool:crm:1"]}),
        ("classification", "classification_not_allowed", {"classification": "PII"}),
        ("consent", "consent_missing", {"subject": "customer:stranger"}),
        ("consent", "subject_is_not_the_entity", {"subject": "household:h1"}),
        ("consent", "consent_missing", {"subject": SUBJECT}),
        ("confidence", "confidence_below_floor", {"confidence": 0.3}),
    ]
    fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    for gate, reason, mended in steps:
        no = refused(fabric, run, **wrong)
        assert (no.gate, no.reason, no.at) == (gate, reason, clock.now)
        wrong |= mended
    assert proposed(fabric, run, **wrong).status == "pending"
    output = [(data["gate"], data["reason"]) for data in events_of(fabric, people, "memory.refused")]
    assert output == [(gate, reason) for gate, reason, _ in steps]


@pytest.mark.rule("CAN-5", "ERA-1")
def test_a_refusal_keeps_which_capture_gate_reason_and_time_and_nothing_of_its_content(
    fabric: Fabric, people: People, server: TestServer, database: str
) -> None:
    canary = "aardvark"
    for asked in ({"classification": "PII"}, {"confidence": 0.1}):
        refused(
            fabric,
            people.run(),
            **{**FACT, "value": canary, "text": canary, "evidence_refs": [f"tool:{canary}"], **asked},
        )
    fabric.capture(people.run(), **STATEMENT | {"text": canary, "classification": "PII"})  # type: ignore[arg-type]
    assert len(fabric.consolidate(people.tenant_id).refusals) == 1
    with server.connect(database) as owner:
        rows = owner.execute(
            "SELECT to_jsonb(r) FROM refusals r WHERE tenant_id = %s ORDER BY seq", [people.tenant_id]
        ).fetchall()
        kept = owner.execute(
            "SELECT (SELECT count(*) FROM candidates WHERE tenant_id = %(t)s),"
            " (SELECT count(*) FROM proposals WHERE tenant_id = %(t)s)",
            {"t": people.tenant_id},
        ).fetchone()
    found: list[dict[str, Any]] = [row[0] for row in rows]  # type: ignore[misc]
    assert [(row["gate"], row["reason"]) for row in found] == [
        ("consent", "consent_missing"),
        ("confidence", "confidence_below_floor"),
        ("consent", "consent_missing"),
    ]
    assert set(found[0]) == {
        "tenant_id",
        "capture_id",
        "consolidation",
        "extractor",
        "ordinal",
        "seq",
        "gate",
        "reason",
        "at",
        "rejection",
        "language",
    }
    assert canary not in str(found)
    assert kept == (0, 0)
    assert fabric.queue.list(people.reviewer, closed=True) == []


@pytest.mark.rule("CAN-4")
def test_the_gates_are_shown_in_order_as_they_passed_it_also_from_a_row_of_an_earlier_schema(
    fabric: Fabric, people: People, server: TestServer, database: str
) -> None:
    item = proposed(fabric, people.run(), entity="customer:c", predicate="p", value="v", evidence_refs=["tool:crm:1"])
    shown = item.candidate.gates
    assert [one.gate for one in shown] == list(get_args(GateName))
    assert shown[0] == Passed(gate="allow_list", reason="class_allowed", detail="preference")
    assert shown[2] == Passed(gate="redaction", reason="nothing_found")
    with server.connect(database) as owner:
        stored = owner.execute("SELECT gates FROM candidates WHERE tenant_id = %s", [people.tenant_id]).fetchone()
        assert stored is not None and stored[0][0] == ["allow_list", "class_allowed preference"]  # type: ignore[index]
        before = Jsonb([one.model_dump(exclude_defaults=True) for one in shown])
        owner.execute("UPDATE candidates SET gates = %s WHERE tenant_id = %s", [before, people.tenant_id])
    assert fabric.queue.get(people.reviewer, item.proposal_id).candidate.gates == shown


@pytest.mark.rule("CAN-9")
def test_a_statement_and_a_direct_proposal_meet_the_same_gates(fabric: Fabric, people: People) -> None:
    fabric.capture(people.run(), **STATEMENT | {"classification": "PII", "subject": SUBJECT})  # type: ignore[arg-type]
    (by_capture,) = fabric.consolidate(people.tenant_id).refusals
    directly = refused(
        fabric,
        people.run(),
        write_class="statement",
        text="it rains",
        subject=SUBJECT,
        classification="PII",
    )
    assert (
        (by_capture.gate, by_capture.reason)
        == (directly.gate, directly.reason)
        == (
            "consent",
            "consent_missing",
        )
    )


@pytest.mark.rule("CON-2", "CON-5")
def test_a_sensitive_fact_needs_its_own_subjects_live_consent_in_its_own_tenant(
    fabric: Fabric, people: People, others: People, clock: FakeClock
) -> None:
    asked: dict[str, Any] = {**FACT, "classification": "PII", "subject": SUBJECT}
    fabric.consent.grant(others.officer, subject=SUBJECT, **CONSENT)
    fabric.consent.grant(people.officer, subject="customer:cust_2", **CONSENT)
    fabric.consent.grant(people.officer, subject="customer:CUST_1", **CONSENT)
    assert refused(fabric, people.run(), **asked).reason == "consent_missing"
    granted = fabric.consent.grant(people.officer, subject=SUBJECT, **{**CONSENT, "predicates_allowed": ["likes"]})
    proposal = proposed(fabric, people.run(), **asked)
    assert proposal.candidate.consent_id == granted.consent_id
    assert (proposal.consent_check, proposal.sensitive) == ("passed", True)
    assert refused(fabric, people.run(), **{**asked, "predicate": "dislikes"}).reason == "consent_missing"
    assert refused(fabric, people.run(), **{**asked, "classification": "RESTRICTED"}).gate == "consent"
    statement = {"write_class": "statement", "text": "x", "subject": SUBJECT, "classification": "PII"}
    assert refused(fabric, people.run(), **statement).reason == "consent_missing"
    fabric.consent.revoke(people.officer, granted.consent_id)
    assert refused(fabric, people.run(), **asked).reason == "consent_missing"
    ends = clock.now.replace(hour=10)
    fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT, valid_until=ends)
    assert proposed(fabric, people.run(), **asked).consent_check == "passed"
    clock.now = ends
    assert refused(fabric, people.run(), **asked).reason == "consent_missing"


@pytest.mark.rule("CAN-10", "CON-6")
def test_only_an_evidence_link_goes_without_consent_and_past_an_allow_list(fabric: Fabric, people: People) -> None:
    run = under(fabric, people, write_classes_allowed=["preference"])
    link: dict[str, Any] = {
        "write_class": "evidence_link",
        "classification": "PII",
        "subject": SUBJECT,
        "evidence_refs": ["tool:crm:1"],
    }
    passed = proposed(fabric, run, **link, kind="decision", decision_key="refund:1")
    assert (passed.consent_check, passed.candidate.consent_id) == ("not_required", None)
    assert passed.candidate.value is None
    assert passed.candidate.evidence_refs == ("tool:crm:1",)
    assert refused(fabric, run, **link, kind="decision").reason == "class_not_allowed"
    assert refused(fabric, run, **link, decision_key="refund:1").reason == "class_not_allowed"
    for field, content in (("value", {"value": "x"}), ("text", {"text": "lives in Berlin"})):
        with pytest.raises(InvalidInput) as caught:
            fabric.propose(run, **link, kind="decision", decision_key="refund:1", **content)
        assert caught.value.field == field


# --- consolidation: once, for everything, whatever is broken


@pytest.mark.rule("JOB-1", "ERR-2")
def test_consolidating_twice_changes_nothing(fabric: Fabric, people: People) -> None:
    fabric.capture_many(people.run(), [STATEMENT | {"text": f"fact {n}"} for n in range(5)])
    first = fabric.consolidate(people.tenant_id)
    assert (first.captures, len(first.proposals)) == (5, 5)
    log = fabric.events(people.auditor)
    assert fabric.consolidate(people.tenant_id) == Consolidation()
    assert fabric.events(people.auditor) == log
    fabric.capture(people.run(), **STATEMENT)
    assert fabric.consolidate(people.tenant_id).captures == 1


@pytest.mark.rule("JOB-1")
def test_a_tenant_that_does_not_exist_has_nothing_to_consolidate(fabric: Fabric) -> None:
    assert fabric.consolidate("nobody_here") == Consolidation()


@pytest.mark.rule("JOB-1", "ERR-2")
def test_two_at_once_do_the_work_once_between_them(
    fabric: Fabric, people: People, server: TestServer, database: str, clock: FakeClock
) -> None:
    start, turns = Barrier(2), list[str]()
    took_part = {"a": Event(), "b": Event()}

    def work(worker: Fabric, name: str, other: str) -> Consolidation:
        def on_progress(_: object) -> None:
            turns.append(name)
            took_part[name].set()
            # Whoever is ahead waits here, so that the other has a part in it too.
            assert took_part[other].wait(60)

        start.wait(timeout=60)
        return worker.consolidate(people.tenant_id, on_progress=on_progress)

    fabric.capture_many(people.run(), [STATEMENT | {"text": f"fact {n}"} for n in range(1500)])
    with Fabric.open(server.url(database), clock=clock, master_keys=MASTER_KEYS) as one:
        one.consolidate("nobody_here")  # its connections are open before the start
        with ThreadPoolExecutor(2) as pool:
            left, right = pool.submit(work, fabric, "a", "b"), pool.submit(work, one, "b", "a")
            done = [left.result(), right.result()]
    proposals = [proposal_id for each in done for proposal_id in each.proposals]
    assert sum(each.captures for each in done) == len(proposals) == len(set(proposals)) == 1500
    assert len(turns) == 3
    assert set(turns) == {"a", "b"}


@pytest.mark.rule("JOB-1", "CAP-7")
def test_thousands_of_captures_are_consolidated_in_batches_each_reported(fabric: Fabric, people: People) -> None:
    items = [
        {"kind": "message" if n % 2 else "statement", "text": f"m{n}", "classification": "INTERNAL"}
        for n in range(2000)
    ]
    fabric.capture_many(people.run(), items)
    seen: list[int] = []
    done = fabric.consolidate(people.tenant_id, on_progress=lambda so_far: seen.append(so_far.captures))
    assert (done.captures, len(done.proposals), done.refusals, done.failed) == (2000, 1000, (), ())
    assert seen == sorted(seen)
    assert seen[-1] == 2000


@pytest.mark.rule("CAN-3", "ERA-1")
def test_a_capture_whose_seal_is_broken_is_named_and_stops_no_other(
    fabric: Fabric, people: People, server: TestServer, database: str
) -> None:
    receipts = fabric.capture_many(people.run(), [STATEMENT | {"text": f"fact {n}"} for n in range(3)])
    broken = receipts[1].capture_id
    with server.connect(database) as owner:
        owner.execute(
            "UPDATE captures SET content = set_byte(content, 20, get_byte(content, 20) # 1) WHERE capture_id = %s",
            [broken],
        )
    done = fabric.consolidate(people.tenant_id)
    assert (done.captures, len(done.proposals), done.failed) == (2, 2, (broken,))
    assert {item.candidate.text for item in fabric.queue.list(people.reviewer)} == {"fact 0", "fact 2"}
    assert events_of(fabric, people, "memory.parked") == [{"capture_id": broken, "reason": "seal_broken", "tries": 1}]


@pytest.mark.rule("CAN-3", "ERA-2")
@pytest.mark.parametrize("key", ["set_byte(wrapped_key, 20, get_byte(wrapped_key, 20) # 1)", "NULL"])
def test_a_subject_whose_key_is_broken_or_destroyed_stops_no_other_subject(
    fabric: Fabric, people: People, server: TestServer, database: str, key: str
) -> None:
    gone = fabric.capture(people.run(), **STATEMENT, subject="customer:gone")
    fabric.capture(people.run(), **STATEMENT | {"text": "still here"}, subject=SUBJECT)  # type: ignore[arg-type]
    with server.connect(database) as owner:
        owner.execute(
            f"UPDATE subjects SET wrapped_key = {key} WHERE tenant_id = %s AND holder = 'customer:gone'",
            [people.tenant_id],
        )
    done = fabric.consolidate(people.tenant_id)
    assert (done.captures, done.failed) == (1, (gone.capture_id,))
    (item,) = fabric.queue.list(people.reviewer)
    assert item.candidate.text == "still here"
