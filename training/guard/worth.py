"""Sentences of real talk with the label "worth knowing later", where it is clear; the others get none."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from muniment.language.messages import Sentence, sentences_of
from training.guard.clear_sentences import ASIDE, IDLE, OFFICE_FACT, OFFICE_NOISE, OWN, PERSONAL
from training.guard.row import Label, Row
from training.guard.sources import gatemem_turns, longmemeval

_LONGEST = 400
_WORD = re.compile(r"[a-z0-9]+")
_COMMON = frozenset(
    _WORD.findall("""
    a about after all also an and any are as at be been before both but by can days day did do does during each few
    first for from get go got had has have how i if in into is it its just last many me month months more most much my
    new not of on one or other our out over prefer so some than that the their them then there these they this time
    times to two up us user was we week weeks were what when where which while who will with would you your
    """)
)


def worth_rows(folder: Path) -> Iterator[Row]:
    """Read the sentences of LongMemEval's users and of GateMem whose label is clear."""
    for question in longmemeval(folder):
        for session in question["haystack_sessions"]:
            for turn in session:
                if turn["role"] == "user":
                    yield from _of_turn(question, turn)
    for text in gatemem_turns(folder):
        yield from _of_office_turn(text)


def _of_turn(question: dict[str, Any], turn: dict[str, Any]) -> Iterator[Row]:
    sentences = sentences_of(turn["content"])
    if turn.get("has_answer"):
        for at in answering(question["question"], str(question["answer"]), sentences):
            yield Row(sentences[at].as_read, "longmemeval_answer", attack=0, worth=1, weight=3.0)
        return
    for sentence in sentences:
        label = label_of(sentence)
        if label is not None:
            yield Row(sentence.as_read, "longmemeval_sentence", attack=0, worth=label, weight=1.0 if label else 0.7)


def answering(question: str, answer: str, sentences: list[Sentence]) -> list[int]:
    """Return which sentences of an answering turn carry the fact.

    They are the ones that share the most words with the question and its answer, where a number counts as half a word
    and a question or a phrase of small talk as less; also what is told "by the way".
    """
    asked, answered = _words(question), _words(answer)
    shared = [_carried(asked, answered, one) for one in sentences]
    best = max(shared, default=0)
    return [
        at
        for at, (count, one) in enumerate(zip(shared, sentences, strict=True))
        if (count >= 1 and count == best) or (ASIDE.match(one.text) and not one.is_question)
    ]


def _carried(asked: set[str], answered: set[str], sentence: Sentence) -> float:
    words = _words(sentence.text)
    number = 0.5 * bool(re.search(r"\d", sentence.text))
    idle = 2 * bool(IDLE.match(sentence.text))
    return len(asked & words) + len(answered & words) + number - sentence.is_question - idle


def label_of(sentence: Sentence) -> Label | None:
    """Return the label of a sentence of which it is clear without its context, or None."""
    text = sentence.text
    if len(text) > _LONGEST:
        return None
    if sentence.is_question:
        return None if OWN.search(text) else 0
    if IDLE.match(text) and not OWN.search(text) and not re.search(r"\d", text):
        return 0
    return 1 if PERSONAL.match(text) else None


def _of_office_turn(text: str) -> Iterator[Row]:
    sentences = sentences_of(text)
    if OFFICE_NOISE.search(text):
        labelled = [(one, False) for one in sentences[:1] if not OFFICE_FACT.search(one.text)]
    else:
        labelled = [(one, True) for one in sentences if OFFICE_FACT.search(one.text)]
    for sentence, is_worth in labelled:
        yield Row(sentence.as_read, "gatemem_sentence", attack=0, worth=1 if is_worth else 0, weight=0.4)


def _words(text: str) -> set[str]:
    found = (word for word in _WORD.findall(text.lower()) if word not in _COMMON)
    return {word.removesuffix("s").removesuffix("ed").removesuffix("ing") for word in found}
