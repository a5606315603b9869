"""Settling a contradiction: one side is kept, or both with qualifiers; and how long it was open."""

from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from muniment import Fabric, Submission
from muniment.errors import Conflict, InvalidInput, NotFound, NotPromotable, RoleMissing, SelfApproval
from muniment.model.contradiction import Contradiction
from muniment.testing import FakeClock, People
from tests.conftest import Opener
from tests.stories import CONSENT, KEY, promoted, proposed, values

DE, FR = {"region": "de"}, {"region": "fr"}


def open_one(fabric: Fabric, people: People, *, both_promoted: bool, **fields: Any) -> Contradiction:
    """email stands, phone is proposed; and approved beside it, if told."""
    promoted(fabric, people, "email")
    against = proposed(fabric, people.run(), **KEY, value="phone", **fields)
    if both_promoted:
        fabric.queue.approve(people.reviewer, against.proposal_id)
    (found,) = fabric.contradictions.list(people.reviewer)
    assert (found.incoming is not None) is both_promoted
    return found


def last(fabric: Fabric, people: People, kind: str) -> dict[str, Any]:
    return [event.data for event in fabric.events(people.auditor, limit=1000) if event.type == kind][-1]


@pytest.mark.rule("CTR-5", "PRO-5")
@pytest.mark.parametrize("both", [False, True])
def test_the_incoming_takes_the_place_of_the_existing(
    fabric: Fabric, people: People, clock: FakeClock, both: bool
) -> None:
    found = open_one(fabric, people, both_promoted=both)
    clock.advance(hours=3)
    done = fabric.contradictions.resolve(people.reviewer, found.contradiction_id, "supersede")
    assert (done.open, done.outcome, done.resolved_by, done.closed_at) == (False, "superseded", "boris", clock.now)
    assert values(fabric, people) == ["phone"]
    old = fabric.get(people.auditor, found.existing)
    assert (old.retraction_reason, old.superseded_by) == ("superseded", done.incoming)
    said = last(fabric, people, "memory.contradiction_resolved")
    assert said == {"contradiction_id": found.contradiction_id, "outcome": "superseded", "seconds": 3 * 3600}


@pytest.mark.rule("CTR-5")
@pytest.mark.parametrize(("both", "outcome"), [(False, "blocked"), (True, "superseded")])
def test_the_existing_can_be_kept(fabric: Fabric, people: People, both: bool, outcome: str) -> None:
    found = open_one(fabric, people, both_promoted=both)
    done = fabric.contradictions.resolve(people.reviewer, found.contradiction_id, "supersede", keep="existing")
    assert done.outcome == outcome
    assert values(fabric, people) == ["email"]
    assert fabric.contradictions.list(people.reviewer) == []


@pytest.mark.rule("CTR-5", "REC-1")
@pytest.mark.parametrize("both", [False, True])
def test_both_may_coexist_each_seen_only_by_runs_that_say_its_qualifiers(
    fabric: Fabric, people: People, both: bool
) -> None:
    found = open_one(fabric, people, both_promoted=both)
    done = fabric.contradictions.resolve(people.reviewer, found.contradiction_id, "coexist", existing=DE, incoming=FR)
    assert (done.outcome, done.open) == ("coexist", False)

    def seen(**said: str) -> list[Any]:
        answer = fabric.recall(people.run(qualifiers=said))
        assert answer.conflicts == ()
        return [record.value for record in answer.records]

    assert (seen(region="de"), seen(region="fr"), seen(), seen(region="it")) == (["email"], ["phone"], [], [])
    assert seen(region="de", channel="app") == ["email"]
    memory = fabric.get(people.auditor, found.existing)
    assert memory.scope.required == DE
    with pytest.raises(NotFound):
        fabric.get(people.run(), found.existing)


@pytest.mark.rule("CTR-5", "CTR-1")
def test_what_coexists_contradicts_only_what_some_run_sees_beside_it(fabric: Fabric, people: People) -> None:
    found = open_one(fabric, people, both_promoted=True)
    fabric.contradictions.resolve(people.reviewer, found.contradiction_id, "coexist", existing=DE, incoming=FR)
    for qualifiers, against in (({"region": "it"}, 0), ({"region": "de"}, 1), ({}, 2)):
        item = proposed(fabric, people.run(qualifiers=qualifiers), **KEY, value="letter")
        assert len(item.contradiction_check.contradicted) == against, qualifiers


