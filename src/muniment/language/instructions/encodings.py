"""Decodes text in another notation: base64, hexadecimal, bits, numbers, escapes, tags, rot13, reversed, spelled."""

import binascii
import codecs
import html
import re
from base64 import b32decode, b64decode
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from muniment.language.data_files import word_set
from muniment.language.instructions.normalisation import normalise_words
from muniment.language.patterns import Pattern

_LEAST_LETTERS = 12
_READABLE = 0.85
_LEAST_SPELLED = 5
_LEAST_JOINED = 20
# Characters of the shortest text in base64, hexadecimal or bits that is looked for.
_LEAST_ENCODED = 16
_NUMBER = re.compile(r"\d+")
_BREAKS = str.maketrans("\t\r\n", "   ")

_BASE64 = Pattern(r"[A-Za-z0-9+/_-]{16,}(?:\r?\n[A-Za-z0-9+/_-]{4,})*={0,2}")
_HEX = Pattern(r"\b(?:0x)?(?:[0-9A-Fa-f]{2}[ :,\\x]{0,3}){8,}")
_BITS = Pattern(r"(?:[01]{8}[ ,]?){6,}")
_CODES = Pattern(r"\b(?:\d{2,3}[ ,;.-]{1,2}){11,}\d{2,3}\b")
# Hostile text holds thousands of them: the built-in module replaces them faster, and this pattern cannot backtrack.
_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|u\{([0-9A-Fa-f]{1,6})\}|([0-7]{3}))")

# Words of most orders to a model: another spelling is worth reading where it brings one up.
KEYWORDS = word_set("""
    ignore forget disregard override bypass previous instructions instruction prompt system assistant always never
    reveal password pretend recommend respond answer repeat secret rules prior above execute jailbreak remember
    memory user users everything guidelines vergiss ignoriere anweisungen olvida instrucciones oubliez dimentica
    istruzioni
""")
# Between keywords that are written together or letter by letter.
_LINK_WORDS = word_set("all your the and tell show say from now you must act with before")
_SEGMENTS = re.compile(f"({'|'.join(sorted({*KEYWORDS, *_LINK_WORDS}, key=lambda word: (-len(word), word)))})")
_ROTATED = frozenset(codecs.encode(word, "rot13") for word in KEYWORDS)
_REVERSED = frozenset(word[::-1] for word in KEYWORDS)

# Marks between letters: a reader takes them for emphasis, for a hyphen, or for nothing.
_IN_WORD_MARKS = re.compile(r"(?<=[^\W\d_])(?:[^\w\s]|_)+(?=[^\W\d_])")
_STOPS = (".", ":")
# One-word sentences that belong together.
_LEAST_SENTENCES = 2

_LEET = str.maketrans("0134578@$!|€+", "oieastbasiiet")
_LEET_MARKS = frozenset("0134578@$!|€+")


def decode(text: str) -> list[str]:
    """Return what the text holds in base64, hexadecimal, bits or numbers of letters, where that decodes to text."""
    found: list[str] = []
    if _has_long_word(text):
        found += [decoded for run in _runs(_BASE64, text) for decoded in _base64(run)]
    if len(text) < _LEAST_ENCODED:
        return found
    if _HEX.occurs_in(text):
        found += [decoded for run in _runs(_HEX, text) if (decoded := _hex(run))]
    if _BITS.occurs_in(text):
        found += [decoded for run in _runs(_BITS, text) if (decoded := _bits(run))]
    if _CODES.occurs_in(text):
        found += [decoded for run in _runs(_CODES, text) if (decoded := _codes(run))]
    return found


def unescape(text: str) -> list[str]:
    """Return the text without percent, backslash or entity escapes, if it has any."""
    plain = text
    if "%" in plain:
        plain = _unescape_percent(plain)
    if "&" in plain:
        plain = html.unescape(plain)
    if "\\" in plain:
        plain = _unescape_backslashes(plain)
    return [plain] if plain != text else []


def respell(text: str, tokens: list[str]) -> list[str]:
    """Return other readings of the letters that bring up words of an order; `tokens` are the words of the text."""
    found: list[str] = []
    known = set(tokens)
    if not _ROTATED.isdisjoint(known):
        found.append(codecs.encode(text, "rot13"))
    if not _REVERSED.isdisjoint(known):
        found += [text[::-1], " ".join(word[::-1] for word in text.split())]
    if not _LEET_MARKS.isdisjoint(text):
        plain = _from_leetspeak(text)
        if not KEYWORDS.isdisjoint(plain.lower().split()):
            found.append(plain)
    unmarked = _IN_WORD_MARKS.sub("", text)
    if unmarked != text and _brings_up(unmarked, known):
        found.append(unmarked)
    return found + _join_letters(tokens) + _join_sentences(tokens)


def strip_tags(text: str) -> list[str]:
    """Return the text as it reads without its tags and comments, if it has any."""
    if "<" not in text or ">" not in text:
        return []
    first, *rest = text.split("<")
    parts = [first]
    for piece in rest:
        tag, closed, after = piece.partition(">")
        parts.append(after if closed else "<" + tag)
    return ["".join(parts)]


def is_readable(decoded: str) -> bool:
    """Say whether a decoded text is prose, not an image, a key or a record."""
    letters = sum(char.isalpha() for char in decoded)
    return (
        letters >= _LEAST_LETTERS
        and (letters + decoded.count(" ")) / len(decoded) >= _READABLE
        and len(decoded.split()) > 1
    )


