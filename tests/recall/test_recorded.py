"""Recorded recalls: lists of them, and one with the provenance of what it returned, as far as the caller may see it."""

from typing import Any

import pytest

from muniment import Fabric
from muniment.errors import InvalidInput, NotFound, RoleMissing
from muniment.recall import verbs as group
from muniment.testing import FakeClock, People
from tests.recall.explaining import PII, SUBJECT, not_found
from tests.stories import CONSENT, promoted, remembered

SECRET = "which channel does the harbour office prefer"


def ids(fabric: Fabric, people: People, **narrowed: Any) -> list[str]:
    return [one.recall_id for one in fabric.recalls.list(people.auditor, **narrowed)]


@pytest.mark.rule("REC-8")
def test_recalls_come_latest_first_in_pages_and_narrowed(fabric: Fabric, people: People, clock: FakeClock) -> None:
    tea = remembered(fabric, people, "tea", predicate="drinks")
    ours = remembered(fabric, people, "noon", entity="shop:ulm", predicate="opens", user_id=None)
    runs = {
        "first": people.run(run_id="r1"),
        "other user": people.run("cust_2", run_id="r2"),
        "anonymous": people.run(None, run_id="r3"),
        "other agent": people.run(agent_id="other_bot", run_id="r1"),
        "narrowed": people.run(run_id="r4"),
    }
    made: dict[str, str] = {}
    for name, run in runs.items():
        clock.advance(seconds=1)
        made[name] = fabric.recall(run, **({"entities": ["shop:ulm"]} if name == "narrowed" else {})).recall_id
    latest = list(reversed(made.values()))
    assert ids(fabric, people) == latest
    found: list[str] = []
    while page := ids(fabric, people, limit=2, after=found[-1] if found else None):
        found += page
    assert found == latest

    def named(**narrowed: Any) -> list[str]:
        names = {recall_id: name for name, recall_id in made.items()}
        return [names[one] for one in ids(fabric, people, **narrowed)]

    assert named(user_id="cust_1") == ["narrowed", "other agent", "first"]
    assert named(run_id="r1") == ["other agent", "first"]
    assert named(agent_id="other_bot") == ["other agent"]
    assert named(memory_id=tea) == ["other agent", "first"]
    assert named(memory_id=ours) == list(reversed(made))
    assert named(memory_id=ours, user_id="cust_1", agent_id="other_bot", run_id="r1") == ["other agent"]
    assert named(memory_id=tea, after=made["other agent"]) == ["first"]
    assert named(user_id="cust") == named(memory_id="pm_0") == named(run_id="r%") == []


