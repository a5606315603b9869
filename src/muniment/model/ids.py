"""Ids: prefixed, sortable by creation time, unique without coordination."""

import os
import re
from datetime import UTC, datetime
from typing import Literal

Prefix = Literal[
    "cap", "mc", "mwp", "rv", "pm", "ctr", "cns", "rcl", "cmp", "evt", "whk", "era", "cal", "arc", "gld", "bkf",
    "key", "nsr", "crq", "erq", "otc", "imp", "bak", "ntc",
]  # fmt: skip

CEID_PATTERN = r"^[a-z][a-z0-9_]*:[A-Za-z0-9._-]{1,128}$"
# An entity, or all under one of its parts: `item:a.*` is all of `item:a.b` and `item:a.c.d`, not `item:ab`.
ENTITIES_PATTERN = r"^[a-z][a-z0-9_]*:([A-Za-z0-9._-]{1,128}|([A-Za-z0-9._-]{1,126}\.)?\*)$"
# No clock shows a time whose first digit is another.
_OURS = re.compile(r"[a-z]+_(0[0-9a-f]{11})[0-9a-f]{16}")
# On its own, not within a longer word: one UUID in some hundred would be taken for a card otherwise.
_CARD_RUN = re.compile(r"(?<![0-9A-Za-z])\d(?:[._-]?\d){12,18}(?![0-9A-Za-z])")


# Numbers of an issuer's range and length: other long numbers, such as times and counters, pass the check by chance.
_ISSUED = re.compile(
    r"4\d{12}(?:\d{3}(?:\d{3})?)?|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}|3[47]\d{13}"
    r"|3(?:0[0-5]|09|[689]\d)\d{11}|35(?:2[89]|[3-8]\d)\d{12,15}|6(?:011|4[4-9]\d|5\d\d)\d{12,15}|62\d{14,17}"
    r"|220[0-5]\d{12,15}|(?:50|5[6-8]|6[037]|8[12])\d{14}|9792\d{12}"
)


def is_ceid(name: str) -> bool:
    """Whether a name is that of an entity: `namespace:id`."""
    return re.fullmatch(CEID_PATTERN, name) is not None


def make_ids(prefix: Prefix, count: int, now: datetime) -> list[str]:
    """Make ids in ascending order: 12 hex digits of milliseconds, 16 random ones."""
    millis = int(now.timestamp() * 1000)
    # The top bit stays free so that counting up within a batch cannot run over.
    start = int.from_bytes(os.urandom(8), "big") >> 1
    head = f"{prefix}_{millis:012x}"
    return [f"{head}{start + n:016x}" for n in range(count)]


def make_id(prefix: Prefix, now: datetime) -> str:
    """One id."""
    return make_ids(prefix, 1, now)[0]


def first_id(prefix: Prefix, at: datetime) -> str:
    """The smallest id of that time or later."""
    return f"{prefix}_{int(at.timestamp() * 1000):012x}"


def made_at(made: str) -> datetime | None:
    """When an id was made, to the millisecond; None for anything else."""
    found = _OURS.fullmatch(made)
    return datetime.fromtimestamp(int(found[1], 16) / 1000, UTC) if found is not None else None


def holds_card_number(text: str) -> bool:
    """Whether a run of 13 to 19 digits in it is of an issuer's range and length and passes the Luhn check."""
    if len(text) < 13:
        return False
    runs = (re.sub(r"\D", "", run.group()) for run in _CARD_RUN.finditer(text))
    return any(_ISSUED.fullmatch(digits) is not None and _luhn(digits) for digits in runs)


def _luhn(digits: str) -> bool:
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (2 if place % 2 else 1)
        total += value - 9 if value > 9 else value
    return total % 10 == 0
