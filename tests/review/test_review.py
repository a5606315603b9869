"""Stage 3, review: the queue, its verdicts, and who may give them."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from typing import Any

import pytest

from muniment import Fabric, Pack, Refusal
from muniment.errors import AlreadyDecided, Denied, InvalidInput, MunimentError, RoleMissing, SelfApproval
from muniment.model.context import Principal
from muniment.model.fields import build
from muniment.model.proposal import Action, Proposal, ProposalDocument, Status, status_of
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.stories import CONSENT, proposed

SUBJECT = "customer:cust_1"
FACT: dict[str, Any] = {"entity": SUBJECT, "predicate": "likes", "value": "tea"}
SENSITIVE: dict[str, Any] = {**FACT, "subject": SUBJECT, "classification": "PII"}


def edited(outcome: Proposal | Refusal) -> Proposal:
    assert isinstance(outcome, Proposal), outcome
    return outcome


def denials(fabric: Fabric, people: People) -> list[tuple[str, str, Any]]:
    """Who was refused what, by the log."""
    log = fabric.events(people.auditor, limit=1000)
    return [(e.actor, e.data["code"], e.data["target"]) for e in log if e.type == "memory.security"]


# --- verdicts and status


@pytest.mark.rule("REV-1")
@pytest.mark.parametrize(
    ("actions", "status"),
    [
        ((), "pending"),
        (("assign", "override", "assign"), "pending"),
        (("hold",), "held"),
        (("hold", "override", "assign"), "held"),
        (("hold", "release"), "pending"),
        (("hold", "release", "approve"), "promoted"),
        (("override", "approve"), "promoted"),
        (("edit",), "edited"),
        (("assign", "reject"), "rejected"),
        (("duplicate",), "duplicate"),
        (("hold", "block"), "blocked"),
        (("withdraw",), "withdrawn"),
    ],
)
def test_a_status_follows_from_the_verdicts_alone(actions: tuple[Action, ...], status: Status) -> None:
    assert status_of(actions) == status


@pytest.mark.rule("REV-1", "REV-5")
def test_every_action_adds_a_verdict_with_who_when_under_which_pack_what_and_why(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    item = proposed(fabric, people.run(), **FACT).proposal_id
    clock.advance(minutes=1)
    assert fabric.queue.assign(people.reviewer, item, to="clara").assignee == "clara"
    clock.advance(minutes=1)
    moved = fabric.queue.override(people.second_reviewer, item, tier="episodic", priority=0.9, note="urgent")
    assert (moved.tier_target, moved.tier_derived, moved.priority) == ("episodic", "semantic", 0.9)
    clock.advance(minutes=1)
    assert fabric.queue.release(people.reviewer, item).assignee is None
    clock.advance(minutes=1)
    done = fabric.queue.reject(people.second_reviewer, item, reason="not_true", note="she drinks coffee")
    output = [(v.action, v.by, v.by_kind, v.at, v.reason, v.note) for v in done.verdicts]
    start = clock.now - timedelta(minutes=4)
    assert output == [
        ("assign", "boris", "operator", start + timedelta(minutes=1), None, None),
        ("override", "clara", "operator", start + timedelta(minutes=2), None, "urgent"),
        ("release", "boris", "operator", start + timedelta(minutes=3), None, None),
        ("reject", "clara", "operator", clock.now, "not_true", "she drinks coffee"),
    ]
    assert {v.pack for v in done.verdicts} == {"muniment.builtin@1.3.0"}
    assert len({v.seq for v in done.verdicts}) == 4
    assert done.status == "rejected"
    assert fabric.recall(people.run()).records == ()


@pytest.mark.rule("REV-1", "REV-5")
def test_after_the_final_verdict_nothing_more_can_be_done(fabric: Fabric, people: People) -> None:
    item = proposed(fabric, people.run(), **FACT).proposal_id
    fabric.queue.reject(people.reviewer, item, reason="no")
    again: list[Callable[[], Any]] = [
        lambda: fabric.queue.approve(people.reviewer, item),
        lambda: fabric.queue.reject(people.reviewer, item, reason="no"),
        lambda: fabric.queue.edit(people.reviewer, item, value="coffee"),
        lambda: fabric.queue.override(people.reviewer, item, priority=1.0),
        lambda: fabric.queue.assign(people.reviewer, item),
        lambda: fabric.queue.release(people.reviewer, item),
    ]
    for act in again:
        with pytest.raises(AlreadyDecided, match="boris") as caught:
            act()
        assert caught.value.field == "proposal_id"
    assert len(fabric.queue.get(people.reviewer, item).verdicts) == 1


@pytest.mark.rule("REV-5")
def test_of_two_operators_at_once_one_wins_and_the_other_gets_an_error(fabric: Fabric, people: People) -> None:
    items = [proposed(fabric, people.run(), **{**FACT, "predicate": f"p{n}"}).proposal_id for n in range(8)]
    start = Barrier(2)

    def decide(who: Principal, action: str) -> list[str]:
        output: list[str] = []
        for item in items:
            start.wait(timeout=60)
            try:
                if action == "approve":
                    fabric.queue.approve(who, item)
                else:
                    fabric.queue.reject(who, item, reason="no")
            except AlreadyDecided as error:
                output.append(str(error))
        return output

    with ThreadPoolExecutor(2) as pool:
        one = pool.submit(decide, people.reviewer, "approve")
        other = pool.submit(decide, people.second_reviewer, "reject")
        assert len(one.result()) + len(other.result()) == len(items)
    for item in items:
        proposal = fabric.queue.get(people.reviewer, item)
        assert len(proposal.verdicts) == 1
        assert (proposal.memory_id is not None) == (proposal.status == "promoted")


@pytest.mark.rule("REV-5")
def test_the_queue_is_listed_by_due_time_in_pages_by_class_with_or_without_what_is_closed(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    usual = proposed(fabric, people.run(), **FACT)
    sensitive = proposed(fabric, people.run(), **{**SENSITIVE, "predicate": "phone"})
    correction = proposed(fabric, people.author, **FACT, write_class="correction")
    late = proposed(fabric, people.run(), **{**FACT, "predicate": "hates"})
    order = [one.proposal_id for one in (correction, sensitive, usual, late)]
    assert [one.due_at - clock.now for one in (correction, sensitive, usual)] == [
        timedelta(hours=4),
        timedelta(hours=24),
        timedelta(hours=72),
    ]
    listed = fabric.queue.list(people.reviewer)
    assert {one.proposal_id for one in listed[2:]} == set(order[2:])
    assert [one.proposal_id for one in listed[:2]] == order[:2]
    pages: list[str] = []
    while page := fabric.queue.list(people.reviewer, limit=1, after=pages[-1] if pages else None):
        pages.append(page[0].proposal_id)
    assert pages == [one.proposal_id for one in listed]
    fabric.queue.reject(people.reviewer, correction.proposal_id, reason="no")
    assert len(fabric.queue.list(people.auditor)) == 3
    assert len(fabric.queue.list(people.auditor, closed=True)) == 4
    (only,) = fabric.queue.list(people.reviewer, write_class="correction", closed=True)
    assert only.proposal_id == correction.proposal_id


# --- tier, priority and four eyes


@pytest.mark.rule("REV-2")
def test_an_override_is_what_the_memory_gets_and_the_derived_tier_stays_on_record(
    fabric: Fabric, people: People
) -> None:
    item = proposed(fabric, people.run(), **FACT).proposal_id
    fabric.queue.override(people.reviewer, item, tier="episodic")
    fabric.queue.override(people.reviewer, item, priority=0.25)
    done = fabric.queue.approve(people.reviewer, item)
    assert done.memory_id is not None
    memory = fabric.get(people.auditor, done.memory_id)
    assert (memory.tier, memory.priority, done.tier_derived) == ("episodic", 0.25, "semantic")
    assert memory.expires_at == memory.promoted_at + timedelta(days=30)


@pytest.mark.rule("REV-2", "REV-4")
def test_the_stricter_approval_of_derived_and_final_tier_holds(
    server: TestServer, database: str, clock: FakeClock, people: People
) -> None:
    routing = [{"when": {"write_class": "correction"}, "tier": "durable"}, {"tier": "semantic"}]
    pack = Pack.model_validate(
        {
            "pack_meta": {"id": "flat", "version": "1.0.0"},
            "memory_layer": {"memory_policy": {"tier_routing": routing}},
        }
    )
    itself = people.person("olga", "reviewer", "correction_writer")
    with Fabric.open(server.url(database), pack=pack, clock=clock, master_keys=MASTER_KEYS) as fabric:
        plain = proposed(fabric, itself, **FACT)
        raised = proposed(fabric, itself, **{**FACT, "predicate": "hates"})
        lowered = proposed(fabric, itself, **{**FACT, "predicate": "eats"}, write_class="correction")
        fabric.queue.override(itself, raised.proposal_id, tier="durable")
        fabric.queue.override(itself, lowered.proposal_id, tier="semantic")
        for item in (raised, lowered):
            with pytest.raises(SelfApproval):
                fabric.queue.approve(itself, item.proposal_id)
            assert fabric.queue.approve(people.reviewer, item.proposal_id).status == "promoted"
        assert fabric.queue.approve(itself, plain.proposal_id).status == "promoted", "neither durable nor sensitive"


@pytest.mark.rule("REV-4", "AUD-3")
def test_author_agent_and_whoever_lacks_the_role_are_refused_and_the_attempt_is_on_record(
    fabric: Fabric, people: People
) -> None:
    item = proposed(fabric, people.author, **FACT, write_class="correction").proposal_id
    robot = Principal(tenant_id=people.tenant_id, id="robot", kind="agent", roles=frozenset({"reviewer", "agent"}))
    author = people.person("olga", "correction_writer", "reviewer")
    tries: list[tuple[Any, type[Denied], Any]] = [
        (author, SelfApproval, item),
        (robot, RoleMissing, None),
        (people.run(), RoleMissing, None),
        (people.auditor, RoleMissing, None),
        (people.author, RoleMissing, None),
        (people.admin, RoleMissing, None),
        (people.officer, RoleMissing, None),
    ]
    for who, error, _ in tries:
        with pytest.raises(error):
            fabric.queue.approve(who, item)
    names = [getattr(who, "id", "bot") for who, _, _ in tries]
    output = [(name, error.code, target) for name, (_, error, target) in zip(names, tries, strict=True)]
    assert denials(fabric, people) == output
    proposal = fabric.queue.get(people.reviewer, item)
    assert (proposal.status, proposal.verdicts) == ("pending", ())


@pytest.mark.rule("REV-4", "AUD-3")
@pytest.mark.parametrize("act", ["approve", "reject", "edit", "override", "assign", "release"])
def test_no_agent_acts_on_the_queue_in_any_way(fabric: Fabric, people: People, act: str) -> None:
    item = proposed(fabric, people.run(), **FACT).proposal_id
    what: dict[str, dict[str, Any]] = {
        "reject": {"reason": "no"},
        "edit": {"value": "x"},
        "override": {"priority": 1.0},
    }
    with pytest.raises(RoleMissing):
        getattr(fabric.queue, act)(people.run(), item, **what.get(act, {}))
    assert denials(fabric, people) == [("bot", "role_missing", None)]
    assert fabric.queue.get(people.auditor, item).verdicts == ()


@pytest.mark.rule("REV-1", "REV-4")
@pytest.mark.parametrize(("name", "kind"), [("importer", "system"), ("auto", "operator")])
@pytest.mark.parametrize("act", ["approve", "reject", "assign"])
def test_a_verdict_is_autos_or_a_named_persons_and_nobody_elses(
    fabric: Fabric, people: People, name: str, kind: Any, act: str
) -> None:
    item = proposed(fabric, people.run(), **FACT).proposal_id
    what = {"reason": "no"} if act == "reject" else {}
    with pytest.raises(MunimentError):
        who = Principal(tenant_id=people.tenant_id, id=name, kind=kind, roles=frozenset({"reviewer"}))
        getattr(fabric.queue, act)(who, item, **what)
    assert fabric.queue.get(people.reviewer, item).verdicts == ()


# --- edits


@pytest.mark.rule("REV-5", "CAN-9")
def test_an_edit_takes_the_proposals_place_and_keeps_both_texts(fabric: Fabric, people: People) -> None:
    first = proposed(fabric, people.run(), **FACT, text="she likes tea", evidence_refs=["tool:crm:1"])
    second = edited(
        fabric.queue.edit(
            people.reviewer, first.proposal_id, text="she likes green tea", value="green tea", note="as heard"
        )
    )
    before = fabric.queue.get(people.reviewer, first.proposal_id)
    assert (before.status, before.candidate.text) == ("edited", "she likes tea")
    assert [(v.action, v.by, v.note) for v in before.verdicts] == [("edit", "boris", "as heard")]
    assert (second.status, second.edit_of) == ("pending", first.proposal_id)
    assert second.candidate.edits == first.candidate.candidate_id
    assert (second.candidate.editor, second.candidate.author) == ("boris", "bot")
    assert second.candidate.evidence_refs == ("tool:crm:1",)
    done = fabric.queue.approve(people.second_reviewer, second.proposal_id)
    assert done.memory_id is not None
    trail = fabric.trail(people.auditor, done.memory_id)
    assert [one.text for one in trail.candidates] == ["she likes tea", "she likes green tea"]
    assert [one.status for one in trail.proposals] == ["edited", "promoted"]
    assert (trail.memory.value, trail.memory.editor) == ("green tea", "boris")
    assert [record.value for record in fabric.recall(people.run()).records] == ["green tea"]


@pytest.mark.rule("REV-5", "CAN-9", "CON-2")
def test_an_edit_passes_the_gates_again_and_a_refusal_changes_nothing(fabric: Fabric, people: People) -> None:
    item = proposed(fabric, people.run(), **FACT, subject=SUBJECT)
    log = fabric.events(people.auditor)
    no = fabric.queue.edit(people.reviewer, item.proposal_id, value="+49 30 123", classification="PII")
    assert isinstance(no, Refusal)
    assert (no.gate, no.reason) == ("consent", "consent_missing")
    assert fabric.queue.get(people.reviewer, item.proposal_id) == item
    assert fabric.queue.list(people.reviewer, closed=True) == [item]
    assert fabric.events(people.auditor) == log
    fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    again = edited(fabric.queue.edit(people.reviewer, item.proposal_id, classification="PII"))
    assert (again.sensitive, again.consent_check, again.candidate.value) == (True, "passed", "tea")


@pytest.mark.rule("REV-5", "CAN-4")
def test_an_edit_cannot_lower_the_label_nor_change_the_key(fabric: Fabric, people: People) -> None:
    item = proposed(fabric, people.run(), **FACT, classification="CONFIDENTIAL").proposal_id
    with pytest.raises(InvalidInput) as caught:
        fabric.queue.edit(people.reviewer, item, classification="INTERNAL")
    assert caught.value.field == "classification"
    changes: list[dict[str, Any]] = [{"entity": "customer:x"}, {"predicate": "hates"}, {"subject": "customer:x"}, {}]
    for change in changes:
        with pytest.raises(InvalidInput):
            fabric.queue.edit(people.reviewer, item, **change)
    assert fabric.queue.get(people.reviewer, item).verdicts == ()


@pytest.mark.rule("REV-4", "REV-5")
def test_nobody_who_edited_it_can_approve_what_is_sensitive_or_durable(fabric: Fabric, people: People) -> None:
    fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    for fields, asker in ((SENSITIVE, people.run()), ({**FACT, "write_class": "correction"}, people.author)):
        first = proposed(fabric, asker, **fields)
        second = edited(fabric.queue.edit(people.reviewer, first.proposal_id, value="coffee"))
        third = edited(fabric.queue.edit(people.second_reviewer, second.proposal_id, value="cocoa"))
        for editor in (people.reviewer, people.second_reviewer):
            with pytest.raises(SelfApproval, match="edit"):
                fabric.queue.approve(editor, third.proposal_id)
        done = fabric.queue.approve(people.person("dora", "reviewer"), third.proposal_id)
        assert done.status == "promoted"
        fabric.retract(people.reviewer, done.memory_id or "", reason="wrong")
    plain = edited(fabric.queue.edit(people.reviewer, proposed(fabric, people.run(), **FACT).proposal_id, value="x"))
    assert fabric.queue.approve(people.reviewer, plain.proposal_id).status == "promoted"


# --- the document


@pytest.mark.rule("REV-10")
def test_the_proposal_of_the_specification_round_trips() -> None:
    text = """{"proposal_id": "mwp_2026_05_04_0931_a17", "candidate": {"entity_ceid": "customer:cus_77",
      "predicate": "prefers_communication_channel", "value": "email", "evidence_refs": ["tool:crm.lookup:tc_212",
      "session:sess_42f1"], "confidence": 0.93}, "class": "preference", "tier_target": "semantic",
      "consent_check": "passed", "contradiction_check": {"existing": null, "verdict": "no_conflict"},
      "auto_promote_eligible": true}"""
    document = build(ProposalDocument, json.loads(text))
    assert (document.write_class, document.candidate.value) == ("preference", "email")
    assert json.loads(document.model_dump_json()) == json.loads(text)
    assert list(json.loads(document.model_dump_json())) == list(json.loads(text))
    assert ProposalDocument.model_validate_json(document.model_dump_json()) == document


@pytest.mark.rule("REV-10")
@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"consent_check": "missing"}, "consent_check"),
        ({"contradiction_check": {"existing": None, "verdict": "maybe"}}, "contradiction_check"),
        ({"class": "rumour"}, "class"),
        ({"tier_target": "eternal"}, "tier_target"),
        ({"colour": "red"}, "colour"),
        ({"proposal_id": "pm_1"}, "proposal_id"),
    ],
)
def test_a_document_that_is_no_proposal_is_refused_with_the_field(change: dict[str, Any], field: str) -> None:
    whole: dict[str, Any] = {
        "proposal_id": "mwp_1",
        "candidate": {"entity_ceid": SUBJECT, "predicate": "likes", "value": "tea", "confidence": 0.9},
        "class": "preference",
        "tier_target": "semantic",
        "consent_check": "not_required",
        "contradiction_check": {"existing": "pm_1", "verdict": "contradicts", "others": ["pm_2"]},
        "auto_promote_eligible": False,
    }
    assert json.loads(build(ProposalDocument, whole).model_dump_json())["contradiction_check"]["others"] == ["pm_2"]
    with pytest.raises(InvalidInput) as caught:
        build(ProposalDocument, whole | change)
    assert (caught.value.field or "").split(".")[0] == field
