"""Explain reveals nothing to callers who may not know it, not even that something exists."""

from datetime import timedelta
from typing import Any

import pytest

from muniment import Fabric
from muniment.errors import InvalidInput, RoleMissing
from muniment.pack import load_pack
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.pack_activation import acme, put_in_force, register
from tests.recall.explaining import PII, SUBJECT, not_found
from tests.stories import CONSENT, remembered, submitted


def the_hidden(fabric: Fabric, people: People) -> dict[str, str]:
    """Memories that a run for cust_1 in session s, cleared for INTERNAL and PII, may not know of."""
    whole = fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    hidden = {"without consent": remembered(fabric, people, predicate="a", **PII)}
    narrow = CONSENT | {"predicates_allowed": ["other"]}
    fabric.consent.grant(people.officer, subject=SUBJECT, supersedes=whole.consent_id, **narrow)
    swept = fabric.consent.grant(people.officer, subject="customer:cust_9", **CONSENT)
    hidden["tombstoned"] = remembered(
        fabric, people, entity="customer:cust_9", predicate="b", subject="customer:cust_9", classification="PII"
    )
    fabric.consent.revoke(people.officer, swept.consent_id)
    others: dict[str, dict[str, Any]] = {
        "of another user": {"user_id": "cust_2"},
        "of another label": {"classification": "CONFIDENTIAL"},
        "of another session": {"tier": "working", "session_id": "t"},
        "of another workflow": {"tier": "episodic", "workflow_id": "w", "user_id": None},
        "of another intent": {"intent_id": "sales.offer"},
        "of another region": {"qualifiers": {"region": "fr"}},
    }
    return hidden | {
        name: remembered(fabric, people, predicate=f"p{n}", **fields) for n, (name, fields) in enumerate(others.items())
    }


@pytest.mark.rule("REC-10", "ISO-4")
def test_what_a_run_may_not_see_answers_exactly_like_what_does_not_exist(
    fabric: Fabric, people: People, others: People, clock: FakeClock
) -> None:
    run = people.run(session_id="s", classification_allowed={"INTERNAL", "PII"}, qualifiers={"region": "de"})
    visible = remembered(fabric, people)
    hidden = the_hidden(fabric, people) | {"of another tenant": remembered(fabric, others)}
    fabric.consent.sweep(people.tenant_id)
    retracted = remembered(fabric, people, predicate="r", user_id="cust_2")
    fabric.retract(people.reviewer, retracted, reason="wrong")
    hidden["of another user and retracted"] = retracted
    answer = fabric.recall(run, "email")
    assert [record.id for record in answer.all_records] == [visible]
    clock.advance(seconds=1)
    ways: list[dict[str, Any]] = [{}, {"recall_id": answer.recall_id}, {"as_of": clock.now - timedelta(seconds=1)}]
    for way in ways:
        assert fabric.explain(run, memory_id=visible, **way).visible
        unknown = not_found(lambda way=way: fabric.explain(run, memory_id="pm_0000", **way))
        assert unknown == ("not_found", "memory_id", "memory_id: no such memory")
        for name, memory_id in hidden.items():
            found = not_found(lambda way=way, memory_id=memory_id: fabric.explain(run, memory_id=memory_id, **way))
            assert found == unknown, name


@pytest.mark.rule("REC-10", "ISO-4")
def test_a_run_explains_its_own_recalls_and_others_answer_as_if_there_were_none(
    fabric: Fabric, people: People, others: People
) -> None:
    memory_id = remembered(fabric, people, user_id=None)
    remembered(fabric, others, user_id=None)
    run = people.run()
    theirs = {
        "another agent's": fabric.recall(people.run(agent_id="other_bot")),
        "another user's": fabric.recall(people.run("cust_2")),
        "an anonymous one's": fabric.recall(people.run(None)),
        "another tenant's": fabric.recall(others.run()),
    }
    unknown = not_found(lambda: fabric.explain(run, memory_id=memory_id, recall_id="rcl_0000"))
    for whose, answer in theirs.items():
        found = not_found(lambda one=answer: fabric.explain(run, memory_id=memory_id, recall_id=one.recall_id))
        assert found == unknown == ("not_found", "recall_id", "recall_id: no such recall"), whose
    own = fabric.recall(people.run(run_id="earlier"))
    assert fabric.explain(run, memory_id=memory_id, recall_id=own.recall_id).returned
    for whose in ("another agent's", "another user's", "an anonymous one's"):
        assert fabric.explain(people.auditor, memory_id=memory_id, recall_id=theirs[whose].recall_id).returned
    assert not_found(lambda: fabric.explain(others.auditor, memory_id=memory_id, recall_id=own.recall_id)) == not_found(
        lambda: fabric.explain(others.auditor, memory_id=memory_id, recall_id="rcl_0000")
    )


@pytest.mark.rule("REC-10", "ISO-4")
def test_a_person_gets_explanations_only_of_their_own_tenant(fabric: Fabric, people: People, others: People) -> None:
    memory_id = remembered(fabric, people)
    remembered(fabric, others)
    unknown = not_found(lambda: fabric.explain(others.auditor, memory_id="pm_0000"))
    assert not_found(lambda: fabric.explain(others.auditor, memory_id=memory_id)) == unknown
    assert not_found(lambda: fabric.explain(others.auditor, memory_id=memory_id, run=others.run())) == unknown
    assert not_found(lambda: fabric.explain(others.auditor, memory_id=memory_id, run=people.run())) == unknown


