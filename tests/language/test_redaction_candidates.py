"""Redaction of candidates: every field, what one field gives away of another, and a pack's classified attributes."""

from time import process_time
from typing import Any

import pytest

from muniment.language.redaction import Redacted, redactor_of
from muniment.model.candidate import Candidate, Scope
from muniment.pack import Pack, builtin_pack
from tests.language.candidates import draft
from tests.language.redaction_packs import pack_with


def redacted(candidate: Candidate, pack: Pack | None = None) -> Redacted[Candidate]:
    return redactor_of(pack or builtin_pack()).candidate(candidate)


@pytest.mark.rule("RED-1", "CAN-9")
def test_every_field_of_a_candidate_that_carries_text_is_masked() -> None:
    candidate = draft(
        text="write to ada@example.com",
        value={"mail": "bob@example.com"},
        evidence_refs=("tool:crm:1", "mail:cy@example.com"),
        scope=Scope(user_id="u1", qualifiers={"contact": "dan@example.com", "region": "de"}),
    )
    done = redacted(candidate)
    assert done.content.text == "write to [EMAIL]"
    assert done.content.value == {"mail": "[EMAIL]"}
    assert done.content.evidence_refs == ("tool:crm:1", "mail:[EMAIL]")
    assert done.content.scope == Scope(user_id="u1", qualifiers={"contact": "[EMAIL]", "region": "de"})
    assert (done.counts, done.label) == ({"email": 4}, "PII")
    assert redacted(done.content) == Redacted(done.content, {}, None)


def test_a_candidate_without_findings_is_the_same_object() -> None:
    candidate = draft()
    assert redacted(candidate).content is candidate


@pytest.mark.rule("RED-1")
def test_what_only_its_key_gave_away_is_masked_in_the_text_too() -> None:
    done = redacted(draft(predicate="phone", value="467 3395", text="it is 467 3395"))
    assert (done.content.value, done.content.text) == ("[PHONE]", "it is [PHONE]")


@pytest.mark.rule("RED-1")
def test_what_only_the_text_gave_away_is_masked_in_the_value_too() -> None:
    done = redacted(draft(predicate="contact_detail", value="467 3395", text="her phone is 467 3395"))
    assert (done.content.value, done.content.text) == ("[PHONE]", "her phone is [PHONE]")


@pytest.mark.rule("RED-1")
def test_the_parts_of_what_is_masked_in_a_list_do_not_stand_in_the_text() -> None:
    done = redacted(draft(value=["ada.king@", "example.com"], text="made of 'ada.king@' and 'Example.COM'"))
    assert done.content.text == "made of '[EMAIL]' and '[EMAIL]'"


def _nested(depth: int, inner: Any) -> Any:
    for level in range(depth):
        inner = [inner] if level % 2 else {"inner": inner}
    return inner


MANY: dict[str, Any] = {
    "keys": {f"k{number}@x.example": number for number in range(4_500)},
    "mails": [f"person{number}@example.com" for number in range(4_000)],
    "short": [f"w{number}" for number in range(10_000)],
    "short and mails": [*(f"w{n}" for n in range(4_500)), *(f"p{n}@example.com" for n in range(2_000))],
    "phones": " ".join(f"+44 20 79{number // 10_000:02} {number % 10_000:04}" for number in range(6_000)),
    "deep": _nested(30, [f"person{number}@example.com" for number in range(2_000)]),
    "halves": [part for number in range(2_000) for part in (f"ada{number}@", "example.com")],
    "quarters": [part for _ in range(2_000) for part in (4111, 1111, 1111, 1111, "and")],
    "numbers of telephones": {"phone": [4_670_000 + number for number in range(5_000)]},
}


@pytest.mark.rule("RED-2", "RED-3")
@pytest.mark.parametrize("kind", MANY)
def test_time_grows_with_the_value_and_not_with_what_is_found_in_it(kind: str) -> None:
    # Each takes less than a second; what grows with the square of it would take half a minute.
    before = process_time()
    done = redacted(draft(value=MANY[kind], text="the mail is person17@example.com"))
    assert process_time() - before < 6
    assert "person17" not in done.content.model_dump_json()
    assert redacted(done.content) == Redacted(done.content, {}, None)
    if kind == "keys":
        assert sorted(done.content.value.values()) == list(range(4_500))


