"""As the writer's login, in SQL: a fact about a third party stays marked, confined to one user, and a person's to approve."""

from typing import Any

import psycopg
import pytest

from muniment import Fabric
from muniment.model.proposal import Proposal
from muniment.testing import People
from tests.conftest import Connect
from tests.security.catalogue import Connection
from tests.security.rows import insert, one, tick
from tests.security.test_four_eyes import Forger
from tests.stories import CONSENT, proposed

BY_BORIS: dict[str, Any] = {"verdict_by": "boris", "approver": "boris"}
BY_POLICY: dict[str, Any] = {
    "verdict_by": "auto", "by_kind": "system", "approver": "auto", "approver_kind": "system",
}  # fmt: skip


@pytest.fixture
def marked(fabric: Fabric, people: People) -> Proposal:
    """A proposal about user:anna, as user joanna tells of her."""
    fabric.consent.grant(people.officer, subject="user:anna", **CONSENT)
    said: dict[str, Any] = {"write_class": "statement", "kind": "message", "subject": "user:anna"}
    item = proposed(fabric, people.run("joanna"), **said, text="My sister has diabetes")
    assert item.third_party
    return item


@pytest.mark.rule("CAN-16", "REV-4")
def test_a_memory_about_a_third_party_is_a_persons_for_its_speakers_runs_alone(
    people: People, as_role: Connect, marked: Proposal
) -> None:
    forger = Forger(as_role("writer"), people.tenant_id, marked)
    forger.memory["third_party"] = True
    forger.try_it(**BY_BORIS)
    for wrong in (
        BY_POLICY,
        {**BY_BORIS, "user_id": ""},
        {**BY_BORIS, "consent_id": None},
        {"verdict_by": "bot", "approver": "bot"},
    ):
        with pytest.raises(psycopg.errors.CheckViolation):
            forger.try_it(**wrong)
    for other in ({"third_party": False}, {"user_id": "anna"}, {"user_id": "", "third_party": False}):
        with pytest.raises(psycopg.errors.ForeignKeyViolation):
            forger.try_it(**BY_BORIS, **other)


@pytest.mark.rule("CAN-16")
def test_the_mark_alone_asks_for_a_person_a_user_and_a_consent(
    fabric: Fabric, people: People, as_role: Connect
) -> None:
    proposal = proposed(fabric, people.run(), entity="customer:c", predicate="p", value="v")
    plain = Forger(as_role("writer"), people.tenant_id, proposal)
    plain.try_it(**BY_POLICY)
    for wrong in (BY_POLICY, BY_BORIS, {**BY_BORIS, "user_id": ""}, {"verdict_by": "bot", "approver": "bot"}):
        with pytest.raises(psycopg.errors.CheckViolation, match="memories_third_party"):
            plain.try_it(**wrong, third_party=True)


@pytest.mark.rule("CAN-16")
@pytest.mark.parametrize(
    ("wrong", "constraint"),
    [
        ({"user_id": None, "confined_to": ""}, "candidates_third_party"),
        ({"user_id": "", "confined_to": ""}, "candidates_third_party"),
        ({"confined_to": ""}, "candidates_third_party"),
        ({"confined_to": "anna"}, "candidates_third_party"),
        ({"third_party": False}, "candidates_third_party"),
        ({"consent_id": None}, "candidates_third_party"),
        ({"subject": None}, "candidates_third_party"),
        ({"prior_confined_to": "joanna"}, "candidates_stay_confined"),
    ],
)
def test_a_candidate_about_a_third_party_has_a_user_a_subject_and_a_consent(
    people: People, as_role: Connect, owner: Connection, marked: Proposal, wrong: dict[str, Any], constraint: str
) -> None:
    row = one(owner, "candidates", candidate_id=marked.candidate.candidate_id)
    writer = as_role("writer")
    with writer.transaction(force_rollback=True):
        tick(writer, people.tenant_id)
        with pytest.raises(psycopg.errors.CheckViolation, match=constraint), writer.transaction():
            insert(writer, "candidates", {**row, "candidate_id": "mc_forged", "ordinal": 90, **wrong})
        insert(writer, "candidates", {**row, "candidate_id": "mc_right", "ordinal": 90})


@pytest.mark.rule("CAN-16", "REV-5")
def test_an_edit_of_it_can_neither_drop_the_mark_nor_move_it_to_another_user(
    people: People, as_role: Connect, owner: Connection, marked: Proposal
) -> None:
    old = one(owner, "candidates", candidate_id=marked.candidate.candidate_id)
    edit = {
        **old,
        "candidate_id": "mc_edit",
        "ordinal": 90,
        "edits": old["candidate_id"],
        "editor": "boris",
        "prior_editors": [],
        "editors": ["boris"],
        "prior_confined_to": "joanna",
    }
    unmarked = {"third_party": False, "confined_to": ""}
    to_anna = {"user_id": "anna", "confined_to": "anna"}
    writer = as_role("writer")
    with writer.transaction(force_rollback=True):
        tick(writer, people.tenant_id)
        for wrong in (unmarked, {**unmarked, "user_id": None}, to_anna):
            with pytest.raises(psycopg.errors.CheckViolation, match="candidates_stay_confined"), writer.transaction():
                insert(writer, "candidates", {**edit, **wrong})
            with pytest.raises(psycopg.errors.ForeignKeyViolation), writer.transaction():
                insert(writer, "candidates", {**edit, **wrong, "prior_confined_to": wrong["confined_to"]})
        insert(writer, "candidates", edit)
