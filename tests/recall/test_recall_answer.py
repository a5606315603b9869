"""The answer of a recall: its order, what is separate, conflicts as whole sets, provenance, and its record."""

from datetime import timedelta
from typing import Any

import pytest

from muniment import Fabric
from muniment.errors import NotFound
from muniment.model.proposal import Proposal
from muniment.pack import load_pack
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.stories import CONSENT, promoted, proposed, remembered, texts

SUBJECT = "customer:cust_1"
KEY: dict[str, Any] = {"entity": SUBJECT, "predicate": "prefers_channel"}
PII: dict[str, Any] = {"subject": SUBJECT, "classification": "PII"}


# --- order, limit, confidence


@pytest.mark.rule("REC-2")
def test_without_a_query_the_order_is_priority_then_newest_first(fabric: Fabric, people: People) -> None:
    ranks = [0.5, 0.9, 0.5, 0.1, 0.9]
    ids = [remembered(fabric, people, predicate=f"p{n}", priority=rank) for n, rank in enumerate(ranks)]
    answer = [record.id for record in fabric.recall(people.run()).records]
    assert answer == [ids[place] for place in (4, 1, 2, 0, 3)], "the clock stood still; the numbers decide"
    assert [record.id for record in fabric.recall(people.run()).records] == answer


@pytest.mark.rule("REC-2", "COR-2")
def test_a_correction_goes_before_all_others_on_its_key_and_before_nothing_else(
    server: TestServer, database: str, clock: FakeClock, people: People
) -> None:
    pack = load_pack('pack_meta: {id: acme, version: "1.0.0"}\nontology: {predicates: {likes: {cardinality: many}}}')
    with Fabric.open(server.url(database), pack=pack, clock=clock, master_keys=MASTER_KEYS) as fabric:
        best = remembered(fabric, people, "tea", predicate="likes", priority=0.8)
        below = remembered(fabric, people, "milk", predicate="likes", priority=0.3)
        higher = remembered(fabric, people, predicate="other", priority=0.95)
        between = remembered(fabric, people, predicate="another", priority=0.6)
        clock.advance(seconds=1)  # its id then sorts behind theirs: only its class can bring it ahead
        correction = remembered(
            fabric,
            people,
            "coffee",
            by=people.author,
            predicate="likes",
            priority=0.1,
            write_class="correction",
        )
        answer = [record.id for record in fabric.recall(people.run()).records]
    assert answer == [higher, correction, best, between, below]


@pytest.mark.rule("REC-3")
def test_below_the_packs_confidence_a_record_stands_apart(fabric: Fabric, people: People) -> None:
    at, above, below = (
        remembered(fabric, people, predicate=f"p{n}", confidence=confidence)
        for n, confidence in enumerate((0.50, 0.80, 0.49))
    )
    answer = fabric.recall(people.run())
    assert {record.id for record in answer.records} == {at, above}
    assert [record.id for record in answer.low_confidence] == [below]
    assert answer.omitted == 0


@pytest.mark.rule("REC-3")
def test_what_the_limit_cuts_is_counted(fabric: Fabric, people: People) -> None:
    for n in range(10):
        remembered(fabric, people, predicate=f"p{n}", priority=n / 10)
    for n in range(3):
        remembered(fabric, people, predicate=f"q{n}", confidence=0.4)
    usual = fabric.recall(people.run())
    assert (len(usual.records), len(usual.low_confidence), usual.omitted) == (8, 3, 2)
    few = fabric.recall(people.run(), limit=2)
    assert (len(few.records), len(few.low_confidence), few.omitted) == (2, 2, 9)
    assert few.records == usual.records[:2]
    assert len(fabric.recall(people.run(), limit=100).records) == 8, "the pack's max_recalls bounds it"


@pytest.mark.rule("REC-6")
def test_a_recall_can_be_narrowed_to_entities_tiers_and_classes(fabric: Fabric, people: People) -> None:
    first = remembered(fabric, people, predicate="a")
    second = remembered(fabric, people, predicate="b", entity="order:1", write_class="decision_outcome")
    third = remembered(fabric, people, predicate="c", tier="durable")
    run = people.run()

    def found(**narrowed: Any) -> set[str]:
        return {record.id for record in fabric.recall(run, **narrowed).records}

    assert found() == {first, second, third}
    assert found(entities=["order:1"]) == found(classes=["decision_outcome"]) == {second}
    assert found(tiers=["durable"]) == {third}
    assert found(tiers=["durable", "episodic"]) == {second, third}
    assert found(entities=["order:2"]) == found(entities=[]) == set()


# --- conflicts


