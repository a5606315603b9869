"""The development sets are written by hand, hold both labels, and are not near to what is generated."""

import json
import re
from pathlib import Path
from random import Random
from typing import Any

import pytest
from training.guard.generated import attacks, harmless, sentences
from training.guard.row import Row

import training.guard

FOLDER = Path(training.guard.__file__).parent / "development"


def read(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(("name", "at_least"), [("attack", 140), ("worth", 200)])
def test_a_development_set_holds_both_labels_in_like_number(name: str, at_least: int) -> None:
    rows = read(name)
    labels = [row[name] for row in rows]

    assert len(rows) == len({row["text"] for row in rows}) >= at_least
    assert 0.4 < sum(labels) / len(labels) < 0.6


def words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text.lower()))


def test_no_development_text_is_near_to_a_generated_one() -> None:
    texts = {words(row["text"]) for name in ("attack", "worth") for row in read(name)}
    long_enough = [text for text in texts if len(text) > 3]
    known = {word for text in long_enough for word in text}
    made = {words(row.text) for row in (*_made_attacks(), *_made_sentences())}
    candidates = [other for other in made if len(other & known) >= 0.7 * len(other)]

    assert [(text, other) for other in candidates for text in long_enough if alike(text, other)] == []


def alike(one: frozenset[str], other: frozenset[str]) -> bool:
    return len(one & other) >= 0.7 * len(one | other)


def _made_attacks() -> list[Row]:
    return [*attacks(1000, Random(16), []), *harmless(1000, Random(16))]


def _made_sentences() -> list[Row]:
    return list(sentences(2000, Random(16)))
