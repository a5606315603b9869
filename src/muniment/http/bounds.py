"""What a request may bring, by its address: bytes, values and nesting of a body, parts of a query; and all together."""

import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

from muniment.errors import InvalidInput, RateLimited, TooLarge
from muniment.http.body_scanner import FormScan, JsonScan, Scan
from muniment.model.fields import DEPTH_LIMIT, PAYLOAD_LIMIT

KILOBYTE = 1024
MEGABYTE = 1024 * 1024
# A payload may be nested half as deep; that is told of the payload, which stands inside of other things.
DEPTH = 2 * DEPTH_LIMIT
HEADERS_LIMIT = 128
# Parts of a query, and cookies.
PARTS_LIMIT = 200
# Bodies up to the first length are parsed where they arrive, longer ones in a thread; from the second on they count
# towards what may arrive at once.
SMALL = 16 * KILOBYTE
LONG = 64 * KILOBYTE


@dataclass(frozen=True)
class Bounds:
    """The most that a body may have; `fields` is for forms, all others are JSON.

    `string` is the bytes of one string as it is written: six for each of those that a payload may have.
    """

    size: int
    values: int = 2_000
    string: int = 6 * PAYLOAD_LIMIT
    fields: int | None = None

    def scan(self) -> Scan:
        """What looks at such a body as it arrives."""
        if self.fields is not None:
            return FormScan(fields=self.fields)
        return JsonScan(values=self.values, depth=DEPTH, string=self.string)


# The first that fits holds. JSON may write a character in six bytes and a form in nine, so that a body may have several
# times the bytes of its texts.
_BOUNDS: tuple[tuple[re.Pattern[str], Bounds], ...] = tuple(
    (re.compile(pattern), bounds)
    for pattern, bounds in (
        (r"/v1/captures", Bounds(16 * MEGABYTE, values=50_000)),
        (r"/v1/(proposals|corrections|queue/[^/]+/(edit|check))", Bounds(2 * MEGABYTE, values=25_000)),
        (r"/v1/golden", Bounds(4 * MEGABYTE, values=60_000)),
        (r"/v1/(queue/approve|work/requeue)", Bounds(4 * MEGABYTE, values=11_000)),
        (r"/v1/packs/compare", Bounds(8 * MEGABYTE, values=100, string=4 * MEGABYTE)),
        (r"/v1/packs(/backtest)?", Bounds(4 * MEGABYTE, values=100, string=4 * MEGABYTE)),
        (r"/mcp.*", Bounds(2 * MEGABYTE, values=25_000)),
        (r"/console/signin", Bounds(32 * KILOBYTE, fields=16)),
        (r"/console/packs(/.*)?", Bounds(4 * MEGABYTE, fields=64)),
        (r"/console(/.*)?", Bounds(1 * MEGABYTE, fields=2_000)),
    )
)
_OTHERS = Bounds(256 * KILOBYTE)


def bounds_of(path: str) -> Bounds:
    """What a body that is sent to that address may have."""
    return next((bounds for pattern, bounds in _BOUNDS if pattern.fullmatch(path)), _OTHERS)


def check_head(scope: Any) -> None:
    """Bound what stands in a head, which is at most 64 KiB long; raises `TooLarge`, `InvalidInput`."""
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


class Arriving:
    """The bytes of long bodies that are here at the same time, of everybody and of each who sends them."""

    def __init__(self, *, total: int, each: int) -> None:
        self._total = total
        self._each = each
        self._here = 0
        self._of: Counter[str] = Counter()

    def add(self, who: str, size: int) -> None:
        """Count some more; raises `RateLimited` where that is too much at once."""
        if self._here + size > self._total or self._of[who] + size > self._each:
            raise RateLimited("too many long bodies at once; wait and send it again", wait=1)
        self._here += size
        self._of[who] += size

    def remove(self, who: str, size: int) -> None:
        """They were dealt with."""
        self._here -= size
        self._of[who] -= size
        if not self._of[who]:
            del self._of[who]
