"""Ontology backfill: live memories follow a later ontology, as new records, under one person's verdict."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from muniment import Fabric, load_pack
from muniment.errors import Conflict, NotFound, RoleMissing, SelfApproval
from muniment.model.backfill import Backfill
from muniment.pack import Pack
from muniment.packs import backfill
from muniment.packs.backfill_rules import step
from muniment.testing import FakeClock, People
from tests.pack_activation import put_in_force
from tests.stories import CONSENT, promoted, proposed, remembered, submitted

SUBJECT = "customer:cust_1"
ONTOLOGY = """
ontology:
  predicates:
    preferred_channel: {type: string, renamed_from: [prefers_channel]}
    age: {type: number}
    vip: {type: boolean, renamed_from: [is_vip]}
  dropped: [shoe_size]
policy_layer: {guardrails: {redaction_rules: [{name: ref, pattern: '7{7}', mask: '[REF]'}]}}
"""


def ontology(version: str = "2.0.0", text: str = ONTOLOGY) -> Pack:
    return load_pack(f'pack_meta: {{id: acme, version: "{version}", ontology_version: "{version}"}}\n{text}')


def work(fabric: Fabric, people: People, count: int = 200) -> bool:
    return fabric._portal.call(backfill.work, fabric._fabric._context, people.tenant_id, count)


def carried_out(fabric: Fabric, people: People, pack: Pack | None = None, **how: Any) -> Backfill:
    """Put in force, ordered by a reviewer who approved nothing before, and run to the end."""
    ref = put_in_force(fabric, people.tenant_id, pack or ontology())
    fabric.packs.backfill(how.get("by", people.second_reviewer), ref)
    done = fabric.packs.run_backfill(people.tenant_id)
    assert done is not None and done.finished_at is not None
    return done


def known(fabric: Fabric, people: People, **asked: Any) -> dict[str, Any]:
    """What a run knows, by predicate."""
    found = fabric.recall(people.run(**asked.pop("run", {})), limit=8, **asked)
    return {record.predicate or "": record.value for record in found.all_records}


CONVERTED: list[tuple[str, Any, Any]] = [
    ("string", 42, "42"),
    ("string", 2.0, "2"),
    ("string", True, "true"),
    ("string", {"a": 1}, None),
    ("number", " 42 ", 42),
    ("number", "-1.5", -1.5),
    ("number", "about 42", None),
    ("number", True, None),
    ("boolean", "Yes", True),
    ("boolean", "no", False),
    ("boolean", 1, None),
    ("date", " 2024-02-29", "2024-02-29"),
    ("date", "2023-02-29", None),
    ("date", "2024-02-29T10:00:00Z", None),
    ("ceid", "customer cust_1", None),
    ("object", "{}", None),
]


@pytest.mark.rule("JOB-8")
@pytest.mark.parametrize(("wanted", "value", "expected"), CONVERTED)
def test_a_value_is_converted_whole_or_not_at_all(wanted: str, value: Any, expected: Any) -> None:
    found = step("a", value, ontology(text=f"ontology: {{predicates: {{a: {{type: {wanted}}}}}}}"))
    assert found is not None and found.change == "retyped"
    if expected is None:
        assert found.failed == f"not_a_{wanted}"
    else:
        assert (found.failed, found.value, type(found.value)) == (None, expected, type(expected))


@pytest.mark.parametrize(
    ("wanted", "value"),
    [("any", [1]), ("string", "42"), ("number", 4.0), ("boolean", False), ("ceid", SUBJECT), ("object", {"a": 1})],
)
def test_a_value_that_is_of_its_type_stands_as_it_is(wanted: str, value: Any) -> None:
    assert step("a", value, ontology(text=f"ontology: {{predicates: {{a: {{type: {wanted}}}}}}}")) is None


@pytest.mark.rule("JOB-8", "CAN-9", "PRO-5")
def test_memories_are_renamed_retyped_and_dropped_and_the_past_stays_as_it_was(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    email = promoted(fabric, people, "email")
    holds = {"valid_from": clock.now - timedelta(days=9), "valid_until": clock.now + timedelta(days=365)}
    said: dict[str, Any] = {"predicate": "age", "text": "She is 42 years old.", **holds}
    age = remembered(fabric, people, "42", tier="durable", priority=0.8, **said)
    odd = remembered(fabric, people, "about forty", predicate="age", entity="customer:cust_9")
    vip = remembered(fabric, people, "yes", predicate="is_vip", intent_id="support.*", qualifiers={"region": "de"})
    shoe = remembered(fabric, people, 43, predicate="shoe_size")
    other = remembered(fabric, people, "tea", predicate="drinks")
    then = clock.advance(days=3) or clock.now
    clock.advance(days=1)
    ref = fabric.packs.register(people.admin, ontology()).ref
    plan = fabric.packs.backfill(people.second_reviewer, ref, dry_run=True)
    assert (plan.backfill_id, plan.planned) == (None, {"renamed": 2, "retyped": 2, "dropped": 1})
    assert [(one.memory_id, one.reason) for one in plan.left] == [(odd, "not_a_number")]
    assert fabric.packs.backfills(people.admin) == []
    done = carried_out(fabric, people)
    assert (done.done, done.ordered_by) == ({"migrated": 3, "dropped": 1, "left": 1}, "clara")
    assert [(one.memory_id, one.change, one.outcome, one.reason) for one in done.left] == [
        (odd, "retyped", "left", "not_a_number")
    ]
    run = {"intent_id": "support.refund"}
    now = {"preferred_channel": "email", "age": 42, "vip": True, "drinks": "tea"}
    assert known(fabric, people, run=run, entities=[SUBJECT]) == now
    assert known(fabric, people, run=run, entities=[SUBJECT], as_of=then) == {
        "prefers_channel": "email",
        "age": "42",
        "is_vip": "yes",
        "shoe_size": 43,
        "drinks": "tea",
    }
    old = fabric.get(people.auditor, age)
    assert old.retraction_reason == "superseded" and old.superseded_by is not None
    new = fabric.get(people.auditor, old.superseded_by)
    same = {"scope", "subject", "tier", "priority", "classification", "confidence", "trust", "text", "observed_at"}
    same |= {"valid_from", "valid_until", "decision_key", "evidence_refs", "expires_at", "write_class", "entity"}
    assert new.model_dump(include=same) == old.model_dump(include=same)
    assert (new.author, new.source, new.approver) == ("muniment:backfill", "system", "clara")
    assert (new.pack, new.ontology_version, new.origin) == (ref, "2.0.0", "muniment:backfill")
    renamed = fabric.get(people.auditor, fabric.get(people.auditor, email).superseded_by or "")
    assert renamed.text == "customer:cust_1 preferred channel: email", "what was made of the fields is made anew"
    assert renamed.expires_at == fabric.get(people.auditor, email).expires_at, "nothing lives longer for it"
    assert (
        fabric.get(people.auditor, fabric.get(people.auditor, vip).superseded_by or "").scope.intent_id == "support.*"
    )
    assert fabric.contradictions.list(people.reviewer, closed=True) == [], "a new type contradicts nothing"
    gone = fabric.get(people.auditor, shoe)
    assert (gone.retraction_reason, gone.retracted_by, gone.superseded_by) == ("deprecated", "clara", None)
    assert fabric.get(people.auditor, other).retracted_at is None
    papers = fabric.trail(people.auditor, new.memory_id)
    assert [passed.gate for passed in papers.candidates[0].gates][-1] == "rejection"
    assert [(one.action, one.by, one.tier) for one in papers.proposals[0].verdicts] == [("approve", "clara", "durable")]
    notes = [event.data for event in fabric.events(people.auditor, limit=1000) if event.type == "memory.note"]
    assert notes[-1] == {
        "about": "backfill_finished",
        "backfill_id": done.backfill_id,
        "pack": ref,
        "migrated": 3,
        "dropped": 1,
        "left": 1,
    }


@pytest.mark.rule("JOB-8")
def test_a_second_run_does_nothing_and_what_was_left_can_be_ordered_again(
    fabric: Fabric, people: People, rows: Any
) -> None:
    promoted(fabric, people, "email")
    remembered(fabric, people, "old", predicate="age")
    done = carried_out(fabric, people)
    before = len(rows("memories")), len(rows("captures"))
    assert fabric.packs.run_backfill(people.tenant_id) is None and not work(fabric, people)
    again = carried_out(fabric, people)
    assert (again.done, again.planned) == ({"left": 1}, {})
    assert (len(rows("memories")), len(rows("captures"))) == before
    assert [one.backfill_id for one in fabric.packs.backfills(people.auditor)] == [again.backfill_id, done.backfill_id]


@pytest.mark.rule("JOB-8")
def test_stopped_between_two_memories_it_goes_on_and_at_once_none_is_done_twice(
    fabric: Fabric, people: People, rows: Any
) -> None:
    for n in range(6):
        remembered(fabric, people, "email", entity=f"customer:cust_{n}", user_id=f"cust_{n}")
    ref = put_in_force(fabric, people.tenant_id, ontology())
    fabric.packs.backfill(people.second_reviewer, ref)
    with pytest.raises(Conflict, match="in progress"):
        fabric.packs.backfill(people.reviewer, ref)
    assert work(fabric, people, 2)
    assert fabric.packs.backfills(people.admin)[0].done == {"migrated": 2}
    # What is proposed under the old name after the order is stored under the new one, and no part of it.
    late = remembered(fabric, people, "email", entity="customer:late", user_id="late")
    with ThreadPoolExecutor(2) as pool:
        left = list(pool.map(lambda _: work(fabric, people), range(2)))
    assert left == [False, False]
    assert fabric.packs.backfills(people.admin)[0].done == {"migrated": 6}
    live = [row for row in rows("memory_scope", "predicate, dead_seq, memory_id") if row["dead_seq"] is None]
    assert sorted(row["predicate"] for row in live) == ["preferred_channel"] * 7
    assert late in {row["memory_id"] for row in live}


@pytest.mark.rule("JOB-8", "CTR-3")
def test_what_stands_under_the_new_name_is_never_overwritten(fabric: Fabric, people: People) -> None:
    old = promoted(fabric, people, "email")
    stands = promoted(fabric, people, "phone", predicate="preferred_channel")
    agrees = promoted(fabric, people, "letter", entity="customer:cust_2")
    said = promoted(fabric, people, "letter", entity="customer:cust_2", predicate="preferred_channel")
    done = carried_out(fabric, people)
    assert done.done == {"held": 1, "merged": 1}
    (held,) = done.left
    assert (held.memory_id, held.reason) == (old, "contradiction")
    (open_,) = fabric.contradictions.list(people.reviewer)
    assert (open_.existing, open_.proposal_id, open_.reason) == (stands, held.proposal_id, "other_value")
    assert fabric.get(people.auditor, old).retracted_at is None
    assert fabric.get(people.auditor, stands).retracted_at is None
    merged = fabric.get(people.auditor, agrees)
    assert (merged.retraction_reason, merged.superseded_by) == ("superseded", said)
    # A person decides: approved in the old one's place it is promoted, and both sides are shown as a conflict.
    assert held.proposal_id is not None
    assert fabric.queue.get(people.reviewer, held.proposal_id).status == "held"
    assert fabric.queue.approve(people.reviewer, held.proposal_id, supersedes=old).status == "promoted"


@pytest.mark.rule("JOB-8", "CTR-5")
def test_what_is_disputed_waits_until_a_person_has_settled_it(fabric: Fabric, people: People) -> None:
    sides = [promoted(fabric, people, "email"), promoted(fabric, people, "phone")]
    (one,) = fabric.contradictions.list(people.reviewer)
    done = carried_out(fabric, people)
    assert {item.memory_id: item.reason for item in done.left} == dict.fromkeys(sides, "contradiction_open")
    apart = {"existing": {"region": "de"}, "incoming": {"region": "fr"}}
    fabric.contradictions.resolve(people.reviewer, one.contradiction_id, "coexist", **apart)
    again = carried_out(fabric, people)
    assert {item.memory_id: item.reason for item in again.left} == dict.fromkeys(sides, "coexists")


@pytest.mark.rule("JOB-8", "CAN-9", "REV-4")
def test_what_a_gate_refuses_or_a_person_must_see_stays_and_is_listed(fabric: Fabric, people: People) -> None:
    fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    secret = {"subject": SUBJECT, "classification": "PII"}
    covered = promoted(fabric, people, "email", **secret)
    named = {**CONSENT, "predicates_allowed": ["is_vip"]}
    fabric.consent.grant(people.officer, subject="customer:cust_2", **named)
    uncovered = promoted(
        fabric,
        people,
        "yes",
        entity="customer:cust_2",
        predicate="is_vip",
        subject="customer:cust_2",
        classification="PII",
    )
    marked = promoted(fabric, people, "no", entity="customer:cust_3", predicate="is_vip", qualifiers={"ref": "7777777"})
    writer = people.person("clara", "correction_writer")
    fixed = fabric.correct(
        writer, entity="customer:cust_5", predicate="prefers_channel", value="fax", classification="INTERNAL"
    )
    own = fabric.queue.approve(people.reviewer, submitted(fixed)).memory_id
    done = carried_out(fabric, people)
    assert done.done == {"migrated": 1, "refused": 1, "left": 2}
    assert {one.memory_id: one.reason for one in done.left} == {
        uncovered: "consent.consent_missing",
        own: "self_approval",
        marked: "invalid_input",
    }
    new = fabric.get(people.auditor, fabric.get(people.auditor, covered).superseded_by or "")
    assert (new.consent_id, new.subject, new.classification, new.sensitive) == (
        fabric.get(people.auditor, covered).consent_id,
        SUBJECT,
        "PII",
        True,
    )
    # Ordered by somebody who did not write it, the correction follows, as a correction.
    again = carried_out(fabric, people, by=people.reviewer)
    assert again.done == {"migrated": 1, "refused": 1, "left": 1}
    old = fabric.get(people.auditor, own or "")
    assert (old.retraction_reason, fabric.get(people.auditor, old.superseded_by or "").write_class) == (
        "corrected",
        "correction",
    )


@pytest.mark.rule("JOB-8", "REV-4")
def test_only_a_person_who_reviews_can_order_it(fabric: Fabric, people: People) -> None:
    proposed(fabric, people.run(), entity=SUBJECT, predicate="prefers_channel", value="email")
    ref = fabric.packs.register(people.admin, ontology()).ref
    agent = people.run()
    service = people.service.model_copy(update={"roles": frozenset({"reviewer"})})
    for asker in (agent, service, people.admin, people.author):
        with pytest.raises(RoleMissing):
            fabric.packs.backfill(asker, ref)
    with pytest.raises(SelfApproval):
        fabric.packs.backfill(people.person("muniment:backfill", "reviewer"), ref)
    with pytest.raises(NotFound):
        fabric.packs.backfill(people.reviewer, "acme@9.9.9")
    assert fabric.packs.backfills(people.admin) == []
