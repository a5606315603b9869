"""Mail addresses: from the sign at their middle to both sides."""

import re
from collections.abc import Iterator

from muniment.policy.redaction.sight import Span

# Read backwards, from the sign on.
_LOCAL = re.compile(r"[\w.%+\-!#$&'/=?^`{|}~]+")
_DOMAIN = re.compile(r"[\w.\-]+")
_TOP = re.compile(r"(?:[^\W\d_]{2,24}|xn--[a-z0-9-]{2,59})", re.IGNORECASE)
_SPELLED_SIGN = re.compile(r"[\[({] ?at ?[\])}]", re.IGNORECASE)
_SPELLED = re.compile(
    r"(?i)(?<![\w.+-])[a-z0-9][\w.+-]{0,63} ?[\[({] ?at ?[\])}] ?[a-z0-9][a-z0-9-]{0,62}"
    r"(?: ?(?:\.|[\[({] ?dot ?[\])}]) ?[a-z0-9-]{2,63}){1,4}(?![\w-])"
)
_LONGEST_LOCAL, _LONGEST_DOMAIN, _LONGEST_LABEL = 64, 253, 63


def find_mails(text: str) -> Iterator[Span]:
    """Addresses with a domain that has a top level; also `name [at] example [dot] com`."""
    done = 0
    sign = text.find("@")
    while sign >= 0:
        span = _around(text, sign, done)
        if span is not None:
            yield span
            done = span[1]
        sign = text.find("@", max(sign + 1, done))
    if _SPELLED_SIGN.search(text):
        yield from (found.span() for found in _SPELLED.finditer(text))


def _around(text: str, sign: int, done: int) -> Span | None:
    if sign == done or not text[sign + 1 : sign + 2].isalnum():
        return None
    local = _LOCAL.match(text[max(done, sign - _LONGEST_LOCAL) : sign][::-1])
    domain = _DOMAIN.match(text, sign + 1, min(len(text), sign + 1 + _LONGEST_DOMAIN))
    if local is None or domain is None:
        return None
    name = local.group()[::-1].lstrip(".'`!#$&/=?^{|}~-")
    place = _up_to_the_top_level(domain.group())
    if not name or name.endswith(".") or place is None:
        return None
    end = sign + 1 + len(place)
    # `git@host:owner/repository` is the address of a machine.
    if name == "git" and text.startswith(":", end):
        return None
    return sign - len(name), end


def _up_to_the_top_level(domain: str) -> str | None:
    """As much of it as ends in a top-level domain: what follows a sentence's full stop is left out."""
    labels = domain.split(".")
    for size in range(len(labels), 1, -1):
        if _TOP.fullmatch(labels[size - 1]) and all(map(_is_label, labels[: size - 1])):
            return ".".join(labels[:size])
    return None


def _is_label(label: str) -> bool:
    return 0 < len(label) <= _LONGEST_LABEL and not label.startswith("-") and not label.endswith("-")