@pytest.mark.rule("REC-4", "CTR-6")
def test_an_open_conflict_comes_as_one_set_apart_from_the_plain_records(fabric: Fabric, people: People) -> None:
    sides = {promoted(fabric, people, value) for value in ("email", "phone")}
    plain = remembered(fabric, people, predicate="other")
    answer = fabric.recall(people.run())
    assert [record.id for record in answer.records] == [plain]
    (conflict,) = answer.conflicts
    assert {record.id for record in conflict.records} == sides
    (opened,) = fabric.contradictions.list(people.reviewer)
    assert conflict.contradiction_ids == (opened.contradiction_id,)
    assert {fabric.get(people.run(), side).memory_id for side in sides} == sides
    fabric.retract(people.reviewer, opened.existing, reason="wrong")
    settled = fabric.recall(people.run())
    assert settled.conflicts == ()
    assert {record.id for record in settled.records} == {plain, opened.incoming}


@pytest.mark.rule("REC-4", "CTR-6")
def test_three_ways_make_one_set_that_no_limit_cuts(fabric: Fabric, people: People) -> None:
    sides = {promoted(fabric, people, value) for value in ("email", "phone", "fax")}
    answer = fabric.recall(people.run(), limit=1)
    (conflict,) = answer.conflicts
    assert {record.id for record in conflict.records} == sides
    assert len(conflict.contradiction_ids) == 3
    assert answer.omitted == 0
    others = {promoted(fabric, people, value, predicate="likes", confidence=0.4) for value in ("a", "b")}
    whole = fabric.recall(people.run())
    assert {frozenset(record.id for record in one.records) for one in whole.conflicts} == {
        frozenset(sides),
        frozenset(others),
    }
    assert whole.low_confidence == ()
    cut = fabric.recall(people.run(), limit=1)
    assert len(cut.conflicts) == 1
    assert cut.omitted == 5 - len(cut.conflicts[0].records)


@pytest.mark.rule("REC-4", "REC-1")
def test_where_a_run_may_see_one_side_only_that_side_is_a_plain_record(fabric: Fabric, people: People) -> None:
    internal = promoted(fabric, people, "email")
    closed = promoted(fabric, people, "phone", classification="CONFIDENTIAL")
    answer = fabric.recall(people.run(classification_allowed={"INTERNAL"}))
    assert [record.id for record in answer.records] == [internal]
    assert answer.conflicts == ()
    assert closed not in answer.model_dump_json()
    with pytest.raises(NotFound):
        fabric.get(people.run(classification_allowed={"INTERNAL"}), closed)


@pytest.mark.rule("REC-4", "CTR-6", "REC-6")
@pytest.mark.parametrize("narrowed", [{"tiers": ["semantic"]}, {"classes": ["preference"]}])
def test_narrowing_never_turns_one_side_of_a_conflict_into_a_plain_record(
    fabric: Fabric, people: People, narrowed: dict[str, Any]
) -> None:
    side = promoted(fabric, people, "email")
    promoted(fabric, people, "phone", write_class="decision_outcome")
    assert len(fabric.recall(people.run()).conflicts) == 1
    answer = fabric.recall(people.run(), **narrowed)
    assert side not in {record.id for record in answer.records}
    assert [len(one.records) for one in answer.conflicts] == [2]
    assert fabric.recall(people.run(), entities=["order:1"]).conflicts == ()


@pytest.mark.rule("REC-4", "CTR-1", "REC-1")
def test_a_run_that_names_no_region_never_gets_two_regions_values_as_plain_records(
    fabric: Fabric, people: People
) -> None:
    for region, value in (("de", 14), ("fr", 30)):
        remembered(fabric, people, value, qualifiers={"region": region})
    assert [record.value for record in fabric.recall(people.run(qualifiers={"region": "de"})).records] == [14]
    plain = fabric.recall(people.run()).records
    assert len(plain) < 2, "they contradict each other for this run: a conflict set, or neither"


# --- provenance and the record of it


