"""Splits a message into sentences: each as it was said, word for word, and in the plain form that rules read."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from muniment.language.data_files import word_set
from muniment.language.patterns import caseless

_LONGEST = 1200
_ENDS = ".!?"
_CLOSERS = "\"')]*_"
_BULLETS = "-*#\u2022 \t"
# A full stop after these ends no sentence.
_ABBREVIATIONS = word_set("""
    mr. mrs. ms. dr. prof. st. mt. ft. e.g. i.e. vs. approx. dept. gen. sen. rev. capt. lt. sgt. fig. vol. apt. blvd.
    ave. incl. excl. esp. tel. ext. cf. ca. al. jan. feb. mar. apr. jun. jul. aug. sept. sep. oct. nov. dec.
""")
# After these it ends one if the next word begins another.
_AT_EITHER_PLACE = word_set("""
    etc. a.m. p.m. jr. sr. inc. ltd. co. corp. u.s. u.k. u.s.a. e.u. d.c. ph.d. m.d. b.a. m.a. b.sc. m.sc. lbs. lb. oz.
    kg. cm. mm. km. hrs. hr. min. sec. rd. est.
""")
_OPENINGS = word_set("""
    i i'm i've i'd i'll my we we're we've our it it's he he's she she's they they're their his her this that the a an
    but and so also then there what how do does can could please you your if when now no yes by
""")
# "No. 5" is a number, "No." alone an answer.
_BEFORE_NUMBER = word_set("no. nos. p. pp. art. sect.")
_NUMBER = re.compile(r"#?\d")
_WORD = re.compile(r"[^\s\u00a0]+")
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
    """A sentence, or the part of one before or after a semicolon.

    `text` is what rules read: without its final punctuation, without quotations and asides. `said` is the whole
    sentence as it stands in the message, and `start` its place there; parts of one sentence have them in common.
    """

    text: str
    is_question: bool
    said: str = ""
    start: int = 0

    @property
    def as_read(self) -> str:
        """The sentence as the trained readers read it: with a full stop or a question mark."""
        return self.text + ("?" if self.is_question else ".")


def sentences_of(text: str) -> list[Sentence]:
    """Return the sentences of a message in order, without quotations."""
    found: list[Sentence] = []
    start = 0
    for line in text.split("\n"):
        found += _of_line(line, start)
        start += len(line) + 1
    return found


def _of_line(line: str, offset: int) -> Iterator[Sentence]:
    first = len(line) - len(line.lstrip(_BULLETS))
    words = list(_WORD.finditer(line, first))
    begin = 0
    for place, word in enumerate(words):
        following = words[place + 1].group() if place + 1 < len(words) else ""
        if not following or _ends_sentence(word.group().translate(_PLAIN), following.translate(_PLAIN)):
            start, end = words[begin].start(), word.end()
            yield from _parts(line[start:end], offset + start)
            begin = place + 1


def _ends_sentence(word: str, following: str) -> bool:
    bare = word.rstrip(_CLOSERS)
    if not bare or bare[-1] not in _ENDS:
        return False
    low = bare.lower().lstrip("(\"'")
    if low in _BEFORE_NUMBER:
        return not _NUMBER.match(following)
    if low in _ABBREVIATIONS or (len(bare) == 2 and bare[0].isupper() and bare[0] != "I" and bare[1] == "."):
        return False
    if low in _AT_EITHER_PLACE:
        return following[:1].isupper() and following.lower().rstrip(",") in _OPENINGS
    return True


def _parts(said: str, start: int) -> Iterator[Sentence]:
    """Yield the parts of a sentence between semicolons, in the plain form."""
    words: list[str] = []
    for word in said.translate(_PLAIN).split():
        words.append(word.rstrip(";"))
        if word.endswith(";"):
            yield from _made(words, said, start)
            words = []
    if words:
        yield from _made(words, said, start)


def _made(words: list[str], said: str, start: int) -> Iterator[Sentence]:
    whole = " ".join(words)
    bare = whole.rstrip(_ENDS + _CLOSERS + " ")
    is_question = "?" in whole[len(bare) :]
    text = bare[:_LONGEST]
    if '"' in text:
        text = _QUOTED.sub(_GAP, text)
    if "(" in text:
        text = _ASIDE.sub("", text)
    if text:
        yield Sentence(text, is_question, said, start)
