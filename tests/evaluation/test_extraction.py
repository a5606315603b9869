"""The evaluation of the rules for messages, on records made up here: figures counted by hand."""

import json
from pathlib import Path
from typing import Any

import pytest

from muniment.errors import InvalidInput
from muniment.evaluation.extraction import figures, read_data, sides_of


def conversation(preference: str, *turns: str, question: str = "What shall we do?") -> dict[str, Any]:
    return {"preference": preference, "question": question, "persona": {"turns": [{"user": turn} for turn in turns]}}


def changed(change: str, before: tuple[str, str, str], after: tuple[str, str, str]) -> dict[str, Any]:
    sides = [dict(zip(("polarity", "item", "text"), side, strict=True)) for side in (before, after)]
    return {"change": change, "before": sides[0], "after": sides[1]}


@pytest.mark.rule("CAN-2")
def test_preferences_are_counted_as_stated_and_as_told_and_by_half() -> None:
    found = figures(
        [
            conversation(
                "I dislike loud music.",
                "Hello there.",
                "By the way, I avoid loud music.",
                question="I hate rain, what do you do?",
            ),
            conversation("Nuts upset my stomach badly.", "I like trains and my nuts."),
        ]
    )
    assert found["n"] == 2
    assert found["all"]["stated"] == {"n": 2, "recall": 0.5, "facts": 1, "precision": 1.0}
    assert found["odd_lines"]["stated"] == {"n": 1, "recall": 1.0, "facts": 1, "precision": 1.0}
    assert found["even_lines"]["stated"] == {"n": 1, "recall": 0.0, "facts": 0, "precision": None}
    assert found["odd_lines"]["told"] == {"n": 1, "recall": 1.0, "facts": 1, "precision": 1.0}
    assert found["all"]["questions"] == {"n": 2, "left_alone": 0.5}
    assert found["seconds_per_item"] > 0


@pytest.mark.rule("CAN-2")
def test_a_fact_on_the_wrong_side_is_no_hit() -> None:
    assert sides_of("I do not enjoy loud music but prefer quiet rooms") == {
        "loud": -1,
        "music": -1,
        "quiet": 1,
        "room": 1,
    }
    wrong = figures([conversation("I dislike loud music.", "I love loud music.")])
    assert wrong["all"]["told"]["recall"] == 0.0


@pytest.mark.rule("CAN-2")
def test_an_update_is_met_when_both_sides_have_one_key_and_another_value() -> None:
    found = figures(
        [
            changed("polarity", ("like", "Golf", "I like golf."), ("dislike", "Golf", "I no longer like golf.")),
            changed("item", ("like", "Golf", "I like golf."), ("like", "Chess", "I like chess.")),
            changed("item", ("like", "Golf", "Golf is played."), ("like", "Chess", "I hate chess.")),
        ]
    )
    assert found["all"]["updates"] == {
        "polarity": {"n": 1, "found": 2, "both": 1, "met": 1},
        "item": {"n": 2, "found": 2, "both": 1, "met": 0},
    }


@pytest.mark.parametrize(
    ("record", "field"),
    [
        ({"question": "x", "persona": {"turns": []}}, "preference"),
        ({"preference": "x", "persona": {"turns": []}}, "question"),
        ({"preference": "x", "question": "y"}, "persona"),
        ({"preference": "x", "question": "y", "persona": {"turns": [7]}}, "persona"),
        ({"preference": "x", "question": "y", "persona": {"turns": [{}]}}, "user"),
        ({"change": "item", "before": {}, "after": {}}, "polarity"),
        ({"change": "item", "before": {"polarity": "so", "item": "a", "text": "b"}, "after": {}}, "before"),
    ],
)
def test_a_record_of_another_form_is_named(record: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        figures([record])
    assert refused.value.field == field


def test_a_folder_is_read_file_by_file_and_an_empty_one_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput):
        read_data(tmp_path)
    for name in ("b", "a"):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({"name": name}))
    (tmp_path / "c.txt").write_text("x")
    assert [record["name"] for record in read_data(tmp_path)] == ["a", "b"]
    assert [record["name"] for record in read_data(tmp_path / "b.jsonl")] == ["b"]
