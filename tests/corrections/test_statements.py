"""What a person stated and corrected, listed for them with what became of it."""

import pytest

from muniment import Fabric, Refusal
from muniment.errors import NotFound, RoleMissing
from muniment.model.statements import Statement
from muniment.testing import People
from tests.conftest import Opener
from tests.stories import CONSENT, KEY, proposed, submitted


def stated(fabric: Fabric, people: People, text: str, **fields: object) -> str:
    """A proposal of what the author stated."""
    given = {"write_class": "statement", "classification": "INTERNAL", "text": text, **fields}
    return submitted(fabric.propose(people.author, **given))  # type: ignore[arg-type]  # the fields are the test's


def outcomes(fabric: Fabric, people: People) -> dict[str | None, Statement]:
    return {one.text: one for one in fabric.statements.list(people.author)}


@pytest.mark.rule("COR-1", "REV-1")
def test_a_person_sees_what_they_stated_and_what_became_of_each(fabric: Fabric, people: People) -> None:
    taken = stated(fabric, people, "The hotline closes at six.")
    not_taken = stated(fabric, people, "The warehouse is in Ulm.")
    waiting = stated(fabric, people, "Returns take five days.")
    no = fabric.propose(
        people.author, write_class="statement", classification="PII", text="She lives at Ring 1.", subject="customer:c1"
    )
    assert isinstance(no, Refusal)
    memory_id = fabric.queue.approve(people.reviewer, taken).memory_id
    fabric.queue.reject(people.reviewer, not_taken, reason="not_confirmed", note="asked the warehouse")
    found = fabric.statements.list(people.author)
    assert [one.text for one in found] == [
        "She lives at Ring 1.",
        "Returns take five days.",
        "The warehouse is in Ulm.",
        "The hotline closes at six.",
    ]
    by_text = outcomes(fabric, people)
    one = by_text["The hotline closes at six."]
    assert (one.status, one.proposal_id, one.decided_by) == ("promoted", taken, people.reviewer.id)
    one = by_text["The warehouse is in Ulm."]
    assert (one.status, one.reason, one.decided_by) == ("rejected", "not_confirmed", people.reviewer.id)
    # What reviewers tell each other is not the author's.
    assert "asked the warehouse" not in one.model_dump_json()
    one = by_text["Returns take five days."]
    assert (one.status, one.proposal_id, one.decided_by) == ("pending", waiting, None)
    one = by_text["She lives at Ring 1."]
    assert (one.status, one.gate, one.reason) == ("refused", "consent", "consent_missing")
    # A correction names the memory that it is to replace.
    fabric.correct(people.author, memory_id=memory_id, text="The hotline closes at seven.")
    assert fabric.statements.list(people.author)[0].corrects == memory_id


@pytest.mark.rule("REV-5")
def test_a_statement_that_a_reviewer_edited_has_the_outcome_of_the_edit(fabric: Fabric, people: People) -> None:
    first = stated(fabric, people, "The hotline closes at sixx.")
    edited = submitted(fabric.queue.edit(people.reviewer, first, text="The hotline closes at six."))
    assert outcomes(fabric, people)["The hotline closes at sixx."].status == "pending"
    fabric.queue.approve(people.second_reviewer, edited)
    one = outcomes(fabric, people)["The hotline closes at sixx."]
    assert (one.status, one.proposal_id) == ("promoted", edited)


@pytest.mark.rule("ISO-4", "ISO-5")
def test_nobody_sees_what_another_person_or_another_tenant_stated(
    fabric: Fabric, people: People, others: People
) -> None:
    stated(fabric, people, "The hotline closes at six.")
    # An agent of the same name, and what agents propose.
    proposed(fabric, people.run(agent_id=people.author.id), **KEY, value="email")
    assert [one.text for one in fabric.statements.list(people.author)] == ["The hotline closes at six."]
    assert fabric.statements.list(people.person("mia", "correction_writer")) == []
    assert fabric.statements.list(others.author) == []
    for who in (people.reviewer, people.auditor, people.officer, people.admin, people.run(), people.service):
        with pytest.raises(RoleMissing):
            fabric.statements.list(who)  # type: ignore[arg-type]  # a run is none of those who may ask
    last = fabric.statements.list(people.author)[-1].capture_id
    with pytest.raises(NotFound):
        fabric.statements.list(others.author, after=last)


