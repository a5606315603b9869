"""Redaction under a pack: what is masked in texts, values and candidates, what is counted, and which label it raises to."""

from time import process_time
from typing import Any

import pytest

from muniment.errors import PackInvalid
from muniment.model.candidate import Candidate, Scope
from muniment.pack import Pack, builtin_pack, load_pack
from muniment.policy.redaction import Redacted, redactor_of

HEAD = 'pack_meta: {id: acme.support, version: "2.1.0"}\n'
CARD = "4111 1111 1111 1111"


def draft(**fields: Any) -> Candidate:
    """A preference of a customer."""
    given: dict[str, Any] = {
        "candidate_id": "mc_1",
        "tenant_id": "t",
        "capture_id": "cap_1",
        "author": "bot",
        "source": "agent",
        "write_class": "preference",
        "entity": "customer:c1",
        "predicate": "prefers_channel",
        "value": "email",
        "text": "the channel is email",
        "raw_confidence": 0.7,
        "confidence": 0.7,
        "classification": "INTERNAL",
        "subject": "customer:c1",
        "trust": 0.6,
        "extractor": "direct@1",
        **fields,
    }
    return Candidate(**given)


def pack_with(*rules: dict[str, Any], attributes: dict[str, Any] | None = None, **sections: Any) -> Pack:
    return Pack.model_validate(
        {
            "pack_meta": {"id": "redaction.test", "version": "1.0.0"},
            "identity": {"classified_attributes": attributes or {}},
            "policy_layer": {"guardrails": {"redaction_rules": list(rules)}},
            **sections,
        }
    )


def masked(text: str, *rules: dict[str, Any]) -> Redacted[str]:
    return redactor_of(pack_with(*rules)).text(text)


# --- texts


@pytest.mark.rule("RED-1", "RED-4")
def test_the_built_in_pack_masks_and_counts_by_kind() -> None:
    done = redactor_of(builtin_pack()).text(f"ada@example.com and bob@example.com share {CARD}, see 203.0.113.7")
    assert done.content == "[EMAIL] and [EMAIL] share ************1111, see [IP]"
    assert done.counts == {"email": 2, "card": 1, "ip": 1}
    assert done.label == "PII"


@pytest.mark.rule("RED-1")
def test_a_text_without_findings_is_given_back_as_it_is() -> None:
    text = "Returns are accepted within 30 days."
    assert redactor_of(builtin_pack()).text(text) == Redacted(text, {}, None)


@pytest.mark.rule("RED-1")
@pytest.mark.parametrize(
    ("found", "keep_last", "expected"),
    [
        ("AB-1234567", 4, "*****4567"),
        ("AB-1234567", 1, "********7"),
        ("AB-12", 2, "****12"),  # never fewer than four stars
        ("AB-12", 4, "****"),  # all of it would be readable
        ("AB-12", 8, "****"),
        ("AB-１２３４５", 2, "*****45"),  # noqa: RUF001
    ],
)
def test_keep_last_leaves_the_last_letters_and_digits_and_never_all(found: str, keep_last: int, expected: str) -> None:
    done = masked(f"({found})", {"name": "part", "pattern": "AB-[0-9]+", "keep_last": keep_last})
    assert done.content == f"({expected})"


@pytest.mark.rule("RED-1")
def test_a_rule_that_is_turned_off_does_nothing() -> None:
    assert masked("ada@example.com", {"name": "email", "detector": "email", "enabled": False}).counts == {}


@pytest.mark.rule("RED-1")
def test_pages_are_masked_only_where_a_rule_names_them() -> None:
    text = "see https://example.com/x"
    assert masked(text).counts == {}
    assert masked(text, {"name": "url", "detector": "url"}).content == "see [URL]"


@pytest.mark.rule("RED-1")
def test_the_first_rule_of_the_pack_wins_where_two_find_the_same() -> None:
    first = {"name": "first", "pattern": "[a-z]+@acme[.]example", "mask": "[STAFF]"}
    assert masked("ada@acme.example", first).counts == {"first": 1}
    assert masked("ada@acme.example", {"name": "email", "detector": "email"}, first).counts == {"email": 1}


