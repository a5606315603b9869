"""Finds IP addresses, and URLs for packs that have a rule for them."""

import re
from collections.abc import Iterator
from ipaddress import AddressValueError, IPv6Address

from muniment.language.redaction.normalised import FILLER, Span, before

_V4 = re.compile(r"(?<![0-9A-Za-z_.])(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?![0-9A-Za-z_])(?!\.[0-9])")
_V6 = re.compile(r"(?<![0-9A-Za-z_.:])(?=[0-9A-Fa-f]{0,4}:)[0-9A-Fa-f:]{3,39}(?:[0-9]{1,3}(?:\.[0-9]{1,3}){3})?")
_ZONE = re.compile(r"%[0-9A-Za-z]{1,15}")
_VERSION = re.compile(
    r"(?i)(?:\b(?:version|versions|ver|v|release|released|build|upgrade(?:d)? to|firmware|section|chapter|clause"
    r"|§|rev|revision)[ .:#-]*|[A-Za-z]/|-v?|==|>=|<=|~=|\^|~)$"
)
_SUFFIX = re.compile(r"-(?:alpha|beta|rc|dev|snapshot|pre|final|[0-9]+ubuntu)", re.IGNORECASE)
_NEAR = 16

_SCHEME = re.compile(r"(?i)(?<![A-Za-z0-9])(?:https?|ftps?|sftp|wss?)://[^\s<>\"'`{}|\\^\ufffc]{3,2000}")
_BARE = re.compile(
    r"(?i)(?<![@\w.\-/])(?:www\.)?(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.){1,6}"
    r"(?:com|org|net|edu|gov|info|biz|io|dev|app|ai|co|me|tv|xyz|online|shop|site|tech|eu|uk|de|fr|es|it|nl|be|ch|at|se"
    r"|no|dk|fi|pl|pt|cz|ie|ca|us|au|nz|in|jp|cn|br|mx|ru|za)(?![\w@-])(?!\.\w)(?:[:/?#][^\s<>\"'`{}|\\^\ufffc]{0,2000})?"
)
_CLOSING = ".,;:!?)]'\""


def find_ips(text: str) -> Iterator[Span]:
    """Return IPv4 and IPv6 addresses, but no version numbers as far as the words before them tell."""
    if "." in text:
        for found in _V4.finditer(text):
            if _is_v4(found.group()) and not _is_version(text, found):
                yield found.span()
    if "::" in text or text.count(":") > 6:
        for found in _V6.finditer(text):
            if span := _v6(text, found):
                yield span


def _is_v4(address: str) -> bool:
    return all(int(part) <= 255 and (part == "0" or part[0] != "0") for part in address.split("."))


def _is_version(text: str, found: re.Match[str]) -> bool:
    lead = before(text, found.start(), _NEAR)
    return bool(_VERSION.search(lead) or _SUFFIX.match(text, found.end()))


def _v6(text: str, found: re.Match[str]) -> Span | None:
    address = found.group()
    # A colon that ends the sentence before a list is not part of it.
    if address.endswith(":") and not address.endswith("::"):
        address = address[:-1]
    end = found.start() + len(address)
    if end < len(text) and (text[end].isalnum() or text[end] == "_") and text[end] != FILLER:
        return None
    groups = [group for group in address.split(":") if group]
    # `a::b` and `[1::2]` are written by programmers; an address of a person's line has more to it.
    if len(groups) < 2 or (len(groups) < 3 and len(groups[0]) < 4) or not any(char.isdigit() for char in address):
        return None
    try:
        IPv6Address(address)
    except AddressValueError:
        return None
    zone = _ZONE.match(text, end)
    return found.start(), zone.end() if zone else end


def find_urls(text: str) -> Iterator[Span]:
    """Return URLs with their scheme, and bare domains under a well-known top level."""
    done = 0
    for found in _SCHEME.finditer(text):
        done = found.end()
        yield found.start(), _without_closing(text, found)
    if "." not in text:
        return
    for found in _BARE.finditer(text):
        if not done or not text[max(0, found.start() - 3) : found.start()].endswith("://"):
            yield found.start(), _without_closing(text, found)


def _without_closing(text: str, found: re.Match[str]) -> int:
    end = found.end()
    while end > found.start() and text[end - 1] in _CLOSING:
        # A bracket that was opened inside belongs to it.
        if text[end - 1] == ")" and text.count("(", found.start(), end) >= text.count(")", found.start(), end):
            break
        end -= 1
    return end
