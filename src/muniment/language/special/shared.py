"""Of whom else a sentence says the same as of its subject: "so is Tom"; and whom it quotes (CAN-16)."""

import re

from muniment.language.special.persons import mentions_in, sentence_around
from muniment.language.special.tokens import Mention, Placed, Tokens

# Quotations; an apostrophe within a word ends none.
_QUOTATION = re.compile(
    r'"[^"\n]{1,1000}"|[\u201c\u201e][^\u201c\u201d\u201e\n]{1,1000}[\u201c\u201d]|\u00ab[^\u00ab\u00bb\n]{1,1000}\u00bb'
    r"|(?<![\w'])'(?=\w)(?:[^'\n]|(?<=\w)'(?=\w)){1,1000}'(?!\w)"
)
_COLON = re.compile(r":(?=\s)")
# What is said to come from somebody is theirs too: "I got it from Tom".
_GOT = re.compile(r"(?:got|gets?|caught|contracted|inherited|have|had|has)\b", re.IGNORECASE)
_BREAKS = frozenset((",", ")"))


def with_sharers(text: str, start: int, end: int, persons: tuple[Mention, ...]) -> tuple[Mention, ...]:
    """Return the persons of whom is said what stands from `start` to `end`, with those of whom the same is said.

    "I" in a quotation is whoever is quoted.
    """
    quoted = _quoted(text, start) if any(one.kind == "self" for one in persons) else None
    if quoted is not None:
        persons = tuple(quoted if one.kind == "self" else one for one in persons)
    before, after = sentence_around(text, start, end)
    sharers = [one.mention for one in mentions_in(before) if _is_compared(before, one) or _is_object(before, one)]
    said = Tokens.of(text[start:end])
    # "I gave Tom ..."; what ends the span, or begins it, is what is said.
    sharers += [one.mention for one in mentions_in(said) if one.first > 0 and one.last < len(said.low) - 1]
    from_them = bool(_GOT.match(text, start))
    shares = any(word.startswith("share") for word in before.low)
    sharers += [
        one.mention
        for one in mentions_in(after)
        if _is_compared(after, one)
        or _is_elliptic(after, one)
        or _is_joined_to_self(after, one)
        or (one.first == 1 and ((from_them and after.low[0] == "from") or (shares and after.low[0] == "with")))
    ]
    others = (one for one in sharers if one.kind not in ("self", "you") and one not in persons)
    return (*persons, *dict.fromkeys(others))


def _is_compared(tokens: Tokens, one: Placed) -> bool:
    """Whether somebody is compared with the subject: "like Tom", "as well as Tom"."""
    before = one.first - 1
    if tokens.is_in(before, "like"):
        return True
    return before >= 0 and tokens.low[before] in ("with", "as") and tokens.is_in(before - 1, "joined")


def _is_elliptic(tokens: Tokens, one: Placed) -> bool:
    """Whether what is said is left out of somebody's own clause: "so is Tom", "Tom is", "Tom too"."""
    if tokens.is_in(one.first - 1, "auxiliaries") and tokens.is_in(one.first - 2, "same"):
        return True
    place = one.last + 1
    if tokens.is_in(place, "too") or (tokens.low[place : place + 2] == ["as", "well"]):
        return True
    if not tokens.is_in(place, "auxiliaries"):
        return False
    place += 1
    if place < len(tokens.low) and tokens.low[place] in ("not", "it", "that"):
        place += 1
    ends = place >= len(tokens.low) or tokens.said[place] in _BREAKS
    return ends or tokens.is_in(place, "too", "conjunctions") or tokens.low[place : place + 2] == ["as", "well"]


def _is_joined_to_self(tokens: Tokens, one: Placed) -> bool:
    """Whether somebody is named with the speaker behind what is said: "we both ..., Tom and I"."""
    behind = tokens.is_in(one.last + 1, "conjunctions") and tokens.is_in(one.last + 2, "first")
    return behind or (tokens.is_in(one.first - 1, "conjunctions") and tokens.is_in(one.first - 2, "first"))


def _is_object(tokens: Tokens, one: Placed) -> bool:
    """Whether somebody stands right before what is said, or before its preposition: "I gave Tom ..."."""
    left = len(tokens.low) - 1 - one.last
    return left == 0 or (left == 1 and tokens.is_in(one.last + 1, "prepositions"))


def _quoted(text: str, start: int) -> Mention | None:
    """Return who is quoted with the words at `start`; None where they are nobody else's words."""
    for quote in _QUOTATION.finditer(text):
        if quote.start() < start < quote.end():
            before, _ = sentence_around(text, quote.start(), quote.start())
            _, after = sentence_around(text, quote.end(), quote.end())
            return _speaker(before) or _speaker(after) or Mention("pronoun", "somebody")
    line = text.rfind("\n", 0, start) + 1
    colons = list(_COLON.finditer(text, line, start))
    if not colons:
        return None
    before, _ = sentence_around(text, colons[-1].start(), colons[-1].start())
    return _speaker(before)


def _speaker(tokens: Tokens) -> Mention | None:
    """Return who says something in some words: whoever it comes from, else the first that they mention."""
    found = mentions_in(tokens)
    source = [one for one in found if one.first > 0 and tokens.low[one.first - 1] in ("by", "from")]
    return next((one.mention for one in (*source, *found)), None)
