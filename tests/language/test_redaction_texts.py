"""Redaction of texts under a pack: what is masked and counted, which label it raises to, and which rules load."""

from typing import Any

import pytest

from muniment.errors import PackInvalid
from muniment.language.redaction import Redacted, redactor_of
from muniment.pack import builtin_pack, load_pack
from tests.language.redaction_packs import pack_with

HEAD = 'pack_meta: {id: acme.support, version: "2.1.0"}\n'
CARD = "4111 1111 1111 1111"


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
        ("AB-\uff11\uff12\uff13\uff14\uff15", 2, "*****45"),  # full-width digits
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
    order = {"name": "order", "pattern": "ORD-[0-9]{4}", "mask": "[ORDER]"}
    done = masked("ORD-\uff11\uff12\uff13\uff14 and ORD-1234", order)
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
def test_a_pattern_that_cannot_be_used_is_reported_at_its_line(pattern: str, expected: str) -> None:
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