def test_statements_are_read_page_by_page(fabric: Fabric, people: People) -> None:
    said = [f"Rule {number} holds." for number in range(5)]
    for text in said:
        stated(fabric, people, text)
    found: list[str | None] = []
    after = None
    while page := fabric.statements.list(people.author, limit=2, after=after):
        found += [one.text for one in page]
        after = page[-1].capture_id
    assert found == said[::-1]


@pytest.mark.rule("ERA-2")
def test_an_erased_statement_is_listed_without_its_text(fabric: Fabric, people: People) -> None:
    fabric.consent.grant(people.officer, subject="customer:cust_1", **CONSENT)
    stated(fabric, people, "She is fond of bees.", subject="customer:cust_1")
    fabric.erase(people.officer, subject="customer:cust_1")
    (one,) = fabric.statements.list(people.author)
    assert (one.status, one.text, one.entity) == ("erased", None, None)
    assert "bees" not in one.model_dump_json()


@pytest.mark.rule("COR-1")
def test_messages_that_a_person_records_are_not_their_statements(fabric: Fabric, people: People) -> None:
    fabric.capture(people.author, kind="message", text="I prefer tea.", classification="INTERNAL")
    fabric.consolidate(people.tenant_id)
    assert fabric.statements.list(people.author) == []


@pytest.mark.rule("COR-1")
def test_a_statement_in_which_no_fact_was_found_does_not_wait(under: Opener, people: People) -> None:
    with under("memory_layer: {statements_from: [message]}") as fabric:
        fabric.capture(people.author, kind="statement", text="The hotline closes at six.", classification="INTERNAL")
        assert [one.status for one in fabric.statements.list(people.author)] == ["waiting"]
        fabric.consolidate(people.tenant_id)
        (one,) = fabric.statements.list(people.author)
    assert (one.status, one.proposal_id, one.text) == ("processed", None, "The hotline closes at six.")


@pytest.mark.rule("PRO-6")
def test_a_statement_whose_memory_was_retracted_says_why(fabric: Fabric, people: People) -> None:
    memory_id = fabric.queue.approve(people.reviewer, stated(fabric, people, "Returns take five days.")).memory_id
    assert memory_id is not None
    fabric.retract(people.reviewer, memory_id, reason="wrong")
    (one,) = fabric.statements.list(people.author)
    assert (one.status, one.reason, one.decided_by) == ("retracted", "wrong", people.reviewer.id)


@pytest.mark.rule("CAP-11")
def test_who_reads_statements_is_recorded(fabric: Fabric, people: People) -> None:
    stated(fabric, people, "Returns take five days.")
    (one,) = fabric.statements.list(people.author)
    (event,) = fabric.events(people.auditor, types=["memory.capture_read"])
    assert event.actor == people.author.id
    assert event.items == ({"capture_id": one.capture_id, "archived": False},)


@pytest.mark.rule("RED-1")
def test_statements_are_listed_as_the_gates_mask_them(fabric: Fabric, people: People) -> None:
    made = fabric.propose(
        people.author, write_class="statement", classification="INTERNAL", text="She pays with 4111 1111 1111 1111."
    )
    assert isinstance(made, Refusal)  # nobody is named whose consent could be asked
    (one,) = fabric.statements.list(people.author)
    assert one.text == "She pays with ************1111."
    key = {"entity": "customer:cust_1", "predicate": "pays"}
    fabric.propose(people.author, write_class="preference", classification="INTERNAL", value="4111111111111111", **key)
    assert fabric.statements.list(people.author)[0].value == "************1111"
