"""What is held about a person: counted by the conditions of an erasure, shown, who read it, and handed over."""

from typing import Any

import pytest

from muniment import Fabric
from muniment.errors import InvalidInput
from muniment.testing import People
from tests.pack_activation import acme, put_in_force
from tests.stories import CONSENT, proposed, remembered

SUBJECT, USER = "customer:cus_77", "cus_77"
ABOUT: dict[str, Any] = {"subject": SUBJECT, "user_id": USER}
STATEMENT: dict[str, Any] = {"write_class": "statement", "entity": None, "predicate": None, "value": None}


def said(fabric: Fabric, people: People, text: str, **fields: Any) -> str:
    return remembered(fabric, people, **STATEMENT | {"text": text} | ABOUT | fields)


def _told(fabric: Fabric, people: People) -> str:
    """A person with something of every kind, beside somebody else; returns a memory of theirs."""
    fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    kept = said(fabric, people, "the violet giraffe sings at noon")
    retracted = said(fabric, people, "the violet giraffe sleeps in May")
    fabric.retract(people.reviewer, retracted, reason="wrong")
    remembered(fabric, people, SUBJECT, entity="customer:cus_1", predicate="is_married_to")
    remembered(fabric, people, "tea", entity="customer:cus_1", predicate="drinks")
    waiting = proposed(fabric, people.run(USER), **STATEMENT | {"text": "a giraffe in winter, too"} | ABOUT)
    rejected = proposed(fabric, people.run(USER), **STATEMENT | {"text": "a giraffe on the roof"} | ABOUT)
    fabric.queue.reject(people.reviewer, rejected.proposal_id, reason="wrong", note="nobody has seen it")
    assert waiting.proposal_id != rejected.proposal_id
    fabric.recall(people.run(USER), "giraffe")
    return kept


@pytest.mark.rule("ERA-2", "ERA-5")
@pytest.mark.parametrize(
    ("person", "counts"),
    # This pack takes no subject for the user: what others said about them is found by the subject.
    [({"subject": SUBJECT}, (2, 1, 1, 1)), ({"user_id": USER}, (1, 1, 1, 0)), (ABOUT, (2, 1, 1, 1))],
)
def test_what_an_erasure_would_remove_is_what_its_receipt_says(
    fabric: Fabric, people: People, person: dict[str, str], counts: tuple[int, ...]
) -> None:
    _told(fabric, people)
    held = fabric.people.get(people.officer, **person)
    assert (held.memories.live, held.memories.ended, held.waiting, held.consents) == counts
    receipt = fabric.erase(people.officer, **person)
    assert held.would_erase == receipt.memories
    assert held.would_remove == {name: count for name, count in receipt.rows.items() if count}
    after = fabric.people.get(people.officer, **person)
    assert (after.would_erase, after.would_remove, after.memories.removed) == (0, {}, counts[0] + counts[1])
    assert after.erased_at == receipt.erased_at


@pytest.mark.rule("IMP-4")
def test_an_officer_sees_what_the_person_would_see_and_nothing_under_the_key_of_others(
    fabric: Fabric, people: People
) -> None:
    kept = _told(fabric, people)
    memories = fabric.people.memories(people.officer, **ABOUT)
    assert {one.text for one in memories} == {"the violet giraffe sings at noon", "the violet giraffe sleeps in May"}
    assert kept in {one.memory_id for one in memories}
    assert fabric.people.memories(people.officer, user_id="somebody_else") == []
    first = fabric.people.memories(people.officer, **ABOUT, limit=1)
    rest = fabric.people.memories(people.officer, **ABOUT, after=first[0].memory_id)
    assert [*first, *rest] == memories


def test_who_read_what_names_own_runs_and_those_of_others(fabric: Fabric, people: People) -> None:
    _told(fabric, people)
    shared = remembered(fabric, people, "email", entity=SUBJECT, predicate="prefers", user_id=None, subject=SUBJECT)
    fabric.recall(people.run("cust_9"), entities=[SUBJECT])
    fabric.recall(people.run("cust_9"), entities=["customer:cus_1"])
    fabric.recall(people.run("cust_9"), entities=["customer:nobody"])
    read = fabric.people.reads(people.officer, **ABOUT)
    assert sorted(one.own_run for one in read) == [False, True]
    assert any(shared in one.memory_ids for one in read if not one.own_run)
    assert all(one.memory_ids for one in read)
    first = fabric.people.reads(people.officer, **ABOUT, limit=1)
    assert [*first, *fabric.people.reads(people.officer, **ABOUT, after=first[0].recall_id)] == read
    assert fabric.people.reads(people.officer, subject="customer:nobody") == []


def test_nobody_is_named_or_known(fabric: Fabric, people: People) -> None:
    with pytest.raises(InvalidInput, match="give a subject, a user_id, or both"):
        fabric.people.get(people.officer)
    held = fabric.people.get(people.officer, user_id="nobody")
    assert (held.would_erase, held.would_remove, held.captures) == (0, {}, ())


def test_a_form_for_a_consent_offers_what_the_pack_names(fabric: Fabric, people: People) -> None:
    fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    terms = fabric.consent.terms(people.auditor)
    usual = ("user_opt_in", "contract", "legal_obligation", "legitimate_interest", "public_task", "vital_interest")
    assert (terms.any_purpose, terms.bases) == (True, (*usual, CONSENT["basis"]))
    assert "PII" in terms.labels
    pack = acme("1.0.0", "memory_layer: {consent: {bases: [contract, shop_terms]}}")
    put_in_force(fabric, people.tenant_id, pack)
    fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT | {"basis": "contract"})
    assert fabric.consent.terms(people.auditor).bases == ("contract", "shop_terms", CONSENT["basis"])
