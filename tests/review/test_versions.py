"""The version of a proposal: an action based on an older version is refused."""

from collections.abc import Callable
from typing import Any

import pytest

from muniment import Fabric
from muniment.errors import AlreadyDecided, InvalidInput, VersionConflict
from muniment.model.proposal import Proposal
from muniment.testing import People, TestServer
from tests.faults.concurrency import Calls, hold_clock
from tests.stories import KEY, promoted, proposed

ACTIONS: dict[str, dict[str, Any]] = {
    "approve": {},
    "edit": {"value": "phone"},
    "reject": {"reason": "not_true"},
    "override": {"priority": 0.9},
    "assign": {},
    "release": {},
}


def _acting(fabric: Fabric, people: People, action: str) -> Callable[..., Proposal]:
    return lambda proposal_id, **version: getattr(fabric.queue, action)(
        people.reviewer, proposal_id, **ACTIONS[action], **version
    )


@pytest.mark.rule("REV-5")
@pytest.mark.parametrize("action", ACTIONS)
def test_an_action_on_what_was_read_before_it_changed_is_refused_and_writes_nothing(
    fabric: Fabric, people: People, action: str
) -> None:
    read = proposed(fabric, people.run(), **KEY, value="email")
    now = fabric.queue.assign(people.second_reviewer, read.proposal_id)
    assert (read.version, now.version) == (0, 1)
    act, before = _acting(fabric, people, action), fabric.events(people.auditor)
    with pytest.raises(VersionConflict) as caught:
        act(read.proposal_id, version=read.version)
    assert caught.value.field == "version"
    assert fabric.events(people.auditor) == before
    assert fabric.queue.get(people.reviewer, read.proposal_id) == now
    act(read.proposal_id, version=now.version)
    assert fabric.queue.get(people.reviewer, read.proposal_id).version == 2


@pytest.mark.rule("REV-5", "REV-6")
def test_a_rejection_is_lifted_only_as_it_was_read(fabric: Fabric, people: People) -> None:
    item = proposed(fabric, people.run(), **KEY, value="email").proposal_id
    rejected = fabric.queue.reject(people.reviewer, item, reason="not_true")
    with pytest.raises(VersionConflict):
        fabric.queue.lift(people.reviewer, item, version=0)
    assert fabric.queue.lift(people.reviewer, item, version=rejected.version).version == 2


@pytest.mark.rule("REV-5", "CTR-5")
def test_a_contradiction_is_settled_only_with_its_proposal_as_it_was_read(fabric: Fabric, people: People) -> None:
    promoted(fabric, people, "email")
    read = proposed(fabric, people.run(), **KEY, value="phone")
    (found,) = fabric.contradictions.list(people.reviewer, proposal_id=read.proposal_id)
    now = fabric.queue.override(people.second_reviewer, read.proposal_id, priority=0.1)
    with pytest.raises(VersionConflict):
        fabric.contradictions.resolve(people.reviewer, found.contradiction_id, "supersede", version=read.version)
    assert fabric.queue.get(people.reviewer, read.proposal_id).status == "pending"
    fabric.contradictions.resolve(people.reviewer, found.contradiction_id, "supersede", version=now.version)
    assert fabric.queue.get(people.reviewer, read.proposal_id).status == "promoted"


@pytest.mark.rule("REV-5")
def test_of_two_operators_who_read_the_same_version_one_wins_and_the_other_gets_an_error(
    fabric: Fabric, people: People, server: TestServer, database: str
) -> None:
    read = proposed(fabric, people.run(), **KEY, value="email")
    with hold_clock(server, database, people.tenant_id) as gate:
        calls = Calls(
            [
                lambda: fabric.queue.override(people.reviewer, read.proposal_id, priority=0.9, version=read.version),
                lambda: fabric.queue.override(people.second_reviewer, read.proposal_id, priority=0.1, version=0),
            ]
        )
        gate.until_waiting(2)
    outcomes = calls.wait()
    assert sorted(type(one).__name__ for one in outcomes) == ["Proposal", "VersionConflict"]
    (won,) = [one for one in outcomes if isinstance(one, Proposal)]
    assert fabric.queue.get(people.reviewer, read.proposal_id).priority == won.priority


def test_without_a_version_the_last_word_counts_until_it_is_decided(fabric: Fabric, people: People) -> None:
    item = proposed(fabric, people.run(), **KEY, value="email").proposal_id
    fabric.queue.assign(people.second_reviewer, item)
    assert fabric.queue.approve(people.reviewer, item).version == 2
    with pytest.raises(AlreadyDecided):
        fabric.queue.approve(people.reviewer, item)
    with pytest.raises(AlreadyDecided):
        fabric.queue.approve(people.reviewer, item, version=2)


@pytest.mark.rule("ERR-1")
@pytest.mark.parametrize("version", [-1, "1", 1.0, True, 2**40])
def test_a_version_is_a_whole_number(fabric: Fabric, people: People, version: Any) -> None:
    item = proposed(fabric, people.run(), **KEY, value="email").proposal_id
    with pytest.raises(InvalidInput) as caught:
        fabric.queue.approve(people.reviewer, item, version=version)
    assert caught.value.field == "version"
