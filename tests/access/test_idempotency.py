"""Idempotency keys: the same key with the same content is the same capture, for who used it and however late."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest

from muniment import Fabric, Refusal
from muniment.errors import Conflict, IdempotencyConflict
from muniment.model.proposal import Proposal
from muniment.testing import FakeClock, People, TestServer
from tests.stories import proposed, refused, submitted

MESSAGE: dict[str, Any] = {"kind": "message", "text": "hello", "classification": "INTERNAL"}


@pytest.mark.rule("CAP-4", "ERR-2")
def test_the_same_key_with_the_same_content_returns_the_first_capture(
    fabric: Fabric, people: People, clock: FakeClock, rows: Any
) -> None:
    first = fabric.capture(people.run(), **MESSAGE, idempotency_key="k")
    clock.advance(days=400)
    again = fabric.capture(people.run(), **MESSAGE, idempotency_key="k")
    assert (first.repeated, again.repeated) == (False, True)
    assert (again.capture_id, again.seq, again.captured_at) == (
        first.capture_id,
        first.seq,
        first.captured_at,
    )
    assert len(rows("captures")) == 1
    assert len(rows("events")) == 3, "the pack's registration and activation, and the one capture"


@pytest.mark.rule("CAP-4")
@pytest.mark.parametrize(
    "other",
    [
        {"text": "hello!"},
        {"kind": "statement"},
        {"classification": "PUBLIC"},
        {"payload": {}},
        {"evidence_refs": ["e:1"]},
        {"subject": "customer:c9"},
        {"user_id": None},
    ],
)
def test_the_same_key_with_anything_else_is_a_conflict(
    fabric: Fabric, people: People, rows: Any, other: dict[str, Any]
) -> None:
    fabric.capture(people.run(), **MESSAGE, idempotency_key="k")
    with pytest.raises(IdempotencyConflict) as caught:
        fabric.capture(people.run(), **MESSAGE | other, idempotency_key="k")  # type: ignore[arg-type]
    assert (caught.value.code, caught.value.field) == ("idempotency_conflict", "idempotency_key")
    assert len(rows("captures")) == 1


@pytest.mark.rule("CAP-4")
def test_a_batch_may_hold_what_was_captured_before(fabric: Fabric, people: People, rows: Any) -> None:
    first = fabric.capture(people.run(), **MESSAGE, idempotency_key="b")
    items = [MESSAGE | {"idempotency_key": key} for key in ("a", "b", "c")]
    receipts = fabric.capture_many(people.run(), items)
    assert [receipt.repeated for receipt in receipts] == [False, True, False]
    assert receipts[1].capture_id == first.capture_id
    again = fabric.capture_many(people.run(), items)
    assert [receipt.capture_id for receipt in again] == [receipt.capture_id for receipt in receipts]
    assert all(receipt.repeated for receipt in again)
    assert len(rows("captures")) == 3


@pytest.mark.rule("CAP-4", "CAP-7")
def test_within_one_batch_the_same_key_means_the_same_capture_too(fabric: Fabric, people: People, rows: Any) -> None:
    twice = [MESSAGE | {"idempotency_key": "k"}, MESSAGE | {"idempotency_key": "k"}]
    first, second = fabric.capture_many(people.run(), twice)
    assert second.capture_id == first.capture_id
    assert len(rows("captures")) == 1
    with pytest.raises(IdempotencyConflict):
        fabric.capture_many(
            people.run(),
            [MESSAGE | {"idempotency_key": "l"}, MESSAGE | {"text": "other", "idempotency_key": "l"}],
        )
    assert len(rows("captures")) == 1


@pytest.mark.rule("CAP-4", "ISO-1")
def test_a_key_is_of_one_tenant(fabric: Fabric, people: People, others: People) -> None:
    mine = fabric.capture(people.run(), **MESSAGE, idempotency_key="k")
    theirs = fabric.capture(others.run(), **MESSAGE | {"text": "other"}, idempotency_key="k")  # type: ignore[arg-type]
    assert not theirs.repeated
    assert theirs.capture_id != mine.capture_id


@pytest.mark.rule("CAP-4", "JOB-4")
def test_the_key_outlives_its_capture(
    fabric: Fabric, people: People, server: TestServer, database: str, rows: Any
) -> None:
    first = fabric.capture(people.run(), **MESSAGE, idempotency_key="k")
    with server.connect(database) as owner:
        owner.execute("DELETE FROM captures WHERE capture_id = %s", [first.capture_id])
    again = fabric.capture(people.run(), **MESSAGE, idempotency_key="k")
    assert (again.capture_id, again.repeated) == (first.capture_id, True)
    with pytest.raises(IdempotencyConflict):
        fabric.capture(people.run(), **MESSAGE | {"text": "other"}, idempotency_key="k")  # type: ignore[arg-type]
    assert rows("captures") == []


@pytest.mark.rule("CAP-4", "ERR-2")
def test_of_many_at_once_with_one_key_one_writes_and_all_get_its_receipt(
    fabric: Fabric, people: People, rows: Any
) -> None:
    fabric.capture(people.run(), **MESSAGE)
    start = Barrier(6)

    def send(_: int) -> str:
        start.wait(timeout=60)
        return fabric.capture(people.run(), **MESSAGE, idempotency_key="k").capture_id

    with ThreadPoolExecutor(6) as pool:
        ids = set(pool.map(send, range(6)))
    assert len(ids) == 1
    assert len(rows("captures")) == 2


@pytest.mark.rule("CAP-4", "CAN-8")
def test_a_proposal_sent_twice_gives_the_same_proposal_and_a_refusal_the_same_refusal(
    fabric: Fabric, people: People, rows: Any
) -> None:
    fact: dict[str, Any] = {"entity": "customer:c1", "predicate": "likes", "value": "tea"}
    first = proposed(fabric, people.run(), **fact, idempotency_key="p")
    again = proposed(fabric, people.run(), **fact, idempotency_key="p")
    assert isinstance(first, Proposal)
    assert again == first
    no = refused(fabric, people.run(), **fact, classification="PII", idempotency_key="r")
    assert isinstance(no, Refusal)
    assert refused(fabric, people.run(), **fact, classification="PII", idempotency_key="r") == no
    assert (len(rows("proposals")), len(rows("refusals")), len(rows("captures"))) == (1, 1, 2)


@pytest.mark.rule("CAP-4", "CAP-12")
@pytest.mark.parametrize("text", ["hello", "something else"])
def test_a_key_belongs_to_the_principal_who_used_it(fabric: Fabric, people: People, rows: Any, text: str) -> None:
    """Another neither gets the first one's answer nor a conflict, and learns nothing: it is as if it were new."""
    said = MESSAGE | {"text": text}
    first = fabric.capture(people.run(agent_id="a"), **MESSAGE, idempotency_key="k")
    fresh = fabric.capture(people.run(agent_id="b"), **said, idempotency_key="unused")
    other = fabric.capture(people.run(agent_id="b"), **said, idempotency_key="k")
    assert not other.repeated and other.capture_id != first.capture_id
    assert type(other) is type(fresh) and other.seq == fresh.seq + 1
    # Each goes on with its own.
    for agent_id, spoken, own in (("a", MESSAGE, first), ("b", said, other)):
        again = fabric.capture(people.run(agent_id=agent_id), **spoken, idempotency_key="k")
        assert (again.capture_id, again.repeated) == (own.capture_id, True)
    with pytest.raises(IdempotencyConflict):
        fabric.capture(people.run(agent_id="b"), **said | {"text": "a third"}, idempotency_key="k")
    assert len(rows("captures")) == 3


