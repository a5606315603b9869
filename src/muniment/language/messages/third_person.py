"""Turns what the speaker says of themselves from the first into the third person."""

from typing import Any

from muniment.language.data_files import word_map, word_set
from muniment.language.patterns import caseless

WHO = "The user"

_OWN_WORDS = word_map("""
    i=they me=them my=their mine=theirs myself=themselves we=they us=them our=their ours=theirs ourselves=themselves
    i'm=they're i've=they've i'd=they'd i'll=they'll we're=they're we've=they've am=are
""")
_CONTRACTED = word_map("i'm=is i've=has i'd=would i'll=will we're=is we've=has")
_IRREGULAR = word_map("am=is are=is have=has do=does don't=doesn't haven't=hasn't go=goes was=was were=was")
_UNCHANGED = word_set("""
    can can't cannot could couldn't will won't would wouldn't must should may might shall is has does doesn't
    used was gave quit got grew went cut became began left
""")
_BETWEEN = word_set("""
    really absolutely usually generally typically normally often always strongly strictly truly just still also
    definitely personally actually honestly mostly much vastly greatly deeply particularly especially simply
    kind sort of mainly now currently quite rather totally completely genuinely certainly highly exclusively
    only never no longer increasingly firmly intensely extremely probably seriously literally very so a bit
    somewhat ever recently entirely not
""")
_WORD = caseless(r"[A-Za-z][A-Za-z']*")
_SIBILANTS = ("s", "sh", "ch", "x", "z", "o")


def in_third_person(clause: str) -> str:
    """Turn a clause that begins with I (or `as someone who`) into a sentence about the user."""
    words = clause.split()
    first = words[0].lower() if words else ""
    if first in _CONTRACTED:
        verb, rest = _CONTRACTED[first], words[1:]
        if verb == "is" and rest[:1] == ["not"]:
            verb, rest = "isn't", rest[1:]
        return as_sentence(f"{WHO} {verb} {turn_pronouns(' '.join(rest))}")
    rest = words[1:] if first in ("i", "we") else words
    # Without a pronoun the verb is in the third person already.
    return as_sentence(f"{WHO} {turn_pronouns(' '.join(_conjugated(rest) if first in ('i', 'we') else rest))}")


def turn_pronouns(text: str) -> str:
    """Replace the pronouns of the first person by those of the third."""
    return str(_WORD.sub(_turn, text))


def as_sentence(text: str) -> str:
    """Return the text with one space between words and a full stop at the end."""
    plain = " ".join(text.split()).rstrip(" ,;:-")
    return plain if plain.endswith((".", "!", "?")) else f"{plain}."


def _turn(found: Any) -> str:
    word = str(found.group())
    return _OWN_WORDS.get(word.lower(), word)


def _conjugated(words: list[str]) -> list[str]:
    for place, word in enumerate(words):
        if word.lower() not in _BETWEEN:
            return [*words[:place], _with_ending(word), *words[place + 1 :]]
    return words


def _with_ending(verb: str) -> str:
    low = verb.lower()
    if low in _UNCHANGED or low.endswith("ed"):
        return verb
    if low in _IRREGULAR:
        return _IRREGULAR[low]
    if low.endswith(_SIBILANTS):
        return f"{low}es"
    if low.endswith("y") and low[-2:-1] not in ("a", "e", "o", "u"):
        return f"{low[:-1]}ies"
    return f"{low}s"
