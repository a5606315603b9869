"""Stories of the past: what was believed then, under the rules of then and the rights of today."""

from datetime import datetime, timedelta

import pytest

from muniment import Fabric, Refusal, load_pack
from muniment.errors import HistoryCollected, NotFound
from muniment.model.context import Asker
from muniment.testing import FakeClock, People
from tests.pack_activation import put_in_force, register
from tests.scenarios.conftest import Story
from tests.scenarios.world import ENTITIES, MAIL

MOMENT = timedelta(microseconds=1)


def stated(fabric: Fabric, people: People, by: Asker, sentence: str, count: int) -> list[str]:
    """The same of that many subjects, all approved in one go."""
    said = [{"kind": "statement", "text": f"{sentence} {n}", "subject": f"parcel:{n}"} for n in range(count)]
    fabric.capture_many(by, [{**one, "classification": "INTERNAL"} for one in said])
    proposals = fabric.consolidate(people.tenant_id).proposals
    return [one.memory_id or "" for one in fabric.queue.approve_many(people.reviewer, proposals)]


def tagged(fabric: Fabric, people: People, label: str, *values: str) -> list[str]:
    """Tags of one entity."""
    found: list[str] = []
    for value in values:
        said = fabric.propose(
            people.run(None), write_class="preference", entity=ENTITIES[0], predicate="tag", value=value,
            classification=label,
        )  # fmt: skip
        assert not isinstance(said, Refusal)
        found.append(fabric.queue.approve(people.reviewer, said.proposal_id).memory_id or "")
    return found


@pytest.mark.rule("REC-6", "REC-7", "REC-9")
def test_as_of_a_moment_when_todays_best_hundred_did_not_exist_yet_the_old_ones_come_as_they_came_then(
    story: Story,
) -> None:
    fabric, people, run = story.fabric, story.people[0], story.people[0].run("u1")
    query = "Was there a late refund?"
    old = stated(fabric, people, people.run(None), "A refund is due for parcel", 12)
    asked_then = fabric.recall(run, query, limit=8)
    listed_then = fabric.recall(run, limit=8)
    then = story.pause()
    new = stated(fabric, people, people.author, "A late refund, far too late a refund, was paid for parcel", 110)
    story.pause()

    best = {record.id for record in fabric.recall(run, query, limit=100).records}
    assert len(best) == 100 and best <= set(new)

    asked = fabric.recall(run, query, limit=8, as_of=then)
    assert {record.id for record in asked.records} < set(old) and (len(asked.records), asked.omitted) == (8, 4)
    totals = [record.score["total"] for record in asked.records]
    assert totals == sorted(totals, reverse=True)
    assert (asked.records, asked.omitted) == (asked_then.records, asked_then.omitted)
    assert fabric.recall(run, limit=8, as_of=then).records == listed_then.records
    assert fabric.replay(people.auditor, asked_then.recall_id).same
    assert fabric.explain(run, memory_id=new[0], as_of=then).visibility == "not_yet_promoted"


OLDER = load_pack("""
pack_meta: {id: story.packs, version: 1.0.0}
ontology: {predicates: {tag: {cardinality: many}}}
memory_layer: {recall_policy: {max_recalls: 2, freshness: {semantic: 10d}}}
""")
NEWER = load_pack("""
pack_meta: {id: story.packs, version: 2.0.0}
ontology: {predicates: {tag: {cardinality: many}}}
roles: {agent: {classifications_allowed: [INTERNAL]}}
memory_layer: {recall_policy: {max_recalls: 8}}
""")


