"""Many approved at once: each as it would be alone, in their order, and none stops another."""

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import psycopg
import pytest

from muniment import Fabric, Principal
from muniment.embedding.function import FunctionEmbedder
from muniment.errors import InvalidInput, MunimentError, RoleMissing, TooLarge
from muniment.fabric import queue
from muniment.model.proposal import Outcome
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.faults.together import Calls, held
from tests.pipeline.conftest import Opener
from tests.pipeline.stories import CONSENT, proposed, remembered

SUBJECT = "customer:cust_1"
PII: dict[str, Any] = {"subject": SUBJECT, "classification": "PII"}


def waiting(fabric: Fabric, people: People, *facts: dict[str, Any]) -> list[str]:
    """Proposals in the queue, by an agent for cust_1 unless told otherwise."""
    ids: list[str] = []
    for fact in facts:
        given = {"entity": SUBJECT, **fact}
        ids.append(proposed(fabric, given.pop("by", people.run()), **given).proposal_id)
    return ids


def told(outcomes: Sequence[Outcome]) -> list[str | None]:
    """What became of each: its status, or what stopped it."""
    return [one.error or one.status for one in outcomes]


def shown(fabric: Fabric, people: People, **run: Any) -> set[Any]:
    return {record.value for record in fabric.recall(people.run(**run)).records}


# --- what becomes of each


@pytest.mark.rule("REV-5", "REV-1", "PRO-1")
def test_all_are_promoted_in_the_order_asked_for_by_a_named_person(fabric: Fabric, people: People) -> None:
    ids = waiting(fabric, people, *({"predicate": f"p{n}", "value": n} for n in range(4)))
    asked = [ids[2], ids[0], ids[3], ids[1]]
    outcomes = fabric.queue.approve_many(people.reviewer, asked, note="seen")
    assert [one.proposal_id for one in outcomes] == asked
    assert told(outcomes) == ["promoted"] * 4
    for one in outcomes:
        proposal = fabric.queue.get(people.reviewer, one.proposal_id)
        assert (proposal.status, proposal.memory_id) == ("promoted", one.memory_id)
        (verdict,) = proposal.verdicts
        assert (verdict.action, verdict.by, verdict.by_kind, verdict.note) == ("approve", "boris", "operator", "seen")
        assert one.memory_id is not None
        trail = fabric.trail(people.auditor, one.memory_id)
        assert (trail.memory.approver, trail.memory.verdict_id) == ("boris", verdict.verdict_id)
    assert shown(fabric, people) == {0, 1, 2, 3}
    promoted = [event for event in fabric.events(people.auditor) if event.type == "memory.promoted"]
    assert {event.data["memory_id"] for event in promoted} == {one.memory_id for one in outcomes}


@pytest.mark.rule("REC-2")
def test_they_are_found_by_words_and_by_meaning_like_any_other(fabric: Fabric, people: People) -> None:
    texts = ["The dog is called Biscuit.", "Parcels leave at noon.", "Invoices are paid by card."]
    ids = waiting(fabric, people, *({"predicate": f"p{n}", "value": n, "text": text} for n, text in enumerate(texts)))
    fabric.queue.approve_many(people.reviewer, ids)
    for query, best in (("puppy", 0), ("parcels", 1), ("credit cards", 2)):
        assert fabric.recall(people.run(), query).records[0].value == best


@pytest.mark.rule("REV-7", "PRO-7")
def test_what_repeats_an_earlier_one_of_them_or_a_memory_is_its_duplicate(fabric: Fabric, people: People) -> None:
    ids = waiting(
        fabric,
        people,
        {"predicate": "drinks", "value": "tea"},
        {"predicate": "drinks", "value": "tea"},
        {"write_class": "statement", "entity": None, "text": "Returns are accepted within 30 days."},
        {"write_class": "statement", "entity": None, "text": "returns are accepted within 30 days"},
        {"predicate": "eats", "value": "rye"},
    )
    eaten = waiting(fabric, people, {"predicate": "eats", "value": "rye"})
    original = fabric.queue.approve(people.reviewer, eaten[0]).memory_id
    outcomes = fabric.queue.approve_many(people.reviewer, ids)
    assert told(outcomes) == ["promoted", "duplicate", "promoted", "duplicate", "duplicate"]
    assert [one.memory_id is None for one in outcomes] == [False, True, False, True, True]
    for n, memory_id in ((1, outcomes[0].memory_id), (3, outcomes[2].memory_id), (4, original)):
        (verdict,) = fabric.queue.get(people.reviewer, ids[n]).verdicts
        assert (verdict.action, verdict.memory_id) == ("duplicate", memory_id)


