"""Values of the company's own that a pack excepts: they stand, and nothing else does because of them (RED-5)."""

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from muniment.language.redaction import Redacted, holds_personal_data, redactor_of
from muniment.model.candidate import Scope
from tests.language.candidates import draft
from tests.language.redaction_packs import pack_with
from tests.soak import examples

URLS = {"name": "url", "detector": "url"}
OWN = pack_with(
    URLS,
    exceptions={
        "email": ["Support@acme.example", "info@m\u00fcller.example", "*@corp.acme.example"],
        "phone": ["+49 30 901820", "+1 415 555 0187", "+39 06 1234 5678"],
        "iban": ["DE89 3704 0044 0532 0130 00"],
        "ip": ["203.0.113.7", "2001:0DB8:0:0:0:8a2e:370:7334"],
        "url": ["https://www.acme.com/", "help.acme.com/returns"],
    },
)

STAND = [
    ("Write to support@acme.example, or to SUPPORT@ACME.EXAMPLE.", {"email": 2}),
    ("<support@acme.example> mailto:support@acme.example 'support@acme.example'", {"email": 3}),
    ("info@m\u00fcller.example answers", {"email": 1}),
    ("jane.doe+news@Corp.Acme.example", {"email": 1}),
    ("call +49 30 901820", {"phone": 1}),
    ("call +49 (0)30 90 18 20, 0049-30-901820, 030/901820 or (030) 901820", {"phone": 4}),
    ("call +49\u00a030\u00a0901820 or +49\u201330\u2013901820", {"phone": 2}),
    ("call (415) 555-0187, 1-415-555-0187 or 011 49 30 901820", {"phone": 3}),
    ("call +39 06 1234 5678 or 06 1234 5678", {"phone": 2}),
    ("pay to DE89 3704 0044 0532 0130 00 or de89370400440532013000", {"iban": 2}),
    ("from 203.0.113.7 and 203.0.113.7:443, 2001:db8::8a2e:370:7334", {"ip": 3}),
    ("see www.acme.com, https://WWW.acme.com/ or https://help.acme.com/returns.", {"url": 3}),
]
MASKED = [
    "jane.support@acme.example",
    "support+jane@acme.example",
    "support@acme.example.evil.com",
    "support@acme.example-evil.com",
    "support@mail.acme.example",
    "support@acme.example.x9",
    '"support"@acme.example',
    "support [at] acme [dot] example",
    "support%40acme.example",
    "jane@x.corp.acme.example",
    "jane@corp.acme.example.evil.com",
    "jane.491512@corp.acme.example",
    "4jane@corp.acme.example",
    # letters and digits that look alike, or cannot be seen
    "supp\u043ert@acme.example",
    "support@\u0430cme.example",
    "\uff53upport@acme.example",
    "sup\u200bport@acme.example",
    "support@acme.example\u0301",
    "jane\u200bsupport@acme.example",
    "info@mu\u0308ller.example",
    "call +49 30 \uff1901820",
    "call +49 30 901821",
    "call +49 30 9018201",
    "call +49 30 901820-12",
    "call +49 30 901820 ext. 12",
    "call +49 30 901820 x12",
    "call +45 30 90 18 20",
    "call 30 90 18 20",
    "call +1 30 901820 1",
    "GB82 WEST 1234 5698 7654 32",
    "from 203.0.113.70",
    "from 1.203.0.113",
    "2001:db8::8a2e:370:7335",
    "2001:db8::8a2e:370:7334%eth0",
    "www.acme.com.evil.com",
    "evil-www.acme.com",
    "https://www.acme.com@evil.com/",
    "https://www.acme.com/jane",
    "https://help.acme.com/returns/jane",
    "https://help.acme.com/returns?mail=jane",
    "https://help.acme.com/RETURNS",
]


@pytest.mark.rule("RED-5")
@pytest.mark.parametrize(("text", "excepted"), STAND)
def test_an_excepted_value_stands_in_every_spelling_raises_no_label_and_is_counted_apart(
    text: str, excepted: dict[str, int]
) -> None:
    assert redactor_of(OWN).text(text) == Redacted(text, {}, None, excepted)
    without = redactor_of(pack_with(URLS)).text(text)
    assert sum(without.counts.values()) == sum(excepted.values()), "each of them is masked without the exception"


