"""Every reading of a text that a model might take from it: what is hidden, disguised or encoded, laid open."""

from dataclasses import dataclass

from muniment.language.instructions import encodings, markup
from muniment.language.instructions.characters import reveal
from muniment.language.instructions.signs import Sign
from muniment.language.instructions.words import words

# Text inside text inside text: no deeper and no more, so that the work stays in proportion to the text. Whoever
# goes past either has something to hide.
_DEPTH = 4
_GROWTH = 8
_ENCODED = Sign("encoded_text", 0.50)


@dataclass(frozen=True)
class View:
    """One reading: as it is set, and as words."""

    text: str
    words: str


@dataclass(frozen=True)
class Unfolded:
    """All readings, the plain one first, and what having to unfold them is a sign of."""

    views: tuple[View, ...]
    signs: tuple[Sign, ...]


def unfold(text: str) -> Unfolded:
    """Lay the text open to a bounded depth; each reading is itself read for more."""
    views: dict[str, View] = {}
    signs: dict[str, Sign] = {}
    budget = _GROWTH * max(len(text), 256)
    level = [text]
    for _ in range(_DEPTH):
        below: list[str] = []
        for reading in level:
            below += _layer(reading, views, signs)
        level = [reading for reading in dict.fromkeys(below) if reading not in views]
        budget -= sum(map(len, level))
        if not level or budget < 0:
            break
    if level:
        signs.setdefault(_ENCODED.reason, _ENCODED)
    return Unfolded(tuple(views.values()), tuple(signs.values()))


def _layer(text: str, views: dict[str, View], signs: dict[str, Sign]) -> list[str]:
    """Add the text's own readings to `views`; give those that were encoded in it."""
    shown = reveal(text)
    for sign in shown.signs:
        signs.setdefault(sign.reason, sign)
    below = list(shown.hidden)
    for plain in shown.views:
        if plain in views:
            continue
        view = views[plain] = View(plain, words(plain))
        below += encodings.unescaped(plain)
        below += markup.without_tags(plain)
        below += encodings.respelled(plain, view.words.split())
        hidden = encodings.decoded(plain)
        if any(map(encodings.is_readable, hidden)):
            signs.setdefault(_ENCODED.reason, _ENCODED)
        if hidden:
            below.append("\n".join(hidden))
    return below
