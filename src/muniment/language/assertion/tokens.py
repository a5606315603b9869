"""A text cut into words, numbers, codes and signs, with contractions and fixed phrases written out."""

import re
from typing import NamedTuple

from muniment.language.assertion.lexicon import words
from muniment.language.assertion.lexicon.function_words import DROPPED, JOINED_PARTS, NEGATORS, PREPOSITIONS
from muniment.language.assertion.lexicon.phrases import CONTRACTIONS, ENDINGS
from muniment.language.assertion.vocabulary import COMPOUNDS, PHRASES

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
_SMALL = DROPPED | NEGATORS | PREPOSITIONS | words("out off down back away free less like based")
_SPAN = re.compile(r"^(\d+)-(\d+)$")
_COUNTED = re.compile(r"^\d+(?:-[^\W\d_]+)+$")
_INITIALS = re.compile(r"\b(?:[A-Za-z]\.){2,}")


class Token(NamedTuple):
    """A piece of text: `kind` is code, iso, clock, number, word, mixed, sign, stop or symbol; `low` its lower case."""

    kind: str
    low: str
    capital: bool
    first: bool


def cut(text: str) -> list[Token]:
    """The pieces of the text in order, contractions written out."""
    text = _INITIALS.sub(lambda found: found[0].replace(".", ""), text.translate(_PLAIN))
    found: list[Token] = []
    first = True
    for match in _TOKEN.finditer(text):
        kind, surface = match.lastgroup or "word", match[0]
        if kind == "word" and "-" not in surface and "'" not in surface and surface not in _WRITTEN_OUT:
            found.append(Token("word", surface.lower(), surface[0].isupper(), first))
        elif kind == "word":
            for at, piece in enumerate(_pieces(surface)):
                found += [Token("word", part, piece[0].isupper(), first and at == 0) for part in _written_out(piece)]
        elif kind == "mixed" and _COUNTED.match(surface):
            number, _, unit = surface.partition("-")
            found += [
                Token("number", number, False, first),
                *(Token("word", part, False, False) for part in unit.split("-")),
            ]
        elif span := _SPAN.match(surface):
            found += [Token("number", span[1], False, first), Token("word", "to", False, False)]
            found.append(Token("number", span[2], False, False))
        else:
            found.append(Token(kind, surface.lower().rstrip("./") or ".", surface[0].isupper(), first))
        first = kind == "stop" and surface[0] in ".!?;:"
    return found


def _pieces(surface: str) -> list[str]:
    """The parts of `tax-cut` as in `tax cut`; of `well-known`, `follow-up` or a compound of the lists, the whole."""
    if "-" not in surface or surface.lower() in COMPOUNDS:
        return [surface]
    pieces = surface.split("-")
    lows = [piece.lower() for piece in pieces]
    if lows[0] in JOINED_PARTS or any(len(low) < 3 or low in _SMALL for low in lows):
        return [surface]
    return pieces


def _written_out(surface: str) -> list[str]:
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
    instead = ENDINGS.get("'" + ending)
    return [low] if instead is None else [stem, *instead.split()]


def joined(found: list[Token]) -> list[Token]:
    """The pieces with every fixed phrase as the word or words that stand for it."""
    whole: list[Token] = []
    place = 0
    while place < len(found):
        token = found[place]
        taken = _phrase_at(found, place) if token.kind == "word" and token.low in PHRASES else None
        if taken is None:
            whole.append(token)
            place += 1
            continue
        length, instead = taken
        if instead:
            whole += (Token("word", part, token.capital, token.first) for part in instead.split())
        place += length
    return whole


def _phrase_at(found: list[Token], place: int) -> tuple[int, str] | None:
    following = found[place + 1].low if place + 1 < len(found) else ""
    for said, instead in PHRASES[found[place].low]:
        if len(said) == 1 or (
            following in (said[1], said[1] + "s")
            and len(said) <= len(found) - place
            and all(found[place + at].low in (said[at], said[at] + "s") for at in range(2, len(said)))
        ):
            return len(said), instead
    return None
