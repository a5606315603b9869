"""At the same moment, by text: contradictions, resolutions, retractions and passes each have one winner."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from muniment import Fabric
from muniment.errors import Conflict
from muniment.model.contradiction import Contradiction
from muniment.model.proposal import Proposal
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.faults.concurrency import Calls, hold_clock
from tests.stories import CONSENT, KEY, promoted, proposed

TEXTS = [f"Returns are accepted within {days} days of delivery." for days in (14, 30, 60, 90)]


@pytest.fixture
def crowd(server: TestServer, database: str, clock: FakeClock) -> Iterator[list[Fabric]]:
    with ExitStack() as stack:
        opened = (Fabric.open(server.url(database), clock=clock, master_keys=MASTER_KEYS) for _ in range(4))
        yield [stack.enter_context(one) for one in opened]


@pytest.mark.rule("PRO-7", "CTR-2", "CTR-3")
@pytest.mark.parametrize("users", [["cust_1"] * 4, [None] * 4, ["cust_1", None, "cust_1", None]])
def test_contradicting_texts_promoted_at_once_end_as_contradictions_never_as_two_silent_truths(
    fabric: Fabric,
    crowd: list[Fabric],
    people: People,
    server: TestServer,
    database: str,
    users: list[str | None],
) -> None:
    waiting = [
        proposed(fabric, people.run(user), write_class="statement", text=text).proposal_id
        for user, text in zip(users, TEXTS, strict=True)
    ]
    with hold_clock(server, database, people.tenant_id) as gate:
        calls = Calls([lambda n=n, p=p: crowd[n].queue.approve(people.reviewer, p) for n, p in enumerate(waiting)])
        gate.until_waiting(len(waiting))
    outcomes = calls.wait()
    assert [outcome.status for outcome in outcomes] == ["promoted"] * 4, outcomes
    found = fabric.contradictions.list(people.reviewer)
    assert len(found) == 6, "every pair, once"
    answer = fabric.recall(people.run("cust_1"))
    assert answer.records == ()
    assert {record.id for record in answer.conflicts[0].records} == {outcome.memory_id for outcome in outcomes}


@pytest.mark.rule("PRO-7", "REV-7")
def test_the_same_text_promoted_at_once_for_one_and_for_all_is_promoted_once(
    fabric: Fabric, crowd: list[Fabric], people: People, server: TestServer, database: str
) -> None:
    waiting = [
        proposed(fabric, people.run(user), write_class="statement", text=TEXTS[0]).proposal_id
        for user in ("cust_1", None)
    ]
    with hold_clock(server, database, people.tenant_id) as gate:
        calls = Calls([lambda n=n, p=p: crowd[n].queue.approve(people.reviewer, p) for n, p in enumerate(waiting)])
        gate.until_waiting(len(waiting))
    assert sorted(outcome.status for outcome in calls.wait()) == ["duplicate", "promoted"]


@pytest.mark.rule("PRO-7")
def test_promotions_for_different_users_do_not_wait_for_each_other(
    fabric: Fabric, people: People, server: TestServer, database: str
) -> None:
    """One user's scope is held; another user's promotion passes."""
    one, other = (
        proposed(fabric, people.run(user), write_class="statement", text=TEXTS[0]).proposal_id
        for user in ("cust_1", "cust_2")
    )
    fabric.queue.approve(people.reviewer, one)
    with server.connect(database) as holder, holder.transaction():
        locked = holder.execute(
            "SELECT FROM promotion_locks WHERE tenant_id = %s AND key = 'scope @cust_1' FOR UPDATE", [people.tenant_id]
        )
        assert locked.rowcount == 1
        assert fabric.queue.approve(people.reviewer, other).status == "promoted"


@pytest.mark.rule("CTR-5", "REV-5")
@pytest.mark.parametrize("both_promoted", [False, True])
def test_of_two_who_settle_one_contradiction_one_wins_and_the_other_gets_an_error(
    fabric: Fabric, crowd: list[Fabric], people: People, server: TestServer, database: str, both_promoted: bool
) -> None:
    promoted(fabric, people, "email")
    item = proposed(fabric, people.run(), **KEY, value="phone")
    if both_promoted:
        fabric.queue.approve(people.reviewer, item.proposal_id)
    (found,) = fabric.contradictions.list(people.reviewer)
    one_id = found.contradiction_id
    with hold_clock(server, database, people.tenant_id) as gate:
        calls = Calls(
            [
                lambda: crowd[0].contradictions.resolve(people.reviewer, one_id, "supersede"),
                lambda: crowd[1].contradictions.resolve(
                    people.second_reviewer, one_id, "coexist", existing={"region": "de"}, incoming={"region": "fr"}
                ),
            ]
        )
        gate.until_waiting(2)
    outcomes = calls.wait()
    assert [type(outcome) for outcome in outcomes].count(Contradiction) == 1, outcomes
    assert sum(isinstance(outcome, Conflict) for outcome in outcomes) == 1, outcomes


@pytest.mark.rule("CTR-5", "PRO-6")
def test_a_retraction_and_a_resolution_at_once_end_it_once(
    fabric: Fabric, crowd: list[Fabric], people: People, server: TestServer, database: str
) -> None:
    first = promoted(fabric, people, "email")
    item = proposed(fabric, people.run(), **KEY, value="phone")
    fabric.queue.approve(people.reviewer, item.proposal_id)
    (found,) = fabric.contradictions.list(people.reviewer)
    with hold_clock(server, database, people.tenant_id) as gate:
        calls = Calls(
            [
                lambda: crowd[0].retract(people.reviewer, first, reason="wrong"),
                lambda: crowd[1].contradictions.resolve(
                    people.reviewer,
                    found.contradiction_id,
                    "coexist",
                    existing={"region": "de"},
                    incoming={"region": "fr"},
                ),
                lambda: crowd[2].contradictions.resolve(people.reviewer, found.contradiction_id, "retract"),
            ]
        )
        gate.until_waiting(3)
    outcomes = calls.wait()
    assert all(not isinstance(outcome, Exception) or isinstance(outcome, Conflict) for outcome in outcomes), outcomes
    (closed,) = fabric.contradictions.list(people.reviewer, closed=True)
    assert not closed.open
    ended = [e for e in fabric.events(people.auditor, limit=1000) if e.type == "memory.contradiction_resolved"]
    assert len(ended) == 1


@pytest.mark.rule("REV-6", "REV-5")
def test_a_rejection_and_an_edit_at_once_leave_one_verdict(
    fabric: Fabric, crowd: list[Fabric], people: People, server: TestServer, database: str
) -> None:
    item = proposed(fabric, people.run(), **KEY, value="email").proposal_id
    with hold_clock(server, database, people.tenant_id) as gate:
        calls = Calls(
            [
                lambda: crowd[0].queue.reject(people.reviewer, item, reason="no"),
                lambda: crowd[1].queue.edit(people.second_reviewer, item, value="phone"),
            ]
        )
        gate.until_waiting(2)
    outcomes = calls.wait()
    assert sum(isinstance(outcome, Proposal) for outcome in outcomes) == 1, outcomes
    assert sum(isinstance(outcome, Conflict) for outcome in outcomes) == 1, outcomes


@pytest.mark.rule("CON-4", "JOB-3")
def test_two_passes_over_ended_consents_at_once_take_everything_away_once(
    fabric: Fabric, crowd: list[Fabric], people: People, server: TestServer, database: str
) -> None:
    consent = fabric.consent.grant(people.officer, subject="customer:cust_1", **CONSENT)
    for n in range(3):
        item = proposed(
            fabric,
            people.run(),
            entity="customer:cust_1",
            predicate=f"likes_{n}",
            value="tea",
            subject="customer:cust_1",
            classification="PII",
        )
        fabric.queue.approve(people.reviewer, item.proposal_id)
    fabric.consent.revoke(people.officer, consent.consent_id)
    with hold_clock(server, database, people.tenant_id) as gate:
        calls = Calls([lambda n=n: crowd[n].consent.sweep(people.tenant_id) for n in range(3)])
        gate.until_waiting(3)
    assert sum(outcome.memories for outcome in calls.wait()) == 3
    result = [e.data for e in fabric.events(people.auditor, limit=1000) if e.type == "memory.consent_revoked"]
    assert [data["memories"] for data in result if "memories" in data] == [3]