@pytest.mark.rule("CTR-3", "CTR-4", "PRO-7")
@pytest.mark.parametrize(("unresolved", "status"), [("mark_both", "promoted"), ("hold", "held"), ("block", "blocked")])
def test_what_contradicts_an_earlier_one_of_them_is_treated_as_the_pack_says(
    under: Opener, people: People, unresolved: str, status: str
) -> None:
    with under(f"memory_layer: {{contradiction: {{unresolved: {unresolved}}}}}") as fabric:
        ids = waiting(
            fabric,
            people,
            {"predicate": "drinks", "value": "tea", "text": "Green tea, please."},
            {"predicate": "drinks", "value": "milk", "text": "Nothing of the kind was said."},
            {"write_class": "statement", "entity": None, "text": "Returns are accepted within 30 days."},
            {"write_class": "statement", "entity": None, "text": "Returns are accepted within 14 days."},
            {"predicate": "other", "value": "kept", "text": "A lantern shines in Oslo."},
        )
        assert fabric.contradictions.list(people.reviewer) == []
        outcomes = fabric.queue.approve_many(people.reviewer, ids)
        assert told(outcomes) == ["promoted", status, "promoted", status, "promoted"]
        found = {(one.existing, one.proposal_id) for one in fabric.contradictions.list(people.reviewer, closed=True)}
        assert found == {(outcomes[0].memory_id, ids[1]), (outcomes[2].memory_id, ids[3])}
        answer = fabric.recall(people.run())
        assert len(answer.conflicts) == (2 if unresolved == "mark_both" else 0)
        assert "kept" in {record.value for record in answer.records}


@pytest.mark.rule("REV-4", "AUD-3", "COR-1")
def test_nobody_approves_their_own_and_the_others_pass(fabric: Fabric, people: People) -> None:
    both = people.person("boris", "correction_writer", "reviewer")
    ids = waiting(
        fabric,
        people,
        {"predicate": "a", "value": 1, "by": both},
        {"predicate": "b", "value": 2},
        {"predicate": "c", "value": 3, "by": people.author},
    )
    outcomes = fabric.queue.approve_many(both, ids)
    assert told(outcomes) == ["self_approval", "promoted", "promoted"]
    assert (outcomes[0].status, outcomes[0].memory_id) == ("pending", None)
    (event,) = [event for event in fabric.events(people.auditor) if event.type == "memory.security"]
    assert (event.actor, event.data["target"], event.data["code"]) == ("boris", ids[0], "self_approval")
    assert told(fabric.queue.approve_many(people.second_reviewer, ids[:1])) == ["promoted"]


@pytest.mark.rule("REV-4")
def test_who_edited_one_does_not_approve_it(fabric: Fabric, people: People) -> None:
    ids = waiting(fabric, people, *({"predicate": name, "value": 1} for name in ("a", "b")))
    for proposal_id in ids:
        fabric.queue.override(people.second_reviewer, proposal_id, tier="durable")
    edited = fabric.queue.edit(people.reviewer, ids[0], value=2)
    outcomes = fabric.queue.approve_many(people.reviewer, [edited.proposal_id, ids[0], ids[1]])  # type: ignore[union-attr]
    # The edit starts from its own tier: what it is held to is what `approve` holds it to.
    assert told(outcomes)[1:] == ["already_decided", "promoted"]
    assert told(outcomes)[0] in ("self_approval", "promoted")