@pytest.mark.rule("REC-8", "ERA-1")
def test_a_recall_is_listed_with_what_it_was_and_never_with_what_was_asked(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    remembered(fabric, people)
    then = clock.now
    clock.advance(hours=1)
    run = people.run(run_id="r7")
    answer = fabric.recall(run, SECRET, as_of=then, limit=1)
    (noted,) = fabric.recalls.list(people.reviewer)
    assert noted.model_dump() == {
        "recall_id": answer.recall_id, "at": answer.at, "seq": answer.seq, "run_id": "r7", "agent_id": run.agent_id,
        "user_id": "cust_1", "pack": answer.pack, "as_of": then, "with_query": True, "returned": 1, "omitted": 0,
        "degraded": (),
    }  # fmt: skip
    shown = fabric.recalls.get(people.reviewer, answer.recall_id)
    assert shown.model_dump(exclude={"memories"}) == noted.model_dump()
    assert "harbour" not in f"{noted!r}{shown!r}"


def test_a_memory_and_an_agent_are_looked_for_among_the_latest_recalls_alone(
    fabric: Fabric, people: People, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = remembered(fabric, people)
    made: list[str] = []
    for _ in range(4):
        clock.advance(seconds=1)
        made.insert(0, fabric.recall(people.run()).recall_id)
    clock.advance(seconds=1)
    fabric.recall(people.run("cust_2"))
    monkeypatch.setattr(group, "LOOKED_THROUGH", 3)
    assert ids(fabric, people, memory_id=memory) == made[:2], "three looked through, of which one is another's"
    assert ids(fabric, people, memory_id=memory, user_id="cust_1") == made[:3]
    assert ids(fabric, people, agent_id=people.run().agent_id, user_id="cust_1", after=made[1]) == made[2:3]
    assert ids(fabric, people, user_id="cust_1") == made, "what an index finds is found to the end"


@pytest.mark.rule("REC-5", "REC-10")
def test_a_recall_shows_the_provenance_of_what_it_returned_in_its_order(fabric: Fabric, people: People) -> None:
    first = remembered(fabric, people, "tea", predicate="drinks", priority=0.2, evidence_refs=["ticket:1"])
    second = remembered(fabric, people, "email", priority=0.9)
    answer = fabric.recall(people.run())
    assert [record.id for record in answer.records] == [second, first]
    shown = fabric.recalls.get(people.auditor, answer.recall_id)
    assert [one.memory_id for one in shown.memories] == [second, first]
    for record, one in zip(answer.records, shown.memories, strict=True):
        assert (one.provenance, one.text) == (record.provenance, record.text)
        assert (one.visibility, one.hidden_by, one.withheld) == ("visible", (), False)
        assert (one.write_class, one.tier, one.classification) == (
            record.write_class, record.tier, record.classification,
        )  # fmt: skip
    assert shown.memories[1].provenance.evidence_refs == ("ticket:1",)
    assert shown.returned == 2
    fabric.retract(people.reviewer, first, reason="wrong")
    gone = fabric.recalls.get(people.auditor, answer.recall_id).memories[1]
    assert (gone.visibility, gone.hidden_by, gone.withheld) == ("retracted", ("retracted",), False)
    assert not gone.visible


@pytest.mark.rule("REC-7", "CON-3", "ERA-2")
def test_only_the_provenance_is_shown_of_what_was_revoked_or_erased_since(fabric: Fabric, people: People) -> None:
    consent = fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    revoked = remembered(fabric, people, predicate="a", evidence_refs=["letter:7"], **PII)
    erased = remembered(fabric, people, "x", entity="customer:cust_9", subject="customer:cust_9")
    answer = fabric.recall(people.run())
    fabric.consent.revoke(people.officer, consent.consent_id)
    fabric.erase(people.officer, subject="customer:cust_9")
    shown = fabric.recalls.get(people.auditor, answer.recall_id)
    result = {one.memory_id: one for one in shown.memories}
    assert result.keys() == {revoked, erased}
    assert (result[revoked].visibility, result[revoked].hidden_by) == ("hidden", ("consent",))
    assert result[erased].visibility == "tombstoned"
    assert all((one.text, one.withheld, one.provenance.evidence_refs) == ("", True, ()) for one in shown.memories)
    assert result[revoked].provenance.consent_id == consent.consent_id
    assert result[revoked].provenance.approver == people.reviewer.id


@pytest.mark.rule("REC-10", "ISO-4")
def test_a_run_gets_its_own_recalls_and_others_answer_as_if_there_were_none(
    fabric: Fabric, people: People, others: People
) -> None:
    memory = remembered(fabric, people, user_id=None)
    remembered(fabric, others, user_id=None)
    run = people.run()
    theirs = {
        "another agent's": fabric.recall(people.run(agent_id="other_bot")),
        "another user's": fabric.recall(people.run("cust_2")),
        "an anonymous one's": fabric.recall(people.run(None)),
        "another tenant's": fabric.recall(others.run()),
    }
    unknown = not_found(lambda: fabric.recalls.get(run, "rcl_0000"))
    assert unknown == ("not_found", "recall_id", "recall_id: no such recall")
    for whose, answer in theirs.items():
        assert not_found(lambda one=answer: fabric.recalls.get(run, one.recall_id)) == unknown, whose
    own = fabric.recall(people.run(run_id="earlier")).recall_id
    assert [one.memory_id for one in fabric.recalls.get(run, own).memories] == [memory]
    for asker in (others.auditor, others.run()):
        assert not_found(lambda asker=asker: fabric.recalls.get(asker, own)) == unknown
    assert own not in [one.recall_id for one in fabric.recalls.list(others.auditor)]


@pytest.mark.rule("REC-7", "REC-10")
def test_a_run_gets_what_it_may_see_now_as_if_there_were_no_more(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    consent = fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    hidden = {
        "without consent": remembered(fabric, people, predicate="a", **PII),
        "above its clearance": remembered(fabric, people, predicate="b", classification="CONFIDENTIAL"),
        "of another session": remembered(fabric, people, predicate="c", tier="working", session_id="s"),
        "expired": remembered(fabric, people, predicate="d", tier="episodic"),
        "retracted": remembered(fabric, people, predicate="e"),
        "erased": remembered(fabric, people, "x", entity="customer:cust_9", subject="customer:cust_9"),
    }
    kept = remembered(fabric, people, predicate="f")
    answer = fabric.recall(people.run(session_id="s"))
    assert {record.id for record in answer.all_records} == {*hidden.values(), kept}
    fabric.consent.revoke(people.officer, consent.consent_id)
    fabric.retract(people.reviewer, hidden["retracted"], reason="wrong")
    fabric.erase(people.officer, subject="customer:cust_9")
    clock.advance(days=31)
    now = people.run(classification_allowed={"INTERNAL", "PII"})
    shown = fabric.recalls.get(now, answer.recall_id)
    assert [one.memory_id for one in shown.memories] == [kept]
    assert (shown.returned, shown.omitted) == (1, None)
    assert shown.memories[0].text == "", "what it says is read where that is recorded"
    assert not any(memory_id in repr(shown) for memory_id in hidden.values())
    assert len(fabric.recalls.get(people.auditor, answer.recall_id).memories) == 7


@pytest.mark.rule("ISO-5", "AUD-3")
def test_recalls_are_for_reviewers_and_auditors(fabric: Fabric, people: People) -> None:
    promoted(fabric, people)
    answer = fabric.recall(people.run())
    for asker in (people.reviewer, people.auditor):
        assert fabric.recalls.get(asker, answer.recall_id).recall_id == fabric.recalls.list(asker)[0].recall_id
    for asker in (people.author, people.officer, people.admin, people.service, people.run()):
        with pytest.raises(RoleMissing):
            fabric.recalls.list(asker)
        if asker != people.run():
            with pytest.raises(RoleMissing):
                fabric.recalls.get(asker, answer.recall_id)


@pytest.mark.rule("ERR-1")
def test_a_page_after_what_is_not_there_is_not_found(fabric: Fabric, people: People, others: People) -> None:
    promoted(fabric, others)
    theirs = fabric.recall(others.run()).recall_id
    for after in ("rcl_0", theirs):
        with pytest.raises(NotFound) as caught:
            fabric.recalls.list(people.auditor, after=after)
        assert caught.value.field == "after"
    with pytest.raises(InvalidInput) as wrong:
        fabric.recalls.list(people.auditor, whose="cust_1")  # type: ignore[call-arg]
    assert wrong.value.field == "whose"