def _runs(pattern: Pattern, text: str) -> Iterator[str]:
    return (str(match.group()) for match in pattern.finditer(text))


def _is_text(decoded: str) -> bool:
    return len(decoded) >= _LEAST_LETTERS and decoded.translate(_BREAKS).isprintable()


def _has_long_word(text: str) -> bool:
    return max(map(len, text.split()), default=0) >= _LEAST_ENCODED


def _base64(run: str) -> list[str]:
    plain = "".join(run.split()).rstrip("=").replace("-", "+").replace("_", "/")
    found: list[str] = []
    with suppress(binascii.Error, UnicodeDecodeError):
        decoded = b64decode(plain + "=" * (-len(plain) % 4))
        # Latin text in UTF-16 is every other byte.
        found.append((decoded if any(decoded[1::2]) else decoded[::2]).decode("utf-8"))
    if plain.isupper() and plain.isalnum():
        with suppress(binascii.Error, UnicodeDecodeError):
            found.append(b32decode(plain + "=" * (-len(plain) % 8)).decode("utf-8"))
    return [decoded for decoded in found if _is_text(decoded)]


def _hex(run: str) -> str | None:
    digits = "".join(char for char in run.replace("0x", "") if char not in " :,\\x")
    try:
        decoded = bytes.fromhex(digits).decode("utf-8", "ignore")
    except ValueError:
        return None
    return decoded if _is_text(decoded) else None


def _bits(run: str) -> str | None:
    digits = "".join(char for char in run if char in "01")
    decoded = int(digits, 2).to_bytes(len(digits) // 8, "big").decode("utf-8", "replace")
    return decoded if _is_text(decoded) else None


def _codes(run: str) -> str | None:
    decoded = "".join(chr(int(number)) for number in _NUMBER.findall(run))
    return decoded if _is_text(decoded) and decoded.isascii() else None


def _unescape_percent(text: str) -> str:
    first, *rest = text.split("%")
    parts = [first.encode("utf-8", "replace")]
    for piece in rest:
        try:
            parts += [bytes.fromhex(piece[:2]), piece[2:].encode("utf-8", "replace")]
        except ValueError:
            parts.append(b"%" + piece.encode("utf-8", "replace"))
    return b"".join(parts).decode("utf-8", "replace")


def _unescape_backslashes(text: str) -> str:
    plain = text.replace("\\r", "\n").replace("\\n", "\n").replace("\\t", " ").replace('\\"', '"')
    return _ESCAPE.sub(_unescape_one, plain)


def _unescape_one(escape: re.Match[str]) -> str:
    *hexadecimal, octal = escape.groups()
    number = int(octal, 8) if octal else int(next(filter(None, hexadecimal)), 16)
    return chr(number) if number <= 0x10FFFF else ""


def _from_leetspeak(text: str) -> str:
    return " ".join([word if _LEET_MARKS.isdisjoint(word) else _word_from_leetspeak(word) for word in text.split()])


def _word_from_leetspeak(word: str) -> str:
    if not any(map(str.isalpha, word)):
        return word
    return word.replace("11", "ll").replace("1l", "ll").translate(_LEET)


def _join_letters(tokens: list[str]) -> list[str]:
    """Return words written letter by letter or without spaces, alone and in the text, with a space between."""
    lengths = [*map(len, tokens), 0]
    if lengths.count(1) < _LEAST_SPELLED and max(lengths) < _LEAST_JOINED:
        return []
    runs: list[str] = []
    words: list[str] = []
    run: list[str] = []
    for token in (*tokens, ""):
        if len(token) == 1 and token.isalnum():
            run.append(token)
            continue
        if run and token in (".", ":"):
            continue
        if len(run) >= _LEAST_SPELLED:
            runs.append(_segmented(run))
            words.append(runs[-1])
        else:
            words += run
        run = []
        if len(token) >= _LEAST_JOINED and token.isalpha():
            runs.append(_segmented(token))
            words.append(runs[-1])
        else:
            words.append(token)
    alone = " ".join(runs)
    in_place = [] if KEYWORDS.isdisjoint(alone.lower().split()) else [" ".join(words)]
    return list(dict.fromkeys((alone, *in_place))) if runs else []


def _brings_up(plain: str, known: set[str]) -> bool:
    """Say whether a reading has words of an order that the text has not."""
    return not KEYWORDS.isdisjoint({*normalise_words(plain).split()} - known)


def _join_sentences(tokens: Sequence[str]) -> list[str]:
    """Return the text without the stops around sentences of one word, where several have words of an order."""
    sentences: list[list[str]] = [[]]
    for token in tokens:
        if token in _STOPS:
            sentences.append([])
        else:
            sentences[-1].append(token)
    said = [words for words in sentences if words]
    alone = [words[0] for words in said if len(words) == 1]
    if len(alone) < _LEAST_SENTENCES or KEYWORDS.isdisjoint(alone):
        return []
    joined: list[str] = []
    before: list[str] = []
    for words in said:
        if before and len(before) > 1 and len(words) > 1:
            joined.append(".")
        joined += words
        before = words
    return [" ".join(joined)]


def _segmented(letters: Iterable[str]) -> str:
    return _SEGMENTS.sub(r" \1 ", "".join(letters))
