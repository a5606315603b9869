"""All readings of a text that a model might take from it: with what is hidden, disguised or encoded laid open."""

from dataclasses import dataclass
from typing import NamedTuple

from muniment.language.instructions import encodings
from muniment.language.instructions.characters import deobfuscate
from muniment.language.instructions.normalisation import normalise_words
from muniment.language.instructions.signals import Signal

# Text within text is read to a bounded depth and size, so that the work stays linear. A text that exceeds either has
# something to hide.
_DEPTH = 4
_GROWTH = 8
_ENCODED = Signal("encoded_text", 0.50)


class Reading(NamedTuple):
    """One reading of a text: the text itself, and its normalised words."""

    text: str
    words: str


@dataclass(frozen=True)
class Readings:
    """All readings of a text, the plain one first, and the signals that come from having to decode it."""

    readings: tuple[Reading, ...]
    signals: tuple[Signal, ...]


def read_all(text: str) -> Readings:
    """Return every reading of a text; each is itself read for more, to a bounded depth."""
    readings: dict[str, Reading] = {}
    signals: dict[str, Signal] = {}
    budget = _GROWTH * max(len(text), 256)
    level = [text]
    for _ in range(_DEPTH):
        below: list[str] = []
        for reading in level:
            below += _read(reading, readings, signals)
        level = [reading for reading in dict.fromkeys(below) if reading not in readings]
        budget -= sum(map(len, level))
        if not level or budget < 0:
            break
    if level:
        signals.setdefault(_ENCODED.reason, _ENCODED)
    return Readings(tuple(readings.values()), tuple(signals.values()))


def _read(text: str, readings: dict[str, Reading], signals: dict[str, Signal]) -> list[str]:
    """Add the readings of the text itself to `readings`; return the texts that were encoded in it."""
    shown = deobfuscate(text)
    for signal in shown.signals:
        signals.setdefault(signal.reason, signal)
    below = list(shown.hidden)
    for plain in shown.readings:
        if plain in readings:
            continue
        reading = readings[plain] = Reading(plain, normalise_words(plain))
        below += encodings.unescape(plain)
        below += encodings.strip_tags(plain)
        below += encodings.respell(plain, reading.words.split())
        hidden = encodings.decode(plain)
        if any(map(encodings.is_readable, hidden)):
            signals.setdefault(_ENCODED.reason, _ENCODED)
        if hidden:
            below.append("\n".join(hidden))
    return below
