"""Through the public surface, as somebody who should not: each of these once worked."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic_core import to_json

from muniment import Fabric, Principal, RunContext, Submission, builtin_pack, load_pack
from muniment.errors import ConsentChanged, InvalidInput, KeyUnavailable, NotFound, NotPromotable
from muniment.testing import FakeClock, People
from tests.pack_activation import acme, put_in_force
from tests.stories import CONSENT, promoted, proposed, refused, texts

BOB = "customer:bob"
PHONE = {"entity": BOB, "predicate": "phone_number", "subject": BOB, "classification": "PII"}
DRINK = {"entity": BOB, "predicate": "favourite_drink", "subject": BOB, "classification": "PII"}


def spy(people: People, **fields: str) -> RunContext:
    """A run for another user, cleared for what is public."""
    return RunContext(
        tenant_id=people.tenant_id, run_id="r", agent_id="spy", user_id="mallory", classification_allowed={"PUBLIC"}, **fields
    )  # fmt: skip


@pytest.mark.rule("ISO-4", "REC-10", "REC-1")
@pytest.mark.parametrize(
    ("hidden_by", "guess", "found"),
    [
        ({}, "jasmine tea", "contradicts"),
        ({}, "oolong tea", "no_conflict"),  # of a lower label than what says the same: another fact to its readers
        ({"classification": "PUBLIC", "intent_id": "sales.*"}, "oolong tea", "duplicate"),
    ],
)
def test_proposing_tells_nothing_of_memories_the_proposer_may_not_see(
    fabric: Fabric, people: People, hidden_by: dict[str, Any], guess: str, found: str
) -> None:
    fabric.consent.grant(people.officer, subject=BOB, **CONSENT)
    promoted(fabric, people, "oolong tea", user_id=None, **DRINK | hidden_by)
    result = fabric.propose(
        spy(people), write_class="preference", entity=BOB, predicate="favourite_drink", value=guess,
        classification="PUBLIC", confidence=0.7,
    )  # fmt: skip
    assert isinstance(result, Submission)
    assert set(result.model_dump()) == {"proposal_id", "capture_id", "write_class", "status"}
    assert result.status == "pending"
    seen = fabric.queue.get(people.reviewer, result.proposal_id)
    assert seen.contradiction_check.verdict == found, "there was something to tell, and a reviewer is told"


@pytest.mark.rule("CON-2")
def test_the_consent_of_one_person_covers_no_fact_about_another(fabric: Fabric, people: People) -> None:
    fabric.consent.grant(people.officer, subject="customer:alice", **CONSENT)
    no = refused(
        fabric, people.run(), entity=BOB, predicate="iban", value="DE1", subject="customer:alice", classification="PII"
    )
    assert (no.gate, no.reason) == ("consent", "subject_is_not_the_entity")


@pytest.mark.rule("CAP-4", "CAP-9")
def test_an_idempotency_key_answers_only_its_own_author(fabric: Fabric, people: People) -> None:
    fact = {
        "write_class": "preference",
        "entity": BOB,
        "predicate": "likes",
        "value": "tea",
        "classification": "INTERNAL",
    }
    mine = fabric.propose(people.author, **fact, idempotency_key="k")
    assert isinstance(mine, Submission)
    assert fabric.propose(people.author, **fact, idempotency_key="k") == mine
    agent = Principal(tenant_id=people.tenant_id, id="bot", kind="agent", roles={"agent"})
    theirs = fabric.propose(agent, **fact, idempotency_key="k")
    assert isinstance(theirs, Submission), "neither the first one's answer nor a conflict"
    assert theirs.proposal_id != mine.proposal_id


@pytest.mark.rule("CON-2", "PAC-4")
def test_what_a_lax_pack_let_in_without_consent_is_hidden_under_a_strict_one(fabric: Fabric, people: People) -> None:
    lax = builtin_pack().document()
    lax["pack_meta"]["version"] = "9.9.9"
    for label in lax["classifications"]:
        label["sensitive"] = False
    ref = put_in_force(fabric, people.tenant_id, load_pack(to_json(lax)))
    item = proposed(fabric, people.run(), **PHONE, value="1")
    assert fabric.queue.approve(people.reviewer, item.proposal_id).status == "promoted"
    assert len(texts(fabric, people.run())) == 1
    put_in_force(fabric, people.tenant_id, acme("1.0.0", may_pin=f"[{ref}]"))
    assert texts(fabric, people.run()) == []
    assert texts(fabric, people.run(pack=ref)) == [], "to pin the lax one shows it to nobody"


@pytest.mark.rule("CTR-4", "CAN-4", "PRO-5")
def test_nothing_is_replaced_by_something_of_a_lower_label(fabric: Fabric, people: People) -> None:
    fabric.consent.grant(people.officer, subject=BOB, **CONSENT)
    old = promoted(fabric, people, "1", user_id=None, **PHONE)
    lower = {"entity": BOB, "predicate": "phone_number", "value": "2", "classification": "PUBLIC"}
    correction = proposed(fabric, people.author, write_class="correction", **lower)
    plain = proposed(fabric, people.run(None), **lower)
    with pytest.raises(NotPromotable, match="PII"):
        fabric.queue.approve(people.reviewer, correction.proposal_id)
    with pytest.raises(NotPromotable, match="PII"):
        fabric.queue.approve(people.reviewer, plain.proposal_id, supersedes=old)


@pytest.mark.rule("PRO-5", "COR-2")
def test_nobody_loses_a_memory_to_one_they_cannot_see(fabric: Fabric, people: People) -> None:
    alices = promoted(fabric, people, "email", user_id="alice")
    shared = promoted(fabric, people, "post", user_id=None, predicate="shared")
    bobs = proposed(fabric, people.run("bob"), entity=BOB, predicate="x", value="y")
    with pytest.raises(NotPromotable, match="would not see"):
        fabric.queue.approve(people.reviewer, bobs.proposal_id, supersedes=alices)
    narrow = proposed(
        fabric, people.author, write_class="correction", entity="customer:cust_1", predicate="shared", value="fax",
        user_id="bob",
    )  # fmt: skip
    done = fabric.queue.approve(people.reviewer, narrow.proposal_id)
    assert {record.id for record in fabric.recall(people.run("alice")).records} == {shared, alices}
    (conflict,) = fabric.recall(people.run("bob")).conflicts
    assert {record.id for record in conflict.records} == {shared, done.memory_id}


@pytest.mark.rule("ISO-5")
def test_a_run_for_one_user_writes_nothing_for_another(fabric: Fabric, people: People) -> None:
    with pytest.raises(InvalidInput) as caught:
        fabric.capture(people.run("alice"), kind="message", text="x", classification="INTERNAL", user_id="bob")
    assert caught.value.field == "user_id"
    with pytest.raises(InvalidInput) as caught:
        fabric.capture_many(
            people.run("alice"), [{"kind": "message", "text": "x", "classification": "INTERNAL", "user_id": "bob"}]
        )
    assert caught.value.field == "captures.0.user_id"


@pytest.mark.rule("CON-2", "CON-3")
def test_a_renewal_dated_back_does_not_bring_an_expired_consent_to_life(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    ends = clock.now + timedelta(days=10)
    first = fabric.consent.grant(people.officer, subject=BOB, **CONSENT, valid_until=ends)
    promoted(fabric, people, "1", user_id=None, **PHONE)
    clock.advance(days=30)
    fabric.consent.grant(people.officer, subject=BOB, **CONSENT, supersedes=first.consent_id, valid_from=ends)
    assert texts(fabric, people.run(None)) == []


@pytest.mark.rule("CON-3")
def test_a_clock_that_once_ran_ahead_keeps_no_consent_from_being_revoked(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    first = fabric.consent.grant(people.officer, subject=BOB, **CONSENT)
    promoted(fabric, people, "1", user_id=None, **PHONE)
    clock.advance(days=30)
    fabric.capture(people.run(), kind="message", text="wrong clock", classification="INTERNAL")
    clock.advance(days=-30)
    other = CONSENT | {"purpose": "marketing"}
    second = fabric.consent.grant(people.officer, subject=BOB, **other, supersedes=first.consent_id)
    with pytest.raises(ConsentChanged):
        fabric.consent.revoke(people.officer, first.consent_id)
    fabric.consent.revoke(people.officer, second.consent_id)
    assert texts(fabric, people.run(None)) == []


@pytest.mark.rule("REC-8")
def test_reading_one_memory_by_its_id_is_a_recall_on_record(fabric: Fabric, people: People) -> None:
    memory_id = promoted(fabric, people)
    assert fabric.get(people.run(), memory_id).memory_id == memory_id
    assert len(fabric.trail(people.auditor, memory_id).recalls) == 1
    with pytest.raises(NotFound):
        fabric.get(people.run("somebody_else"), memory_id)
    assert len(fabric.trail(people.auditor, memory_id).recalls) == 1


@pytest.mark.rule("ERA-1")
def test_a_lost_master_key_is_not_silently_replaced(tmp_path: Path) -> None:
    home, people = tmp_path / "home", People("acme")
    with Fabric.open(home=home) as fabric:
        fabric.capture(people.run(), kind="message", text="x", classification="INTERNAL")
    key = home / "master.key"
    kept = key.read_bytes()
    key.unlink()
    with pytest.raises(KeyUnavailable, match="put it back"):
        Fabric.open(home=home)
    assert not key.exists()
    key.write_bytes(kept)
    key.chmod(0o600)
    with Fabric.open(home=home) as fabric:
        fabric.capture(people.run(), kind="message", text="y", classification="INTERNAL")
        fabric.close()
        with pytest.raises(InvalidInput, match="not open"):
            fabric.recall(people.run())


@pytest.mark.rule("REV-4")
def test_two_spellings_of_one_name_are_not_two_people() -> None:
    with pytest.raises(InvalidInput, match="NFC"):
        Principal(tenant_id="t", id="jose\u0301", kind="operator")
