"""Names of principals: which are refused, and when two of them count as one person (REV-15).

Names are compared by what they look like (the confusable skeleton of Unicode TR39) and without case. A capital letter
and its small form can look like different letters of another script, so a name has two keys: one with the case folded
first, one with the skeleton taken first. Two names that share either are the same person. The table is Unicode's data;
ADR 37 says where it comes from. The database computes the same keys in `muniment.name_keys`.
"""

import json
import re
from bisect import bisect_right
from collections.abc import Iterable
from functools import lru_cache
from importlib.resources import files
from typing import Any, NamedTuple
from unicodedata import category, is_normalized, normalize

# Invisible characters, not all of which Unicode calls format characters.
_IGNORED = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_INVISIBLE = re.compile(f"[{_IGNORED}]")
_SPACES = re.compile("[ \t\n\r\f\v]+")
# Control and format characters, private use, unassigned, line ends; spaces but the ordinary one.
_UNREADABLE = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs"})
# Scripts that are written together count as one.
_WRITTEN_TOGETHER = (
    frozenset({"HAN", "HIRAGANA", "KATAKANA"}),
    frozenset({"HAN", "BOPOMOFO"}),
    frozenset({"HAN", "HANGUL"}),
)
_ASCII = {
    **{number: chr(number).lower() for number in range(ord("A"), ord("Z") + 1)},
    **str.maketrans({"1": "l", "|": "l", "0": "o", "`": "'", '"': "''", "%": "o/o"}),
    **str.maketrans(dict.fromkeys("iI", "l") | dict.fromkeys("mM", "rn")),
}


class NameKeys(NamedTuple):
    """What a name is compared by: with its case folded first, and with its look-alikes replaced first."""

    folded: str
    drawn: str


def check_name(name: str) -> str:
    """Check the name of a principal; raises `ValueError` with what is wrong with it."""
    if name.isascii() and name.isprintable():
        return name
    for character in name:
        if character != " " and (category(character) in _UNREADABLE or _INVISIBLE.match(character)):
            raise ValueError(f"holds the invisible character U+{ord(character):04X}")
    if not is_normalized("NFC", name):
        # Two spellings of one name would pass for two people.
        raise ValueError("is not in Unicode's composed form (NFC)")
    scripts = {script for character in name if (script := _script(ord(character))) is not None}
    if len(scripts) > 1 and not any(scripts <= together for together in _WRITTEN_TOGETHER):
        raise ValueError(f"mixes the scripts {' and '.join(sorted(script.capitalize() for script in scripts))}")
    return name


def name_problem(name: str) -> str | None:
    """What is wrong with a principal's name; None for an acceptable name."""
    try:
        check_name(name)
    except ValueError as error:
        return str(error)
    return None


@lru_cache(maxsize=4096)
def name_keys(name: str) -> NameKeys:
    """The keys that a name is compared by; any text has keys, even one that is refused as a name."""
    if name.isascii():
        key = _SPACES.sub(" ", name).strip(" ").translate(_ASCII)
        return NameKeys(key, key)
    bare = _SPACES.sub(" ", _INVISIBLE.sub("", normalize("NFKD", _INVISIBLE.sub("", name)))).strip(" ")
    table = _table()
    return NameKeys(bare.translate(table.folded), bare.translate(table.drawn))


def same_person(one: str, other: str) -> bool:
    """Whether the two names count as one person's."""
    first, second = name_keys(one), name_keys(other)
    return first.folded == second.folded or first.drawn == second.drawn


def is_among(name: str, people: Iterable[str]) -> bool:
    """Whether the name counts as that of one of these people."""
    return any(same_person(name, other) for other in people)


class _Table(NamedTuple):
    folded: dict[int, str]
    drawn: dict[int, str]
    starts: list[int]
    ranges: list[tuple[int, int, str]]


@lru_cache(maxsize=1)
def _table() -> _Table:
    read: dict[str, Any] = json.loads(files("muniment.model").joinpath("name_characters.json").read_text("ascii"))
    folded: dict[int, str] = dict(_ASCII)
    drawn = dict(folded)
    for character, key in read["keys"].items():
        folded[ord(character)], drawn[ord(character)] = (key, key) if isinstance(key, str) else key
    ranges = [(start, end, script) for start, end, script in read["scripts"]]
    return _Table(folded, drawn, [start for start, _, _ in ranges], ranges)


def _script(number: int) -> str | None:
    """The script of a character; none for one that all scripts share."""
    table = _table()
    place = bisect_right(table.starts, number) - 1
    if place >= 0 and number <= table.ranges[place][1]:
        return table.ranges[place][2]
    return None