@pytest.mark.rule("REC-7", "REC-10", "PAC-4")
def test_as_of_a_time_before_a_newer_pack_the_older_one_decides_but_what_the_newer_withholds_stays_withheld(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    put_in_force(fabric, people.tenant_id, OLDER)
    run = people.run(None)
    first = tagged(fabric, people, "INTERNAL", "one", "two", "three")
    (public,) = tagged(fabric, people, "PUBLIC", "zero")
    beginning = clock.now
    clock.advance(days=9)
    (later,) = tagged(fabric, people, "INTERNAL", "four")
    clock.advance(days=2)
    middle = clock.now
    assert [record.id for record in fabric.recall(run).records] == [later]
    clock.advance(days=1)

    register(fabric, people.tenant_id, NEWER)
    assert [record.id for record in fabric.recall(run).records] == [later], "a draft decides nothing"
    assert fabric.explain(people.auditor, memory_id=public, as_of=beginning, run=run).visible
    put_in_force(fabric, people.tenant_id, NEWER)
    assert {record.id for record in fabric.recall(run).records} == {*first, later}
    answer = fabric.recall(run, as_of=beginning)
    assert answer.pack == OLDER.ref and (len(answer.records), answer.omitted) == (2, 1)
    answer = fabric.recall(run, "four", as_of=middle)
    assert answer.pack == OLDER.ref and [record.id for record in answer.records] == [later]
    why = fabric.explain(people.auditor, memory_id=first[0], as_of=middle, run=run)
    assert (why.pack, why.visibility, why.hidden_by) == (OLDER.ref, "hidden", ("freshness",))
    why = fabric.explain(people.auditor, memory_id=public, as_of=beginning, run=run)
    assert why.hidden_by == ("classification",)
    with pytest.raises(NotFound):
        fabric.explain(run, memory_id=public, as_of=beginning)
    # To pin the newer one gives nothing of what the older withheld.
    pinned = people.run(None, pack=NEWER.ref)
    answer = fabric.recall(pinned, as_of=middle)
    assert answer.pack == NEWER.ref and [record.id for record in answer.records] == [later]


def agreeing_sides(story: Story) -> tuple[datetime, datetime]:
    """Two values on one key, settled to stand each in its region: the time before that, and after."""
    story.say("mail")
    story.say("phone")
    before = story.pause()
    story.then(story.coexist, which=0, who="boris", here="de")
    after = story.pause()
    story.say("mail", predicate="language")
    return before, after


@pytest.mark.rule("REC-4", "REC-7", "CTR-5", "CTR-6")
def test_as_of_before_two_sides_were_settled_they_are_a_conflict_that_everybody_sees(story: Story) -> None:
    before, after = agreeing_sides(story)
    for said in ({}, {"region": "de"}, {"region": "us"}):
        answer = story.fabric.recall(story.people[0].run(None, qualifiers=said), "mail or phone", as_of=before)
        assert [len(conflict.records) for conflict in answer.conflicts] == [2] and answer.records == ()
    assert [story.shown(after, qualifiers=said) for said in ({}, {"region": "de"}, {"region": "us"})] == [
        [],
        ["mail"],
        ["phone"],
    ]
    mail, *_ = story.oracle[0].memories
    anywhere = story.people[0].run(None)
    assert story.fabric.explain(anywhere, memory_id=mail, as_of=before).visible
    with pytest.raises(NotFound):
        story.fabric.explain(anywhere, memory_id=mail, as_of=after)


@pytest.mark.rule("REC-7")
def test_a_moment_holds_all_that_was_done_by_then_and_nothing_that_came_after(story: Story) -> None:
    story.say("mail")
    first = story.clock.now
    story.say("phone", then=None)
    story.ok(victim=0)
    assert story.shown(first) == ["phone"] and story.shown(first - MOMENT) == []
    second = story.pause() + timedelta(minutes=1)
    story.then(story.retract, which=0, reason="wrong")
    assert [story.shown(moment) for moment in (second, second - MOMENT, first)] == [[], ["phone"], ["phone"]]
    story.then(story.wait, by={"days": 90})
    assert story.shown(second) == []
    with pytest.raises(HistoryCollected):
        story.shown(second - MOMENT)


@pytest.mark.rule("REC-7", "REC-9", "REC-10", "CON-3")
def test_a_withdrawn_right_also_hides_the_past_and_an_auditor_sees_that_something_was_there(
    story: Story,
) -> None:
    story.then(story.grant, tenant=0, subject=ENTITIES[0], predicates=("*",), lasts=None)
    story.say(MAIL)
    story.say("post", predicate="language")
    people, run = story.people[0], story.people[0].run(None)
    mail, post = story.oracle[0].memories
    asked = story.fabric.recall(run)
    then = story.pause()
    story.then(story.retract, which=0, reason="deprecated")
    story.pause()
    assert story.shown(then) == ["[EMAIL]", "post"]
    assert story.fabric.explain(run, memory_id=mail).visibility == "retracted"
    assert story.fabric.replay(people.auditor, asked.recall_id).same

    for swept, why, word in ((False, "consent", "hidden"), (True, "erased", "tombstoned")):
        story.then(story.revoke, which=0, swept=swept)
        assert story.shown(then) == ["post"]
        with pytest.raises(NotFound):
            story.fabric.explain(run, memory_id=mail, as_of=then)
        result = story.fabric.explain(people.auditor, memory_id=mail, as_of=then, run=run)
        assert result.visibility == word and "consent" in result.hidden_by
        again = story.fabric.replay(people.auditor, asked.recall_id)
        assert (again.same, again.now) == (False, (post,))
        assert {one.memory_id: one.why for one in again.differences}[mail] == why


@pytest.mark.rule("REC-10")
def test_a_run_is_not_told_of_what_came_in_the_place_of_a_memory_if_it_may_not_see_that(story: Story) -> None:
    story.then(story.grant, tenant=0, subject=ENTITIES[0], predicates=("*",), lasts=None)
    story.say("mail")
    story.say("phone", label="PII", then=None)
    story.ok(victim=0)
    old, new = story.oracle[0].memories
    for allowed, result in (({"INTERNAL", "PII"}, new), ({"INTERNAL"}, None)):
        run = story.people[0].run(None, classification_allowed=allowed)
        found = story.fabric.explain(run, memory_id=old)
        assert (found.visibility, found.superseded_by) == ("retracted", result)


@pytest.mark.rule("REC-2", "COR-2")
def test_by_a_query_too_a_correction_comes_before_all_others_on_its_key(story: Story) -> None:
    story.say("mail", predicate="tag")
    story.tell("The office is closed on Sunday.")
    story.correct("phone", predicate="tag")
    answer = story.fabric.recall(story.people[0].run(None), "the tag of customer:e1 is mail")
    assert [record.value for record in answer.records] == ["phone", "mail", None]
    correction, plain, _ = (record.score["total"] for record in answer.records)
    assert correction < plain


@pytest.mark.rule("REC-7")
def test_as_of_before_two_sides_were_settled_neither_requires_anything(story: Story) -> None:
    before, _ = agreeing_sides(story)
    run = story.people[0].run(None)
    answer = story.fabric.recall(run, as_of=before)
    assert [record.scope.required for record in answer.all_records] == [{}, {}]
    why = story.fabric.explain(run, memory_id=answer.all_records[0].id, as_of=before)
    assert {one.name: one.memory for one in why.filters}["qualifiers"]["required"] == []


@pytest.mark.rule("REC-7")
def test_a_label_that_is_new_today_keeps_nobody_from_asking_what_was_before_it(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    labels = "[{name: INTERNAL}, {name: SECRET}, {name: PII, sensitive: true}]"
    newer = load_pack(f"{{pack_meta: {{id: story.packs, version: 3.0.0}}, classifications: {labels}}}")
    put_in_force(fabric, people.tenant_id, OLDER)
    tagged(fabric, people, "INTERNAL", "one")
    then = clock.now
    clock.advance(days=1)
    put_in_force(fabric, people.tenant_id, newer)
    run = people.run(None, classification_allowed={"INTERNAL", "SECRET"})
    assert len(fabric.recall(run).records) == len(fabric.recall(run, as_of=then).records) == 1