@pytest.mark.rule("REC-5", "TIR-1")
def test_each_record_carries_its_provenance(fabric: Fabric, people: People, clock: FakeClock) -> None:
    consent = fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    seen = clock.now - timedelta(days=3)
    item = proposed(
        fabric,
        people.run(),
        **KEY,
        **PII,
        value="email",
        evidence_refs=["tool:crm:1", "session:s"],
        origin="tool:crm.lookup",
        kind="tool_result",
        observed_at=seen,
    )
    captured_at = clock.now
    clock.advance(hours=1)
    done = fabric.queue.approve(people.reviewer, item.proposal_id)
    (record,) = fabric.recall(people.run()).records
    assert record.provenance.vouched == "tool:crm.lookup"
    assert record.provenance.model_dump(exclude={"vouched"}) == {
        "capture_id": item.candidate.capture_id,
        "candidate_id": item.candidate.candidate_id,
        "proposal_id": item.proposal_id,
        "verdict_id": done.verdicts[-1].verdict_id,
        "kind": "tool_result",
        "origin": "tool:crm.lookup",
        "source": "agent",
        "author": "bot",
        "approver": "boris",
        "consent_id": consent.consent_id,
        "pack": "muniment.builtin@1.3.0",
        "evidence_refs": ("tool:crm:1", "session:s"),
        "captured_at": captured_at,
        "observed_at": seen,
        "promoted_at": clock.now,
        "expires_at": clock.now + timedelta(days=365),
        "confidence": 0.7,
    }
    assert record.score == {"priority": record.priority} == {"priority": 0.6}
    assert (record.classification, record.tier, record.subject) == ("PII", "semantic", SUBJECT)


@pytest.mark.rule("CAN-1", "REC-5")
def test_when_a_fact_holds_is_in_its_proposal_through_an_edit_and_in_its_record(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    since, until = clock.now - timedelta(days=400), clock.now + timedelta(days=400)
    fabric.capture(
        people.run(), kind="statement", text="She is on leave.", classification="INTERNAL", valid_until=until
    )
    (found,) = fabric.consolidate(people.tenant_id).proposals
    leave = fabric.queue.get(people.reviewer, found).candidate
    assert (leave.valid_from, leave.valid_until) == (None, until)
    first = proposed(fabric, people.run(), **KEY, value="email", valid_from=since, valid_until=until)
    edited = fabric.queue.edit(people.reviewer, first.proposal_id, value="post")
    assert isinstance(edited, Proposal)
    fabric.queue.approve(people.second_reviewer, edited.proposal_id)
    for one in (first, edited):
        assert (one.candidate.valid_from, one.candidate.valid_until) == (since, until)
    (record,) = fabric.recall(people.run()).records
    assert (record.value, record.valid_from, record.valid_until) == ("post", since, until)


@pytest.mark.rule("REC-8", "EVT-2")
def test_every_recall_is_recorded_with_what_decided_it_and_no_content(
    fabric: Fabric, people: People, clock: FakeClock, server: TestServer, database: str
) -> None:
    shown = remembered(fabric, people, "aardvark", text="aardvark", evidence_refs=["tool:aardvark"])
    low = remembered(fabric, people, "aardvark", predicate="low", confidence=0.4)
    sides = {promoted(fabric, people, value, predicate="c") for value in ("aardvark", "badger")}
    remembered(fabric, people, "aardvark", predicate="cut", priority=0.0)
    run = people.run(session_id="s", intent_id="sales.offer", qualifiers={"region": "de"}, trace_id="t1")
    answer = fabric.recall(run, limit=1, tiers=["semantic"], entities=[SUBJECT])
    empty = fabric.recall(people.run("stranger"))
    with server.connect(database) as owner:
        rows = owner.execute(
            "SELECT recall_id, at, seq, agent_id, run_id, user_id, pack, request, result_ids, omitted, r::text"
            " FROM recalls r WHERE tenant_id = %s ORDER BY at, recall_id = %s",
            [people.tenant_id, empty.recall_id],
        ).fetchall()
    first, second = rows
    assert first[:7] == (
        answer.recall_id,
        clock.now,
        answer.seq,
        "bot",
        "run_1",
        "cust_1",
        "muniment.builtin@1.3.0",
    )
    request: Any = first[7]
    assert {
        name: request[name] for name in ("intent_id", "session_id", "qualifiers", "tiers", "entities", "limit")
    } == {
        "intent_id": "sales.offer",
        "session_id": "s",
        "qualifiers": {"region": "de"},
        "tiers": ["semantic"],
        "entities": [SUBJECT],
        "limit": 1,
    }
    result_ids: Any = first[8]
    assert set(result_ids) == {shown, low} | sides
    assert first[9] == answer.omitted == 1
    assert (second[0], second[8]) == (empty.recall_id, [])
    assert "aardvark" not in str(rows)
    assert fabric.trail(people.auditor, shown).recalls == (answer.recall_id,)


@pytest.mark.rule("REC-1", "CAP-6")
def test_nothing_is_recalled_before_it_is_promoted(fabric: Fabric, people: People) -> None:
    item = proposed(fabric, people.run(), **KEY, value="email")
    assert texts(fabric, people.run()) == []
    fabric.queue.approve(people.reviewer, item.proposal_id)
    assert texts(fabric, people.run()) == ["customer:cust_1 prefers channel: email"]
