"""The canonical bytes of one row: its columns as PostgreSQL's binary record format writes them.

The database computes the same bytes with `record_send(ROW(...))`, so that a verification reads one hash for each row
and no columns. Every column is cast to one of the types below first: a change of a column's type keeps the bytes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from hashlib import sha256
from json.encoder import encode_basestring
from struct import Struct
from typing import Any, Literal, cast

Kind = Literal["text", "int", "float", "bool", "time", "json", "bytes", "texts"]

# Stands for the end of time, as `'infinity'` does in the database.
INFINITY = object()
_NULL = -1
_HEAD = Struct(">Ii")
_COUNT = Struct(">i")
_INT = Struct(">q")
_FLOAT = Struct(">d")
_ARRAY = Struct(">iiI")
_DIMENSION = Struct(">ii")
_BEGIN = datetime(2000, 1, 1, tzinfo=UTC)
_LAST = 2**63 - 1
_TEXT_OID = 25


@dataclass(frozen=True)
class ValueType:
    """A type of PostgreSQL: its name, its oid, and how a Python value becomes its binary format."""

    sql: str
    oid: int
    encode: Callable[[Any], bytes]


def column_bytes(kind: Kind, value: Any) -> bytes:
    """One column of a record: the oid of its type, its length and its bytes; null has the length -1."""
    type_ = TYPES[kind]
    if value is None:
        return _HEAD.pack(type_.oid, _NULL)
    content = type_.encode(value)
    return _HEAD.pack(type_.oid, len(content)) + content


def record_hash(columns: Sequence[bytes]) -> bytes:
    """The SHA-256 of a record made of these columns."""
    return sha256(_COUNT.pack(len(columns)) + b"".join(columns)).digest()


def jsonb_text(value: Any) -> str:
    """The text that PostgreSQL writes for a `jsonb` value: keys by length, then by bytes; numbers without exponents."""
    if isinstance(value, str):
        return encode_basestring(value)
    if isinstance(value, dict):
        named = cast("dict[Any, Any]", value)
        texts = {key if isinstance(key, str) else jsonb_text(key): one for key, one in named.items()}
        parts = [f"{encode_basestring(key)}: {jsonb_text(texts[key])}" for key in sorted(texts, key=_key_order)]
        return "{" + ", ".join(parts) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join([jsonb_text(one) for one in cast("Sequence[Any]", value)]) + "]"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        written = format(Decimal(repr(float(value))), "f")
        return written.removeprefix("-") if value == 0 else written
    raise TypeError(f"no value of JSON: {type(value).__name__}")


def _key_order(key: str) -> tuple[int, bytes]:
    encoded = key.encode()
    return len(encoded), encoded


def _text(value: str) -> bytes:
    return value.encode()


def _bool(value: bool) -> bytes:
    return b"\x01" if value else b"\x00"


def _time(value: Any) -> bytes:
    if value is INFINITY:
        return _INT.pack(_LAST)
    since = value - _BEGIN
    return _INT.pack((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds)


def _json(value: Any) -> bytes:
    # psycopg wraps what it is to send as jsonb; `obj` is the value itself.
    return b"\x01" + jsonb_text(getattr(value, "obj", value)).encode()


def _texts(values: Sequence[str | None]) -> bytes:
    if not values:
        return _ARRAY.pack(0, 0, _TEXT_OID)
    parts = [_ARRAY.pack(1, int(None in values), _TEXT_OID), _DIMENSION.pack(len(values), 1)]
    for value in values:
        encoded = value.encode() if value is not None else b""
        parts.append(_COUNT.pack(len(encoded) if value is not None else _NULL) + encoded)
    return b"".join(parts)


TYPES: dict[Kind, ValueType] = {
    "text": ValueType("text", _TEXT_OID, _text),
    "int": ValueType("bigint", 20, _INT.pack),
    "float": ValueType("float8", 701, _FLOAT.pack),
    "bool": ValueType("boolean", 16, _bool),
    "time": ValueType("timestamptz", 1184, _time),
    "json": ValueType("jsonb", 3802, _json),
    "bytes": ValueType("bytea", 17, bytes),
    "texts": ValueType("text[]", 1009, _texts),
}
