"""Which texts are compared with others: what states something, about what may be one subject."""

from time import perf_counter

import pytest

from muniment.language.assertion import judge, may_state, same_subject
from muniment.language.assertion.subjects import share_enough_words

STATES = [
    "The contract ends in May.",
    "The contract ends in May. Right?",
    "Hello, I moved to Hamburg last week and I like it there.",
    "Returns are free! Who pays for exchanges?",
    "v1.2 is installed",
]
STATES_NOTHING = [
    "Does the contract end in May?",
    "Really? Does it end in May?",
    "Is v1.2 installed?  ",
    "Hi Joanna!",
    "Thank you.",
    "good morning",
]


@pytest.mark.rule("CTR-2")
@pytest.mark.parametrize("text", STATES)
def test_a_text_with_a_statement_is_compared(text: str) -> None:
    assert may_state(text)


@pytest.mark.rule("CTR-2")
@pytest.mark.parametrize("text", STATES_NOTHING)
def test_questions_and_greetings_are_not_compared(text: str) -> None:
    assert not may_state(text)


@pytest.mark.rule("CTR-2")
def test_what_belongs_to_somebody_of_a_person_is_not_theirs() -> None:
    own, hers = "Niko's bicycle is a Trek.", "Niko's sister's bicycle is a Cube."
    assert not same_subject(own, hers)
    assert judge(own, hers).verdict == "different"
    assert judge(hers, "Niko's sister's bicycle is a Trek.").verdict == "contradicts"


@pytest.mark.parametrize("text", ["?" * 32_000, "a? " * 10_000 + "b", ".!" * 16_000 + "?", "hi " * 10_000])
def test_a_hostile_text_takes_no_time(text: str) -> None:
    begun = perf_counter()
    may_state(text)
    assert perf_counter() - begun < 1.0


@pytest.mark.rule("CTR-2")
@pytest.mark.parametrize(
    ("a", "b", "similarity"),
    [
        ("I play the cello.", "My sister is a nurse.", 0.05),
        ("We adopted a greyhound.", "My flat has a balcony.", 0.1),
        ("I was born in May.", "Our boiler was replaced.", 0.0),
    ],
)
def test_two_things_that_people_say_of_themselves_without_a_word_in_common_are_not_compared(
    a: str, b: str, similarity: float
) -> None:
    assert not share_enough_words(a, b, similarity) and not share_enough_words(b, a, similarity)


@pytest.mark.rule("CTR-2")
def test_what_people_say_of_themselves_is_compared_if_it_shares_a_word_or_is_similar() -> None:
    assert share_enough_words("I live in Berlin.", "I live in Munich.", 0.1)
    assert share_enough_words("I am a vegetarian.", "I had a steak for lunch.", 0.5)
