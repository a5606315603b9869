"""Builds the tables of `muniment.model.names` from the Unicode data that the package confusable-homoglyphs carries.

`python -m tests.model.name_table` writes them; a test compares them with what is checked in.
"""

import json
from itertools import groupby
from pathlib import Path
from typing import Any
from unicodedata import category, normalize

from confusable_homoglyphs.categories import categories_data
from confusable_homoglyphs.confusables import confusables_data

import muniment.model

TABLE = Path(muniment.model.__file__).with_name("name_characters.json")
UNICODE = "15.1"


def build() -> dict[str, Any]:
    """The prototype keys of all characters that have another one than themselves, and the scripts by range."""
    prototypes = _prototypes()
    keys: dict[str, str | list[str]] = {}
    for number in (*range(0x80, 0xD800), *range(0xE000, 0x110000)):
        character = chr(number)
        if category(character) not in ("Cn", "Co") and normalize("NFKD", character) == character:
            folded, drawn = _key(character.casefold(), prototypes), _key(character, prototypes)
            if folded != drawn:
                keys[character] = [folded, drawn]
            elif folded != character:
                keys[character] = folded
    return {"unicode": UNICODE, "keys": keys, "scripts": _scripts()}


def _prototypes() -> dict[str, str]:
    """What each character is drawn like. The package lists both directions: a prototype's list has all of its sources,
    a source's list its prototype alone. Of a pair the smaller is the prototype."""
    alike = {_bare(one): [_bare(other["c"]) for other in others] for one, others in confusables_data.items()}
    found: dict[str, str] = {}
    for one, others in alike.items():
        if len(one) == 1 and len(others) == 1:
            (other,) = others
            if len(alike[other]) > 1 or len(other) > 1 or other < one:
                found[one] = other
    return found


def _bare(text: str) -> str:
    # The package puts right-to-left characters between marks of direction.
    return text.replace("\u200e", "")


def _key(text: str, prototypes: dict[str, str]) -> str:
    # Of a few Cherokee letters the small form is drawn like a Latin capital: until nothing changes any more.
    while (drawn := _skeleton(_skeleton(text, prototypes).casefold(), prototypes)) != text:
        text = drawn
    # A capital i is drawn like a small l, and without case they are one.
    return drawn.replace("i", "l")


def _skeleton(text: str, prototypes: dict[str, str]) -> str:
    while (drawn := normalize("NFKD", "".join(prototypes.get(one, one) for one in normalize("NFKD", text)))) != text:
        text = drawn
    return text


def _scripts() -> list[list[Any]]:
    """Ranges of code points and their script, without what all scripts share."""
    names = categories_data["iso_15924_aliases"]
    ranges = sorted((start, end, names[script]) for start, end, script, _ in categories_data["code_points_ranges"])
    merged: list[list[Any]] = []
    for script, group in groupby(ranges, key=lambda one: one[2]):
        if script in ("COMMON", "INHERITED"):
            continue
        for start, end, _ in group:
            if merged and merged[-1][2] == script and merged[-1][1] + 1 == start:
                merged[-1][1] = end
            else:
                merged.append([start, end, script])
    return merged


def written() -> str:
    """The table as it is checked in: ASCII, a line for each part."""
    parts = [f"{json.dumps(name)}: {json.dumps(part)}" for name, part in build().items()]
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    TABLE.write_text(written(), "ascii")
