"""Thresholds: the lowest that keeps its limits, on development data alone."""

from pathlib import Path
from typing import Any

import pytest
from training.manifest import read_manifest
from training.thresholds import LIMITS, STEPS, Figures, Limit, choose, choose_all

from muniment.evaluation import injection
from muniment.language.readers import Readers, Weights
from tests.language.tiny_readers import write_weights
from tests.training.small_inputs import chat, pairs_of, talk, texts_of, write_inputs


def falling(threshold: float) -> Figures:
    return {"false_alarms": 1.0 - threshold}


@pytest.mark.parametrize(("most", "chosen"), [(1.0, 0.1), (0.5, 0.5), (0.22, 0.8), (0.06, 0.95)])
def test_the_lowest_threshold_that_keeps_the_limits_is_chosen(
    most: float, chosen: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(LIMITS, "special", {"false_alarms": Limit(most=most)})
    choice = choose("special", falling)
    assert (choice.threshold, choice.broken) == (chosen, ())
    assert choice.figures == falling(chosen)


def test_if_no_threshold_keeps_the_limits_the_highest_is_chosen_and_what_it_breaks_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits = {"false_alarms": Limit(most=0.01), "found": Limit(least=0.5), "unknown": Limit(least=0.5)}
    monkeypatch.setitem(LIMITS, "special", limits)
    choice = choose("special", lambda threshold: falling(threshold) | {"found": 0.9, "unknown": None})
    assert (choice.threshold, choice.broken) == (STEPS[-1], ("false_alarms",))


# The probability of a text with the word is 0.5, 0.73, 0.88 or 0.95.
WORDS = {"quarter": 0.0, "third": 1.0, "half": 2.0, "whole": 3.0}


def rows(part: str, word: str, count: int, attack: bool, of: str = "deepset") -> list[dict[str, Any]]:
    return [
        {"text": text, "attack": attack, "set": of} for text in texts_of(part, f"{word} cup of tea, number {{}}", count)
    ]


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    common = {"[CLS]": -3.0}
    return write_weights(
        tmp_path / "weights",
        attack=common | {word: weight + 3.0 for word, weight in WORDS.items()},
        worth=common | {"grinder": 9.0},
        tags={"marguerite": "B-PERSON", "osei": "I-PERSON"},
    )


def chosen(weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **inputs: Any) -> dict[str, float]:
    lines: list[str] = []
    folder = write_inputs(tmp_path / "inputs", monkeypatch, talks=[talk("One cup.", "Two mugs.")], **inputs)
    found = choose_all(weights, folder, lines.append)
    assert {line.partition(":")[0] for line in lines} == set(found)
    return {name: choice.threshold for name, choice in found.items()}


@pytest.mark.rule("CAN-7")
def test_the_guards_threshold_lies_above_what_is_harmless_in_development_data(
    weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    harmless = rows("open", "half", 100, False)
    # What is held, and a set that is trained on, would ask for a higher one.
    unread = [*rows("held", "whole", 100, False), *rows("open", "whole", 100, False, "jbb")]
    found = chosen(weights, tmp_path, monkeypatch, injection=[*harmless, *unread])
    assert found["attack"] == pytest.approx(0.9)
    assert chosen(weights, tmp_path, monkeypatch, injection=unread)["attack"] == STEPS[0]
    talks = rows("open", "third", 100, False, "locomo_benign")
    assert chosen(weights, tmp_path, monkeypatch, injection=talks)["attack"] == pytest.approx(0.75)


def test_what_was_chosen_is_in_the_manifest_with_its_figures_and_counts_from_then_on(
    weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = Weights.read(weights).version
    found = chosen(weights, tmp_path, monkeypatch, injection=rows("open", "half", 100, False))
    readers = Readers(Weights.read(weights))
    assert readers.version != before
    assert readers.file("pairs").thresholds == {name: found[name] for name in ("contradicts", "same")}
    assert readers.file("guard").thresholds == {name: found[name] for name in ("attack", "worth")}
    assert readers.file("tagger").thresholds["PERSON"] == found["tags"]
    assert readers.file("tagger").thresholds["HEALTH"] == found["special"]
    measured = read_manifest(weights)["training"]["thresholds"]
    assert measured["attack"]["threshold"] == found["attack"]
    assert measured["attack"]["false_alarms_plain_talk"] is None
    texts = [*rows("open", "half", 1, True), *rows("open", "whole", 1, True)]
    assert injection.figures(texts, readers)["recall"] == 0.5


def test_worth_is_limited_by_the_share_of_sentences_that_would_be_kept(
    weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (open_name, *_), (held_name, *_) = (texts_of(part, "question {}", 1) for part in ("open", "held"))
    few = [chat(open_name, "A grinder came. It rained. It snowed."), chat(held_name, "A grinder came.")]
    assert chosen(weights, tmp_path, monkeypatch, chats=few)["worth"] == STEPS[0]
    many = [chat(open_name, "A grinder came. It rained.")]
    assert chosen(weights, tmp_path, monkeypatch, chats=many)["worth"] == STEPS[-1]


@pytest.mark.rule("CAN-13")
def test_special_categories_are_limited_by_the_share_of_plain_talk_that_would_be_marked(
    weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_weights(weights, tags={"grinder": "HEALTH-self"})
    few = rows("open", "grinder", 1, False, "locomo_benign") + rows("open", "plain", 99, False, "locomo_benign")
    assert chosen(weights, tmp_path, monkeypatch, injection=few)["special"] == STEPS[0]
    many = rows("open", "grinder", 5, False, "locomo_benign") + rows("open", "plain", 95, False, "locomo_benign")
    assert chosen(weights, tmp_path, monkeypatch, injection=many)["special"] == STEPS[-1]


@pytest.mark.rule("CTR-2")
def test_the_judges_threshold_lies_above_its_false_alarms_in_development_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # All pairs with both words score 0.8.
    words = {"weekly": 2.2, "monthly": 2.2, "[CLS]": -2.32}
    weights = write_weights(tmp_path / "weights", contradicts=words)
    forms = ("The newsletter {} goes out weekly.", "We send the newsletter {} monthly.")

    def some(part: str, of: str, label: str) -> list[dict[str, Any]]:
        return [{"a": a, "b": b, "label": label, "set": of} for a, b in pairs_of(part, *forms, 30)]

    alarms = some("open", "sick", "neutral")
    assert chosen(weights, tmp_path, monkeypatch, contradictions=alarms)["contradicts"] == pytest.approx(0.85)
    unread = [*some("held", "sick", "neutral"), *some("open", "snli", "neutral")]
    right = some("open", "mnli_watson", "contradiction")
    assert chosen(weights, tmp_path, monkeypatch, contradictions=[*right, *unread])["contradicts"] == STEPS[0]


@pytest.mark.rule("CTR-2")
def test_the_prefilter_may_lose_one_in_a_hundred_of_what_the_judge_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = {"weekly": 4.0, "monthly": 4.0, "[CLS]": -4.0}
    # To the prefilter a pair with the word is related by 0.21, and any other by 0.67.
    weights = write_weights(tmp_path / "weights", contradicts=words, unrelated={"faint": 2.0})
    forms = ("The {}newsletter {{}} goes out weekly.", "We send the {}newsletter {{}} monthly.")

    def found(word: str, count: int) -> list[dict[str, Any]]:
        texts = [one.format(word) for one in forms]
        return [
            {"a": a, "b": b, "label": "contradiction", "set": "mnli_watson"} for a, b in pairs_of("open", *texts, count)
        ]

    plain = found("", 120)
    for faint, highest in ((1, 0.5), (3, 0.21)):
        rows = [*plain, *found("faint ", faint)]
        assert chosen(weights, tmp_path, monkeypatch, contradictions=rows)["related"] == pytest.approx(highest)
        assert Readers(Weights.read(weights)).file("prefilter").thresholds == {"related": pytest.approx(highest)}
