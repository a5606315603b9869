"""The built-in judge: no model, no chance, only what the words themselves show."""

import re

from muniment.language.assertion.alignment import Alignment, align
from muniment.language.assertion.contrast import contrast
from muniment.language.assertion.identity import identity
from muniment.language.assertion.judgement import Judgement
from muniment.language.assertion.overlap import may_relate
from muniment.language.assertion.reading import Reading, read
from muniment.language.assertion.voice import active

# Characters past which two texts that are not the same words count as different.
LONGEST = 4096
_MOST_READ = 400
_OPENING = re.compile(r"[^.!?]{8,400}[.!?](?=\s+\S)")
# Stops between digits are part of the number, and a question is no statement.
_STOPS = re.compile(r"(?:\s|(?<!\d)[.,;:!\"'()]|[.,;:!\"'()](?!\d))+")


def judge(a: str, b: str) -> Judgement:
    """Whether two texts say the same, contradict one another, or neither; what is unsure is different."""
    if plain(a) == plain(b):
        return Judgement("same", ("same_words",))
    too_long = max(len(a), len(b)) > LONGEST
    found = Judgement("different", ("other_content",)) if too_long else _judge(a, b)
    if found.verdict == "different":
        return _judge_openings(a, b) or found
    return found


def _judge_openings(a: str, b: str) -> Judgement | None:
    """Of longer texts: whether the sentences that open them contradict one another outright."""
    one, other = _OPENING.match(a), _OPENING.match(b)
    if one is None and other is None:
        return None
    found = _judge(one[0] if one else a[:_MOST_READ], other[0] if other else b[:_MOST_READ], whole=True)
    return found if found.verdict == "contradicts" else None


def _judge(a: str, b: str, *, whole: bool = False) -> Judgement:
    if not may_relate(a, b, whole=whole):
        return Judgement("different", ("other_content",))
    # In a fixed order, so that the verdict does not hang on which text came first.
    one, other = (read(text) for text in sorted((a, b)))
    found = align(one, other)
    if whole and (found.left or found.right or found.wider):
        return Judgement("different", ("other_content",))
    return _weigh(one, other, found)


def plain(text: str) -> str:
    """The text without case, space and stops: what two texts of the same words share."""
    return _STOPS.sub(" ", text).strip().casefold()


def _weigh(one: Reading, other: Reading, found: Alignment) -> Judgement:
    if one.question != other.question:
        return Judgement("different", ("other_content",))
    against = contrast(one, other, found)
    if against is not None:
        return against
    plainly = identity(one, other, found)
    if plainly.verdict == "same" or found.left or found.right or found.wider:
        return plainly
    return _in_one_voice(one, other) or plainly


def _in_one_voice(one: Reading, other: Reading) -> Judgement | None:
    """`same` where the one says in the passive what the other says in the active voice."""
    for left, right in ((active(one), other), (one, active(other))):
        if left is not None and right is not None:
            found = identity(left, right, align(left, right))
            if found.verdict == "same":
                return found
    return None
