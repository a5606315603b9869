"""Redaction twice is redaction once, for any text and any pack; and what was found is gone."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from muniment.language.redaction import redactor_of
from muniment.pack import Pack, builtin_pack
from tests.language.candidates import draft
from tests.soak import examples

VALUES = (
    "4111 1111 1111 1111",
    "4111111111111111",
    "GB82 WEST 1234 5698 7654 32",
    "ada@example.com",
    "+44 20 7946 0958",
    "541-714-1388",
    "467 3395",
    "203.0.113.7",
    "2001:db8::8a2e:370:7334",
    "531-21-7351",
    "1985-03-12",
    "AKIAIOSFODNN7EXAMPLE",
    "hunter2",
)
WORDS = (
    *("call", "phone", "card", "born", "password:", "DOB", "order", "token =", "SSN", "[EMAIL]", "[PHONE]", "****1111"),
    *(
        "****",
        "*",
        "12",
        "0",
        "+",
        "-",
        "a",
        "x",
        "@",
        ".",
        "[",
        "]",
        "\u200b",
        "\u00a0",
        "\uff11",
        "\n",
        "é",
        "😀",
        "\ufffc",
    ),
)
# Words and values in a row, with and without room between them, and anything else.
texts = st.one_of(
    st.text(max_size=60),
    st.lists(st.one_of(st.sampled_from(VALUES + WORDS), st.text(max_size=3)), max_size=14).flatmap(
        lambda parts: st.sampled_from(("", " ", "-", ": ")).map(lambda gap: gap.join(parts))
    ),
)
PATTERNS = (
    *(
        ".",
        "a",
        "^.",
        ".$",
        "^..",
        "[^z]+",
        "(?s)^[^z]*?b",
        "a+",
        r"\d",
        r"\d\d",
        r"\W",
        r"\w+",
        r"\s",
        "x.",
        ".x",
        r"\bx",
    ),
    *(r"[*]+", r"\[", "1111", "[0-9]{3,}", "(?s).{5}", "é|a", "[^ ]+@[^ ]+", r"\x{fffc}"),
)
MASKS = (
    "a",
    "aa",
    "aba",
    "1",
    "x",
    "[X]",
    "@",
    "ab",
    "4111111111111111",
    "ada@example.com",
    "*",
    "****",
    "* *",
    "é",
    "[",
    "10.0.0.1",
)


# Of the values above, and a domain of which they have an address.
exceptions = st.fixed_dictionaries(
    {},
    optional={
        "email": st.sampled_from((["ada@example.com"], ["*@example.com"], ["a@example.com"])),
        "phone": st.sampled_from((["+44 20 7946 0958"], ["+1 541 714 1388"])),
        "iban": st.just(["GB82 WEST 1234 5698 7654 32"]),
        "ip": st.sampled_from((["203.0.113.7"], ["2001:db8::8a2e:370:7334", "10.0.0.1"])),
    },
)


@st.composite
def packs(draw: st.DrawFn) -> Pack:
    rules: list[dict[str, Any]] = []
    for number, pattern in enumerate(draw(st.lists(st.sampled_from(PATTERNS), max_size=3))):
        shown = (
            {"mask": draw(st.sampled_from(MASKS))} if draw(st.booleans()) else {"keep_last": draw(st.integers(1, 8))}
        )
        rules.append({"name": f"rule_{number}", "pattern": pattern, **shown})
    for detector in draw(st.lists(st.sampled_from(("card", "phone", "email", "url", "ip")), unique=True, max_size=2)):
        shown = draw(st.one_of(st.builds(lambda m: {"mask": m}, st.sampled_from(MASKS)), st.just({"keep_last": 3})))
        rules.append({"name": detector, "detector": detector, **shown})
    attribute = draw(st.sampled_from(({"mask": "[T]"}, {"mask": "a"}, {"keep_last": 2})))
    return Pack.model_validate(
        {
            "pack_meta": {"id": "any.pack", "version": "1.0.0"},
            "identity": {"classified_attributes": {"tax_id": attribute}},
            "policy_layer": {"guardrails": {"redaction_rules": rules, "redaction_exceptions": draw(exceptions)}},
        }
    )


@pytest.mark.rule("RED-3")
@settings(max_examples=examples(100), deadline=None)
@given(texts)
@example("4111 1111 1111 1111****1111 1111")
@example("phone 467 3395 467 3395 467 3395 467 3395 467 3395 467 3395 467 3395")
def test_under_the_built_in_pack_twice_is_once(text: str) -> None:
    redactor = redactor_of(builtin_pack())
    once = redactor.text(text)
    again = redactor.text(once.content)
    assert (again.content, again.counts, again.label) == (once.content, {}, None)


@pytest.mark.rule("RED-3", "RED-5")
@settings(max_examples=examples(100), deadline=None)
@given(packs(), texts)
def test_under_any_pack_twice_is_once(pack: Pack, text: str) -> None:
    redactor = redactor_of(pack)
    once = redactor.text(text)
    again = redactor.text(once.content)
    assert (again.content, again.counts, again.label) == (once.content, {}, None)
    assert again.excepted == once.excepted


@pytest.mark.rule("RED-3")
@settings(max_examples=examples(48), deadline=None)
@given(st.text(min_size=1, max_size=12), st.sampled_from(MASKS), texts)
def test_under_any_pattern_that_compiles_twice_is_once(pattern: str, mask: str, text: str) -> None:
    document = {
        "pack_meta": {"id": "any.pack", "version": "1.0.0"},
        "policy_layer": {"guardrails": {"redaction_rules": [{"name": "any", "pattern": pattern, "mask": mask}]}},
    }
    try:
        redactor = redactor_of(Pack.model_validate(document))
    except ValueError:
        assume(False)
        return
    once = redactor.text(text)
    assert redactor.text(once.content).content == once.content


json_values = st.recursive(
    st.one_of(texts, st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.booleans(), st.none()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.one_of(st.sampled_from(("phone", "tax_id", "dob", "note")), texts), inner, max_size=3),
    ),
    max_leaves=6,
)


@pytest.mark.rule("RED-3")
@settings(max_examples=examples(40), deadline=None)
@given(packs(), json_values)
def test_any_value_redacted_twice_is_redacted_once(pack: Pack, value: Any) -> None:
    redactor = redactor_of(pack)
    once = redactor.json(value)
    again = redactor.json(once.content)
    assert (again.content, again.counts) == (once.content, {})


pieces = st.one_of(
    st.sampled_from(
        ("ada", "ada@", "@", "@example", "example.com", ".com", "4111", "1111", "+44", 4111, 1111, "[EMAIL]")
    ),
    texts,
)


@pytest.mark.rule("RED-3")
@settings(max_examples=examples(40), deadline=None)
@given(packs(), st.lists(pieces, min_size=2, max_size=7))
def test_any_items_side_by_side_redacted_twice_are_redacted_once(pack: Pack, items: list[Any]) -> None:
    redactor = redactor_of(pack)
    once = redactor.json(items)
    again = redactor.json(once.content)
    assert (again.content, again.counts) == (once.content, {})
    assert len(once.content) == len(items)


@pytest.mark.rule("RED-3")
@settings(max_examples=examples(40), deadline=None)
@given(packs(), texts, json_values, st.sampled_from(("tax_id", "phone", "note", None)), st.lists(texts, max_size=2))
def test_any_candidate_redacted_twice_is_redacted_once(
    pack: Pack, text: str, value: Any, predicate: str | None, refs: list[str]
) -> None:
    redactor = redactor_of(pack)
    once = redactor.candidate(draft(text=text, value=value, predicate=predicate, evidence_refs=tuple(refs)))
    again = redactor.candidate(once.content)
    assert (again.content, again.counts) == (once.content, {})


@pytest.mark.rule("RED-1")
@settings(max_examples=examples(48), deadline=None)
@given(
    st.sampled_from([value for value in VALUES if value not in ("467 3395", "1985-03-12", "hunter2")]),
    st.lists(st.sampled_from(("said", "that", "it", "was", "so", "we", "think", "truly")), max_size=4),
    st.lists(st.sampled_from(("said", "that", "it", "was", "so", "we", "think", "truly")), max_size=4),
)
def test_a_value_in_plain_words_never_stays(value: str, before: list[str], after: list[str]) -> None:
    text = " ".join([*before, value, *after])
    done = redactor_of(builtin_pack()).text(text)
    assert value not in done.content
    assert sum(done.counts.values()) == 1
    # All around it stays as it is.
    assert done.content.startswith(" ".join(before))
    assert done.content.endswith(" ".join(after))


@pytest.mark.rule("RED-2")
@settings(max_examples=examples(40), deadline=None)
@given(texts)
def test_spans_are_exact_in_the_text_as_it_came(text: str) -> None:
    found = redactor_of(builtin_pack()).find(text)
    assert all(0 <= one.start < one.end <= len(text) for one in found)
    assert all(left.end <= right.start for left, right in pairwise(found))
