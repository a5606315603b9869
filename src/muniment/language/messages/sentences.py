"""Splits a message into sentences."""

from collections.abc import Iterator
from dataclasses import dataclass

from muniment.language.data_files import word_set
from muniment.language.patterns import caseless

_LONGEST = 1200
_ENDS = ".!?"
_CLOSERS = "\"')]*_"
_ABBREVIATIONS = word_set("""
    mr. mrs. ms. dr. prof. st. e.g. i.e. vs. etc. no. a.m. p.m. approx. dept. jr. sr. inc. ltd. u.s. u.k.
""")
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
# Quoted words: "I" in them may be somebody else.
_QUOTED = caseless(r'"[^"]{0,1000}\b(?:I|my|me|we|our|don\'t|please)\b[^"]{0,1000}"')
_GAP = " ... "
_ASIDE = caseless(r" ?\([^()]{0,60}\)")


@dataclass(frozen=True)
class Sentence:
    """A sentence without its final punctuation, and whether it is a question."""

    text: str
    is_question: bool

    @property
    def as_read(self) -> str:
        """The sentence as the trained readers read it: with a full stop or a question mark."""
        return self.text + ("?" if self.is_question else ".")


def sentences_of(text: str) -> list[Sentence]:
    """Return the sentences of a message in order, without quotations."""
    return [sentence for line in text.translate(_PLAIN).split("\n") for sentence in _of_line(line)]


def _of_line(line: str) -> Iterator[Sentence]:
    words: list[str] = []
    for word in line.lstrip("-*#\u2022 ").split():
        bare = word.rstrip(_CLOSERS)
        semicolon = word.endswith(";")
        words.append(word.rstrip(";") if semicolon else word)
        if semicolon or (bare[-1:] in _ENDS and bare and not _is_abbreviation(bare)):
            yield from _made(words)
            words = []
    if words:
        yield from _made(words)


def _is_abbreviation(word: str) -> bool:
    return word.lower().lstrip("(\"'") in _ABBREVIATIONS or (len(word) == 2 and word[0].isupper() and word[0] != "I")


def _made(words: list[str]) -> Iterator[Sentence]:
    whole = " ".join(words)
    bare = whole.rstrip(_ENDS + _CLOSERS + " ")
    is_question = "?" in whole[len(bare) :]
    text = bare[:_LONGEST]
    if '"' in text:
        text = _QUOTED.sub(_GAP, text)
    if "(" in text:
        text = _ASIDE.sub("", text)
    if text:
        yield Sentence(text, is_question)