@pytest.mark.rule("RED-1")
@pytest.mark.parametrize(
    ("secret", "text", "expected"),
    [
        ("Plum  Blossom", "a PLUM\nblossom, not plum blossoms", "a [TAX_ID], not plum blossoms"),
        ("a b a c", "a b a b a c", "a b [TAX_ID]"),
        (["a b", "b c"], "a b c", "[TAX_ID][TAX_ID]"),
        (["b", "a b c d"], "a b c e", "a [TAX_ID] c e"),
        ("1234567", "1.234.567, 1'234'567, 1 234 567 and 11.234.567", "[TAX_ID], [TAX_ID], [TAX_ID] and 11.234.567"),
        ("x_1", "x_1 and x_12", "[TAX_ID] and x_12"),
        ("(7)", "a(7)b", "a[TAX_ID]b"),
        ("straße", "STRASSE and STRAßE", "STRASSE and [TAX_ID]"),
    ],
)
def test_a_secret_is_found_elsewhere_as_words_of_its_own(secret: Any, text: str, expected: str) -> None:
    done = redacted(draft(predicate="tax_id", value=secret, text=text), pack_with(attributes=TAX_ID))
    assert done.content.text == expected


TAX_ID = {"tax_id": {"label": "RESTRICTED", "mask": "[TAX_ID]"}}


@pytest.mark.rule("RED-1")
@pytest.mark.parametrize("name", ["tax_id", "taxId", "Tax-ID", "TAX_ID"])
def test_a_classified_attribute_is_replaced_whole_however_its_name_is_written(name: str) -> None:
    pack = pack_with(attributes=TAX_ID)
    done = redacted(draft(value={"deep": [{name: "XY 77"}], "other": 1}, text="the id is xy 77, not XY 778"), pack)
    assert done.content.value == {"deep": [{name: "[TAX_ID]"}], "other": 1}
    assert done.content.text == "the id is [TAX_ID], not XY 778"
    assert (done.counts, done.label) == ({"tax_id": 2}, "RESTRICTED")


@pytest.mark.rule("RED-1")
@pytest.mark.parametrize(
    ("value", "text", "expected"),
    [
        ("7", "it is 7, not 77", "it is [TAX_ID], not 77"),
        (1234567, "it is 1234567 or 1,234,567", "it is [TAX_ID] or [TAX_ID]"),
        (12.5, "it is 12.5", "it is [TAX_ID]"),
        ({"a": ["Q9"]}, "it is Q9", "it is [TAX_ID]"),
        (True, "it is true", "it is true"),
    ],
)
def test_the_predicate_may_be_the_attribute_and_its_value_is_masked_in_the_text(
    value: Any, text: str, expected: str
) -> None:
    done = redacted(draft(predicate="tax_id", value=value, text=text), pack_with(attributes=TAX_ID))
    assert (done.content.value, done.content.text) == ("[TAX_ID]", expected)
    assert redacted(done.content, pack_with(attributes=TAX_ID)).counts == {}


@pytest.mark.rule("RED-1")
def test_an_attribute_may_keep_its_last_characters() -> None:
    pack = pack_with(attributes={"member_no": {"keep_last": 2}})
    done = redacted(draft(value={"member_no": "M-12345"}, text="member M-12345"), pack)
    assert (done.content.value, done.content.text) == ({"member_no": "****45"}, "member ****45")
    assert done.label is None


@pytest.mark.rule("CAN-4")
def test_an_attribute_with_a_label_alone_raises_it_and_masks_nothing() -> None:
    candidate = draft(value={"salary": 10})
    done = redacted(candidate, pack_with(attributes={"salary": {"label": "RESTRICTED"}}))
    assert (done.content, done.counts, done.label) == (candidate, {}, "RESTRICTED")


@pytest.mark.rule("CAN-4")
def test_a_masked_attribute_still_raises_its_label() -> None:
    pack = pack_with(attributes=TAX_ID)
    once = redacted(draft(value={"tax_id": "XY 77"}), pack)
    assert redacted(once.content, pack) == Redacted(once.content, {}, "RESTRICTED")


def test_an_attribute_without_a_value_has_nothing_to_mask() -> None:
    done = redacted(draft(value={"tax_id": None, "deep": {"tax_id": ""}}), pack_with(attributes=TAX_ID))
    assert done.counts == {}
