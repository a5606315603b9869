"""Judges by rules whether a sentence of a message is worth knowing later (CAN-11).

The score is between 0 and 1, and is no confidence: it says how much a sentence tells, not whether it is true.
Questions, greetings, thanks, requests to do something now and small talk have 0.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from muniment.language.messages.sentences import Sentence
from muniment.language.patterns import PatternFile

RULES_FLOOR = 0.5
"""The score from which the rules keep a sentence where the pack names none."""

_PATTERNS = PatternFile(__package__ or "", "patterns/worth.txt")
_FEWEST_WORDS = 3
# What a sentence gains and loses by what is found in it.
_GAINS = {
    "speaker": 0.20,
    "people_of": 0.20,
    "numbers": 0.20,
    "times": 0.20,
    "past": 0.30,
    "having": 0.25,
    "being": 0.25,
    "owning": 0.10,
    "names": 0.15,
    "aside": 0.25,
    "wishes": 0.30,
    "elliptic": 0.40,
    "feeling": 0.25,
    "habit": 0.25,
    "told": 0.15,
    "others": 0.20,
}
_LOSSES = {"reaction": 0.40, "wants_help": 0.50, "to_you": 0.10, "no_news": 0.50}


# What the sentence that tells the most gains in a message of which none reaches the floor, and what it needs for that:
# people say in short sentences to each other what they tell an assistant at length.
_BEST_GAINS, _BEST_NEEDS = 0.25, 0.25


def worth_in_message(scores: Sequence[float]) -> list[float]:
    """Return the scores of a message's sentences, with the best one raised where none reaches the rules' floor."""
    raised = list(scores)
    best = max(scores, default=0.0)
    if _BEST_NEEDS <= best < RULES_FLOOR:
        place = raised.index(best)
        raised[place] = round(best + _BEST_GAINS, 2)
    return raised


# The trained guard's score from which the best sentence of a message is kept in which it finds no other one. Chosen on
# two conversations of LoCoMo and the open part of LongMemEval, where a user's turn gives 1.1 proposals at most.
GUARD_BEST = 0.10

Kept = Literal["kept", "asked", "left"]


class Worth(NamedTuple):
    """The worth of a sentence among those of its message: by the rules, and by the trained guard."""

    by_rules: float
    by_guard: float


def kept_by_guard(sentences: Sequence[Worth | None], threshold: float, margin: float, *, best: bool) -> list[Kept]:
    """Say of each sentence of a message whether it is kept, left, or kept for a person to look at (CAN-15).

    None is a sentence that is kept in any case. With `best` the sentence that tells the most by the rules needs only
    `GUARD_BEST` in a message of which no other one is kept: people say in short sentences to each other what they tell
    an assistant at length. Which one that is does not depend on the guard. Where the guard is in doubt about another
    sentence, a person looks at this one too: so machines differ only in whether a person is asked.
    """
    found: list[Kept] = ["kept" if one is None else _at(one.by_guard, threshold, margin) for one in sentences]
    told = [0.0 if one is None else one.by_rules for one in sentences]
    if not best or not any(told):
        return found
    place = told.index(max(told))
    others = found[:place] + found[place + 1 :]
    one = sentences[place]
    if one is None or "kept" in others or found[place] == "kept":
        return found
    least = _at(one.by_guard, GUARD_BEST, margin)
    if least != "left":
        found[place] = "asked" if "asked" in others else least
    return found


def _at(score: float, threshold: float, margin: float) -> Kept:
    if score < threshold - margin:
        return "left"
    return "asked" if score < threshold + margin else "kept"


def is_small_talk(sentence: Sentence) -> bool:
    """Say whether a sentence is a greeting, thanks or the like, or too short to tell anything."""
    return len(sentence.text.split()) < _FEWEST_WORDS or bool(_PATTERNS["small_talk"].search(sentence.text))


def is_request(sentence: Sentence) -> bool:
    """Say whether a sentence asks for something now; a standing wish ("never call me before 9") does not."""
    return bool(_PATTERNS["request"].search(sentence.text)) and not _PATTERNS["wishes"].search(sentence.text)


def worth_by_rules(sentence: Sentence) -> float:
    """Return how much a sentence tells of its speaker, their people, plans, things, wishes, work and events."""
    text = sentence.text
    if sentence.is_question or is_small_talk(sentence):
        return 0.0
    if is_request(sentence):
        return 0.0
    gained = {name: gain for name, gain in _GAINS.items() if _PATTERNS[name].search(text)}
    lost = sum(loss for name, loss in _LOSSES.items() if _PATTERNS[name].search(text))
    return round(min(1.0, max(0.0, sum(gained.values()) - lost)), 2)
