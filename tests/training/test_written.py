"""Texts and pairs written by hand: well formed, apart from the development set, and read in both orders."""

import json

from training.decontaminate import MEMORY_PAIRS, Evaluation
from training.guard.data import written_rows
from training.pairs.written import written

PAIRS = [json.loads(line) for line in MEMORY_PAIRS.read_text().splitlines()]


def test_every_written_pair_is_read_in_both_orders() -> None:
    rows = list(written())
    assert len(rows) >= 6_000
    assert {row["label"] for row in rows} == {"contradicts", "entails", "neither", "not_contradiction"}
    assert all(
        (one["a"], one["b"]) == (other["b"], other["a"]) for one, other in zip(rows[::2], rows[1::2], strict=True)
    )


def test_no_written_pair_is_one_of_the_development_set() -> None:
    seen = Evaluation((), ((pair["a"], pair["b"]) for pair in PAIRS))
    assert not [row for row in written() if seen.has_pair(row["a"], row["b"])]


def test_the_development_set_has_a_half_to_develop_on_and_a_half_to_report() -> None:
    assert {pair["label"] for pair in PAIRS} == {"contradicts", "same", "neither"}
    parts = [pair["part"] for pair in PAIRS]
    assert parts.count("develop") == parts.count("report") == len(PAIRS) // 2
    assert len(PAIRS) >= 400


def test_written_texts_for_the_guard_have_a_label_and_are_short() -> None:
    rows = list(written_rows())
    assert {row.attack for row in rows} == {0, 1}
    assert len({row.text for row in rows}) == len(rows) >= 900
