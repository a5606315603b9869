"""Redaction on the way in: every path, every field, counted, and the original nowhere but in the sealed capture."""

from typing import Any

import pytest

from muniment import Fabric
from muniment.errors import InvalidInput
from muniment.model.proposal import Proposal
from muniment.testing import People, TestServer
from tests.conftest import Opener
from tests.stories import CONSENT, proposed, refused

SUBJECT = "customer:cust_1"
MAIL, CARD = "ann.lee@example.com", "4111 1111 1111 1111"
LEFT_OF_CARD = "1111"


@pytest.fixture
def consented(fabric: Fabric, people: People) -> Fabric:
    fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    return fabric


def statement(fabric: Fabric, people: People, text: str, **fields: Any) -> Proposal:
    given: dict[str, Any] = {"kind": "statement", "classification": "INTERNAL", "subject": SUBJECT, **fields}
    fabric.capture(people.run(), text=text, **given)
    (proposal_id,) = fabric.consolidate(people.tenant_id).proposals
    return fabric.queue.get(people.reviewer, proposal_id)


@pytest.mark.rule("RED-1", "RED-4", "CAN-4")
def test_what_a_detector_finds_is_masked_counted_and_raises_the_label(consented: Fabric, people: People) -> None:
    item = statement(consented, people, f"Ann writes from {MAIL} and pays with {CARD}.")
    candidate = item.candidate
    assert MAIL not in candidate.text
    assert "[EMAIL]" in candidate.text
    assert "4111" not in candidate.text
    assert LEFT_OF_CARD in candidate.text
    assert candidate.redactions == {"card": 1, "email": 1}
    assert (candidate.classification, item.sensitive, item.consent_check) == ("PII", True, "passed")


@pytest.mark.rule("CAN-4", "CON-2")
def test_what_a_detector_finds_needs_consent_like_anything_sensitive(fabric: Fabric, people: People) -> None:
    said = refused(fabric, people.run(), entity=SUBJECT, predicate="mail", value=MAIL, subject=SUBJECT)
    assert (said.gate, said.reason) == ("consent", "consent_missing")


@pytest.mark.rule("CAN-9", "RED-1")
def test_every_field_that_carries_text_is_masked_on_every_way_in(consented: Fabric, people: People) -> None:
    item = proposed(
        consented,
        people.run(),
        entity=SUBJECT,
        predicate="contact",
        value={"mail": MAIL, "cards": [CARD, {CARD: 1}], "number": 4111111111111111},
        text=f"reach me at {MAIL}",
        subject=SUBJECT,
        evidence_refs=[f"mail:{MAIL}"],
    )
    shown = item.candidate.model_dump_json()
    assert MAIL not in shown
    assert "4111" not in shown
    consented.queue.approve(people.reviewer, item.proposal_id, note=f"told by {MAIL}")
    done = consented.queue.get(people.reviewer, item.proposal_id)
    assert done.verdicts[-1].note == "told by [EMAIL]"
    recalled = consented.recall(people.run())
    assert MAIL not in recalled.model_dump_json()
    assert len(recalled.records) == 1


@pytest.mark.rule("CAN-9", "ERA-1")
@pytest.mark.parametrize(
    ("field", "said"), [("qualifiers", {"contact": MAIL}), ("origin", f"mail:{MAIL}"), ("decision_key", CARD)]
)
def test_the_fields_that_captures_are_searched_by_are_unsealed_and_accept_no_personal_data(
    fabric: Fabric, people: People, field: str, said: Any
) -> None:
    given: dict[str, Any] = {"kind": "message", "text": "hello", "classification": "PII", field: said}
    with pytest.raises(InvalidInput) as error:
        fabric.capture(people.run(), **given)
    assert error.value.field == field
    assert fabric.events(people.auditor) == []


@pytest.mark.rule("RED-3", "CAN-9")
def test_an_edit_that_brings_personal_data_back_is_masked_again(consented: Fabric, people: People) -> None:
    item = statement(consented, people, "Ann prefers to be written to.")
    edited = consented.queue.edit(people.reviewer, item.proposal_id, text=f"Ann prefers {MAIL}.", note=f"as {CARD}")
    assert isinstance(edited, Proposal)
    assert edited.candidate.text == "Ann prefers [EMAIL]."
    assert (edited.candidate.redactions, edited.candidate.classification) == ({"email": 1}, "PII")
    first = consented.queue.get(people.reviewer, item.proposal_id)
    assert CARD not in (first.verdicts[-1].note or "")
    again = consented.queue.edit(people.reviewer, edited.proposal_id, text=edited.candidate.text)
    assert isinstance(again, Proposal)
    assert (again.candidate.text, again.candidate.redactions) == ("Ann prefers [EMAIL].", {})
    assert again.candidate.classification == "PII", "the label does not fall with what raised it"