@pytest.mark.rule("REV-1", "REV-5")
def test_what_is_decided_already_is_told_and_stays(fabric: Fabric, people: People) -> None:
    ids = waiting(fabric, people, *({"predicate": f"p{n}", "value": n} for n in range(4)))
    done = fabric.queue.approve(people.second_reviewer, ids[0])
    fabric.queue.reject(people.second_reviewer, ids[1], reason="hearsay")
    outcomes = fabric.queue.approve_many(people.reviewer, ids)
    assert told(outcomes) == ["already_decided", "already_decided", "promoted", "promoted"]
    assert [one.status for one in outcomes] == ["promoted", "rejected", "promoted", "promoted"]
    assert outcomes[0].memory_id == done.memory_id
    assert "clara decided this proposal" in str(outcomes[0].message)
    assert told(fabric.queue.approve_many(people.reviewer, ids)) == ["already_decided"] * 4
    assert shown(fabric, people) == {0, 2, 3}


@pytest.mark.rule("ISO-4")
def test_another_tenants_id_is_answered_like_one_that_does_not_exist(
    fabric: Fabric, people: People, others: People
) -> None:
    ids = waiting(fabric, people, {"predicate": "a", "value": 1})
    theirs = waiting(fabric, others, {"predicate": "a", "value": 1})
    outcomes = fabric.queue.approve_many(people.reviewer, [theirs[0], "mwp_0000", *ids, "mwp_%"])
    assert told(outcomes) == ["not_found", "not_found", "promoted", "not_found"]
    answers = {(one.status, one.memory_id, one.error, one.message) for one in outcomes if one.error is not None}
    assert answers == {(None, None, "not_found", "no such proposal")}
    assert fabric.queue.get(others.reviewer, theirs[0]).status == "pending"
    assert shown(fabric, others) == set()


@pytest.mark.rule("COR-2", "CTR-4", "PRO-5")
@pytest.mark.parametrize("last", [True, False])
def test_a_correction_among_them_takes_the_place_of_what_it_corrects(
    fabric: Fabric, people: People, last: bool
) -> None:
    old = remembered(fabric, people, "email")
    correction = fabric.correct(people.author, memory_id=old, value="phone").proposal_id  # type: ignore[union-attr]
    rest = waiting(fabric, people, {"predicate": "prefers_channel", "value": "fax"}, {"predicate": "a", "value": 1})
    outcomes = fabric.queue.approve_many(people.reviewer, [*rest, correction] if last else [correction, *rest])
    assert told(outcomes) == ["promoted"] * 3
    place = 2 if last else 0
    memory = fabric.get(people.auditor, old)
    assert (memory.retraction_reason, memory.superseded_by) == ("corrected", outcomes[place].memory_id)
    answer = fabric.recall(people.run())
    plain = {record.value for record in answer.records}
    in_conflict = {record.value for one in answer.conflicts for record in one.records}
    # After the fax it replaces that too; before it, the fax is disputed.
    assert (plain, in_conflict) == (({"phone", 1}, set[Any]()) if last else ({1}, {"phone", "fax"}))


@pytest.mark.rule("PRO-1", "CON-2")
def test_what_lost_its_consent_since_is_not_promotable_and_stops_no_other(fabric: Fabric, people: People) -> None:
    consent = fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    ids = waiting(
        fabric,
        people,
        {"predicate": "a", "value": 1},
        {"predicate": "b", "value": 2, **PII},
        {"predicate": "c", "value": 3},
    )
    fabric.consent.revoke(people.officer, consent.consent_id)
    outcomes = fabric.queue.approve_many(people.reviewer, ids)
    assert told(outcomes) == ["promoted", "not_promotable", "promoted"]
    assert outcomes[1].status == "pending"


@pytest.mark.rule("CON-2", "PRO-2")
def test_what_is_sensitive_rests_on_its_consent_as_alone(fabric: Fabric, people: People) -> None:
    consent = fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    ids = waiting(fabric, people, *({"predicate": f"p{n}", "value": n, **PII} for n in range(2)))
    outcomes = fabric.queue.approve_many(people.reviewer, ids)
    for one in outcomes:
        assert one.memory_id is not None
        assert fabric.get(people.auditor, one.memory_id).consent_id == consent.consent_id
    fabric.consent.revoke(people.officer, consent.consent_id)
    assert shown(fabric, people) == set()


