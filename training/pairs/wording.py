"""How a sentence looks when people type it: written out, in lower case, in a turn of talk, with a typing error."""

import random
import re
from pathlib import Path

import yaml

FILLER: dict[str, list[str]] = yaml.safe_load((Path(__file__).parent / "vocabulary" / "filler.yaml").read_text())
SHORTER = (
    (" do not ", " don't "),
    (" does not ", " doesn't "),
    (" is not ", " isn't "),
    (" are not ", " aren't "),
    (" did not ", " didn't "),
    ("cannot", "can't"),
    ("I am ", "I'm "),
    (" it is ", " it's "),
    ("there is ", "there's "),
)


def typed(text: str, rng: random.Random) -> str:
    """Return the sentence as someone might type it; what it says stays the same."""
    if rng.random() < 0.4:
        for long, short in SHORTER:
            text = text.replace(long, short)
    style = rng.random()
    if style < 0.45:
        return _sentence(text, rng)
    if style < 0.6:
        return _sentence(_opened(text, rng), rng)
    if style < 0.8:
        return _turn(_sentence(text, rng).rstrip("."), rng)
    return _chat(text, rng)


def _sentence(text: str, rng: random.Random) -> str:
    text = text[0].upper() + text[1:]
    if text.endswith(("?", "!", ".")) or rng.random() < 0.15:
        return text
    return text + "."


def _opened(text: str, rng: random.Random) -> str:
    openings = FILLER["openings"]
    if ": " in text:
        openings = [opening for opening in openings if opening.endswith(": ")]
    return rng.choice(openings) + text


def _turn(text: str, rng: random.Random) -> str:
    """Put the sentence into a turn of talk."""
    text += "" if text.endswith(("?", "!")) else "."
    before, after = rng.choice(FILLER["before"]), rng.choice(FILLER["after"])
    place = rng.random()
    if place < 0.45:
        return f"{before} {text}"
    return f"{text} {after}" if place < 0.8 else f"{before} {text} {after}"


def _chat(text: str, rng: random.Random) -> str:
    if rng.random() < 0.3:
        text = _opened(text, rng)
    if rng.random() < 0.35:
        text = slipped(text, rng)
    return text.lower().rstrip(".") if rng.random() < 0.8 else text.rstrip(".")


def slipped(text: str, rng: random.Random) -> str:
    """Exchange or drop one letter inside a longer word in lower case, so that names and numbers stay."""
    found = list(re.finditer(r"\b[a-z]{5,}\b", text))
    if not found:
        return text
    word = rng.choice(found)
    at = rng.randint(word.start() + 1, word.end() - 2)
    if rng.random() < 0.5:
        return text[:at] + text[at + 1] + text[at] + text[at + 2 :]
    return text[:at] + text[at + 1 :]