@pytest.mark.rule("CAP-12")
def test_a_person_and_an_agent_of_one_name_are_two_principals(fabric: Fabric, people: People) -> None:
    first = fabric.capture(people.run(agent_id="olga"), **MESSAGE | {"kind": "statement"}, idempotency_key="k")
    second = fabric.capture(people.author, **MESSAGE | {"kind": "statement"}, idempotency_key="k")
    assert not second.repeated and second.capture_id != first.capture_id


@pytest.mark.rule("CAP-12", "COR-1")
def test_in_proposals_and_corrections_too_a_key_belongs_to_who_used_it(fabric: Fabric, people: People) -> None:
    fact: dict[str, Any] = {"entity": "customer:c", "predicate": "p", "value": 1}
    given = {"classification": "INTERNAL", "write_class": "preference", **fact}
    first = fabric.propose(people.run(agent_id="a"), **given, idempotency_key="k")
    second = fabric.propose(people.run(agent_id="b"), **given, idempotency_key="k")
    assert first != second
    assert fabric.propose(people.run(agent_id="a"), **given, idempotency_key="k") == first
    memory_id = fabric.queue.approve(people.reviewer, submitted(first)).memory_id
    writers = [people.author, people.person("otto", "correction_writer")]
    done = [fabric.correct(who, memory_id=memory_id, value=2, idempotency_key="c") for who in writers]
    assert done[0] != done[1]
    fabric.queue.approve(people.reviewer, submitted(done[0]))
    # Repeated after it has replaced its target: each gets its first answer again; a third person gets none.
    again = fabric.correct(writers[0], memory_id=memory_id, value=2, idempotency_key="c")
    assert submitted(again) == submitted(done[0])
    with pytest.raises(Conflict):
        fabric.correct(people.person("oona", "correction_writer"), memory_id=memory_id, value=2, idempotency_key="c")


@pytest.mark.rule("CAP-12", "ERR-2")
def test_two_principals_at_once_with_one_key_each_write_their_own(fabric: Fabric, people: People, rows: Any) -> None:
    start = Barrier(6)

    def send(number: int) -> str:
        start.wait(timeout=60)
        run = people.run(agent_id=f"agent_{number % 2}")
        return fabric.capture(run, **MESSAGE, idempotency_key="k").capture_id

    with ThreadPoolExecutor(6) as pool:
        assert len(set(pool.map(send, range(6)))) == 2
    assert len(rows("captures")) == 2