@pytest.mark.rule("ERA-1")
def test_one_that_was_tampered_with_stops_no_other(
    fabric: Fabric, people: People, server: TestServer, database: str
) -> None:
    ids = waiting(fabric, people, *({"predicate": f"p{n}", "value": n} for n in range(3)))
    broken = fabric.queue.get(people.reviewer, ids[1]).candidate.candidate_id
    with server.connect(database) as owner:
        owner.execute("UPDATE candidates SET content = content || '\\x00' WHERE candidate_id = %s", [broken])
    assert told(fabric.queue.approve_many(people.reviewer, ids)) == ["promoted", "seal_broken", "promoted"]
    assert shown(fabric, people) == {0, 2}


def test_one_that_is_named_twice_is_approved_once(fabric: Fabric, people: People) -> None:
    ids = waiting(fabric, people, {"predicate": "a", "value": 1}, {"predicate": "b", "value": 2})
    outcomes = fabric.queue.approve_many(people.reviewer, [ids[0], ids[1], ids[0]])
    assert [one.proposal_id for one in outcomes] == ids
    assert told(outcomes) == ["promoted", "promoted"]


@pytest.mark.rule("PAC-4", "REV-7")
def test_those_of_several_packs_are_each_decided_by_their_own(fabric: Fabric, people: People) -> None:
    packs: list[str] = []
    for name, unresolved in (("strict", "block"), ("patient", "hold")):
        text = f'pack_meta: {{id: {name}, version: "1.0.0"}}\nmemory_layer: {{contradiction: {{unresolved: {unresolved}}}}}'
        packs.append(fabric.packs.register(people.admin, text).ref)
    remembered(fabric, people, "tea", predicate="drinks")
    ids = waiting(
        fabric,
        people,
        {"predicate": "drinks", "value": "milk", "by": people.run(pack=packs[0])},
        {"predicate": "drinks", "value": "wine", "by": people.run(pack=packs[1])},
        {"predicate": "drinks", "value": "beer"},
        {"predicate": "a", "value": 1, "by": people.run(pack=packs[1])},
    )
    assert told(fabric.queue.approve_many(people.reviewer, ids)) == ["blocked", "held", "promoted", "promoted"]


@pytest.mark.rule("REV-7", "PAC-4")
def test_the_order_holds_across_packs(fabric: Fabric, people: People) -> None:
    text = 'pack_meta: {id: other, version: "1.0.0"}\nmemory_layer: {recall_policy: {max_recalls: 9}}'
    other = people.run(pack=fabric.packs.register(people.admin, text).ref)
    ids = waiting(
        fabric,
        people,
        {"predicate": "a", "value": 1, "text": "Parcels leave at noon."},
        {"predicate": "drinks", "value": "tea", "text": "Green tea, please.", "by": other},
        {"predicate": "drinks", "value": "tea", "text": "Green tea, please."},
    )
    assert told(fabric.queue.approve_many(people.reviewer, ids)) == ["promoted", "promoted", "duplicate"]


def test_more_than_go_into_one_transaction_are_approved_in_several(
    fabric: Fabric, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "AT_ONCE", 2)
    values = ["tea", "milk", "tea", "rye", "oats"]
    ids = waiting(fabric, people, *({"predicate": f"p{n % 3}", "value": value} for n, value in enumerate(values)))
    outcomes = fabric.queue.approve_many(people.reviewer, [*ids, "mwp_0000"])
    assert told(outcomes) == ["promoted"] * 5 + ["not_found"]
    assert len(fabric.contradictions.list(people.reviewer)) == 2


# --- who may, and with what


