"""Characters that hide or disguise text: invisible ones, tags, and letters that only look Latin."""

import unicodedata
from dataclasses import dataclass

from muniment.language.instructions.signals import Signal
from muniment.language.patterns import Pattern

_TAG_BASE = 0xE0000
_TAG_END = 0xE007F
_SOFT_HYPHEN = 0xAD
_OVERRIDES = "\u202d\u202e"

# A flag such as Scotland's is a black flag, its region in tags, and the end tag.
_FLAG = Pattern("\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{1,6}\U000e007f")

_INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_ANY_INVISIBLE = Pattern(f"[{_INVISIBLE}]")
_IN_WORDS = Pattern("[A-Za-z][\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\u034f\u180e\U000e0000-\U000e0fff]+[A-Za-z]")
_TAGS = Pattern("[\U000e0001-\U000e007f]")
_SELECTORS = Pattern("[\ufe00-\ufe0d\U000e0100-\U000e01ef]{4}")
_LONG_RUN = Pattern(f"[{_INVISIBLE}]{{8}}")

_FEW_IN_WORDS = 2
_LEAST_TAGS = 3
_LEAST_BYTES = 4

_LOOK_ALIKES = str.maketrans(
    "аеорсухіјѕԁԛԝһӏьвкмнтгпАЕОРСУХІЈЅВКМНТԌᏀᏢοαεικνρτυχηωγβΑΒΕΖΗΙΚΜΝΟΡΤΥΧɑɡɩᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢոսօհց",
    "aeopcyxijsdqwhlbbkmhtrnAEOPCYXIJSBKMHTGGPoaeikvptuxnwybABEZHIKMNOPTYXagiabcdefghijklmnoprstuvwyznuohg",
)
# Look-alikes inside a Latin word that are no accident, as a Greek letter in a formula may be.
_IN_LATIN_WORDS = Pattern(
    "[A-Za-z][аеорсухіјѕԁԛԝһӏοᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ]"
    "|[аеорсухіјѕԁԛԝһӏοАЕОРСУХІЈЅВКМНТᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ][A-Za-z]"
)
# Squared, circled and flag letters that compatibility normalisation leaves alone.
_FRAMED = {
    start + offset: chr(ord("a") + offset) for start in (0x1F150, 0x1F170, 0x1F1E6) for offset in range(26)
}  # fmt: skip


@dataclass(frozen=True)
class Deobfuscated:
    """The readings of a text without its disguise (the plain one first), the texts hidden in it, and the signals."""

    readings: tuple[str, ...]
    hidden: tuple[str, ...] = ()
    signals: tuple[Signal, ...] = ()


def deobfuscate(text: str) -> Deobfuscated:
    """Resolve invisible and look-alike characters; an ASCII text has none."""
    if text.isascii():
        return Deobfuscated((text,))
    text = _join_surrogates(text)
    signals: list[Signal] = []
    hidden: list[str] = []
    joined = spaced = text
    if _ANY_INVISIBLE.occurs_in(text):
        hidden += _smuggled_texts(text)
        signals += _signals_of_hidden_text(text, hidden)
        joined, spaced = text.translate(_JOINED), text.translate(_SPACED)
    plain = unicodedata.normalize("NFKC", joined)
    readings = [plain]
    if spaced != joined:
        readings.append(unicodedata.normalize("NFKC", spaced))
    latin = _to_latin(plain)
    if latin != plain:
        readings.append(latin)
        if _IN_LATIN_WORDS.occurs_in(plain, _FEW_IN_WORDS):
            signals.append(Signal("look_alike_letters", 0.40))
    return Deobfuscated(tuple(dict.fromkeys(readings)), tuple(hidden), tuple(signals))


def visible_text(text: str) -> str:
    """Return the text as a reader sees it: nothing invisible in it, look-alikes of Latin letters as those letters."""
    if text.isascii():
        return text
    return _to_latin(unicodedata.normalize("NFKC", _join_surrogates(text).translate(_JOINED)))


def _join_surrogates(text: str) -> str:
    """Join the halves of surrogate pairs, as escapes leave them; a lone half becomes a replacement character."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _signals_of_hidden_text(text: str, hidden: list[str]) -> list[Signal]:
    if hidden:
        return [Signal("hidden_characters", 0.85)]
    if _IN_WORDS.occurs_in(text, _FEW_IN_WORDS) or _LONG_RUN.occurs_in(text):
        return [Signal("hidden_characters", 0.55)]
    if any(mark in text for mark in _OVERRIDES):
        return [Signal("hidden_characters", 0.40)]
    return []


def _smuggled_texts(text: str) -> list[str]:
    """Return ASCII text written in tag characters, and text written as bytes in variation selectors."""
    found: list[str] = []
    if _TAGS.occurs_in(text):
        tags = "".join(chr(ord(char) - _TAG_BASE) for char in _FLAG.sub("", text) if _TAG_BASE < ord(char) <= _TAG_END)
        if len(tags) >= _LEAST_TAGS:
            found.append(tags)
    if not _SELECTORS.occurs_in(text):
        return found
    selected = bytes(value for char in text if (value := _selected(ord(char))) is not None)
    if len(selected) >= _LEAST_BYTES:
        decoded = selected.decode("utf-8", "ignore")
        if len(decoded) >= _LEAST_BYTES and decoded.isprintable():
            found.append(decoded)
    return found


def _selected(code: int) -> int | None:
    if 0xE0100 <= code <= 0xE01EF:
        return code - 0xE0100 + 16
    # FE0E and FE0F choose how an emoji is drawn.
    return code - 0xFE00 if 0xFE00 <= code <= 0xFE0D else None


_JOINED: dict[int, str] = {
    code: ""
    for first, last in (
        (0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F),
        (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF),
        (0xFFA0, 0xFFA0), (0xFFF9, 0xFFFB), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
    )
    for code in range(first, last + 1)
}  # fmt: skip
# A zero-width space may mean a space, a soft hyphen never does.
_SPACED = {code: "" if code == _SOFT_HYPHEN else " " for code in _JOINED}


def _to_latin(text: str) -> str:
    """Replace look-alikes by the Latin letters they resemble, unless most letters are of another script."""
    latin = sum("a" <= char <= "z" or "A" <= char <= "Z" for char in text)
    foreign = sum("\u0370" <= char <= "\u052f" for char in text)
    return text.translate(_LOOK_ALIKES).translate(_FRAMED) if latin >= foreign or not foreign else text