@pytest.mark.rule("RED-5", "RED-1")
@pytest.mark.parametrize("text", MASKED)
def test_what_only_resembles_or_holds_an_excepted_value_is_masked(text: str) -> None:
    done = redactor_of(OWN).text(f"so {text} it is")
    # As without the exceptions, to the letter.
    assert done == redactor_of(pack_with(URLS)).text(f"so {text} it is")
    assert (sum(done.counts.values()), done.label, done.excepted) == (1, "PII", {})


@pytest.mark.rule("RED-5")
def test_values_beside_an_excepted_one_are_masked_as_ever() -> None:
    text = "support@acme.example, jane@example.com; +49 30 901820, +49 30 901821"
    done = redactor_of(OWN).text(text)
    assert done.content == "support@acme.example, [EMAIL]; +49 30 901820, [PHONE]"
    assert (done.counts, done.label, done.excepted) == ({"email": 1, "phone": 1}, "PII", {"email": 1, "phone": 1})


@pytest.mark.rule("RED-5")
def test_what_else_is_found_in_an_address_of_an_own_domain_is_masked() -> None:
    done = redactor_of(OWN).text("4111111111111111@corp.acme.example")
    assert "411111111111" not in done.content
    assert done.counts["card"] == 1


@pytest.mark.rule("RED-5")
def test_what_detectors_find_within_a_named_value_is_a_part_of_it() -> None:
    hotline = {"exceptions": {"phone": ["+1 800 356 9377"], "email": ["hotline.18003569377@acme.example"]}}
    text = "hotline.18003569377@acme.example"
    assert redactor_of(pack_with(**hotline)).text(text) == Redacted(text, {}, None, {"email": 1})


@pytest.mark.rule("RED-5")
@pytest.mark.parametrize(
    ("text", "left"),
    [
        # a secret is a secret, whatever its words
        ("password: support@acme.example", "password: [API_KEY]"),
        # a pattern of the pack was written to mask
        ("ticket support@acme.example", "[TICKET]"),
        ("only support here", "only support here"),
    ],
)
def test_a_password_and_what_a_pattern_of_the_pack_finds_are_masked_although_they_hold_an_excepted_value(
    text: str, left: str
) -> None:
    ticket = {"name": "ticket", "pattern": "ticket [^ ]+", "mask": "[TICKET]"}
    pack = pack_with(ticket, exceptions={"email": ["support@acme.example"]})
    assert redactor_of(pack).text(text).content == left


@pytest.mark.rule("RED-5")
def test_exceptions_hold_in_values_keys_lists_and_evidence() -> None:
    value = {
        "support@acme.example": ["support@acme.example", "jane@example.com"],
        "phone": 30901820,
        "hotline": ["+4930", "901820"],
        "split": ["support@", "acme.example"],
        "other": ["support@acme.example", ".evil.com"],
    }
    done = redactor_of(OWN).json(value)
    assert done.content == {
        "support@acme.example": ["support@acme.example", "[EMAIL]"],
        "phone": "[PHONE]",
        "hotline": ["+4930", "901820"],
        "split": ["support@", "acme.example"],
        "other": ["[EMAIL]", "[EMAIL]"],
    }
    assert done.excepted == {"email": 3}
    assert redactor_of(OWN).json(done.content) == Redacted(done.content, {}, None, done.excepted)


@pytest.mark.rule("RED-5")
def test_in_a_candidate_each_is_counted_once_and_what_is_masked_in_one_field_unmasks_nothing_in_another() -> None:
    candidate = draft(
        text="support@acme.example answers jane@example.com",
        value={"from": "support@acme.example", "bad": "support@acme.example.x9", "to": "jane@example.com"},
        evidence_refs=("mail:support@acme.example",),
    )
    done = redactor_of(OWN).candidate(candidate)
    assert done.content.text == "support@acme.example answers [EMAIL]"
    assert done.content.value == {"from": "support@acme.example", "bad": "[EMAIL].x9", "to": "[EMAIL]"}
    assert done.content.evidence_refs == ("mail:support@acme.example",)
    assert (done.counts, done.excepted) == ({"email": 3}, {"email": 3})
    again = redactor_of(OWN).candidate(done.content)
    assert (again.content, again.counts, again.excepted) == (done.content, {}, {"email": 3})