@pytest.mark.rule("CTR-5", "REV-8")
@pytest.mark.parametrize("both", [False, True])
def test_a_side_that_is_wrong_is_withdrawn(fabric: Fabric, people: People, both: bool) -> None:
    found = open_one(fabric, people, both_promoted=both)
    done = fabric.contradictions.resolve(people.reviewer, found.contradiction_id, "retract", keep="incoming")
    assert done.outcome == "retracted"
    assert fabric.get(people.auditor, found.existing).retraction_reason == "wrong"
    assert values(fabric, people) == (["phone"] if both else [])
    assert fabric.queue.get(people.reviewer, found.proposal_id).status == ("promoted" if both else "pending")


@pytest.mark.rule("CTR-5")
def test_a_proposal_is_blocked_for_good(fabric: Fabric, people: People) -> None:
    found = open_one(fabric, people, both_promoted=False)
    done = fabric.contradictions.resolve(people.reviewer, found.contradiction_id, "block", note="the old one holds")
    item = fabric.queue.get(people.reviewer, found.proposal_id)
    assert (done.outcome, item.status) == ("blocked", "blocked")
    with pytest.raises(Conflict):
        fabric.queue.approve(people.reviewer, found.proposal_id)


@pytest.mark.rule("CTR-5", "REV-1", "REV-5")
@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize(
    ("way", "given"), [("supersede", {}), ("retract", {}), ("coexist", {"existing": DE, "incoming": FR})]
)
def test_every_resolution_is_a_verdict_with_its_note(
    fabric: Fabric, people: People, way: Any, given: dict[str, Any], both: bool
) -> None:
    found = open_one(fabric, people, both_promoted=both)
    note = "as ann.lee@example.com told me"
    fabric.contradictions.resolve(people.reviewer, found.contradiction_id, way, **given, note=note)
    item = fabric.queue.get(people.reviewer, found.proposal_id)
    (said,) = (verdict for verdict in item.verdicts if verdict.action == "resolve")
    assert (said.by, said.reason, said.note) == ("boris", way, "as [EMAIL] told me")
    assert fabric.contradictions.list(people.reviewer, proposal_id=found.proposal_id) == []
    (settled,) = fabric.contradictions.list(people.reviewer, proposal_id=found.proposal_id, closed=True)
    assert settled.contradiction_id == found.contradiction_id


@pytest.mark.rule("CTR-5")
def test_it_is_settled_once_and_by_a_reviewer(fabric: Fabric, people: People, others: People) -> None:
    found = open_one(fabric, people, both_promoted=True)
    resolve = fabric.contradictions.resolve
    with pytest.raises(RoleMissing):
        resolve(people.author, found.contradiction_id, "supersede")
    with pytest.raises(NotFound):
        resolve(others.reviewer, found.contradiction_id, "supersede")
    resolve(people.reviewer, found.contradiction_id, "supersede")
    with pytest.raises(Conflict):
        resolve(people.second_reviewer, found.contradiction_id, "coexist", existing=DE, incoming=FR)


@pytest.mark.rule("CTR-5", "REV-4")
def test_a_resolution_that_promotes_asks_for_the_same_second_person(fabric: Fabric, people: People) -> None:
    promoted(fabric, people, "email")
    olga = people.person("olga", "correction_writer", "reviewer")
    fabric.correct(olga, **KEY, value="phone", user_id="cust_1", classification="INTERNAL")
    (found,) = fabric.contradictions.list(people.reviewer)
    with pytest.raises(SelfApproval):
        fabric.contradictions.resolve(olga, found.contradiction_id, "supersede")
    assert values(fabric, people) == ["email"]
    assert last(fabric, people, "memory.security")["code"] == "self_approval"
    fabric.contradictions.resolve(people.reviewer, found.contradiction_id, "supersede")
    assert values(fabric, people) == ["phone"]


@pytest.mark.rule("CTR-5", "ERR-1")
@pytest.mark.parametrize(
    ("way", "given", "field"),
    [
        ("coexist", {}, "existing"),
        ("coexist", {"existing": DE}, "incoming"),
        ("coexist", {"existing": DE, "incoming": DE}, "incoming"),
        ("coexist", {"existing": DE, "incoming": {"channel": "app"}}, "incoming"),
        ("coexist", {"existing": DE, "incoming": FR, "keep": "existing"}, "keep"),
        ("supersede", {"existing": DE}, "existing"),
        ("block", {"keep": "existing"}, "keep"),
        ("burn", {}, "way"),
        ("coexist", {"existing": DE, "incoming": {"region": "ann.lee@example.com"}}, "incoming"),
    ],
)
def test_each_way_asks_for_its_own(fabric: Fabric, people: People, way: Any, given: dict[str, Any], field: str) -> None:
    found = open_one(fabric, people, both_promoted=False)
    with pytest.raises(InvalidInput) as error:
        fabric.contradictions.resolve(people.reviewer, found.contradiction_id, way, **given)
    assert error.value.field == field
    assert fabric.contradictions.list(people.reviewer) == [found]


