"""Items of the queue while others act on them: two reviewers, an erasure, many who propose, a rotated key."""

import pytest

from muniment import Fabric
from muniment.erasure.key_rotation import rotate
from muniment.errors import AlreadyDecided
from muniment.testing import People, TestServer
from tests.faults.concurrency import Calls, hold_clock
from tests.recall.batches import SUBJECT
from tests.review.items import several, status
from tests.stories import proposed, values


@pytest.mark.rule("REV-11", "REV-5")
def test_of_two_reviewers_who_approve_two_members_at_once_one_wins_and_the_other_is_told(
    server: TestServer, database: str, fabric: Fabric, people: People
) -> None:
    ids = several(fabric, people, 2)
    with hold_clock(server, database, people.tenant_id) as gate:
        calls = Calls(
            [
                lambda: fabric.queue.approve(people.reviewer, ids[0]),
                lambda: fabric.queue.approve(people.second_reviewer, ids[1]),
            ]
        )
        gate.until_waiting(2)
    done = calls.wait()
    assert sorted(type(one).__name__ for one in done) == ["AlreadyDecided", "Proposal"]
    assert status(fabric, people, ids) == ["promoted", "duplicate"]
    assert values(fabric, people) == ["email"]


@pytest.mark.rule("REV-11", "REV-5")
def test_an_approval_and_a_rejection_of_two_members_at_once_do_not_both_pass(
    server: TestServer, database: str, fabric: Fabric, people: People
) -> None:
    ids = several(fabric, people, 2)
    with hold_clock(server, database, people.tenant_id) as gate:
        calls = Calls(
            [
                lambda: fabric.queue.approve(people.reviewer, ids[1]),
                lambda: fabric.queue.reject(people.second_reviewer, ids[0], reason="wrong"),
            ]
        )
        gate.until_waiting(2)
    done = calls.wait()
    assert sum(isinstance(one, AlreadyDecided) for one in done) == 1
    assert status(fabric, people, ids) in (["promoted", "duplicate"], ["rejected", "rejected"])


@pytest.mark.rule("REV-11", "ERA-1")
def test_a_member_that_is_erased_leaves_the_item(
    server: TestServer, database: str, fabric: Fabric, people: People
) -> None:
    about = {"entity": "site:1", "predicate": "contact", "value": "the night porter"}
    erased = proposed(fabric, people.run(), **about, subject=SUBJECT).proposal_id
    left = [proposed(fabric, people.run(), **about).proposal_id for _ in range(2)]
    assert fabric.queue.get(people.reviewer, left[0]).count == 3
    fabric.erase(people.officer, subject=SUBJECT)
    shown = fabric.queue.get(people.reviewer, left[0])
    assert (shown.count, shown.same) == (2, (left[1],))
    with server.connect(database) as owner:
        query = "SELECT c.fingerprint FROM proposals p JOIN candidates c USING (tenant_id, candidate_id) WHERE proposal_id = %s"
        assert owner.execute(query, [erased]).fetchone() == (None,)
        assert owner.execute("SELECT FROM waiting_proposals WHERE proposal_id = %s", [erased]).fetchone() is None
    fabric.queue.approve(people.reviewer, left[1])
    assert status(fabric, people, [erased, *left]) == ["withdrawn", "promoted", "duplicate"]


@pytest.mark.rule("REV-11", "ERA-1", "PRO-7")
def test_an_erasure_and_an_approval_at_once_leave_nothing_of_the_erased_member(
    server: TestServer, database: str, fabric: Fabric, people: People
) -> None:
    about = {"entity": "site:1", "predicate": "contact", "value": "the night porter"}
    erased = proposed(fabric, people.run(), **about, subject=SUBJECT).proposal_id
    left = proposed(fabric, people.run(), **about).proposal_id
    with hold_clock(server, database, people.tenant_id) as gate:
        erasure = Calls([lambda: fabric.erase(people.officer, subject=SUBJECT)])
        gate.until_waiting(1)
        approval = Calls([lambda: fabric.queue.approve(people.reviewer, left)])
        gate.until_waiting(2)
    (receipt,), (approved,) = erasure.wait(), approval.wait()
    assert not isinstance(receipt, Exception), receipt
    assert approved.status == "promoted"
    assert status(fabric, people, [erased]) == ["withdrawn"]


@pytest.mark.rule("REV-11")
def test_ten_who_propose_the_same_at_once_make_one_item_of_ten(
    server: TestServer, database: str, fabric: Fabric, people: People
) -> None:
    several(fabric, people, 1, value="opens the tenant")
    with hold_clock(server, database, people.tenant_id) as gate:
        calls = Calls([lambda: several(fabric, people, 1)] * 10)
        gate.until_waiting(2)
    ids = sorted(one for (one,) in calls.wait())
    item = fabric.queue.get(people.reviewer, ids[0])
    assert (item.count, len(fabric.queue.list(people.reviewer))) == (10, 2)
    fabric.queue.approve(people.reviewer, ids[-1])
    assert sorted(status(fabric, people, ids)) == ["duplicate"] * 9 + ["promoted"]


@pytest.mark.rule("REV-11")
def test_one_that_enters_while_the_item_is_approved_stays_open_and_becomes_a_duplicate_when_approved(
    server: TestServer, database: str, fabric: Fabric, people: People
) -> None:
    (first,) = several(fabric, people, 1)
    with hold_clock(server, database, people.tenant_id) as gate:
        late = Calls([lambda: several(fabric, people, 1)])
        gate.until_waiting(1)
        approval = Calls([lambda: fabric.queue.approve(people.reviewer, first)])
        gate.until_waiting(2)
    ((second,),), (approved,) = late.wait(), approval.wait()
    assert approved.status == "promoted"
    assert fabric.queue.get(people.reviewer, second).status == "pending"
    assert fabric.queue.approve(people.reviewer, second).duplicate_check == approved.memory_id


@pytest.mark.rule("REV-11", "ERA-4")
def test_an_item_stays_one_when_the_tenants_key_is_rotated(fabric: Fabric, people: People) -> None:
    several(fabric, people, 1)
    fabric._portal.call(rotate, fabric._fabric._context, people.tenant_id)
    (after,) = several(fabric, people, 1)
    assert fabric.queue.get(people.reviewer, after).count == 2
