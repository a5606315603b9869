"""Rows of the guard and of the tagger that nearly equal an evaluation text are left out."""

from collections import Counter
from pathlib import Path

import pytest
from training.decontaminate import Evaluation
from training.guard.data import rows as guard_rows
from training.tagger.data import rows as tagger_rows

from tests.training.small_inputs import chat, texts_of, write_inputs

HELD = "We renovated the little chapel by the lake over the summer, number 1 of many."
NEAR = "We renovated the little chapel by the lake over the summer, number 2 of many."
OTHER = "The ferry brings fresh bread to the islands every morning before dawn."


@pytest.fixture
def inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (name,) = texts_of("open", "question {}", 1)
    spans = [{"text": text, "spans": [], "set": "presidio_v2"} for text in (NEAR, OTHER)]
    return write_inputs(tmp_path, monkeypatch, chats=[chat(name, NEAR, OTHER)], spans=spans)


def test_the_guard_is_not_trained_on_what_nearly_equals_an_evaluation_text(
    inputs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_ATTACKS", "_HARMLESS", "_HARMFUL_REQUESTS", "_SENTENCES"):
        monkeypatch.setattr(f"training.guard.data.{name}", 60)
    dropped: Counter[str] = Counter()
    texts = [row.text for row in guard_rows(inputs, Evaluation([HELD], []), dropped)]
    assert OTHER in texts
    # Nor does talk that was left out surround an attack.
    assert not [text for text in texts if "little chapel" in text]
    assert dropped["longmemeval_user"] == 1


def test_the_tagger_is_not_trained_on_what_nearly_equals_an_evaluation_text(
    inputs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dropped: Counter[str] = Counter()
    texts = [row.marked.text for row in tagger_rows(inputs, Evaluation([HELD], []), dropped, 20)]
    assert OTHER in texts
    assert NEAR not in texts
    assert dropped["presidio_v2"] == 1
