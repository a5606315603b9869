"""Concurrent batches of approvals: each proposal is decided once, with few locks, as if one by one."""

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import psycopg
import pytest

from muniment import Fabric
from muniment.errors import AlreadyDecided, MunimentError
from muniment.language.embedding.function import FunctionEmbedder
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.faults.concurrency import Calls, hold_clock
from tests.recall.batches import PII, SUBJECT, approve_all, shown, statuses_of, waiting
from tests.stories import CONSENT, remembered, submitted

# --- at once


@pytest.mark.rule("REV-5", "PRO-7")
def test_of_two_who_approve_the_same_at_once_one_does_and_the_other_gets_an_error(
    fabric: Fabric, people: People, server: TestServer, database: str
) -> None:
    ids = waiting(fabric, people, *({"predicate": f"p{n}", "value": n} for n in range(6)))
    with hold_clock(server, database, people.tenant_id) as gate:
        first = Calls([lambda: fabric.queue.approve_many(people.reviewer, ids)])
        gate.until_waiting(1)
        second = Calls([lambda: fabric.queue.approve_many(people.second_reviewer, ids[::-1])])
        gate.until_waiting(2)
    ((one,), (other,)) = first.wait(), second.wait()
    for mine, theirs in zip(one, other[::-1], strict=True):
        assert mine.proposal_id == theirs.proposal_id
        assert {mine.error, theirs.error} == {None, "already_decided"}
        assert mine.status == theirs.status == "promoted"
        assert mine.memory_id == theirs.memory_id is not None
    assert shown(fabric, people) == set(range(6))


@pytest.mark.rule("PRO-7")
def test_of_two_batches_at_once_that_contradict_each_other_one_sees_the_other(
    fabric: Fabric, people: People, server: TestServer, database: str
) -> None:
    batches = [
        waiting(fabric, people, *({"predicate": f"p{n}", "value": value} for n in range(3))) for value in ("tea", "rye")
    ]
    with hold_clock(server, database, people.tenant_id) as gate:
        calls = Calls([lambda ids=ids: approve_all(fabric, people.reviewer, ids) for ids in batches])
        gate.until_waiting(2)
    assert [statuses_of(outcomes) for outcomes in calls.wait()] == [["promoted"] * 3] * 2
    assert len(fabric.contradictions.list(people.reviewer)) == 3
    assert len(fabric.recall(people.run()).conflicts) == 3


@pytest.mark.rule("PRO-7", "ERR-2")
def test_a_retraction_beside_a_batch_that_corrects_the_same_memory_waits_its_turn(
    fabric: Fabric, people: People, server: TestServer, database: str
) -> None:
    old = remembered(fabric, people, "email")
    correction = submitted(fabric.correct(people.author, memory_id=old, value="phone"))
    ids = [*waiting(fabric, people, {"predicate": "a", "value": "green tea"}), correction]
    with hold_clock(server, database, people.tenant_id) as gate:
        batch = Calls([lambda: approve_all(fabric, people.reviewer, ids)])
        gate.until_waiting(1)
        other = Calls([lambda: fabric.retract(people.second_reviewer, old, reason="wrong")])
        gate.until_waiting(2)
    (outcomes,), (retraction,) = batch.wait(), other.wait()
    assert statuses_of(outcomes) == ["promoted", "promoted"]
    assert not isinstance(retraction, Exception), "no ring of locks"
    assert shown(fabric, people) == {"phone", "green tea"}


@pytest.mark.rule("ERR-4", "CON-3")
@pytest.mark.parametrize("alone", [True, False])
def test_no_lock_is_held_while_an_embedder_thinks(
    server: TestServer, database: str, clock: FakeClock, people: People, alone: bool
) -> None:
    watching, found = False, list[str]()

    def place(texts: list[str]) -> Any:
        if watching:
            with server.connect(database) as officer:
                try:
                    officer.execute("SELECT FROM subjects WHERE tenant_id = %s FOR UPDATE NOWAIT", [people.tenant_id])
                except psycopg.errors.LockNotAvailable:
                    found.append("locked")
                else:
                    found.append("free")
        return [[1.0, len(text), text.count("e")] for text in texts]

    embedder = FunctionEmbedder(place, name="watching@1", dimensions=3)
    where: dict[str, Any] = {"clock": clock, "master_keys": MASTER_KEYS, "embedder": embedder}
    with Fabric.open(server.url(database), **where) as fabric:
        fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
        ids = waiting(fabric, people, *({"predicate": f"p{n}", "value": n, **PII} for n in range(2)))
        watching = True
        if alone:
            fabric.queue.approve(people.reviewer, ids[0])
        else:
            approve_all(fabric, people.reviewer, ids)
    assert set(found) == {"free"}, "whoever revokes a consent would wait for the embedder"


