"""Splits a text into tokens: words, numbers, codes and signs, with contractions and fixed phrases written out."""

import re
from typing import NamedTuple

from muniment.language.assertion.lexicon import (
    COMPOUND_PREFIXES,
    CONTRACTED_ENDINGS,
    CONTRACTIONS,
    DROPPED,
    NEGATORS,
    PREPOSITIONS,
)
from muniment.language.assertion.vocabulary import COMPOUNDS, PHRASES
from muniment.language.data_files import word_set

_TOKEN = re.compile(
    r"""(?P<code>https?://[^\s,;]+|www\.[^\s,;]+|[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+)
    |(?P<iso>\d{4}-\d{1,2}-\d{1,2}(?![\w-]))
    |(?P<clock>\d{1,2}:\d{2}(?::\d{2})?(?!\w))
    |(?P<number>(?<![\w.])[-+]?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\w)
        |\d+(?:\.\d+)?(?:st|nd|rd|th|k|m|bn|am|pm|kg|g|km|cm|mm|ml|l|gb|mb|tb|h|min)?(?!\w|-\w|\.\w|/\d|,\d)))
    |(?P<word>(?>[^\W\d_]+(?:'[^\W\d_]+)*(?:-[^\W\d_]+(?:'[^\W\d_]+)*)*)(?:\+\+|\#(?!\w))?'?(?![\w@]|[-./:]\d))
    |(?P<mixed>\w+(?:[-./:_+,]\w+)*[+\#]*)
    |(?P<sign>[$€£¥₹%\#])
    |(?P<stop>[.!?;]+|[,:()\[\]{}"\u2010-\u201f\u2026\u2039\u203a\u00ab\u00bb/\\'*•·-])
    |(?P<symbol>[^\s\w])""",
    re.VERBOSE,
)
# Typographic apostrophe and minus as on a keyboard.
_PLAIN = {0x2019: "'", 0x2212: "-"}
_WRITTEN_OUT = frozenset(("US", "cannot", "Cannot"))
# A compound with one of these is a word of its own.
_SMALL = DROPPED | NEGATORS | PREPOSITIONS | word_set("out off down back away free less like based")
_SPAN = re.compile(r"^(\d+)-(\d+)$")
_COUNTED = re.compile(r"^\d+(?:-[^\W\d_]+)+$")
_INITIALS = re.compile(r"\b(?:[A-Za-z]\.){2,}")


class Token(NamedTuple):
    """A token; `kind` is code, iso, clock, number, word, mixed, sign, stop or symbol, `lower` its lower-case text."""

    kind: str
    lower: str
    capitalised: bool
    sentence_start: bool


def tokenise(text: str) -> list[Token]:
    """Return the tokens of a text in order, contractions written out."""
    text = _INITIALS.sub(lambda initials: initials[0].replace(".", ""), text.translate(_PLAIN))
    tokens: list[Token] = []
    first = True
    for match in _TOKEN.finditer(text):
        kind, surface = match.lastgroup or "word", match[0]
        if kind == "word" and "-" not in surface and "'" not in surface and surface not in _WRITTEN_OUT:
            tokens.append(Token("word", surface.lower(), surface[0].isupper(), first))
        elif kind == "word":
            for at, piece in enumerate(_split_compound(surface)):
                tokens += [
                    Token("word", part, piece[0].isupper(), first and at == 0) for part in _expand_contraction(piece)
                ]
        elif kind == "mixed" and _COUNTED.match(surface):
            number, _, unit = surface.partition("-")
            tokens += [
                Token("number", number, False, first),
                *(Token("word", part, False, False) for part in unit.split("-")),
            ]
        elif span := _SPAN.match(surface):
            tokens += [Token("number", span[1], False, first), Token("word", "to", False, False)]
            tokens.append(Token("number", span[2], False, False))
        else:
            tokens.append(Token(kind, surface.lower().rstrip("./") or ".", surface[0].isupper(), first))
        first = kind == "stop" and surface[0] in ".!?;:"
    return tokens


def _split_compound(surface: str) -> list[str]:
    """Split `tax-cut` like `tax cut`; keep `well-known`, `follow-up` and the compounds of the word lists whole."""
    if "-" not in surface or surface.lower() in COMPOUNDS:
        return [surface]
    pieces = surface.split("-")
    lows = [piece.lower() for piece in pieces]
    if lows[0] in COMPOUND_PREFIXES or any(len(low) < 3 or low in _SMALL for low in lows):
        return [surface]
    return pieces


def _expand_contraction(surface: str) -> list[str]:
    low = "usa" if surface == "US" else surface.lower()
    if "'" not in low and low != "cannot":
        return [low]
    if low in CONTRACTIONS:
        return CONTRACTIONS[low].replace("cannot", "can not").split()
    if low.endswith("n't"):
        return [low[:-3], "not"]
    stem, _, ending = low.rpartition("'")
    if ending in ("s", ""):
        return [stem]
    replacement = CONTRACTED_ENDINGS.get("'" + ending)
    return [low] if replacement is None else [stem, *replacement.split()]


def merge_phrases(tokens: list[Token]) -> list[Token]:
    """Replace every fixed phrase by the word or words that stand for it."""
    merged: list[Token] = []
    position = 0
    while position < len(tokens):
        token = tokens[position]
        taken = _find_phrase(tokens, position) if token.kind == "word" and token.lower in PHRASES else None
        if taken is None:
            merged.append(token)
            position += 1
            continue
        length, replacement = taken
        if replacement:
            merged += (Token("word", part, token.capitalised, token.sentence_start) for part in replacement.split())
        position += length
    return merged


def _find_phrase(tokens: list[Token], position: int) -> tuple[int, str] | None:
    following = tokens[position + 1].lower if position + 1 < len(tokens) else ""
    for phrase, replacement in PHRASES[tokens[position].lower]:
        if len(phrase) == 1 or (
            following in (phrase[1], phrase[1] + "s")
            and len(phrase) <= len(tokens) - position
            and all(tokens[position + at].lower in (phrase[at], phrase[at] + "s") for at in range(2, len(phrase)))
        ):
            return len(phrase), replacement
    return None
