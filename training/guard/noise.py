"""Small damage to texts, as people write them and as attackers disguise them."""

import re
from random import Random

_LOOKALIKE_DIGITS = str.maketrans("aeiost", "431057")


def with_noise(text: str, random: Random, *, disguised: float) -> str:
    """Return the text with one kind of damage; with the probability `disguised` one that attackers use."""
    changes = (_spaced, _digits, _dotted) if random.random() < disguised else (_typos, _lower, _upper, _unpunctuated)
    return random.choice(changes)(text, random)


def _typos(text: str, random: Random) -> str:
    letters = list(text)
    for _ in range(1 + len(text) // 60):
        at = random.randrange(max(1, len(letters) - 1))
        if not letters[at : at + 2] or not all(one.isalpha() for one in letters[at : at + 2]):
            continue
        change = random.randrange(3)
        if change == 0:
            letters[at : at + 2] = letters[at : at + 2][::-1]
        elif change == 1:
            del letters[at]
        else:
            letters.insert(at, letters[at])
    return "".join(letters)


def _lower(text: str, random: Random) -> str:
    return text.lower()


def _upper(text: str, random: Random) -> str:
    return text.upper()


def _unpunctuated(text: str, random: Random) -> str:
    return re.sub(r"[.,!?](?=\s|$)", "", text)


def _spaced(text: str, random: Random) -> str:
    words = text.split(" ")
    start = random.randrange(max(1, len(words) - 3))
    chosen = {start, start + 1, start + 2, start + 3} if len(words) > 6 else set(range(len(words)))
    return " ".join(" ".join(word) if at in chosen else word for at, word in enumerate(words))


def _dotted(text: str, random: Random) -> str:
    mark = random.choice(".-_*")
    return re.sub(r"\b\w{5,12}\b", lambda found: mark.join(found[0]) if random.random() < 0.4 else found[0], text)


def _digits(text: str, random: Random) -> str:
    return re.sub(r"\b\w{4,}\b", lambda found: found[0].translate(_LOOKALIKE_DIGITS), text)