@pytest.mark.rule("RED-1")
def test_what_a_later_rule_finds_around_an_earlier_finding_is_masked_too() -> None:
    done = masked(
        "x12y", {"name": "digits", "pattern": "[0-9]+", "mask": "#"}, {"name": "all", "pattern": "x..y", "mask": "%"}
    )
    assert done.content == "%#%"


@pytest.mark.rule("RED-1")
def test_within_a_rule_the_longest_finding_counts_once() -> None:
    done = masked("call +44 20 7946 0958 now")
    assert (done.content, done.counts) == ("call [PHONE] now", {"phone": 1})


@pytest.mark.rule("RED-2")
def test_a_pattern_sees_through_full_width_digits_too() -> None:
    done = masked("ORD-１２３４ and ORD-1234", {"name": "order", "pattern": "ORD-[0-9]{4}", "mask": "[ORDER]"})  # noqa: RUF001
    assert done.content == "[ORDER] and [ORDER]"


@pytest.mark.rule("CAN-4")
def test_the_label_is_the_highest_that_the_findings_raise_to() -> None:
    order = {"name": "order", "pattern": "ORD-[0-9]+", "mask": "[ORDER]", "classification": "CONFIDENTIAL"}
    code = {"name": "code", "pattern": "CODE", "mask": "[CODE]", "classification": "RESTRICTED"}
    quiet = {"name": "quiet", "pattern": "hush", "mask": "[...]", "classification": None}
    assert masked("ORD-1", order, code, quiet).label == "CONFIDENTIAL"
    assert masked("ORD-1 ada@example.com", order, code, quiet).label == "PII"
    assert masked("ORD-1 CODE ada@example.com", order, code, quiet).label == "RESTRICTED"
    assert masked("hush", order, code, quiet).label is None


@pytest.mark.rule("RED-3")
def test_masks_that_are_there_already_are_left_alone() -> None:
    text = "[EMAIL] paid with ************1111 and [PHONE]"
    assert redactor_of(builtin_pack()).text(text) == Redacted(text, {}, None)


@pytest.mark.rule("RED-3")
def test_stars_before_a_card_number_do_not_hide_it() -> None:
    for text in (f"**{CARD}**", f"****{CARD}", f"*{CARD}*"):
        assert "1111 1111" not in redactor_of(builtin_pack()).text(text).content


@pytest.mark.rule("RED-3")
def test_a_pattern_that_finds_more_each_time_ends_with_everything_masked() -> None:
    rule = {"name": "greedy", "pattern": "(?s)^[^z]*?b", "mask": "x"}
    redactor = redactor_of(pack_with(rule))
    done = redactor.text("ab" * 200)
    assert "b" not in done.content
    assert redactor.text(done.content) == Redacted(done.content, {}, None)


def test_the_redactor_of_a_pack_is_made_once() -> None:
    pack = pack_with()
    assert redactor_of(pack) is redactor_of(pack)


# --- hostile texts: what would take minutes if anything grew faster than the text


@pytest.mark.rule("RED-2")
@pytest.mark.parametrize(
    "unit",
    [
        *(
            "7",
            "@",
            "a.a.a.",
            "a@",
            "1 ",
            "4111 ",
            "0123 456 ",
            "+4930123 ",
            "1:",
            "::",
            "1.2.3.4 ",
            "1.2.3.",
            "eyJ",
            "*",
        ),
        *(
            "****1111 ",
            "password: ",
            "born 1990-01-01 ",
            "GB82",
            "531-21-7351 ",
            "call 1234567 ",
            "\u200b4",
            "[EMAIL]a",
        ),
        *("-----BEGIN PRIVATE KEY-----\n", "a (at) ", "www.", "://a:", "(1", "sk-", "basic ", "card 1 "),
    ],
)
def test_a_hostile_text_is_redacted_all_the_same(unit: str) -> None:
    text = (unit * (32 * 1024))[: 32 * 1024]
    redactor = redactor_of(builtin_pack())
    done = redactor.text(text)
    assert redactor.text(done.content).counts == {}