@pytest.mark.rule("RED-5", "RED-1")
def test_a_classified_attribute_is_masked_whatever_it_holds() -> None:
    pack = pack_with(attributes={"contact": {"mask": "[C]"}}, exceptions={"email": ["support@acme.example"]})
    done = redactor_of(pack).candidate(draft(predicate="contact", value="support@acme.example", text="as agreed"))
    assert (done.content.value, done.excepted) == ("[C]", {})


@pytest.mark.rule("RED-5", "ERA-7")
def test_what_is_kept_in_the_open_holds_no_excepted_value_either() -> None:
    assert holds_personal_data(OWN, ["mail:support@acme.example"])
    assert holds_personal_data(OWN, ["+4930901820"])
    scope = Scope(user_id="u1", qualifiers={"contact": "support@acme.example"})
    done = redactor_of(OWN).candidate(draft(text="support@acme.example", scope=scope))
    assert done.content.scope.qualifiers == {"contact": "[EMAIL]"}
    assert (done.content.text, done.label, done.excepted) == ("support@acme.example", "PII", {"email": 1})


VALUES = ("support@acme.example", "+49 30 901820", "DE89 3704 0044 0532 0130 00", "203.0.113.7")
around = st.text(alphabet="ab1@.+-_ ,:[]*()\u0430\u0301\u200b\uff11\ufffc\n", max_size=4)


@pytest.mark.rule("RED-5", "RED-3")
@settings(max_examples=examples(200), deadline=None)
@given(around, st.sampled_from(VALUES), around)
@example("", "support@acme.example", ".a")
@example("a.", "support@acme.example", "")
@example("1", "+49 30 901820", "")
@example("", "203.0.113.7", ".1")
def test_whatever_stands_beside_an_excepted_value_it_stands_alone_or_is_treated_as_without_the_exception(
    before: str, value: str, after: str
) -> None:
    text = f"{before}{value}{after}"
    done, plain = redactor_of(OWN).text(text), redactor_of(pack_with(URLS)).text(text)
    if done.excepted:
        # Without the value, what is left is masked as it would be by itself.
        assert value in done.content
        assert before[-1:] == "" or not (before[-1].isalnum() or before[-1] in "_@")
        assert after[:1] == "" or not (after[0].isalnum() or after[0] in "_@")
    else:
        assert (done.content, done.counts) == (plain.content, plain.counts)


parts = st.lists(
    st.one_of(
        st.sampled_from((*VALUES, "jane@corp.acme.example")),
        st.sampled_from(
            ("jane@example.com", "+49 30 901821", "4111 1111 1111 1111", "call", "[EMAIL]", "****1111", ".")
        ),
        st.text(max_size=3),
    ),
    max_size=8,
)


@pytest.mark.rule("RED-5", "RED-3")
@settings(max_examples=examples(150), deadline=None)
@given(parts, st.sampled_from(("", " ", ", ", ".")), st.booleans())
def test_with_exceptions_twice_is_once_and_the_same_values_stand(pieces: list[str], gap: str, listed: bool) -> None:
    value: Any = pieces if listed else gap.join(pieces)
    once = redactor_of(OWN).json(value)
    again = redactor_of(OWN).json(once.content)
    assert (again.content, again.counts, again.label, again.excepted) == (once.content, {}, None, once.excepted)
    # What is masked without the exceptions is masked with them.
    plain = str(redactor_of(pack_with(URLS)).json(value).content)
    for other in ("jane@example.com", "+49 30 901821", "4111 1111 1111 1111"):
        assert str(once.content).count(other) <= plain.count(other)
