"""Generated rows carry the labels of their kinds, and the same seed makes the same rows."""

from itertools import islice
from random import Random

import pytest
from training.guard.data import generated_rows, without_repeats
from training.guard.generated import attacks, harmful_requests, harmless, sentences
from training.guard.noise import with_noise
from training.guard.row import WINDOW, Row, windows

TALK = ["I went to the market. It was raining, so we took the bus home."]


def test_the_same_seed_makes_the_same_rows() -> None:
    first = list(islice(generated_rows(Random(5), TALK), 300))
    second = list(islice(generated_rows(Random(5), TALK), 300))

    assert first == second
    assert first != list(islice(generated_rows(Random(6), TALK), 300))


def test_attacks_are_attacks_and_harmless_texts_are_not() -> None:
    assert {row.attack for row in attacks(200, Random(1), TALK)} == {1}
    assert {row.attack for row in harmless(200, Random(1))} == {0}


def test_requests_for_harmful_content_and_harmless_ones_are_as_many() -> None:
    labels = [row.attack for row in harmful_requests(100, Random(1))]

    assert labels.count(1) == labels.count(0) == 50


def test_sentences_worth_knowing_and_others_are_as_many_and_never_attacks() -> None:
    made = list(sentences(100, Random(1)))

    assert [row.worth for row in made].count(1) == 50
    assert {row.attack for row in made} == {0}


def test_a_surrounded_attack_keeps_all_its_words() -> None:
    for row in attacks(400, Random(3), ["word " * 400]):
        assert len(row.text) <= WINDOW
    surrounded = [row.text for row in attacks(400, Random(3), ["word " * 400]) if "word word" in row.text]

    assert surrounded
    assert all(text.replace("word ", "").replace("word", "").strip() for text in surrounded)


def test_attacks_stand_alone_and_at_the_start_in_the_middle_and_at_the_end_of_other_text() -> None:
    plain = "It was raining, so we took the bus home."
    texts = [row.text for row in attacks(3000, Random(4), [f"Before the walk. {plain}"]) if plain in row.text]

    assert any(text.endswith(plain) and not text.startswith("Before the walk") for text in texts)
    assert any(text.startswith("Before the walk") and text.endswith(plain) for text in texts)
    assert any(text.startswith("Before the walk") and not text.endswith(plain) for text in texts)


def test_a_text_is_taken_once_whatever_its_case_and_punctuation() -> None:
    rows = [Row("Hello, you!", "a", attack=0), Row("hello you", "b", attack=0), Row("...", "c", attack=0)]

    assert list(without_repeats(rows)) == rows[:1]


@pytest.mark.parametrize("disguised", [0, 1])
def test_noise_changes_most_texts_and_empties_none(disguised: float) -> None:
    random = Random(7)
    made = [
        with_noise("Please bring the big green folder to room seven.", random, disguised=disguised) for _ in range(50)
    ]

    assert all(made)
    assert sum(one != "Please bring the big green folder to room seven." for one in made) > 25


def test_windows_hold_every_word_and_none_is_too_long() -> None:
    text = " ".join(f"word{at}." for at in range(500))

    parts = windows(text)

    assert " ".join(parts) == text
    assert max(len(part) for part in parts) <= WINDOW
    assert windows("  ") == []