@pytest.mark.rule("REV-4", "ISO-5", "AUD-3")
def test_only_a_reviewer_may(fabric: Fabric, people: People) -> None:
    ids = waiting(fabric, people, {"predicate": "a", "value": 1})
    robot = Principal(tenant_id=people.tenant_id, id="robot", kind="system", roles={"reviewer"})
    askers: list[Any] = [people.run(), people.author, people.auditor, people.admin, people.officer, robot]
    for asker in askers:
        with pytest.raises(RoleMissing):
            fabric.queue.approve_many(asker, ids)
    assert fabric.queue.get(people.reviewer, ids[0]).status == "pending"
    assert Counter(event.type for event in fabric.events(people.auditor))["memory.security"] == len(askers)


@pytest.mark.rule("ERR-1")
@pytest.mark.parametrize(
    ("ids", "error", "field"),
    [
        ([], InvalidInput, "proposal_ids"),
        ("mwp_1", InvalidInput, "proposal_ids"),
        ([1], InvalidInput, "proposal_ids.0"),
        (["mwp_1", ""], InvalidInput, "proposal_ids.1"),
        (["mwp_1"] * 10_001, TooLarge, "proposal_ids"),
        (None, InvalidInput, "proposal_ids"),
    ],
    ids=["none", "a string", "a number", "an empty one", "too many", "nothing"],
)
def test_wrong_ids_are_refused_by_their_place(
    fabric: Fabric, people: People, ids: Any, error: type[InvalidInput], field: str
) -> None:
    with pytest.raises(error) as caught:
        fabric.queue.approve_many(people.reviewer, ids)
    assert caught.value.field == field


# --- at once


@pytest.mark.rule("REV-5", "PRO-7")
def test_of_two_who_approve_the_same_at_once_one_does_and_the_other_is_told(
    fabric: Fabric, people: People, server: TestServer, database: str
) -> None:
    ids = waiting(fabric, people, *({"predicate": f"p{n}", "value": n} for n in range(6)))
    with held(server, database, people.tenant_id) as gate:
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
    with held(server, database, people.tenant_id) as gate:
        calls = Calls([lambda ids=ids: fabric.queue.approve_many(people.reviewer, ids) for ids in batches])
        gate.until_waiting(2)
    assert [told(outcomes) for outcomes in calls.wait()] == [["promoted"] * 3] * 2
    assert len(fabric.contradictions.list(people.reviewer)) == 3
    assert len(fabric.recall(people.run()).conflicts) == 3


@pytest.mark.rule("PRO-7", "ERR-2")
def test_a_retraction_beside_a_batch_that_corrects_the_same_memory_waits_its_turn(
    fabric: Fabric, people: People, server: TestServer, database: str
) -> None:
    old = remembered(fabric, people, "email")
    correction = fabric.correct(people.author, memory_id=old, value="phone").proposal_id  # type: ignore[union-attr]
    ids = [*waiting(fabric, people, {"predicate": "a", "value": "green tea"}), correction]
    with held(server, database, people.tenant_id) as gate:
        batch = Calls([lambda: fabric.queue.approve_many(people.reviewer, ids)])
        gate.until_waiting(1)
        other = Calls([lambda: fabric.retract(people.second_reviewer, old, reason="wrong")])
        gate.until_waiting(2)
    (outcomes,), (retraction,) = batch.wait(), other.wait()
    assert told(outcomes) == ["promoted", "promoted"]
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
            fabric.queue.approve_many(people.reviewer, ids)
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
    found: list[str | None] = []
    for proposal_id in ids:
        try:
            found.append(fabric.queue.approve(people.reviewer, proposal_id).status)
        except MunimentError as error:
            found.append(error.code)
    return found


def world(fabric: Fabric, people: People) -> dict[str, Any]:
    """What can be seen of a tenant, without ids."""
    answer = fabric.recall(people.run())
    events = Counter(event.type for event in fabric.events(people.auditor, limit=1000))
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
            told(fabric.queue.approve_many(cast.reviewer, ids)) if cast is people else one_by_one(fabric, cast, ids)
        )
        endings.append((became, world(fabric, cast)))
    assert endings[0] == endings[1]
    assert {"promoted", "duplicate"} <= set(endings[0][0])