@pytest.mark.rule("RED-4")
def test_the_masked_value_is_only_in_the_sealed_capture(
    consented: Fabric, people: People, server: TestServer, database: str
) -> None:
    item = statement(consented, people, f"Ann writes from {MAIL}.")
    consented.queue.approve(people.reviewer, item.proposal_id)
    memory_id = consented.queue.get(people.reviewer, item.proposal_id).memory_id
    assert memory_id is not None
    trail = consented.trail(people.auditor, memory_id)
    assert trail.capture is not None
    assert trail.capture.content is not None
    assert trail.capture.content.text == f"Ann writes from {MAIL}."
    assert MAIL not in trail.model_copy(update={"capture": None}).model_dump_json()
    with server.connect(database) as owner:
        tables = [row[0] for row in owner.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'muniment'")]
        for table in tables:
            for (row,) in owner.execute(f"SELECT to_jsonb(t)::text FROM {table} t").fetchall():
                assert MAIL not in str(row), table
                assert MAIL.encode().hex() not in str(row), table


@pytest.mark.rule("RED-1")
def test_a_classified_attribute_is_masked_by_its_name_whatever_it_looks_like(under: Opener, people: People) -> None:
    attributes = "identity: {classified_attributes: {loyalty_code: {label: CONFIDENTIAL, mask: '[CODE]'}}}\n"
    with under(attributes) as fabric:
        item = proposed(fabric, people.run(), entity=SUBJECT, predicate="loyalty_code", value="plum blossom")
        assert (item.candidate.value, item.candidate.classification) == ("[CODE]", "CONFIDENTIAL")
        assert "plum" not in item.candidate.text
        nested = proposed(
            fabric, people.run(), entity=SUBJECT, predicate="profile", value={"loyalty_code": "plum", "size": "M"}
        )
        assert nested.candidate.value == {"loyalty_code": "[CODE]", "size": "M"}


OWN = """
policy_layer:
  guardrails:
    redaction_exceptions: {email: [help@acme.example], phone: ["+49 30 901820"]}
"""


@pytest.mark.rule("RED-5", "CAN-4")
def test_an_excepted_value_needs_no_consent_stays_readable_and_is_counted_apart(under: Opener, people: People) -> None:
    text = "Returns are announced to help@acme.example or under 030 901820."
    with under(OWN) as fabric:
        item = proposed(fabric, people.run(None), write_class="statement", text=text)
        assert item.candidate.text == text
        assert (item.candidate.redactions, item.candidate.exceptions) == ({}, {"email": 1, "phone": 1})
        assert (item.candidate.classification, item.sensitive) == ("INTERNAL", False)
        (gate,) = [one for one in item.candidate.gates if one.gate == "redaction"]
        assert (gate.reason, gate.detail) == ("excepted", "email 1, phone 1")
        edited = fabric.queue.edit(people.reviewer, item.proposal_id, text="Write to help@acme.example.")
        assert isinstance(edited, Proposal)
        assert (edited.candidate.text, edited.candidate.exceptions) == ("Write to help@acme.example.", {"email": 1})
        fabric.queue.approve(people.reviewer, edited.proposal_id)
        assert [one.text for one in fabric.recall(people.run(None)).records] == ["Write to help@acme.example."]
        found = fabric.metrics(people.auditor)
        tallies = found.flow.redaction_exceptions
        assert [(one.kind, one.write_class, one.count) for one in tallies] == [
            ("email", "statement", 2),
            ("phone", "statement", 1),
        ]
        assert (found.flow.redactions, found.pii.violations) == ((), 0)


@pytest.mark.rule("RED-5")
def test_beside_an_excepted_value_others_are_masked_and_raise_the_label(under: Opener, people: People) -> None:
    with under(OWN) as fabric:
        fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
        item = statement(fabric, people, f"Ann writes from {MAIL} to help@acme.example, not to x.help@acme.example.")
        assert item.candidate.text == "Ann writes from [EMAIL] to help@acme.example, not to [EMAIL]."
        assert (item.candidate.redactions, item.candidate.exceptions) == ({"email": 2}, {"email": 1})
        assert item.candidate.classification == "PII"
        (gate,) = [one for one in item.candidate.gates if one.gate == "redaction"]
        assert (gate.reason, gate.detail) == ("masked", "email 2, excepted email 1")


@pytest.mark.rule("RED-5", "ERA-7")
def test_no_exception_lets_an_address_into_a_field_that_is_kept_in_the_open(under: Opener, people: People) -> None:
    with under(OWN) as fabric, pytest.raises(InvalidInput) as error:
        fabric.capture(
            people.run(),
            kind="message",
            text="hello",
            classification="INTERNAL",
            qualifiers={"contact": "help@acme.example"},
        )
    assert error.value.field == "qualifiers"


@pytest.mark.rule("RED-2")
def test_a_pattern_of_the_pack_that_would_never_end_elsewhere_runs_in_linear_time(
    under: Opener, people: People
) -> None:
    rules = "policy_layer: {guardrails: {redaction_rules: [{name: odd, pattern: '(a+)+$', mask: '[ODD]', classification: null}]}}\n"
    with under(rules) as fabric:
        # Thirty of these take a backtracking engine minutes; here there are thirty thousand.
        item = proposed(fabric, people.run(), write_class="statement", text="a" * 30_000 + "!")
        assert item.candidate.redactions == {}
        caught = proposed(fabric, people.run(), write_class="statement", text="the end is a" + "a" * 10)
        assert caught.candidate.text == "the end is [ODD]"


@pytest.mark.rule("ERR-5")
def test_a_rule_that_raises_denies(fabric: Fabric, people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a detector of its own broke")

    monkeypatch.setattr("muniment.candidates.gates.redactor_of", broken)
    said = refused(fabric, people.run(), entity=SUBJECT, predicate="likes", value="tea")
    assert (said.gate, said.reason) == ("redaction", "rule_failed")
