"""Which texts are compared with others: what states something, about what may be one subject."""

from time import perf_counter

import pytest

from muniment.language.assertion import judge, may_state, same_subject

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
