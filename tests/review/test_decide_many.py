"""Rejecting and assigning many at once: what has to be decided alone is left out, and only what was seen is decided."""

from typing import Any

import pytest

from muniment import Fabric
from muniment.errors import StorageUnavailable
from muniment.review import approve_many, decide_many
from muniment.review.rules import may_reject_together
from muniment.testing import People
from tests.stories import KEY, promoted, proposed


def some(fabric: Fabric, people: People, count: int = 3) -> list[str]:
    run = people.run()
    return [proposed(fabric, run, **KEY | {"predicate": f"eats_{n}"}, value="rye").proposal_id for n in range(count)]


@pytest.mark.rule("REV-13", "REV-5")
def test_many_are_rejected_as_they_were_seen_and_the_others_say_why_not(fabric: Fabric, people: People) -> None:
    first, second, third, fourth = some(fabric, people, 4)
    plan = fabric.queue.plan_many(people.reviewer, action="reject")
    assert {one.proposal_id for one in plan.approved} == {first, second, third, fourth}
    versions = {one.proposal_id: one.version for one in plan.approved}
    fabric.queue.override(people.second_reviewer, second, priority=0.9)
    fabric.queue.assign(people.second_reviewer, third)
    fabric.queue.approve(people.second_reviewer, fourth)
    seen = {name: version for name, version in versions.items() if name != third}
    done = fabric.queue.reject_many(
        people.reviewer, [first, second, third, fourth, "mwp_0"], reason="wrong", versions=seen
    )
    assert [(one.status, one.error) for one in done] == [
        ("rejected", None),
        (None, "version_conflict"),
        (None, "left_out"),
        (None, "version_conflict"),
        (None, "not_found"),
    ]
    assert [reason.code for reason in done[2].left_out] == ["assigned"]
    assert fabric.queue.get(people.reviewer, first).verdicts[-1].reason == "wrong"
    again = fabric.queue.plan_many(people.reviewer, action="reject", proposal_ids=[third])
    assert not again.approved and [reason.code for reason in again.left_out[0].left_out] == ["assigned"]


@pytest.mark.rule("REV-11")
def test_proposals_that_say_the_same_are_rejected_together_and_count_as_done(fabric: Fabric, people: People) -> None:
    ids = [proposed(fabric, people.run(), **KEY, value="fax").proposal_id for _ in range(2)]
    done = fabric.queue.reject_many(people.reviewer, ids, reason="wrong")
    assert [(one.proposal_id, one.status, one.error) for one in done] == [(one, "rejected", None) for one in ids]
    assert fabric.queue.list(people.reviewer) == []


@pytest.mark.rule("REV-11", "REV-13")
@pytest.mark.parametrize("changed", [0, 1])
def test_one_that_changed_is_not_rejected_with_another_that_says_the_same(
    fabric: Fabric, people: People, changed: int
) -> None:
    ids = [proposed(fabric, people.run(), **KEY, value="fax").proposal_id for _ in range(2)]
    versions = {one: fabric.queue.get(people.reviewer, one).version for one in ids}
    fabric.queue.override(people.second_reviewer, ids[changed], priority=0.9)
    done = fabric.queue.reject_many(people.reviewer, ids, reason="wrong", versions=versions)
    assert [one.error for one in done] == ["version_conflict"] * 2
    assert {fabric.queue.get(people.reviewer, one).status for one in ids} == {"pending"}


@pytest.mark.rule("REV-13", "REV-4")
def test_a_sample_is_not_rejected_with_others(fabric: Fabric, people: People) -> None:
    memory = promoted(fabric, people)
    (item,) = some(fabric, people, 1)
    sample = fabric.queue.get(people.reviewer, item).model_copy(update={"audits": memory})
    decision = may_reject_together(sample, people.reviewer.id)
    assert [one.code for one in decision.reasons] == ["audit_sample"]
    asked = sample.model_copy(update={"audits": None, "action": "retract"})
    assert [one.code for one in may_reject_together(asked, people.reviewer.id).reasons] == ["names_targets"]


