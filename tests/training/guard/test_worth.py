"""Which sentences of real talk count as worth knowing, and which as not."""

import pytest
from training.guard.worth import answering, label_of
from training.inputs import held

from muniment.language.messages import Sentence, sentences_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Can you recommend a good book on chess?", 0),
        ("Thanks, that's really helpful.", 0),
        ("I'll definitely check those out.", 0),
        ("Give me three more examples.", 0),
        ("I'm interested in learning more about robots.", 0),
        ("I recently bought a cello.", 1),
        ("By the way, my sister moved to Lyon.", 1),
        ("Can you suggest a hotel for my trip to Oslo?", None),
        ("The lake was frozen all winter.", None),
    ],
)
def test_a_sentence_gets_a_label_only_where_it_is_clear(text: str, expected: int | None) -> None:
    [sentence] = sentences_of(text)

    assert label_of(sentence) == expected


def test_the_sentence_with_the_words_of_question_and_answer_carries_the_fact() -> None:
    turn = sentences_of("I need help with dinner. I paid 40 dollars for the blue kettle. Any ideas?")

    assert answering("How much was my kettle?", "40 dollars", turn) == [1]


def test_what_is_told_by_the_way_carries_a_fact_too() -> None:
    turn = sentences_of("Which tea is best? By the way, I just moved to Ghent.")

    assert answering("What was the price?", "12 euros", turn) == [1]


def test_a_sentence_is_read_with_its_mark() -> None:
    assert Sentence("Who knows", True).as_read == "Who knows?"
    assert Sentence("I know", False).as_read == "I know."


def test_about_a_quarter_of_the_records_is_held() -> None:
    share = sum(held((f"record {at}",)) for at in range(2000)) / 2000

    assert 0.2 < share < 0.3
    assert held(("a", "b")) == held(("a\nb",))
