"""Hashes of rows: the canonical bytes of a row, and how a statement's parameters give the rows that it inserts.

A row is hashed as PostgreSQL's binary record format writes it. The database computes the same bytes with
`record_send(ROW(...))`, so that a verification reads one hash for each row and no columns. Every column is cast to one
of `TYPES` first, so that the bytes stay the same when the type of a column changes.

INVARIANT: a row's values are known before it is sent. A statement that inserts rows of a form gives every column as a
parameter, or as `coalesce(:parameter::timestamptz, 'infinity')`; a test reads all statements.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from hashlib import sha256
from json.encoder import encode_basestring
from struct import Struct
from typing import Any, NamedTuple, cast

from muniment.database.row_forms import BY_NAME, BY_TABLE, SEPARATOR, Column, Form, Kind
from muniment.database.row_lists import EventRow

_INSERT = re.compile(
    r"^INSERT INTO (\w+)\s*\(([^)]*)\)\s*VALUES\s*\((.*?)\)\s*(?:ON CONFLICT.*|RETURNING.*)?$", re.DOTALL
)
_PARAMETER = re.compile(r":([a-z_]+)(?:::[a-z0-9_\[\]]+)?")
_FOREVER = re.compile(r"coalesce\(:([a-z_]+)::timestamptz, 'infinity'\)")
_COMMA = re.compile(r",\s*(?![^()]*\))")


class _Source(NamedTuple):
    """Where the value of a column comes from: a parameter, or the default that the database fills in."""

    column: Column
    parameter: str | None
    when_null: Any = None

    def encode(self, value: Any) -> bytes:
        return column_bytes(self.column.kind, self.when_null if value is None else value)


# Kinds whose equal values have equal bytes, which floats have not (0.0 and -0.0).
_COMPARABLE: frozenset[Kind] = frozenset(("text", "int", "bool", "time"))
# Reads a row from a sequence of its parameters.
RowReader = Callable[[Sequence[Any]], EventRow]


class EncodedValues:
    """The bytes of values that many rows of one transaction have in common, by kind. It ends with the transaction."""

    __slots__ = ("_by_kind",)

    def __init__(self) -> None:
        self._by_kind: dict[tuple[Kind, Any], dict[Any, bytes]] = {}

    def of(self, source: _Source) -> dict[Any, bytes] | None:
        """The values of a column that were encoded; None for a kind that is encoded each time."""
        kind = source.column.kind
        return self._by_kind.setdefault((kind, source.when_null), {}) if kind in _COMPARABLE else None


class InsertPlan(NamedTuple):
    """How the rows of a form are read from the parameters of an insert."""

    form: Form
    lasting: tuple[_Source, ...]
    losing: tuple[_Source, ...]

    def event_row(self, parameters: Mapping[str, Any]) -> EventRow:
        """The row that these parameters insert."""
        form = self.form
        row_id = SEPARATOR.join([str(parameters[key.parameter or ""]) for key in self.lasting[: len(form.keys)]])
        losing = _row_hash(self.losing, parameters) if self.losing else None
        return EventRow(form.name, form.version, row_id, _row_hash(self.lasting, parameters), losing)

    def reader(self, each: Sequence[str], shared: Mapping[str, Any], known: EncodedValues) -> RowReader:
        """Return a function that reads a row from a sequence of the parameters `each`; shared ones are encoded once."""
        index = {name: number for number, name in enumerate(each)}
        lasting, losing = (_hasher(sources, index, shared, known) for sources in (self.lasting, self.losing))
        keys = [source.parameter or "" for source in self.lasting[: len(self.form.keys)]]
        name, version, loses = self.form.name, self.form.version, bool(self.losing)

        def read(row: Sequence[Any]) -> EventRow:
            key = [str(row[index[one]] if one in index else shared[one]) for one in keys]
            return EventRow(name, version, SEPARATOR.join(key), lasting(row), losing(row) if loses else None)

        return read


def _row_hash(sources: Sequence[_Source], parameters: Mapping[str, Any]) -> bytes:
    """The hash of the columns of one row."""
    columns: list[bytes] = []
    for column, name, when_null in sources:
        value = parameters[name] if name is not None else None
        if value is None:
            value = when_null
        columns.append(_NULLS[column.kind] if value is None else column_bytes(column.kind, value))
    return record_hash(columns)


def _hasher(
    sources: Sequence[_Source], index: Mapping[str, int], shared: Mapping[str, Any], known: EncodedValues
) -> Callable[[Sequence[Any]], bytes]:
    """Return a function that hashes the columns of a row: those that all rows share, and those of its own."""
    parts: list[bytes] = []
    own: list[tuple[int, int, _Source, dict[Any, bytes] | None]] = []
    for place, source in enumerate(sources):
        name = source.parameter
        if name is not None and name in index:
            own.append((place, index[name], source, known.of(source)))
            parts.append(b"")
        else:
            parts.append(source.encode(shared[name] if name is not None else None))

    def hash_(row: Sequence[Any]) -> bytes:
        columns = parts.copy()
        for place, at, source, encoded in own:
            value = row[at]
            if encoded is None:
                columns[place] = source.encode(value)
            elif (found := encoded.get(value)) is not None:
                columns[place] = found
            else:
                columns[place] = encoded[value] = source.encode(value)
        return record_hash(columns)

    return hash_


@lru_cache(maxsize=1024)
def insert_plan(text: str) -> InsertPlan | None:
    """The plan of a statement that inserts rows of a form that events list; None for any other statement.

    Raises `ValueError` if the database would compute a value.
    """
    insert = re.match(r"INSERT INTO (\w+)", text)
    form = BY_TABLE.get(insert[1]) if insert is not None else None
    if form is None or form.id_prefix is not None:
        return None
    found = _INSERT.match(text)
    if found is None:
        raise ValueError(f"rows of {form.table} are inserted from values that the database computes")
    names = [name.strip() for name in found[2].split(",")]
    values = dict(zip(names, [value.strip() for value in _COMMA.split(found[3])], strict=True))
    lasting = tuple(_source(form, column, values.get(column.name)) for column in form.columns)
    losing = tuple(_source(form, column, values.get(column.name)) for column in form.losing)
    return InsertPlan(form, lasting, losing)


def _source(form: Form, column: Column, value: str | None) -> _Source:
    if value is None:
        return _Source(column, None, form.defaults.get(column.name))
    if (found := _FOREVER.fullmatch(value)) is not None:
        return _Source(column, found[1], INFINITY)
    if (found := _PARAMETER.fullmatch(value)) is not None:
        return _Source(column, found[1])
    raise ValueError(f"{form.table}.{column.name} is computed by the database: {value}")


def event_row(name: str, columns: Mapping[str, Any]) -> EventRow:
    """The row of that form with these columns."""
    form = BY_NAME[name]
    lasting = record_hash([column_bytes(column.kind, columns[column.name]) for column in form.columns])
    losing = [column_bytes(column.kind, columns[column.name]) for column in form.losing]
    row_id = SEPARATOR.join([str(columns[key.name]) for key in form.keys])
    return EventRow(form.name, form.version, row_id, lasting, record_hash(losing) if losing else None)


# The time `'infinity'` of PostgreSQL.
INFINITY = object()
_NULL = -1
_HEAD, _ARRAY, _DIMENSION = Struct(">Ii"), Struct(">iiI"), Struct(">ii")
_COUNT, _INT, _FLOAT = Struct(">i"), Struct(">q"), Struct(">d")
_BEGIN = datetime(2000, 1, 1, tzinfo=UTC)
_LAST = 2**63 - 1
_TEXT_OID = 25


class ValueType(NamedTuple):
    """A PostgreSQL type: its name, its oid, and how a Python value is encoded in its binary format."""

    sql: str
    oid: int
    encode: Callable[[Any], bytes]

    @property
    def null(self) -> bytes:
        """A null of this type as a column of a record."""
        return _HEAD.pack(self.oid, _NULL)


def column_bytes(kind: Kind, value: Any) -> bytes:
    """One column of a record: the oid of its type, its length and its bytes; null has the length -1."""
    if value is None:
        return _NULLS[kind]
    _, oid, encode = TYPES[kind]
    content = encode(value)
    return _HEAD.pack(oid, len(content)) + content


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
    raise TypeError(f"not a JSON value: {type(value).__name__}")


def _key_order(key: str) -> tuple[int, bytes]:
    encoded = key.encode()
    return len(encoded), encoded


def _time(value: Any) -> bytes:
    if value is INFINITY:
        return _INT.pack(_LAST)
    since = value - _BEGIN
    return _INT.pack((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds)


def _json(value: Any) -> bytes:
    # psycopg wraps a value that it sends as jsonb; `obj` is the value itself.
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
    "text": ValueType("text", _TEXT_OID, str.encode),
    "int": ValueType("bigint", 20, _INT.pack),
    "float": ValueType("float8", 701, _FLOAT.pack),
    "bool": ValueType("boolean", 16, Struct("?").pack),
    "time": ValueType("timestamptz", 1184, _time),
    "json": ValueType("jsonb", 3802, _json),
    "bytes": ValueType("bytea", 17, bytes),
    "texts": ValueType("text[]", 1009, _texts),
}
_NULLS: dict[Kind, bytes] = {kind: one.null for kind, one in TYPES.items()}
