"""The evaluations of contradictions and duplicates on records made up here: figures counted by hand."""

from typing import Any

import pytest

from muniment.errors import InvalidInput
from muniment.evaluation import contradictions, duplicates

PAIRS = [
    {"a": "The shop is open on Sunday.", "b": "The shop is closed on Sunday.", "label": "contradiction", "set": "s"},
    {"a": "Anna enjoys long walks.", "b": "The quarterly report is late.", "label": "contradiction", "set": "s"},
    {"a": "The fee is 30 euros per month.", "b": "The fee is 40 euros per month.", "label": "neutral", "set": "t"},
    {"a": "The shop is open on Sunday.", "b": "the shop is OPEN on Sunday", "label": "neutral", "set": "t"},
    {"a": "The sofa is red and old.", "b": "The couch is red and old.", "label": "entailment", "set": "u"},
]


@pytest.mark.rule("CTR-2")
def test_contradictions_are_counted_over_all_and_by_set() -> None:
    found = contradictions.figures(PAIRS)
    assert {name: found[name] for name in ("n", "precision", "recall", "f1", "false_duplicate_rate")} == {
        "n": 5,
        "precision": 0.5,
        "recall": 0.5,
        "f1": 0.5,
        "false_duplicate_rate": 0.25,
    }
    assert found["seconds_per_item"] > 0
    assert found["sets"]["s"] == {"n": 2, "precision": 1.0, "recall": 0.5, "f1": 2 / 3, "false_duplicate_rate": 0.0}
    assert found["sets"]["t"] == {"n": 2, "precision": 0.0, "recall": None, "f1": 0.0, "false_duplicate_rate": 0.5}
    assert found["sets"]["u"] == {"n": 1, "precision": None, "recall": None, "f1": None, "false_duplicate_rate": None}


@pytest.mark.rule("REV-7")
def test_duplicates_are_counted_over_all_and_by_set() -> None:
    records = [
        {"a": "Refunds take two weeks.", "b": "Refunds take 14 days.", "duplicate": True, "set": "s"},
        {"a": "Refunds take two weeks.", "b": "A violin is for sale.", "duplicate": True, "set": "s"},
        {"a": "Refunds take two weeks.", "b": "Refunds take 30 days.", "duplicate": False, "set": "t"},
    ]
    found = duplicates.figures(records)
    assert (found["n"], found["precision"], found["recall"], found["f1"]) == (3, 1.0, 0.5, 2 / 3)
    assert found["sets"]["t"] == {"n": 1, "precision": None, "recall": None, "f1": None}


def test_no_records_give_no_figures() -> None:
    nothing = {"n": 0, "precision": None, "recall": None, "f1": None, "sets": {}, "seconds_per_item": None}
    assert duplicates.figures([]) == nothing
    assert contradictions.figures([]) == nothing | {"false_duplicate_rate": None}


def test_more_records_than_a_batch_are_all_judged() -> None:
    assert contradictions.figures(PAIRS * 250)["n"] == 1250


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"a": None}, "a"),
        ({"b": 7}, "b"),
        ({"label": "perhaps"}, "label"),
        ({"set": ["s"]}, "set"),
    ],
)
def test_a_wrong_record_is_named_with_its_field(changed: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as error:
        contradictions.figures([PAIRS[0], PAIRS[1] | changed])
    assert error.value.field == field


@pytest.mark.parametrize("record", ["text", None, {"a": "x", "b": "y", "set": "s", "duplicate": "yes"}])
def test_a_record_that_is_no_pair_of_texts_is_refused(record: Any) -> None:
    with pytest.raises(InvalidInput):
        duplicates.figures([record])
