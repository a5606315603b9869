"""Finds where a clause ends, and whether it states something as the speaker's own view."""

from dataclasses import dataclass

from muniment.language.messages.sentences import Sentence
from muniment.language.patterns import PatternFile

_PATTERNS = PatternFile(__package__ or "", "patterns/clauses.txt")
_LAST_WORDS = 160


@dataclass(frozen=True)
class Complement:
    """What follows a verb: its object, where that ends, and whether it is no longer so."""

    object: str
    end: int
    ended: bool


def complement_of(text: str, start: int, limit: int) -> Complement:
    """Return the complement of the verb that ends at `start`; it ends before `limit`."""
    after = text[start:limit]
    cut = _PATTERNS["object_end"].search(after).start()
    about = after[:cut]
    bare = _PATTERNS["trailing"].sub("", about).strip(" ,;:-")
    return Complement(bare, start + cut, bool(_PATTERNS["no_more"].search(about)))


def is_own_statement(before: str) -> bool:
    """Say whether what follows these words of a sentence is stated as a fact by the speaker."""
    near = before[-_LAST_WORDS:]
    turned = list(_PATTERNS["turns"].finditer(near))
    if turned:
        # Behind such a turn the speaker speaks for themselves again, whatever was reported or supposed before.
        near = near[turned[-1].end() :]
    if _PATTERNS["condition"].search(near) or _PATTERNS["denied"].search(near):
        return False
    if _PATTERNS["inverted"].search(near) and not _PATTERNS["reason_clause"].search(near):
        return False
    return not _PATTERNS["reported"].search(near) or bool(_PATTERNS["own_view"].search(near))


def is_stated(sentence: Sentence, start: int, end: int) -> bool:
    """Say whether what stands from `start` to `end` is the speaker's own statement and not part of a question."""
    before, after = sentence.text[:start], sentence.text[end:]
    if not is_own_statement(before):
        return False
    asking, opening = _PATTERNS["asking"], _PATTERNS["opening"]
    within_question = asking.search(before) and not opening.search(before)
    return not sentence.is_question or (not within_question and bool(asking.search(after)))


def is_hedged(words: str) -> bool:
    """Say whether the speaker leaves it open."""
    return bool(_PATTERNS["hedged"].search(words))