# --- against the same, one by one

STATEMENTS = (
    "Returns are accepted within 30 days.",
    "returns are accepted within 30 days",
    "Returns are accepted within 14 days.",
    "The office is closed on Sunday.",
    "The office is open on Sunday.",
    "Parcels leave at noon.",
)


def some_facts(seed: int) -> list[dict[str, Any]]:
    """A dozen facts of a small world, in which many repeat or contradict each other."""
    chance = random.Random(seed)
    facts: list[dict[str, Any]] = []
    for _ in range(12):
        label = chance.choice(("INTERNAL", "INTERNAL", "CONFIDENTIAL", "PII"))
        user = chance.choice(("cust_1", "cust_1", None))
        fact: dict[str, Any] = {"classification": label, "user_id": user}
        fact |= {"subject": SUBJECT} if label == "PII" else {}
        match chance.choice(("keyed", "keyed", "stated", "corrected")):
            case "stated":
                fact |= {"write_class": "statement", "entity": None, "text": chance.choice(STATEMENTS)}
            case "corrected":
                fact |= {"write_class": "correction", "predicate": "p0", "value": chance.choice(("tea", "rye"))}
            case _:
                fact |= {"predicate": chance.choice(("p0", "p1")), "value": chance.choice(("tea", "rye", "oats"))}
        facts.append(fact)
    return facts


def one_by_one(fabric: Fabric, people: People, ids: Sequence[str]) -> list[str | None]:
    waited = {one for one in ids if fabric.queue.get(people.reviewer, one).status == "pending"}
    found: list[str | None] = []
    for proposal_id in ids:
        try:
            found.append(fabric.queue.approve(people.reviewer, proposal_id).status)
        except AlreadyDecided as error:
            # One that said the same was approved before, and this one with it.
            status = fabric.queue.get(people.reviewer, proposal_id).status
            found.append(status if proposal_id in waited else error.code)
        except MunimentError as error:
            found.append(error.code)
    return found


def world(fabric: Fabric, people: People) -> dict[str, Any]:
    """What can be seen of a tenant, without ids."""
    answer = fabric.recall(people.run())
    events = Counter(event.type for event in fabric.events(people.auditor, limit=1000) for _ in event.items)
    return {
        "plain": sorted(record.text for record in answer.records),
        "low": sorted(record.text for record in answer.low_confidence),
        "conflicts": sorted(sorted(record.text for record in one.records) for one in answer.conflicts),
        "omitted": answer.omitted,
        "open": len(fabric.contradictions.list(people.reviewer)),
        "all": sorted(str(one.outcome) for one in fabric.contradictions.list(people.reviewer, closed=True)),
        "events": {name: count for name, count in events.items() if name != "memory.security"},
    }


@pytest.mark.rule("REV-5", "PRO-1", "PRO-7")
@pytest.mark.parametrize("seed", range(3))
def test_a_batch_ends_where_the_same_approved_one_by_one_ends(
    fabric: Fabric, people: People, others: People, clock: FakeClock, seed: int
) -> None:
    endings: list[tuple[list[str | None], dict[str, Any]]] = []
    for cast in (people, others):
        fabric.consent.grant(cast.officer, subject=SUBJECT, **CONSENT)
        remembered(fabric, cast, "oats", entity=SUBJECT, predicate="p0")
        writers = {"correction": cast.author}
        ids = waiting(
            fabric,
            cast,
            *({**fact, "by": writers.get(fact.get("write_class", ""), cast.run(None))} for fact in some_facts(seed)),
        )
        became = (
            statuses_of(approve_all(fabric, cast.reviewer, ids)) if cast is people else one_by_one(fabric, cast, ids)
        )
        endings.append((became, world(fabric, cast)))
    assert endings[0] == endings[1]
    assert {"promoted", "duplicate"} <= set(endings[0][0])
