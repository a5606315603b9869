"""Word differences: both texts are complete in them, and exactly what differs is marked."""

from itertools import pairwise
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.console.differences import LIMIT, Part, differences, newer, older

words = st.lists(st.sampled_from(["a", "b", "cde", " ", "  ", ".", "\n", "ü", "🙂", "\u202e"]), max_size=30).map(
    "".join
)


def text(parts: tuple[Part, ...]) -> str:
    return "".join(part.text for part in parts)


@given(words, words)
def test_each_side_is_its_whole_text_and_no_part_is_empty(old: str, new: str) -> None:
    parts = differences(old, new)
    assert (text(older(parts)), text(newer(parts))) == (old, new)
    assert all(part.text for part in parts)
    assert all(one.kind != other.kind for one, other in pairwise(parts))


@pytest.mark.parametrize(
    ("old", "new", "result"),
    [
        ("same", "same", [("same", "same")]),
        ("", "", []),
        ("", "new", [("new", "new")]),
        (
            "Returns within 30 days",
            "Returns within 14 days",
            [("same", "Returns within "), ("gone", "30"), ("new", "14"), ("same", " days")],
        ),
        # Two words that changed with nothing but a space between them are one change.
        ("a red car", "a dark van", [("same", "a "), ("gone", "red car"), ("new", "dark van")]),
        ("by phone.", "by phone!", [("same", "by phone"), ("gone", "."), ("new", "!")]),
    ],
)
def test_differences_are_shown_word_by_word(old: str, new: str, result: list[tuple[str, str]]) -> None:
    assert [(part.kind, part.text) for part in differences(old, new)] == result


def test_long_texts_are_compared_by_sentences_and_take_no_longer() -> None:
    old = "The sun is out. " * 300 + "Rain on Monday. " + "The moon is not. " * 300
    new = "The sun is out. " * 300 + "Snow on Monday. " + "The moon is not! " * 300
    assert ("gone", "Rain") not in [(part.kind, part.text) for part in differences(old, new)]
    worst = int(LIMIT**0.5)
    began = process_time()
    for one, other in (("a " * 16_000, "b a " * 8_000), ("a " * (worst // 2), "b a " * (worst // 4))):
        parts = differences(one, other)
        assert (text(older(parts)), text(newer(parts))) == (one, other)
    assert process_time() - began < 2
