"""A message as sentences, each with what closes it."""

from collections.abc import Iterator
from dataclasses import dataclass

from muniment.language.messages.rules import rule, word_set

_LONGEST = 1200
_ENDS = ".!?"
_CLOSERS = "\"')]*_"
_SHORT = word_set(
    """
    mr. mrs. ms. dr. prof. st. e.g. i.e. vs. etc. no. a.m. p.m. approx. dept. jr. sr. inc. ltd. u.s. u.k.
    """
)
_PLAIN = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u02bc\u00b4", "'"),
        **dict.fromkeys("\u201c\u201d\u00ab\u00bb", '"'),
        "\u2013": " - ",
        "\u2014": " - ",
        "\u2026": "...",
        "\u00a0": " ",
        "\t": " ",
    }
)
# Somebody's words within the message: whoever "I" is there, it is not sure to be the speaker.
_QUOTED = rule(r'"[^"]{0,1000}\b(?:I|my|me|we|our|don\'t|please)\b[^"]{0,1000}"')
_GAP = " ... "
_ASIDE = rule(r" ?\([^()]{0,60}\)")


@dataclass(frozen=True)
class Sentence:
    """One sentence without what closes it, and whether it asks."""

    text: str
    asks: bool


def sentences_of(text: str) -> list[Sentence]:
    """The sentences in their order; what others are quoted with is left out."""
    return [sentence for line in text.translate(_PLAIN).split("\n") for sentence in _of_line(line)]


def _of_line(line: str) -> Iterator[Sentence]:
    words: list[str] = []
    for word in line.lstrip("-*#\u2022 ").split():
        bare = word.rstrip(_CLOSERS)
        semicolon = word.endswith(";")
        words.append(word.rstrip(";") if semicolon else word)
        if semicolon or (bare[-1:] in _ENDS and bare and not _is_short(bare)):
            yield from _made(words)
            words = []
    if words:
        yield from _made(words)


def _is_short(word: str) -> bool:
    return word.lower().lstrip("(\"'") in _SHORT or (len(word) == 2 and word[0].isupper() and word[0] != "I")


def _made(words: list[str]) -> Iterator[Sentence]:
    whole = " ".join(words)
    bare = whole.rstrip(_ENDS + _CLOSERS + " ")
    asks = "?" in whole[len(bare) :]
    text = bare[:_LONGEST]
    if '"' in text:
        text = _QUOTED.sub(_GAP, text)
    if "(" in text:
        text = _ASIDE.sub("", text)
    if text:
        yield Sentence(text, asks)
