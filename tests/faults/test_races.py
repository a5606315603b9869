"""At the same moment: the database settles every race, one winner each, nothing unnoticed."""

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import combinations

import pytest

from muniment import Fabric
from muniment.errors import AlreadyDecided, ConsentChanged, NotPromotable
from muniment.model.proposal import Proposal
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.faults.concurrency import Calls, hold_clock
from tests.stories import CONSENT, promoted, proposed, texts

SUBJECT = "customer:cust_1"


@pytest.fixture
def crowd(server: TestServer, database: str, clock: FakeClock) -> Iterator[list[Fabric]]:
    """Several processes' worth of fabrics: each lets one tenant have two transactions at a time."""
    with ExitStack() as stack:
        yield [
            stack.enter_context(Fabric.open(server.url(database), clock=clock, master_keys=MASTER_KEYS))
            for _ in range(5)
        ]


@pytest.mark.rule("PRO-7", "CTR-1", "CTR-3")
def test_of_ten_promotions_of_one_key_each_sees_all_before_it(
    fabric: Fabric, crowd: list[Fabric], people: People, server: TestServer, database: str
) -> None:
    waiting = [
        proposed(fabric, people.run(), entity=SUBJECT, predicate="plan", value=f"plan {n}").proposal_id
        for n in range(10)
    ]
    with hold_clock(server, database, people.tenant_id) as gate:
        calls = Calls([lambda n=n, p=p: crowd[n % 5].queue.approve(people.reviewer, p) for n, p in enumerate(waiting)])
        gate.until_waiting(len(waiting))
    outcomes = calls.wait()
    assert [outcome.status for outcome in outcomes] == ["promoted"] * len(waiting)
    pairs = {frozenset((c.existing, c.incoming)) for c in fabric.contradictions.list(people.reviewer)}
    assert pairs == {frozenset(pair) for pair in combinations([o.memory_id for o in outcomes], 2)}
    answer = fabric.recall(people.run())
    assert answer.records == ()
    (together,) = answer.conflicts
    assert {record.id for record in together.records} == {o.memory_id for o in outcomes}


@pytest.mark.rule("PRO-7", "REV-7")
def test_of_ten_promotions_of_the_same_fact_one_is_promoted_and_the_rest_are_its_duplicates(
    fabric: Fabric, crowd: list[Fabric], people: People, server: TestServer, database: str
) -> None:
    waiting = [
        proposed(fabric, people.run(), entity=SUBJECT, predicate="plan", value="gold").proposal_id for _ in range(10)
    ]
    with hold_clock(server, database, people.tenant_id) as gate:
        calls = Calls([lambda n=n, p=p: crowd[n % 5].queue.approve(people.reviewer, p) for n, p in enumerate(waiting)])
        # They are one item (REV-11): the others wait for the first.
        gate.until_waiting(1)
    calls.wait()
    outcomes = [fabric.queue.get(people.reviewer, one) for one in waiting]
    assert Counter(outcome.status for outcome in outcomes) == {"promoted": 1, "duplicate": 9}
    winner = next(outcome.memory_id for outcome in outcomes if outcome.memory_id)
    assert {o.duplicate_check for o in outcomes if o.status == "duplicate"} == {winner}


@pytest.mark.rule("REV-5", "REV-1")
def test_of_two_operators_on_one_proposal_one_wins_and_the_other_gets_an_error(
    fabric: Fabric, people: People, server: TestServer, database: str
) -> None:
    item = proposed(fabric, people.run(), entity=SUBJECT, predicate="plan", value="gold").proposal_id
    with hold_clock(server, database, people.tenant_id) as gate:
        calls = Calls(
            [
                lambda: fabric.queue.approve(people.reviewer, item),
                lambda: fabric.queue.reject(people.second_reviewer, item, reason="not_true"),
            ]
        )
        gate.until_waiting(2)
    outcomes = calls.wait()
    assert Counter(type(outcome) for outcome in outcomes) == {Proposal: 1, AlreadyDecided: 1}
    final = fabric.queue.get(people.reviewer, item)
    assert len(final.verdicts) == 1
    assert final.status in ("promoted", "rejected")
    assert len(texts(fabric, people.run())) == (final.status == "promoted")


@pytest.mark.rule("PRO-7", "CON-3", "PRO-1")
def test_a_revocation_waits_for_a_promotion_under_way_and_then_hides_it(
    fabric: Fabric, people: People, server: TestServer, database: str
) -> None:
    consent = fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    item = proposed(
        fabric, people.run(), entity=SUBJECT, predicate="phone", value="1", subject=SUBJECT, classification="PII"
    ).proposal_id
    with hold_clock(server, database, people.tenant_id) as gate:
        approving = Calls([lambda: fabric.queue.approve(people.reviewer, item)])
        gate.until_waiting(1)
        revoking = Calls([lambda: fabric.consent.revoke(people.officer, consent.consent_id)])
        gate.until_waiting(2)
    assert approving.wait()[0].status == "promoted"
    assert revoking.wait()[0].state == "revoked"
    assert texts(fabric, people.run()) == []


@pytest.mark.rule("PRO-7", "PRO-1")
def test_a_promotion_waits_for_a_revocation_under_way_and_then_fails(
    fabric: Fabric, people: People, server: TestServer, database: str
) -> None:
    consent = fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    item = proposed(
        fabric, people.run(), entity=SUBJECT, predicate="phone", value="1", subject=SUBJECT, classification="PII"
    ).proposal_id
    with hold_clock(server, database, people.tenant_id) as gate:
        revoking = Calls([lambda: fabric.consent.revoke(people.officer, consent.consent_id)])
        gate.until_waiting(1)
        approving = Calls([lambda: fabric.queue.approve(people.reviewer, item)])
        gate.until_waiting(2)
    assert revoking.wait()[0].state == "revoked"
    assert isinstance(approving.wait()[0], NotPromotable)
    assert fabric.queue.get(people.reviewer, item).status == "pending"
    assert texts(fabric, people.run()) == []


