"""Characters that hide or disguise text: invisible ones, tags, and letters that only look Latin."""

import unicodedata
from dataclasses import dataclass

from muniment.language.instructions.patterns import Pattern
from muniment.language.instructions.signs import Sign

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
# Those nobody uses inside a Latin word by chance, as one may a Greek letter in a formula.
_TELLING = Pattern(
    "[A-Za-z][аеорсухіјѕԁԛԝһӏοᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ]"
    "|[аеорсухіјѕԁԛԝһӏοАЕОРСУХІЈЅВКМНТᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ][A-Za-z]"
)
# Squared, circled and flag letters that compatibility normalisation leaves alone.
_FRAMED = {
    start + offset: chr(ord("a") + offset) for start in (0x1F150, 0x1F170, 0x1F1E6) for offset in range(26)
}  # fmt: skip


@dataclass(frozen=True)
class Revealed:
    """The text without its disguise (the text itself first), what was hidden in it, and what that is a sign of."""

    views: tuple[str, ...]
    hidden: tuple[str, ...] = ()
    signs: tuple[Sign, ...] = ()


def reveal(text: str) -> Revealed:
    """Show what invisible and look-alike characters hide; ASCII hides nothing this way."""
    if text.isascii():
        return Revealed((text,))
    # halves of a pair, as escapes leave them, are put together; half a pair alone cannot be looked at
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    signs: list[Sign] = []
    hidden: list[str] = []
    joined = parted = text
    if _ANY_INVISIBLE.occurs_in(text):
        hidden += _smuggled(text)
        signs += _signs_of_hiding(text, hidden)
        joined, parted = text.translate(_JOINED), text.translate(_PARTED)
    plain = unicodedata.normalize("NFKC", joined)
    views = [plain]
    if parted != joined:
        views.append(unicodedata.normalize("NFKC", parted))
    latin = _as_latin(plain)
    if latin != plain:
        views.append(latin)
        if _TELLING.occurs_in(plain, _FEW_IN_WORDS):
            signs.append(Sign("look_alike_letters", 0.40))
    return Revealed(tuple(dict.fromkeys(views)), tuple(hidden), tuple(signs))


def as_seen(text: str) -> str:
    """The text as a reader takes it: nothing invisible in it, letters that only look Latin as those they look like."""
    if text.isascii():
        return text
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return _as_latin(unicodedata.normalize("NFKC", whole.translate(_JOINED)))


def _signs_of_hiding(text: str, hidden: list[str]) -> list[Sign]:
    if hidden:
        return [Sign("hidden_characters", 0.85)]
    if _IN_WORDS.occurs_in(text, _FEW_IN_WORDS) or _LONG_RUN.occurs_in(text):
        return [Sign("hidden_characters", 0.55)]
    if any(mark in text for mark in _OVERRIDES):
        return [Sign("hidden_characters", 0.40)]
    return []


def _smuggled(text: str) -> list[str]:
    """ASCII told in tag characters, or bytes told in variation selectors, where either makes text."""
    found: list[str] = []
    if _TAGS.occurs_in(text):
        tags = "".join(chr(ord(char) - _TAG_BASE) for char in _FLAG.cut_from(text) if _TAG_BASE < ord(char) <= _TAG_END)
        if len(tags) >= _LEAST_TAGS:
            found.append(tags)
    if not _SELECTORS.occurs_in(text):
        return found
    selected = bytes(value for char in text if (value := _selected(ord(char))) is not None)
    if len(selected) >= _LEAST_BYTES:
        said = selected.decode("utf-8", "ignore")
        if len(said) >= _LEAST_BYTES and said.isprintable():
            found.append(said)
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
# A zero-width space may stand for a space, a soft hyphen never.
_PARTED = {code: "" if code == _SOFT_HYPHEN else " " for code in _JOINED}


def _as_latin(text: str) -> str:
    """Look-alikes as the Latin letters they resemble, where most letters are Latin; else the text as it is."""
    latin = sum("a" <= char <= "z" or "A" <= char <= "Z" for char in text)
    foreign = sum("\u0370" <= char <= "\u052f" for char in text)
    return text.translate(_LOOK_ALIKES).translate(_FRAMED) if latin >= foreign or not foreign else text
