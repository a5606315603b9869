"""The figures of the evaluation of worth, on made-up chats: counted by hand."""

from pathlib import Path
from typing import Any

import pytest

from muniment.errors import InvalidInput
from muniment.evaluation.worth import figures
from tests.language.tiny_readers import tiny_readers


def turn(content: str, role: str = "user", **more: bool) -> dict[str, Any]:
    return {"role": role, "content": content, **more}


def record(*turns: dict[str, Any], kind: str = "one") -> dict[str, Any]:
    return {"question_id": "q", "question_type": kind, "haystack_sessions": [[one] for one in turns]}


CHATS = [
    record(
        turn("I live in Oslo. Which tea is mild?", has_answer=True),
        turn("Thanks! That is a lot. I see."),
        turn("I live in Rome.", "assistant", has_answer=True),
    ),
    record(turn("The grinder is loud.", has_answer=True), turn("Hello."), kind="other"),
]


@pytest.mark.rule("CAN-15")
def test_a_turn_counts_if_one_of_its_sentences_is_kept_and_only_users_are_read() -> None:
    got = figures(CHATS)
    assert got["sets"]["one"] == {
        "n": 2,
        "answering": 1,
        "recall": 1.0,
        "proposals_per_turn": 0.5,
        "sentences": 5,
        "kept": 0.2,
    }
    assert got["sets"]["other"] == {
        "n": 2,
        "answering": 1,
        "recall": 0.0,
        "proposals_per_turn": 0.0,
        "sentences": 2,
        "kept": 0.0,
    }
    assert (got["n"], got["answering"], got["recall"], got["sentences"]) == (4, 2, 0.5, 7)
    assert got["kept"] == 1 / 7
    assert got["seconds_per_item"] > 0


@pytest.mark.rule("CAN-15")
def test_the_guard_keeps_sentences_that_the_rules_do_not_and_reads_them_with_their_mark(tmp_path: Path) -> None:
    readers = tiny_readers(tmp_path, worth={"grinder": 9.0, "?": 9.0, "[CLS]": -5.0})
    got = figures(CHATS, readers)
    assert (got["recall"], got["kept"]) == (1.0, 2 / 7)
    assert got["sets"]["one"]["kept"] == 1 / 5, "a question gives nothing, whatever its score"


def test_no_records_give_no_figures() -> None:
    nothing = {
        "n": 0,
        "answering": 0,
        "recall": None,
        "proposals_per_turn": None,
        "sentences": 0,
        "kept": None,
        "sets": {},
    }
    assert figures([]) == nothing | {"seconds_per_item": None}


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"question_id": None}, "question_id"),
        ({"question_type": 3}, "question_type"),
        ({"haystack_sessions": "none"}, "haystack_sessions"),
        ({"haystack_sessions": [3]}, "haystack_sessions.0"),
        ({"haystack_sessions": [[3]]}, "haystack_sessions.0.0"),
        ({"haystack_sessions": [[{"content": "Hello."}]]}, "role"),
        ({"haystack_sessions": [[{"role": "user"}]]}, "content"),
    ],
)
def test_a_wrong_record_is_refused_by_its_field(wrong: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        figures([record(turn("Hello.")) | wrong])
    assert refused.value.field == field