@pytest.mark.rule("CON-1")
def test_of_two_revocations_one_wins(fabric: Fabric, people: People, server: TestServer, database: str) -> None:
    consent = fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT).consent_id
    with hold_clock(server, database, people.tenant_id) as gate:
        calls = Calls([lambda: fabric.consent.revoke(people.officer, consent)] * 2)
        gate.until_waiting(2)
    kinds = Counter(type(outcome).__name__ for outcome in calls.wait())
    assert kinds == {"Consent": 1, ConsentChanged.__name__: 1}


@pytest.mark.rule("CAP-4")
def test_one_idempotency_key_from_twenty_threads_makes_one_capture(
    fabric: Fabric, crowd: list[Fabric], people: People, server: TestServer, database: str
) -> None:
    fabric.capture(people.run(), kind="message", text="first", classification="INTERNAL")

    def capture(n: int) -> object:
        return crowd[n % 5].capture(
            people.run(), kind="message", text="the same", classification="INTERNAL", idempotency_key="k"
        )

    with hold_clock(server, database, people.tenant_id) as gate:
        calls = Calls([lambda n=n: capture(n) for n in range(20)])
        gate.until_waiting(10)
    receipts = calls.wait()
    assert len({receipt.capture_id for receipt in receipts}) == 1
    assert Counter(receipt.repeated for receipt in receipts) == {False: 1, True: 19}
    with server.connect(database) as owner:
        count = owner.execute("SELECT count(*) FROM captures WHERE tenant_id = %s", [people.tenant_id]).fetchone()
    assert count == (2,)


@pytest.mark.rule("PRO-3", "PRO-6")
def test_of_two_retractions_one_wins(fabric: Fabric, people: People, server: TestServer, database: str) -> None:
    memory_id = promoted(fabric, people)
    with hold_clock(server, database, people.tenant_id) as gate:
        calls = Calls([lambda: fabric.retract(people.reviewer, memory_id, reason="wrong")] * 2)
        gate.until_waiting(2)
    assert Counter(type(outcome).__name__ for outcome in calls.wait()) == {"Retraction": 1, "Conflict": 1}


@pytest.mark.rule("PRO-5", "PRO-7")
def test_of_two_that_would_supersede_the_same_memory_one_wins(
    fabric: Fabric, people: People, server: TestServer, database: str
) -> None:
    old = promoted(fabric, people, "email")
    waiting = [
        proposed(fabric, people.run(), entity=SUBJECT, predicate=f"other_{n}", value="x").proposal_id for n in range(2)
    ]
    with hold_clock(server, database, people.tenant_id) as gate:
        calls = Calls([lambda p=p: fabric.queue.approve(people.reviewer, p, supersedes=old) for p in waiting])
        gate.until_waiting(2)
    assert Counter(type(outcome).__name__ for outcome in calls.wait()) == {"Proposal": 1, "NotPromotable": 1}
    assert fabric.get(people.auditor, old).retraction_reason == "superseded"


@pytest.mark.rule("AUD-1")
def test_writers_at_once_take_numbers_without_gap_or_repeat(fabric: Fabric, people: People) -> None:
    def capture() -> list[int]:
        return [
            fabric.capture(people.run(), kind="message", text="x", classification="INTERNAL").seq for _ in range(20)
        ]

    outcomes = Calls([capture] * 10).wait()
    assert all(numbers == sorted(numbers) for numbers in outcomes)
    taken = sorted(n for numbers in outcomes for n in numbers)
    assert taken == list(range(taken[0], taken[0] + 200))
    events = fabric.events(people.auditor, limit=1000)
    # The first number has two events: the first pack is registered and put in force.
    assert [event.seq for event in events] == [1, *range(1, taken[-1] + 1)]


@pytest.mark.rule("PRO-7")
def test_corrections_retractions_and_revocations_at_once_never_lock_each_other_in_a_ring(
    fabric: Fabric, people: People
) -> None:
    def work(worker: int) -> None:
        for n in range(6):
            item = proposed(
                fabric, people.author, write_class="correction", entity=SUBJECT, predicate="plan", value=f"{worker}.{n}"
            )
            fabric.queue.approve(people.reviewer, item.proposal_id)
            live = promoted(fabric, people, f"{worker}.{n}", predicate=f"p{worker}")
            fabric.retract(people.reviewer, live, reason="wrong")
            consent = fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
            fabric.consent.revoke(people.officer, consent.consent_id)

    errors = [outcome for outcome in Calls([lambda w=w: work(w) for w in range(5)]).wait() if outcome is not None]
    assert errors == []
    (record,) = fabric.recall(people.run()).records
    assert record.write_class == "correction"


@pytest.mark.rule("PRO-5")
def test_no_reader_sees_both_or_neither_while_one_supersedes_the_other(fabric: Fabric, people: People) -> None:
    first = promoted(fabric, people, "0", predicate="plan")
    stop = False
    seen: Counter[int] = Counter()

    def read() -> None:
        while not stop:
            answer = fabric.recall(people.run())
            seen[len(answer.records) + 10 * len(answer.conflicts)] += 1

    readers = Calls([read, read])
    for n in range(1, 16):
        item = proposed(fabric, people.run(), entity=SUBJECT, predicate="plan", value=str(n))
        done = fabric.queue.approve(people.reviewer, item.proposal_id, supersedes=first)
        assert done.memory_id is not None
        first = done.memory_id
    stop = True
    assert readers.wait() == [None, None]
    assert set(seen) == {1}
    assert seen[1] > 15
