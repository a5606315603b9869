"""Spans: what a candidate was drawn from is found in its capture, or nothing is marked."""

from typing import Any

import pytest

from muniment.console.spans import pretty, span_in_payload, span_in_text
from muniment.model.candidate import Candidate


def candidate(text: str, value: Any = None, predicate: str | None = None) -> Candidate:
    return Candidate(
        candidate_id="mc_1", tenant_id="t", capture_id="cap_1", author="bot", source="agent", write_class="statement",
        text=text, value=value, predicate=predicate, raw_confidence=0.5, confidence=0.5, classification="INTERNAL", trust=0.5, extractor="x@1",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("said", "text", "value", "marked"),
    [
        ("Hi. I moved to Vienna. Bye", "I moved to Vienna.", None, "I moved to Vienna."),
        ("please  EMAIL\nme, not by phone", "x prefers channel: email", "email", "EMAIL"),
        ("emails are fine", "x prefers channel: email", "email", None),
        ("it costs 30 euros", "price: 30", 30, "30"),
        ("he said he moved to Graz in May", "The user moved to Graz in 2026", None, "moved to Graz in"),
        ("nothing of the kind", "The user moved to Graz", None, None),
        ("$^.*", "$^.*", None, "$^.*"),
        ("", "anything", "", None),
    ],
)
def test_a_text_is_marked_where_it_says_it(said: str, text: str, value: Any, marked: str | None) -> None:
    span = span_in_text(said, candidate(text, value))
    assert (said[slice(*span)] if span is not None else None) == marked


@pytest.mark.parametrize(
    ("payload", "before"),
    [
        ({"newsletter": True, "vip": True, "tall": True}, '"vip":'),
        ({"newsletter": True, "isVip": True}, '"isVip":'),
        ({"write_class": True, "predicate": "is_vip", "value": True}, '"value":'),
        ({"vip": True, "was_vip": True}, None),
        ({"newsletter": True, "tall": True}, None),
        ([True, True], None),
    ],
)
def test_of_equal_values_in_a_payload_the_one_whose_name_fits_is_marked_or_none(
    payload: Any, before: str | None
) -> None:
    shown = pretty(payload)
    span = span_in_payload(shown, candidate("x", True, "is_vip"))
    assert (shown[: span[0]].split()[-1] if span is not None else None) == before


@pytest.mark.parametrize(
    ("payload", "value", "marked"),
    [
        ({"channel": "email", "other": "emails"}, "email", '"email"'),
        ({"limit": 30, "near": 300}, 30, "30"),
        ({"near": 300}, 30, None),
        ({"on": True}, True, "true"),
        ({"deep": {"tags": ["a", "b"]}}, ["a", "b"], None),
        ({"a": 1}, None, None),
    ],
)
def test_a_payload_is_marked_where_it_holds_the_value(payload: Any, value: Any, marked: str | None) -> None:
    shown = pretty(payload)
    span = span_in_payload(shown, candidate("x", value))
    if isinstance(value, list):
        assert span is not None and "".join(shown[slice(*span)].split()) == '["a","b"]'
    else:
        assert (shown[slice(*span)] if span is not None else None) == marked
