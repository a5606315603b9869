"""Questions without their framing: what is asked, whatever polite or roundabout way it is asked in."""

import re
from collections.abc import Sequence

from muniment.language.assertion.lexicon.questions import ENDINGS, OPENINGS, PARTS
from muniment.language.assertion.tokens import Token

_MOST_FRAMES = 4
_DONE_BY_SOMEBODY = frozenset(("how ", "can ", "why ", "where "))
_PERSONS = frozenset(("i", "we", "you"))


def _pattern(text: str) -> re.Pattern[str]:
    for name, choices in PARTS.items():
        text = text.replace("{" + name + "}", choices)
    return re.compile(text)


def _by_first_word() -> dict[str, list[tuple[re.Pattern[str], str]]]:
    found: dict[str, list[tuple[re.Pattern[str], str]]] = {}
    for firsts, text, instead in OPENINGS:
        pattern = _pattern(text)
        for first in firsts.split():
            found.setdefault(first, []).append((pattern, instead))
    return found


_OPENINGS = _by_first_word()
_ENDINGS = [_pattern(text + r" ?[?.!]*$") for text in ENDINGS]


def unframed(found: Sequence[Token]) -> list[Token]:
    """The tokens of a question with each framing replaced by the one word that stands for it."""
    kept: list[Token] = []
    for sentence in _sentences(found):
        kept += _opened(sentence)
    return _ended(kept)


def _sentences(found: Sequence[Token]) -> list[list[Token]]:
    sentences: list[list[Token]] = [[]]
    for token in found:
        sentences[-1].append(token)
        if token.kind == "stop" and token.low[0] in ".!?":
            sentences.append([])
    return sentences


def _opened(sentence: list[Token]) -> list[Token]:
    for _ in range(_MOST_FRAMES):
        said = " ".join([token.low for token in sentence])
        for pattern, instead in _OPENINGS.get(sentence[0].low if sentence else "", ()):
            match = pattern.match(said)
            if match is None or match.end() >= len(said) or not match[0].endswith(" "):
                continue
            used = match[0].count(" ")
            words = [Token("word", word, False, True) for word in instead.split()]
            if instead in _DONE_BY_SOMEBODY:
                # `How can I help you` and `how can you help me` ask two things.
                words += [token for token in sentence[:used] if token.low in _PERSONS]
            if [token.low for token in sentence[:used]] == [word.low for word in words]:
                return sentence
            sentence = [*words, *sentence[used:]]
            break
        else:
            return sentence
    return sentence


def _ended(found: list[Token]) -> list[Token]:
    said = " ".join(token.low for token in found)
    for pattern in _ENDINGS:
        match = pattern.search(said)
        if match is not None and match.start() > 0:
            kept = said[: match.start()].count(" ") + 1
            stop = [token for token in found[-1:] if token.kind == "stop"]
            found, said = [*found[:kept], *stop], said[: match.start()]
    return found