@pytest.mark.rule("REV-13")
def test_many_are_assigned_and_what_somebody_has_is_left_where_it_is(fabric: Fabric, people: People) -> None:
    first, second, third = some(fabric, people)
    fabric.queue.assign(people.second_reviewer, second)
    fabric.queue.assign(people.reviewer, third)
    plan = fabric.queue.plan_many(people.reviewer, action="assign")
    assert [one.proposal_id for one in plan.approved] == [first]
    codes = {one.proposal_id: one.left_out[0].code for one in plan.left_out}
    assert codes == {second: "assigned", third: "assigned_already"}
    done = fabric.queue.assign_many(people.reviewer, [first, second, third])
    assert [one.error for one in done] == [None, "left_out", "left_out"]
    owners = {one.proposal_id: one.assignee for one in fabric.queue.list(people.reviewer)}
    mine, theirs = people.reviewer.id, people.second_reviewer.id
    assert owners == {first: mine, second: theirs, third: mine}
    to_other = fabric.queue.plan_many(people.reviewer, action="assign", to=theirs)
    assert {one.left_out[0].code for one in to_other.left_out} == {"assigned", "assigned_already"}


def test_the_queue_goes_group_by_group_and_pages_go_on_where_the_last_ended(fabric: Fabric, people: People) -> None:
    run = people.run()
    about = ("customer:b", "customer:a", None, "customer:b", "customer:a")
    for number, entity in enumerate(about):
        if entity is None:
            proposed(fabric, run, write_class="statement", text="The shop opens at nine on Sundays in winter")
        else:
            proposed(fabric, run, entity=entity, predicate=f"eats_{number}", value="rye")
    headings: list[str | None] = []
    after: str | None = None
    while page := fabric.queue.list(people.reviewer, group="subject", limit=2, after=after):
        headings += [one.candidate.entity for one in page]
        after = page[-1].proposal_id
    assert headings == ["customer:a", "customer:a", "customer:b", "customer:b", None]
    classes = [one.write_class for one in fabric.queue.list(people.reviewer, group="class", order="newest")]
    assert classes == sorted(classes)
    assert len(fabric.queue.list(people.reviewer, group="source")) == 5


@pytest.mark.rule("REV-13", "ERR-3")
def test_once_the_database_is_away_no_other_batch_is_approved(
    fabric: Fabric, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids, tried, real = some(fabric, people, 3), list[str](), approve_many.promote_many

    async def promote_many(context: Any, tx: Any, proposals: Any, *how: Any) -> Any:
        tried.extend(one.proposal.proposal_id for one in proposals)
        if len(tried) > 1:
            raise StorageUnavailable("the database does not answer")
        return await real(context, tx, proposals, *how)

    monkeypatch.setattr(approve_many, "promote_many", promote_many)
    wanted = approve_many.Wanted(ids, None, dict.fromkeys(ids, "as discussed"), {})
    done = fabric._portal.call(approve_many.approve_many, fabric._fabric._context, people.reviewer, wanted, 1)
    assert tried == ids[:2]
    assert [one.error for one in done] == [None, "storage_unavailable", "storage_unavailable"]
    assert [one.status for one in done] == ["promoted", None, None]


@pytest.mark.rule("REV-13", "ERR-3")
@pytest.mark.parametrize("answered", [0, 1])
def test_once_the_database_is_away_no_other_is_tried_and_what_was_done_is_told(
    fabric: Fabric, people: People, monkeypatch: pytest.MonkeyPatch, answered: int
) -> None:
    ids, tried, real = some(fabric, people, 4), list[str](), decide_many.reject_one

    async def reject_one(context: Any, reviewer: Any, action: Any, **how: Any) -> Any:
        tried.append(action.proposal_id)
        if len(tried) > answered:
            raise StorageUnavailable("the database does not answer")
        return await real(context, reviewer, action, **how)

    monkeypatch.setattr(decide_many, "reject_one", reject_one)
    if answered:
        done = fabric.queue.reject_many(people.reviewer, ids, reason="wrong")
        assert [one.status for one in done] == ["rejected", None, None, None]
        assert [one.error for one in done] == [None, *["storage_unavailable"] * 3]
    else:
        with pytest.raises(StorageUnavailable):
            fabric.queue.reject_many(people.reviewer, ids, reason="wrong")
    assert tried == ids[: answered + 1]
    statuses = [fabric.queue.get(people.reviewer, one).status for one in ids]
    assert statuses == ["rejected"] * answered + ["pending"] * (4 - answered)
