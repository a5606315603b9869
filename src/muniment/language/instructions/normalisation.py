"""Normalises a text for the rules: lower-case words without accents, one space apart, with stops between clauses."""

# ruff: noqa: RUF001 (the marks are meant)
import unicodedata

# Letters that do not decompose into a Latin letter and a mark.
_LETTERS = {
    "ß": "ss", "ø": "o", "đ": "d", "ł": "l", "ı": "i", "æ": "ae", "œ": "oe", "ð": "d", "þ": "th", "ƒ": "f",
}  # fmt: skip
_ENDS = ".!?…。．؟۔।"
_CLAUSES = ":;：；؛"
_REMOVED = "'’‘ʼ`´"


def _table() -> dict[int, str]:
    table = {code: " " for code in range(128) if not chr(code).isalnum()}
    # Punctuation, symbols and spaces of every script, pictures too.
    table |= {code: " " for code in range(128, 0x1FB00) if unicodedata.category(chr(code))[0] in "PSZ"}
    table |= {ord(mark): " . " for mark in _ENDS}
    table |= {ord(mark): " : " for mark in _CLAUSES}
    table |= {ord(mark): "" for mark in _REMOVED}
    return table | {ord(letter): plain for letter, plain in _LETTERS.items()}


_TABLE = _table()


# All combining characters.
_MARKS = {code: None for code in range(0x300, 0x1F000) if unicodedata.combining(chr(code))}


def fold(text: str) -> str:
    """Return the text in lower case without accents."""
    lowered = text.lower()
    if lowered.isascii():
        return lowered
    return unicodedata.normalize("NFKD", lowered).translate(_MARKS)


def normalise_words(text: str) -> str:
    """Return the words of a text, with ` . ` at either end and after every sentence or line, ` : ` at every colon."""
    if "\n" in text or "\r" in text:
        text = _join_lines(text)
    return f" . {' '.join(fold(text).translate(_TABLE).split())} . "


def _join_lines(text: str) -> str:
    # A line that goes on in lower case is the same sentence, wrapped.
    parts: list[str] = []
    for line in text.splitlines():
        stripped = line.strip()
        parts.append(" " if stripped[:1].islower() else " . ")
        parts.append(stripped)
    return "".join(parts)
