"""What a request may hold, by its path: bytes, values and nesting of a body, parts of a query, headers."""

import re
from dataclasses import dataclass
from typing import Any

from muniment.errors import InvalidInput, TooLarge
from muniment.http.body_scanner import FormScan, JsonScan, Scan
from muniment.http.header_limits import HEADERS_LIMIT
from muniment.model.fields import DEPTH_LIMIT, PAYLOAD_LIMIT

KILOBYTE = 1024
MEGABYTE = 1024 * 1024
# A payload may be nested half as deep; its own check names the payload, which lies inside of other objects.
DEPTH = 2 * DEPTH_LIMIT
# Parts of a query, and cookies.
PARTS_LIMIT = 200
# Bodies up to the first length are parsed in the event loop, longer ones in a thread; those above the second count
# towards the bodies that may arrive at the same time.
SMALL = 16 * KILOBYTE
LONG = 64 * KILOBYTE


@dataclass(frozen=True)
class Bounds:
    """The limits on a body: `fields` for a form, the others for JSON.

    `string` is the bytes of one string as JSON writes it: up to six for each byte that a payload may have.
    """

    size: int
    values: int = 2_000
    string: int = 6 * PAYLOAD_LIMIT
    fields: int | None = None

    def scan(self) -> Scan:
        """A scan for such a body, fed as it arrives."""
        if self.fields is not None:
            return FormScan(fields=self.fields)
        return JsonScan(values=self.values, depth=DEPTH, string=self.string)


# The first pattern that matches. JSON may write a character in six bytes and a form in nine, so that a body may have
# several times the bytes of its texts.
_BOUNDS: tuple[tuple[re.Pattern[str], Bounds], ...] = tuple(
    (re.compile(pattern), bounds)
    for pattern, bounds in (
        (r"/v1/(captures|imports(/preview)?)", Bounds(16 * MEGABYTE, values=50_000)),
        (r"/v1/consents/documents", Bounds(4 * MEGABYTE, values=50_000)),
        (r"/v1/(proposals|corrections|queue/[^/]+/(edit|check))", Bounds(2 * MEGABYTE, values=25_000)),
        (r"/v1/golden", Bounds(4 * MEGABYTE, values=60_000)),
        (r"/v1/(queue/(approve|plan|reject|assign)|work/requeue)", Bounds(4 * MEGABYTE, values=11_000)),
        (r"/v1/packs/compare", Bounds(8 * MEGABYTE, values=100, string=4 * MEGABYTE)),
        (r"/v1/packs(/backtest)?", Bounds(4 * MEGABYTE, values=100, string=4 * MEGABYTE)),
        (r"/mcp.*", Bounds(2 * MEGABYTE, values=25_000)),
        (r"/console/signin", Bounds(32 * KILOBYTE, fields=16)),
        (r"/console/(packs(/.*)?|consent/load)", Bounds(4 * MEGABYTE, fields=64)),
        (r"/console(/.*)?", Bounds(1 * MEGABYTE, fields=2_000)),
    )
)
_OTHERS = Bounds(256 * KILOBYTE)


def bounds_of(path: str) -> Bounds:
    """The limits on a body that is sent to that path."""
    return next((bounds for pattern, bounds in _BOUNDS if pattern.fullmatch(path)), _OTHERS)


def check_head(scope: Any) -> None:
    """Check the headers and the query, which `HeaderLimits` keeps to 64 KiB; raises `TooLarge`, `InvalidInput`."""
    if len(scope["headers"]) > HEADERS_LIMIT:
        raise TooLarge(f"has more than {HEADERS_LIMIT} headers", field="headers")
    if scope["query_string"].count(b"&") >= PARTS_LIMIT:
        raise TooLarge(f"has more than {PARTS_LIMIT} parts", field="query")
    for name, value in scope["headers"]:
        if name == b"cookie" and value.count(b";") >= PARTS_LIMIT:
            raise TooLarge(f"has more than {PARTS_LIMIT} cookies", field="Cookie")
        if name == b"host" and not _HOST.fullmatch(value):
            raise InvalidInput("expected a host's name or address, and its port", field="Host")


_HOST = re.compile(rb"(?:[A-Za-z0-9._~%!$&'()*+,;=-]*|\[[0-9A-Fa-f:.]+\])(?::[0-9]{0,5})?")