@pytest.mark.rule("RED-2")
@pytest.mark.parametrize("pattern", ["(a|a)*b", "(?:a+)+b", "b.*z|b", "(?s)b.*z|b", "(?:b+b+)+"])
def test_a_pattern_that_would_never_end_elsewhere_ends(pattern: str) -> None:
    redactor = redactor_of(pack_with({"name": "slow", "pattern": pattern, "mask": "-"}))
    assert redactor.text("a" * 30_000 + "b" * 2_000).counts["slow"] >= 1


# --- values


@pytest.mark.rule("RED-1", "CAN-9")
def test_json_is_redacted_at_every_depth_keys_and_numbers_too() -> None:
    value = {
        "note": ["mail ada@example.com", {"deep": (CARD,)}],
        "bob@example.com": True,
        "number": 4111111111111111,
        "as_float": 4111111111111111.0,
        "count": 12,
        "share": 0.25,
        "nothing": None,
    }
    done = redactor_of(builtin_pack()).json(value)
    assert done.content == {
        "note": ["mail [EMAIL]", {"deep": ("************1111",)}],
        "[EMAIL]": True,
        "number": "************1111",
        "as_float": "************1111",
        "count": 12,
        "share": 0.25,
        "nothing": None,
    }
    assert done.counts == {"email": 2, "card": 3}
    assert value["number"] == 4111111111111111


@pytest.mark.rule("RED-1")
def test_a_key_speaks_for_its_value() -> None:
    value = {
        "phone": "467 3395",
        "dateOfBirth": "1985-03-12",
        "ssn": 531217351,
        "order": "467 3395",
        "tel": ["467 3395"],
    }
    done = redactor_of(builtin_pack()).json(value)
    assert done.content == {
        "phone": "[PHONE]",
        "dateOfBirth": "[DATE_OF_BIRTH]",
        "ssn": "[NATIONAL_ID]",
        "order": "467 3395",
        "tel": ["[PHONE]"],
    }


def test_two_keys_with_the_same_mask_keep_both_values() -> None:
    done = redactor_of(builtin_pack()).json({"ada@example.com": 1, "bob@example.com": 2, "cy@example.com": 3})
    assert sorted(done.content.values()) == [1, 2, 3]
    assert not any("@" in key for key in done.content)
    assert redactor_of(builtin_pack()).json(done.content) == Redacted(done.content, {}, None)


@pytest.mark.rule("RED-1", "RED-3")
@pytest.mark.parametrize("shown", [{"mask": "[N]"}, {"mask": "9"}, {"keep_last": 1}])
@pytest.mark.parametrize("pattern", ["[0-9]", "[0-9]+", r"\w+", ".", r"\s|[0-9]"])
def test_keys_with_the_same_mask_stay_apart_even_where_their_count_is_masked(
    pattern: str, shown: dict[str, Any]
) -> None:
    redactor = redactor_of(pack_with({"name": "part", "pattern": pattern, **shown}))
    done = redactor.json({f"{number:03}": {"at": str(number)} for number in range(100, 140)})
    assert len(done.content) == 40
    assert redactor.json(done.content) == Redacted(done.content, {}, None)


def test_a_key_that_looks_like_the_second_of_its_name_is_not_lost() -> None:
    redactor = redactor_of(builtin_pack())
    done = redactor.json({"[EMAIL] (2)": 1, "ada@example.com": 2, "bob@example.com": 3, "[EMAIL]": 4, "[EMAIL] (3)": 5})
    assert sorted(done.content.values()) == [1, 2, 3, 4, 5]
    assert redactor.json(done.content) == Redacted(done.content, {}, None)


