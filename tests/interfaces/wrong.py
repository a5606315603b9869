"""Wrong values for every kind of field; `wrong_calls.py` says which call takes which kind."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

KIB = 1024
SUBJECT = "customer:cust_1"
MARK = "s3cret"  # stands in most wrong values: no message may repeat it
NUL, CONTROL, SURROGATE = f"{MARK}\x00", f"{MARK}\x1b[31m", f"{MARK}\ud800"
NAIVE = datetime(2026, 1, 5, 9, 0)  # noqa: DTZ001  that is the point
FIRST = datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14)))
LAST = datetime(9999, 12, 31, 23, 59, tzinfo=timezone(timedelta(hours=-14)))


def nested(depth: int) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = [value]
    return value


def circular() -> Any:
    loop: list[Any] = []
    loop.append(loop)
    return loop


NOT_TEXT: list[Any] = [5, b"bytes", ["x"], {}, True, 1.5]
DIRTY = [NUL, CONTROL, SURROGATE]
NAMES = [*NOT_TEXT, *DIRTY, "", "x" * 257, f"{MARK}\n", f" {MARK}", "\u2028"]
IDS = [*NOT_TEXT, *DIRTY, "", "x" * 100_000, None]
TEXTS = [*NOT_TEXT, *DIRTY, "", "x" * (32 * KIB + 1), "ä" * (16 * KIB) + "x"]
NOTES = [*NOT_TEXT, *DIRTY, "", "x" * 4097]
QUERIES: list[Any] = [*NOT_TEXT, *DIRTY, "", "x" * 8193]
CEIDS = [
    *NOT_TEXT,
    *DIRTY,
    "",
    "nocolon",
    "customer:",
    ":x",
    "Customer:x",
    "customer:a b",
    "customer:a:b",
    "customer:x\n",
    "customer:a@b.example",
    "customer:4111111111111111",
    "customer:4111-1111-1111-1111",
    f"customer:{'x' * 129}",
    f"customer:{NUL}",
]
PREDICATES = [*NOT_TEXT, *DIRTY, "", "Likes", "9lives", "a b", "likes\n", "x" * 129, "*"]
INTENTS = [*NOT_TEXT, *DIRTY, "", "a..b", ".a", "a.", "a.*.b", "*", "a b", "x" * 257]
LABELS = [*NOT_TEXT, *DIRTY, "", "GEHEIM", "internal", "PII ", "x" * 65]
MOMENTS: list[Any] = [NAIVE, "yesterday", "2026-01-05T09:00:00", 0, -5, 2**62, float("nan"), True, {}, FIRST, LAST, NUL]
TIMES: list[Any] = [NAIVE, "yesterday", "2026-01-05T09:00:00", 5, float("nan"), True, {}, FIRST, LAST, NUL]
SHARES: list[Any] = [-0.1, 1.1, float("nan"), float("inf"), 10**400, "0.5", "much", True, [0.5], {}]
COUNTS: list[Any] = [0, -1, 10**30, 1.5, float("nan"), "3", True, [], {}]
ZONES: list[Any] = [5, "", "Europe/Nowhere", "localtime", "../etc/passwd", "UTC\n", NUL, {}, None]
CHOICES: list[Any] = [5, "", "nonsense", NUL, SURROGATE, ["x"], {}, True]
REFS: list[Any] = ["abc", 5, {"a": 1}, [5], [""], [NUL], [SURROGATE], ["x" * 257], [f"e:{n}" for n in range(65)]]
JSON: list[Any] = [
    float("nan"),
    {"a": float("-inf")},
    {1: "x"},
    {"a": {NUL: 1}},
    [SURROGATE],
    CONTROL,
    b"bytes",
    {"a": {1, 2}},
    object(),
    datetime.now(UTC),
    nested(40),
    nested(100_000),
    circular(),
    10**5000,
    {"n": [-(10**5000)]},
    "x" * 256 * KIB,
]
QUALIFIERS: list[Any] = [
    *("x", 5, ["a"]),
    *({"a": 5}, {5: "a"}, {"": "x"}, {"a": ""}, {NUL: "x"}, {"a": SURROGATE}, {"a": {"b": "c"}}),
    {f"k{n}": "v" for n in range(33)},
]
FLAGS: list[Any] = ["yes", 5, [], {}, 0.5]
ASKERS: list[Any] = [None, "boris", 5, {}, object(), {"tenant_id": "t", "id": "x", "kind": "operator"}]


@dataclass(frozen=True)
class Call:
    """A call that would work, with what is wrong for each of its arguments; `{name}` stands for an id of the story."""

    who: str
    good: dict[str, Any]
    wrong: dict[str, list[Any]]
    required: tuple[str, ...] = ()
    first: str = field(default="asker")
