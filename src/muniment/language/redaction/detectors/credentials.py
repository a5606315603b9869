"""Finds credentials: keys with known prefixes, tokens that decode, and values assigned to a name such as `password`."""

import base64
import binascii
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from muniment.language.data_files import fill_parts, named_lines, read_sections
from muniment.language.redaction.normalised import FILLER, Span, lowered

_Check = Callable[[str], bool]

_KEYS = read_sections(__package__ or "", "known_keys.txt", joint="")
_FIRST, _LAST = r"(?<![A-Za-z0-9_-])", r"(?![A-Za-z0-9_-])"


def _varied(token: str) -> bool:
    """Say whether a token is as mixed as a random key."""
    return _entropy(token) >= 2.8 and any(map(str.isdigit, token)) and any(map(str.isalpha, token))


def _entropy(token: str) -> float:
    counts = Counter(token)
    return -sum(n / len(token) * math.log2(n / len(token)) for n in counts.values())


def _decoded(part: str) -> Any:
    try:
        return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (binascii.Error, ValueError, RecursionError):
        return None


def _is_jwt(token: str) -> bool:
    head = _decoded(token.partition(".")[0])
    return isinstance(head, dict) and ("alg" in head or "typ" in head or "enc" in head)


def _is_basic(token: str) -> bool:
    try:
        said = base64.b64decode(token.split()[-1] + "==", validate=False).decode()
    except (binascii.Error, ValueError):
        return False
    return ":" in said and said.isprintable()


def _is_bearer(said: str) -> bool:
    return _varied(said.split()[-1])


def _known_keys(section: str, check: _Check | None) -> Iterator[tuple[list[str], re.Pattern[str], _Check | None]]:
    for marks, pattern in named_lines(_KEYS[section]):
        yield marks.split(), re.compile(fill_parts(pattern, {"first": _FIRST, "last": _LAST})), check


# A text must hold one of the marks before the pattern is tried; the match must pass the check, if there is one.
_KNOWN: tuple[tuple[list[str], re.Pattern[str], _Check | None], ...] = (
    *_known_keys("keys", None),
    *_known_keys("varied keys", _varied),
    (
        ["eyJ"],
        re.compile(rf"{_FIRST}eyJ[0-9A-Za-z_-]{{8,4000}}\.[0-9A-Za-z_-]{{4,8000}}\.[0-9A-Za-z_-]{{0,4000}}"),
        _is_jwt,
    ),
    (["earer", "EARER"], re.compile(r"(?i)(?<![a-z])bearer[ \t]{1,4}[0-9A-Za-z._~+/-]{12,4000}={0,2}"), _is_bearer),
    (
        ["asic "],
        re.compile(r"(?i)(?<![a-z])basic[ \t]{1,4}[0-9A-Za-z+/]{12,400}={0,2}(?![0-9A-Za-z])"),
        _is_basic,
    ),
)
_MARKS = tuple(dict.fromkeys(mark for marks, _, _ in _KNOWN for mark in marks))
_SHORTEST_KNOWN = 15

_IN_A_URL = re.compile(r"://[^\s:/@\ufffc]{1,100}:([^\s/@\ufffc]{1,200})@")
_PEM = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_PEM_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_PEM_LINE = re.compile(r"[ \t>]{0,8}[A-Za-z0-9+/=:,. -]{0,128}\r?")
_PEM_LINES = 400

_SECRET_NAMES = re.compile(
    r"(?:(passw(?:or)?ds?|passwort|passphrase|kennwort|mot de passe|contrase[ñn]a|senha|pwd)"
    r"|(api[ _-]?keys?|apikey|secret[ _-]?(?:access[ _-]?)?keys?|access[ _-]?(?:key|token)s?"
    r"|auth(?:orization)?[ _-]?tokens?"
    r"|client[ _-]?secrets?|private[ _-]?keys?|account[ _-]?keys?|refresh[ _-]?tokens?|bearer[ _-]?tokens?|secrets?"
    r"|tokens?|credentials?))[a-z0-9_]{0,24}[\"']?"
    r"(?:[ \t]{0,3}(?:=>|:=|==|=|:)[ \t]{0,3}|[ \t]{1,2}(?:is|ist|est|es|was)"
    r"(?:[ \t]{0,2}[:=][ \t]{0,3}|[ \t]{1,2}))[\"'`]?"
)
# One of these is in every such name; to look for them first is ten times as fast.
_PARTS_OF_NAMES = ("pass", "kennwort", "contrase", "senha", "pwd", "key", "secret", "token", "credential")
_VALUE = re.compile(r"[^\s\"'`,;<>\ufffc]{4,500}")
_QUOTED = re.compile(r"[^\"'`\n\ufffc]{4,500}")


def find_credentials(text: str) -> Iterator[Span]:
    """Return keys, tokens and passwords."""
    known = len(text) >= _SHORTEST_KNOWN and any(map(text.__contains__, _MARKS))
    for marks, pattern, check in _KNOWN if known else ():
        if any(mark in text for mark in marks):
            yield from (found.span() for found in pattern.finditer(text) if check is None or check(found.group()))
    if "://" in text:
        yield from (found.span(1) for found in _IN_A_URL.finditer(text))
    if "PRIVATE KEY" in text:
        yield from _private_keys(text)
    if any(sign in text for sign in ("=", ":", " is ", " ist ", " est ", " es ", " was ")):
        yield from _assigned(text)


def _private_keys(text: str) -> Iterator[Span]:
    done = 0
    for begin in _PEM.finditer(text):
        if begin.start() < done:
            continue
        end = _PEM_END.search(text, begin.end())
        done = _end_of_body(text, begin.end()) if end is None else end.end()
        yield begin.start(), done


def _end_of_body(text: str, start: int) -> int:
    """Return where a truncated block ends: after the lines that still look like its body."""
    for _ in range(_PEM_LINES):
        line = _PEM_LINE.match(text, start)
        if line is None or (line.end() < len(text) and text[line.end()] != "\n"):
            return start
        start = min(line.end() + 1, len(text))
    return start


def _assigned(text: str) -> Iterator[Span]:
    done, lower = 0, lowered(text)
    if not any(map(lower.__contains__, _PARTS_OF_NAMES)):
        return
    for name in _SECRET_NAMES.finditer(lower):
        if name.start() < done:
            continue
        quoted = name.group()[-1] in "\"'`"
        value = (_QUOTED if quoted else _VALUE).match(text, name.end())
        if value is None:
            continue
        said = value.group() if quoted else value.group().rstrip(".)]}!?")
        if _is_password(said) if name.group(1) else _is_secret(said):
            done = value.start() + len(said)
            yield value.start(), done


def _is_password(said: str) -> bool:
    """Say whether a value looks like a password, not like a word, a placeholder or a type."""
    if len(said) < 5 or said[0] in "[<{*$(%" or FILLER in said or " " in said:
        return False
    kinds = (
        any(map(str.isdigit, said)),
        any(map(str.isupper, said[1:])) and any(map(str.islower, said)),
        any(not char.isalnum() and char not in "-_./" for char in said),
    )
    return any(kinds)


def _is_secret(said: str) -> bool:
    return len(said) >= 12 and said[0] not in "[<{*$(%" and "://" not in said and " " not in said and _varied(said)
