"""The built-in judge: compares the words of two texts, without a model and without chance."""

import re
from typing import TYPE_CHECKING, get_args

from muniment.language.assertion.alignment import Alignment, align
from muniment.language.assertion.contradiction import judge_contradiction
from muniment.language.assertion.judgement import OTHER_CONTENT, Judge, Judgement, Relation
from muniment.language.assertion.overlap import may_relate
from muniment.language.assertion.paraphrase import judge_paraphrase
from muniment.language.assertion.parse import ParsedText, parse
from muniment.language.assertion.subjects import have_other_owners
from muniment.language.assertion.voice import to_active_voice

if TYPE_CHECKING:
    from muniment.pack.memory_layer import Thresholds

# Characters past which two texts that are not the same words count as different.
LONGEST = 4096
_MOST_READ = 400
_OPENING = re.compile(r"[^.!?]{8,400}[.!?](?=\s+\S)")
# Stops between digits are part of the number, and a question is no statement.
_STOPS = re.compile(r"(?:\s|(?<!\d)[.,;:!\"'()]|[.,;:!\"'()](?!\d))+")


def judge(a: str, b: str) -> Judgement:
    """Say whether two texts say the same, contradict one another, or neither; in doubt they are different."""
    if bare_words(a) == bare_words(b):
        return Judgement("same", ("same_words",))
    judgement = OTHER_CONTENT if max(len(a), len(b)) > LONGEST else _judge(a, b)
    if judgement.verdict == "different":
        return _judge_openings(a, b) or judgement
    return judgement


def relate(a: str, b: str, similarity: float, thresholds: "Thresholds", judge: Judge = judge) -> Judgement:
    """Judge two texts whose similarity is known; a verdict that needs a higher similarity becomes `different`.

    Disguised characters are resolved first. Texts of the same words are the same whatever their similarity. Raises
    `ValueError` where the judge returns an unknown verdict.
    """
    # Imported here: the judge alone, which the settings name, does not need it.
    from muniment.language.instructions import visible_text

    a, b = visible_text(a), visible_text(b)
    if bare_words(a) == bare_words(b):
        return Judgement("same", ("same_words",))
    if similarity < min(thresholds.similarity, thresholds.duplicate_similarity):
        return OTHER_CONTENT
    judgement = judge(a, b)
    if judgement.verdict not in get_args(Relation):
        raise ValueError(f"expected a verdict of {', '.join(get_args(Relation))}")
    needed = {"same": thresholds.duplicate_similarity, "contradicts": thresholds.similarity}
    if similarity >= needed.get(judgement.verdict, 0.0):
        return judgement
    return Judgement("different", judgement.reasons)


def _judge_openings(a: str, b: str) -> Judgement | None:
    """Judge the first sentences of longer texts; only an outright contradiction counts."""
    one, other = _OPENING.match(a), _OPENING.match(b)
    if one is None and other is None:
        return None
    judgement = _judge(one[0] if one else a[:_MOST_READ], other[0] if other else b[:_MOST_READ], whole=True)
    return judgement if judgement.verdict == "contradicts" else None


def _judge(a: str, b: str, *, whole: bool = False) -> Judgement:
    if not may_relate(a, b, whole=whole) or have_other_owners(a, b):
        return OTHER_CONTENT
    # In a fixed order, so that the verdict does not depend on which text came first.
    one, other = (parse(text) for text in sorted((a, b)))
    alignment = align(one, other)
    if whole and (alignment.left_only or alignment.right_only or alignment.hypernyms):
        return OTHER_CONTENT
    return _compare(one, other, alignment)


def bare_words(text: str) -> str:
    """Return a text without case, extra space and punctuation; two texts of the same words have it in common."""
    return _STOPS.sub(" ", text).strip().casefold()


def _compare(one: ParsedText, other: ParsedText, alignment: Alignment) -> Judgement:
    if one.question != other.question:
        return OTHER_CONTENT
    contradiction = judge_contradiction(one, other, alignment)
    if contradiction is not None:
        return contradiction
    paraphrase = judge_paraphrase(one, other, alignment)
    if paraphrase.verdict == "same" or alignment.left_only or alignment.right_only or alignment.hypernyms:
        return paraphrase
    return _compare_in_active_voice(one, other) or paraphrase


def _compare_in_active_voice(one: ParsedText, other: ParsedText) -> Judgement | None:
    """Return `same` where one text says in the passive voice what the other says in the active voice."""
    for left, right in ((to_active_voice(one), other), (one, to_active_voice(other))):
        if left is not None and right is not None:
            judgement = judge_paraphrase(left, right, align(left, right))
            if judgement.verdict == "same":
                return judgement
    return None