@pytest.mark.rule("CTR-5")
def test_qualifiers_that_no_run_could_say_are_refused(fabric: Fabric, people: People) -> None:
    promoted(fabric, people, "email", qualifiers=DE)
    proposed(fabric, people.run(), **KEY, value="phone")
    (found,) = fabric.contradictions.list(people.reviewer)
    with pytest.raises(InvalidInput) as error:
        fabric.contradictions.resolve(people.reviewer, found.contradiction_id, "coexist", existing=FR, incoming=DE)
    assert error.value.field == "existing"
    assert values(fabric, people) == ["email"], "the approval it began with is undone"


@pytest.mark.rule("CTR-5", "PRO-5")
def test_a_narrower_side_cannot_take_the_place_of_a_wider(fabric: Fabric, people: People) -> None:
    promoted(fabric, people, "email", user_id=None)
    proposed(fabric, people.run(), **KEY, value="phone")
    (found,) = fabric.contradictions.list(people.reviewer)
    with pytest.raises(NotPromotable):
        fabric.contradictions.resolve(people.reviewer, found.contradiction_id, "supersede")


@pytest.mark.rule("CTR-3", "CTR-5")
@pytest.mark.parametrize(
    ("end", "outcome"),
    [
        (lambda fabric, people, item, _: fabric.queue.reject(people.reviewer, item, reason="no"), "rejected"),
        (lambda fabric, people, item, _: fabric.queue.edit(people.reviewer, item, value="email "), "edited"),
        (lambda fabric, people, _, old: fabric.retract(people.reviewer, old, reason="deprecated"), "retracted"),
    ],
)
def test_a_side_that_goes_ends_it(fabric: Fabric, people: People, end: Any, outcome: str) -> None:
    found = open_one(fabric, people, both_promoted=False)
    end(fabric, people, found.proposal_id, found.existing)
    assert fabric.contradictions.list(people.reviewer) == []
    (closed,) = fabric.contradictions.list(people.reviewer, closed=True)
    assert (closed.outcome, closed.resolved_by) == (outcome, "boris")


@pytest.mark.rule("CTR-5")
def test_they_are_listed_by_age_in_pages(fabric: Fabric, people: People, clock: FakeClock) -> None:
    for user in ("cust_1", "cust_2", "cust_3"):
        promoted(fabric, people, "email", user_id=user)
        clock.advance(minutes=1)
        proposed(fabric, people.run(user), **KEY, value="phone")
    whole = fabric.contradictions.list(people.reviewer)
    first = fabric.contradictions.list(people.reviewer, limit=2)
    rest = fabric.contradictions.list(people.reviewer, limit=2, after=first[-1].contradiction_id)
    assert [len(first), len(rest)] == [2, 1]
    assert first + rest == whole
    assert [one.opened_at for one in whole] == sorted(one.opened_at for one in whole)


AUTO_RESOLVE = "memory_layer: {classes: {preference: {auto_resolve: {margin: 0.15, fresher_evidence: FRESHER}}}}\n"


@pytest.mark.rule("CTR-4")
@pytest.mark.parametrize(
    ("confidence", "older_by", "fresher", "settled"),
    [(0.75, 0, "false", True), (0.74, 0, "false", False), (0.75, 60, "true", False), (0.75, -60, "true", True)],
)
def test_the_classs_own_rule_supersedes_by_margin_and_fresher_evidence(
    under: Opener,
    people: People,
    clock: FakeClock,
    confidence: float,
    older_by: int,
    fresher: str,
    settled: bool,
) -> None:
    with under(AUTO_RESOLVE.replace("FRESHER", fresher)) as fabric:
        promoted(fabric, people, "email", confidence=0.60)
        observed = fabric.get(people.auditor, fabric.recall(people.run()).records[0].id).observed_at
        clock.advance(hours=1)
        item = proposed(
            fabric,
            people.run(),
            **KEY,
            value="phone",
            confidence=confidence,
            observed_at=observed - timedelta(seconds=older_by),
        )
        assert ("contradiction" in item.human_reasons) is not settled
        fabric.queue.approve(people.reviewer, item.proposal_id)
        answer = fabric.recall(people.run())
        assert [record.value for record in answer.records] == (["phone"] if settled else [])
        assert len(answer.conflicts) == (0 if settled else 1)
        (found,) = fabric.contradictions.list(people.reviewer, closed=True)
        assert found.outcome == ("superseded" if settled else None)


