"""Text told in another notation: base64, hexadecimal, escapes, entities, rotated, reversed, spelled or in digits."""

import binascii
import codecs
import html
import re
from base64 import b32decode, b64decode
from contextlib import suppress

from muniment.language.instructions.patterns import Pattern

_LEAST_LETTERS = 12
_READABLE = 0.85
_LEAST_SPELLED = 5
_BREAKS = str.maketrans("\t\r\n", "   ")

_BASE64 = Pattern(r"[A-Za-z0-9+/_-]{16,}(?:\r?\n[A-Za-z0-9+/_-]{4,})*={0,2}")
_HEX = Pattern(r"\b(?:0x)?(?:[0-9A-Fa-f]{2}[ :,\\x]{0,3}){8,}")
_BITS = Pattern(r"(?:[01]{8}[ ,]?){6,}")
# Replaced one by one, thousands of them in hostile text: the built-in module is quicker at that, and nothing here can
# make it go back over what it read.
_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|u\{([0-9A-Fa-f]{1,6})\}|([0-7]{3}))")

# Words an order to a model can hardly do without: they tell whether a reading of letters is meant.
KEYWORDS = frozenset(
    re.findall(
        r"\w+",
        "ignore forget disregard override bypass previous instructions instruction prompt system assistant always never"
        " reveal password pretend recommend respond answer repeat secret rules prior above execute jailbreak remember"
        " memory user users everything guidelines vergiss ignoriere anweisungen olvida instrucciones oubliez dimentica"
        " istruzioni",
    )
)
# Between keywords that are written together or letter by letter.
_LINKS = ("all", "your", "the", "and", "tell", "show", "say", "from", "now", "you", "must", "act", "with", "before")
_SEGMENTS = re.compile(f"({'|'.join(sorted({*KEYWORDS, *_LINKS}, key=lambda word: (-len(word), word)))})")
_ROTATED = frozenset(codecs.encode(word, "rot13") for word in KEYWORDS)
_REVERSED = frozenset(word[::-1] for word in KEYWORDS)

_LEET = str.maketrans("0134578@$!|€+", "oieastbasiiet")
_LEET_MARKS = frozenset("0134578@$!|€+")


def decoded(text: str) -> list[str]:
    """What stands in base64, hexadecimal or bits in the text, where it is text at all."""
    found: list[str] = []
    if _has_long_word(text):
        found += [said for run in _BASE64.runs(text) for said in _base64(run)]
    if _HEX.occurs_in(text):
        found += [said for run in _HEX.runs(text) if (said := _hex(run))]
    if _BITS.occurs_in(text):
        found += [said for run in _BITS.runs(text) if (said := _bits(run))]
    return found


def unescaped(text: str) -> list[str]:
    """The text without percent, backslash or entity escapes, where it has any."""
    plain = text
    if "%" in plain:
        plain = _without_percent(plain)
    if "&" in plain:
        plain = html.unescape(plain)
    if "\\" in plain:
        plain = _without_backslashes(plain)
    return [plain] if plain != text else []


def respelled(text: str, tokens: list[str]) -> list[str]:
    """Other readings of the letters, where they bring up words that orders are made of; `tokens` are its words."""
    found: list[str] = []
    known = set(tokens)
    if not _ROTATED.isdisjoint(known):
        found.append(codecs.encode(text, "rot13"))
    if not _REVERSED.isdisjoint(known):
        found += [text[::-1], " ".join(word[::-1] for word in text.split())]
    if not _LEET_MARKS.isdisjoint(text):
        plain = _without_leet(text)
        if not KEYWORDS.isdisjoint(plain.lower().split()):
            found.append(plain)
    return found + _spelled(tokens)


def is_readable(said: str) -> bool:
    """Whether decoded bytes are prose, and not an image, a key or a record."""
    letters = sum(char.isalpha() for char in said)
    return letters >= _LEAST_LETTERS and (letters + said.count(" ")) / len(said) >= _READABLE and len(said.split()) > 1


def _is_text(said: str) -> bool:
    return len(said) >= _LEAST_LETTERS and said.translate(_BREAKS).isprintable()


def _has_long_word(text: str) -> bool:
    return any(len(word) >= 16 for word in text.split())


def _base64(run: str) -> list[str]:
    plain = "".join(run.split()).rstrip("=").replace("-", "+").replace("_", "/")
    found: list[str] = []
    with suppress(binascii.Error, UnicodeDecodeError):
        found.append(b64decode(plain + "=" * (-len(plain) % 4)).decode("utf-8"))
    if plain.isupper() and plain.isalnum():
        with suppress(binascii.Error, UnicodeDecodeError):
            found.append(b32decode(plain + "=" * (-len(plain) % 8)).decode("utf-8"))
    return [said for said in found if _is_text(said)]


def _hex(run: str) -> str | None:
    digits = "".join(char for char in run.replace("0x", "") if char not in " :,\\x")
    try:
        said = bytes.fromhex(digits).decode("utf-8", "ignore")
    except ValueError:
        return None
    return said if _is_text(said) else None


def _bits(run: str) -> str | None:
    digits = "".join(char for char in run if char in "01")
    said = int(digits, 2).to_bytes(len(digits) // 8, "big").decode("utf-8", "replace")
    return said if _is_text(said) else None


def _without_percent(text: str) -> str:
    first, *rest = text.split("%")
    parts = [first.encode("utf-8", "replace")]
    for piece in rest:
        try:
            parts += [bytes.fromhex(piece[:2]), piece[2:].encode("utf-8", "replace")]
        except ValueError:
            parts.append(b"%" + piece.encode("utf-8", "replace"))
    return b"".join(parts).decode("utf-8", "replace")


def _without_backslashes(text: str) -> str:
    plain = text.replace("\\r", "\n").replace("\\n", "\n").replace("\\t", " ").replace('\\"', '"')
    return _ESCAPE.sub(_escaped, plain)


def _escaped(escape: re.Match[str]) -> str:
    *hexadecimal, octal = escape.groups()
    number = int(octal, 8) if octal else int(next(filter(None, hexadecimal)), 16)
    return chr(number) if number <= 0x10FFFF else ""


def _without_leet(text: str) -> str:
    words = (
        word.replace("11", "ll").replace("1l", "ll").translate(_LEET) if any(char.isalpha() for char in word) else word
        for word in text.split()
    )
    return " ".join(words)


def _spelled(tokens: list[str]) -> list[str]:
    """Words that were written letter by letter, or all together, put back with a space between."""
    runs: list[str] = []
    run: list[str] = []
    for token in (*tokens, ""):
        if len(token) == 1 and token.isalnum():
            run.append(token)
            continue
        if token in (".", ":"):
            continue
        if len(run) >= _LEAST_SPELLED:
            runs.append("".join(run))
        run = []
        if len(token) >= 20 and token.isalpha():
            runs.append(token)
    return [" ".join(_SEGMENTS.sub(r" \1 ", letters) for letters in runs)] if runs else []
