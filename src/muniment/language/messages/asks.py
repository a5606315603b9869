"""Recognises spoken requests to remember, to forget and to correct something, apart from what is asked for (CAN-12)."""

from typing import NamedTuple

from muniment.language.data_files import word_set
from muniment.language.messages.sentences import Sentence
from muniment.language.patterns import PatternFile
from muniment.model.proposal import ProposalAction

_PATTERNS = PatternFile(__package__ or "", "patterns/asks.txt")
_ACTIONS: tuple[ProposalAction, ...] = ("retract", "correct", "promote")
_FEWEST_WORDS = 2
# These belong to what is asked for: "forget my address".
_KEPT = word_set("my our the how what")
# Signs that people type in two ways, one for one.
_SIGNS = str.maketrans({**dict.fromkeys("\u2018\u2019\u02bc\u00b4", "'"), **dict.fromkeys("\u2013\u2014", "-")})


class Ask(NamedTuple):
    """A request: the action, and the words it is about as they were said; without any it refers to what came before."""

    action: ProposalAction
    said: str


def ask_of(sentence: Sentence) -> Ask | None:
    """Return what a sentence asks to remember, forget or correct; None where it asks for none of these."""
    plain = sentence.said.translate(_SIGNS)
    if _PATTERNS["refers"].search(plain):
        return None if sentence.is_question else Ask("retract", "")
    for action in _ACTIONS:
        if action == "correct" and sentence.is_question:
            continue
        for _, pattern in _PATTERNS.all_of(action):
            if (found := pattern.search(plain)) is None:
                continue
            opening = plain[: found.end()].rstrip()
            last = opening.rpartition(" ")[2].lower()
            about = sentence.said[len(opening) - len(last) if last in _KEPT else found.end() :].strip()
            if len(about.split()) >= _FEWEST_WORDS and not _PATTERNS["task"].search(about):
                return Ask(action, about)
    return None