@pytest.mark.rule("CTR-4")
def test_no_rule_lets_a_plain_fact_take_the_place_of_a_correction(under: Opener, people: People) -> None:
    with under(AUTO_RESOLVE.replace("FRESHER", "false")) as fabric:
        item = proposed(
            fabric, people.author, **KEY, value="email", write_class="correction", user_id="cust_1", confidence=0.4
        )
        fabric.queue.approve(people.reviewer, item.proposal_id)
        against = proposed(fabric, people.run(), **KEY, value="phone", confidence=0.8)
        assert "contradiction" in against.human_reasons
        fabric.queue.approve(people.reviewer, against.proposal_id)
        (conflict,) = fabric.recall(people.run()).conflicts
        assert {record.value for record in conflict.records} == {"email", "phone"}


@pytest.mark.rule("CTR-4", "CTR-5")
@pytest.mark.parametrize(("unresolved", "status"), [("hold", "held"), ("block", "blocked"), ("mark_both", "promoted")])
def test_to_coexist_with_one_does_not_pass_a_proposal_by_the_others_it_contradicts(
    under: Opener, people: People, unresolved: str, status: str
) -> None:
    with under(f"memory_layer: {{contradiction: {{unresolved: {unresolved}}}}}\n") as fabric:
        promoted(fabric, people, "email", intent_id="support.returns")
        promoted(fabric, people, "letter", intent_id="support.orders")
        item = proposed(fabric, people.run(), **KEY, value="phone")
        first, _ = fabric.contradictions.list(people.reviewer)
        with suppress(Conflict):
            fabric.contradictions.resolve(people.reviewer, first.contradiction_id, "coexist", existing=DE, incoming=FR)
        done = fabric.queue.get(people.reviewer, item.proposal_id)
        assert (done.status == "promoted") is (status == "promoted")


@pytest.mark.rule("CTR-3", "CTR-4")
def test_what_arose_while_it_waited_and_is_replaced_at_once_is_recorded_too(under: Opener, people: People) -> None:
    with under(AUTO_RESOLVE.replace("FRESHER", "false")) as fabric:
        waiting = proposed(fabric, people.run(), **KEY, value="phone", confidence=0.8)
        first = promoted(fabric, people, "email", confidence=0.5)
        fabric.queue.approve(people.reviewer, waiting.proposal_id)
        assert values(fabric, people) == ["phone"]
        (found,) = fabric.contradictions.list(people.reviewer, closed=True)
        assert (found.existing, found.outcome) == (first, "superseded")


@pytest.mark.rule("COR-1", "CTR-5")
def test_a_correction_of_one_side_leaves_the_other_as_it_is(fabric: Fabric, people: People) -> None:
    found = open_one(fabric, people, both_promoted=True)
    fabric.contradictions.resolve(people.reviewer, found.contradiction_id, "coexist", existing=DE, incoming=FR)
    fix = fabric.correct(people.author, memory_id=found.existing, value="letter")
    assert isinstance(fix, Submission)
    fabric.queue.approve(people.reviewer, fix.proposal_id)
    seen = {
        region: [record.value for record in fabric.recall(people.run(qualifiers={"region": region})).records]
        for region in ("de", "fr")
    }
    assert seen == {"de": ["letter"], "fr": ["phone"]}


@pytest.mark.rule("CTR-4", "COR-2")
def test_a_correction_is_not_narrowed_away_by_what_is_none(fabric: Fabric, people: People) -> None:
    fix = fabric.correct(people.author, **KEY, value="fax", user_id="cust_1", classification="INTERNAL")
    assert isinstance(fix, Submission)
    fabric.queue.approve(people.reviewer, fix.proposal_id)
    proposed(fabric, people.run(), **KEY, value="pigeon")
    (found,) = fabric.contradictions.list(people.reviewer)
    with pytest.raises(Conflict):
        fabric.contradictions.resolve(people.reviewer, found.contradiction_id, "coexist", existing=DE, incoming=FR)
    assert values(fabric, people) == ["fax"]


@pytest.mark.rule("PRO-5", "CON-3")
def test_no_side_is_kept_that_nobody_can_see(fabric: Fabric, people: People) -> None:
    subject = "customer:cust_1"
    consent = fabric.consent.grant(people.officer, subject=subject, **CONSENT)
    item = proposed(fabric, people.run(), **KEY, value="email", subject=subject, classification="PII")
    fabric.queue.approve(people.reviewer, item.proposal_id)
    against = proposed(fabric, people.run(), **KEY, value="phone", subject=subject)
    fabric.queue.approve(people.reviewer, against.proposal_id)
    (found,) = fabric.contradictions.list(people.reviewer)
    fabric.consent.revoke(people.officer, consent.consent_id)
    with pytest.raises(Conflict):
        fabric.contradictions.resolve(people.reviewer, found.contradiction_id, "supersede", keep="existing")
    assert values(fabric, people) == ["phone"]