@pytest.mark.rule("RED-1", "RED-3")
@pytest.mark.parametrize(
    ("value", "expected", "counts"),
    [
        (["ada.king@", "example.com"], ["[EMAIL]", "[EMAIL]"], {"email": 1}),
        (["to ada", "@", "example.com now"], ["to [EMAIL]", "[EMAIL]", "[EMAIL] now"], {"email": 1}),
        (["ada@example", ".com"], ["[EMAIL]", "[EMAIL]"], {"email": 1}),
        ([4111, 1111, 1111, 1111], ["****"] * 4, {"card": 1}),
        (("a", "4111", "1111", "1111", "1111", "b"), ("a", *["****"] * 4, "b"), {"card": 1}),
        ({"n": [[4111, 1111, 1111, 1111]]}, {"n": [["****"] * 4]}, {"card": 1}),
        (["+4420", "79460958"], ["[PHONE]", "[PHONE]"], {"phone": 1}),
        # rows of any numbers, and sentences
        ([450, 600, 1200], [450, 600, 1200], {}),
        ([4111, 1111, 1111, 1111, 5200], [4111, 1111, 1111, 1111, 5200], {}),
        ([4111, 1111, None, 1111, 1111], [4111, 1111, None, 1111, 1111], {}),
        (["see you @", "noon.", "bye"], ["see you @", "noon.", "bye"], {}),
    ],
)
def test_items_side_by_side_that_are_one_thing_are_masked(value: Any, expected: Any, counts: dict[str, int]) -> None:
    redactor = redactor_of(builtin_pack())
    done = redactor.json(value)
    assert (done.content, done.counts) == (expected, counts)
    assert redactor.json(done.content) == Redacted(done.content, {}, None)


# --- candidates


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
    "keys": {f"k{number}@x.example": number for number in range(9_000)},
    "mails": [f"person{number}@example.com" for number in range(8_000)],
    "short": [f"w{number}" for number in range(20_000)],
    "short and mails": [*(f"w{n}" for n in range(9_000)), *(f"p{n}@example.com" for n in range(4_000))],
    "phones": " ".join(f"+44 20 79{number // 10_000:02} {number % 10_000:04}" for number in range(12_000)),
    "deep": _nested(30, [f"person{number}@example.com" for number in range(4_000)]),
    "halves": [part for number in range(4_000) for part in (f"ada{number}@", "example.com")],
    "quarters": [part for _ in range(4_000) for part in (4111, 1111, 1111, 1111, "and")],
    "numbers of telephones": {"phone": [4_670_000 + number for number in range(10_000)]},
}


@pytest.mark.rule("RED-2", "RED-3")
@pytest.mark.parametrize("kind", MANY)
def test_time_grows_with_the_value_and_not_with_what_is_found_in_it(kind: str) -> None:
    # Each takes about a second; what grows with the square of it would take minutes.
    before = process_time()
    done = redacted(draft(value=MANY[kind], text="the mail is person17@example.com"))
    assert process_time() - before < 20
    assert "person17" not in done.content.model_dump_json()
    assert redacted(done.content) == Redacted(done.content, {}, None)
    if kind == "keys":
        assert sorted(done.content.value.values()) == list(range(9_000))


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


# --- packs


@pytest.mark.rule("PAC-1", "RED-2")
@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("(", "RE2 syntax"),
        ("(?=a)b", "RE2 syntax"),
        (r"(a)\1", "RE2 syntax"),
        ("(?:a{1000}){1000}", "RE2 syntax"),
        ("a*", "matches the empty text"),
        ("", "not empty"),
        ("^", "matches the empty text"),
        (r"\b", "matches the empty text"),
        (r"a|\B", "matches the empty text"),
        ("x|(?m:$)", "matches the empty text"),
    ],
)
def test_a_pattern_that_cannot_be_used_is_told_at_its_line(pattern: str, expected: str) -> None:
    rules = f"policy_layer:\n  guardrails:\n    redaction_rules:\n      - name: a\n        mask: x\n        pattern: '{pattern}'\n"
    with pytest.raises(PackInvalid) as refused:
        load_pack(HEAD + rules)
    (problem,) = refused.value.problems
    assert (problem.line, problem.path) == (7, "policy_layer.guardrails.redaction_rules.0.pattern")
    assert expected in problem.message


@pytest.mark.rule("PAC-1")
def test_a_model_is_only_for_persons_and_locations() -> None:
    rules = "policy_layer: {guardrails: {redaction_rules: [{name: a, detector: url, model: en_core_web_sm}]}}"
    with pytest.raises(PackInvalid) as refused:
        load_pack(HEAD + rules)
    assert [problem.path for problem in refused.value.problems] == ["policy_layer.guardrails.redaction_rules.0.model"]
    person = load_pack(HEAD + rules.replace("url", "person")).policy_layer.guardrails.redaction_rules[0]
    assert (person.model, person.mask) == ("en_core_web_sm", "[PERSON]")