@pytest.mark.rule("REC-10", "REC-7")
def test_what_a_run_saw_and_may_not_see_today_is_not_told_of_its_old_recall(fabric: Fabric, people: People) -> None:
    closed = remembered(fabric, people, classification="CONFIDENTIAL")
    answer = fabric.recall(people.run())
    assert [record.id for record in answer.records] == [closed]
    narrower = people.run(classification_allowed={"INTERNAL"})
    assert not_found(lambda: fabric.explain(narrower, memory_id=closed, recall_id=answer.recall_id)) == not_found(
        lambda: fabric.explain(narrower, memory_id="pm_0000", recall_id=answer.recall_id)
    )


@pytest.mark.rule("REC-10", "REC-7")
def test_a_role_is_not_told_of_what_a_higher_role_recalled(
    server: TestServer, database: str, clock: FakeClock, people: People
) -> None:
    pack = load_pack(
        'pack_meta: {id: acme, version: "1.0.0"}\n'
        "roles: {agent: {}, chief: {}, clerk: {classifications_allowed: [PUBLIC, INTERNAL]}}"
    )
    with Fabric.open(server.url(database), pack=pack, clock=clock, master_keys=MASTER_KEYS) as fabric:
        closed = remembered(fabric, people, classification="CONFIDENTIAL")
        recall_id = fabric.recall(people.run(role="chief")).recall_id
        assert fabric.explain(people.run(role="chief"), memory_id=closed, recall_id=recall_id).returned
        clerk = people.run(role="clerk")
        assert not_found(lambda: fabric.explain(clerk, memory_id=closed, recall_id=recall_id)) == not_found(
            lambda: fabric.explain(clerk, memory_id="pm_0000", recall_id=recall_id)
        )


@pytest.mark.rule("REC-10", "PAC-4")
def test_a_run_that_pins_a_pack_explains_what_it_sees_in_a_role_of_both_packs(fabric: Fabric, people: People) -> None:
    register(
        fabric,
        people.tenant_id,
        acme("0.9.0", "roles: {agent: {classifications_allowed: [PUBLIC]}, chief: {}, clerk: {}}"),
    )
    put_in_force(fabric, people.tenant_id, acme("1.0.0", "roles: {agent: {}, chief: {}}", may_pin="[acme@0.9.0]"))
    memory_id = remembered(fabric, people)
    for role in ("clerk", "nobody"):
        with pytest.raises(InvalidInput, match="role"):
            fabric.recall(people.run(role=role, pack="acme@0.9.0"))
    assert fabric.recall(people.run(role="agent", pack="acme@0.9.0")).records == (), "the pinned one gives it less"
    chief = people.run(role="chief", pack="acme@0.9.0")
    answer = fabric.recall(chief)
    assert [record.id for record in answer.records] == [memory_id]
    assert fabric.explain(chief, memory_id=memory_id).visible
    assert fabric.explain(chief, memory_id=memory_id, recall_id=answer.recall_id).returned
    assert fabric.explain(people.auditor, memory_id=memory_id, run=chief).visible


@pytest.mark.rule("REC-10")
@pytest.mark.parametrize(("label", "named"), [("INTERNAL", True), ("CONFIDENTIAL", False)])
def test_what_came_in_its_place_is_named_only_to_whom_may_see_that(
    fabric: Fabric, people: People, label: str, named: bool
) -> None:
    old = remembered(fabric, people)
    correction = fabric.correct(people.author, memory_id=old, value="phone", classification=label)
    new = fabric.queue.approve(people.reviewer, submitted(correction)).memory_id
    run = people.run(classification_allowed={"INTERNAL"})
    result = fabric.explain(run, memory_id=old)
    assert (result.visibility, result.retraction_reason) == ("retracted", "corrected")
    assert result.superseded_by == (new if named else None)
    assert fabric.explain(people.auditor, memory_id=old).superseded_by == new


@pytest.mark.rule("REC-10", "ISO-5", "AUD-3")
def test_people_without_the_role_may_not_ask(fabric: Fabric, people: People) -> None:
    memory_id = remembered(fabric, people)
    for asker in (people.author, people.officer, people.admin, people.service):
        with pytest.raises(RoleMissing):
            fabric.explain(asker, memory_id=memory_id)
    reported = [event.actor for event in fabric.events(people.auditor) if event.type == "memory.security"]
    assert reported == ["olga", "petra", "ada", "importer"]


@pytest.mark.rule("ERR-1")
def test_a_recall_has_its_own_moment_and_run_and_a_run_is_itself(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    memory_id = remembered(fabric, people)
    recall_id = fabric.recall(people.run()).recall_id
    wrong: list[tuple[Any, dict[str, Any], str]] = [
        (people.auditor, {"recall_id": recall_id, "as_of": clock.now}, "recall_id"),
        (people.auditor, {"recall_id": recall_id, "run": people.run()}, "recall_id"),
        (people.run(), {"run": people.run()}, "run"),
        (people.run(), {"as_of": clock.now + timedelta(seconds=1)}, "as_of"),
        (people.auditor, {"run": people.auditor}, "run"),
        (people.auditor, {"run": people.run(role="nobody")}, "role"),
    ]
    for asker, asked, field in wrong:
        with pytest.raises(InvalidInput) as caught:
            fabric.explain(asker, memory_id=memory_id, **asked)
        assert caught.value.field == field, asked
