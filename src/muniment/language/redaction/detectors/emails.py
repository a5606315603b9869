"""Finds e-mail addresses: from the `@` to both sides."""

import re
from collections.abc import Iterator

from muniment.language.redaction.normalised import Span, before

# Matched backwards from the `@`.
_LOCAL = re.compile(r"[\w.%+\-!#$&'/=?^`{|}~]+")
_DOMAIN = re.compile(r"[\w.\-]+")
_TOP = re.compile(r"(?:[^\W\d_]{2,24}|xn--[a-z0-9-]{2,59})", re.IGNORECASE)
# The `@` as programs escape it in links, pages and strings.
_ESCAPED_SIGN = re.compile(r"%40|&#0{0,4}64;|&#x0{0,4}40;|&commat;|\\u0040|\\x40", re.IGNORECASE)
_ESCAPED_LOCAL = re.compile(r"[\w.+\-]+")
_QUOTED = re.compile(r"\"[^\"\r\n\ufffc@]{1,62}\"$")
# With spaces around the `@` the name must be written as in an address, or mail must be mentioned before it.
_SPACED = re.compile(
    r"(?<![\w.+%-])(?P<name>[^\W_](?:[\w.+-]{0,62}[^\W_])?)(?: {1,2}@ {0,2}|@ {1,2})(?P<place>[^\W_][\w.-]{0,252})"
)
_LIKE_A_NAME = re.compile(r"[^\W\d_][\w+-]*[._+][^\W_]|[^\W\d_]{2,}[0-9]+$")
_MAIL_BEFORE = re.compile(
    r"(?i)mail[a-z]{0,8}[^\w\ufffc]{1,3}(?:(?:is|at|to|me|us|him|her|them|address|ist|an)[^\w\ufffc]{1,3}){0,3}$"
)
_SPELLED_SIGN = re.compile(r"[\[({] ?at ?[\])}]", re.IGNORECASE)
_SPELLED = re.compile(
    r"(?i)(?<![\w.+-])[a-z0-9][\w.+-]{0,63} ?[\[({] ?at ?[\])}] ?[a-z0-9][a-z0-9-]{0,62}"
    r"(?: ?(?:\.|[\[({] ?dot ?[\])}]) ?[a-z0-9-]{2,63}){1,4}(?![\w-])"
)
_NEAR = 32
_LONGEST_LOCAL, _LONGEST_DOMAIN, _LONGEST_LABEL = 64, 253, 63


def find_emails(text: str) -> Iterator[Span]:
    """Return addresses whose domain has a top level; also `name [at] example [dot] com` and `name%40example.com`."""
    done = 0
    sign = text.find("@")
    while sign >= 0:
        span = _around(text, sign, done)
        if span is not None:
            yield span
            done = span[1]
        sign = text.find("@", max(sign + 1, done))
    if "@ " in text or " @" in text:
        yield from _spaced(text)
    for escaped in _ESCAPED_SIGN.finditer(text):
        if (span := _around_escaped(text, *escaped.span())) is not None:
            yield span
    if _SPELLED_SIGN.search(text):
        yield from (found.span() for found in _SPELLED.finditer(text))


def _around(text: str, sign: int, done: int) -> Span | None:
    if sign == done or not text[sign + 1 : sign + 2].isalnum():
        return None
    lead = text[max(done, sign - _LONGEST_LOCAL) : sign]
    domain = _DOMAIN.match(text, sign + 1, min(len(text), sign + 1 + _LONGEST_DOMAIN))
    if domain is not None and (quoted := _QUOTED.search(lead)):
        index = _up_to_the_top_level(domain.group())
        return (sign - len(quoted.group()), sign + 1 + len(index)) if index is not None else None
    local = _LOCAL.match(lead[::-1])
    if local is None or domain is None:
        return None
    name = local.group()[::-1].lstrip(".'`!#$&/=?^{|}~-")
    index = _up_to_the_top_level(domain.group())
    if not name or name.endswith(".") or index is None:
        return None
    end = sign + 1 + len(index)
    # `git@host:owner/repository` is the address of a machine.
    if name == "git" and text.startswith(":", end):
        return None
    return sign - len(name), end


def _around_escaped(text: str, sign: int, after: int) -> Span | None:
    local = _ESCAPED_LOCAL.match(text[max(0, sign - _LONGEST_LOCAL) : sign][::-1])
    domain = _DOMAIN.match(text, after, min(len(text), after + _LONGEST_DOMAIN))
    name = local.group()[::-1].lstrip(".-") if local else ""
    index = _up_to_the_top_level(domain.group()) if domain else None
    return (sign - len(name), after + len(index)) if name and index is not None else None


def _spaced(text: str) -> Iterator[Span]:
    for found in _SPACED.finditer(text):
        index = _up_to_the_top_level(found["place"])
        if index is None or index.lower().startswith("www."):
            continue
        if _LIKE_A_NAME.match(found["name"]) or _MAIL_BEFORE.search(before(text, found.start(), _NEAR)):
            yield found.start(), found.start("place") + len(index)


def _up_to_the_top_level(domain: str) -> str | None:
    """Return the longest start of it that ends in a top-level domain; None where there is none."""
    labels = domain.split(".")
    for size in range(len(labels), 1, -1):
        if _TOP.fullmatch(labels[size - 1]) and all(map(_is_label, labels[: size - 1])):
            return ".".join(labels[:size])
    return None


def _is_label(label: str) -> bool:
    return 0 < len(label) <= _LONGEST_LABEL and not label.startswith("-") and not label.endswith("-")
