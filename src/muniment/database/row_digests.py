"""What a transaction writes down of the rows it inserts: their hashes, taken from the values that are sent.

INVARIANT: a row's values are known before it is sent. A statement that inserts rows of a form gives every column as a
parameter, or as `coalesce(:parameter::timestamptz, 'infinity')`; a test reads all statements.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from muniment.database.row_forms import BY_NAME, BY_TABLE, SEPARATOR, Column, Form
from muniment.database.row_lists import EventRow
from muniment.database.row_values import INFINITY, column_bytes, record_hash

_INSERT = re.compile(
    r"^INSERT INTO (\w+)\s*\(([^)]*)\)\s*VALUES\s*\((.*?)\)\s*(ON CONFLICT.*|RETURNING.*)?$", re.DOTALL
)
_PARAMETER = re.compile(r":([a-z_]+)(?:::[a-z0-9_\[\]]+)?")
_FOREVER = re.compile(r"coalesce\(:([a-z_]+)::timestamptz, 'infinity'\)")
_COMMA = re.compile(r",\s*(?![^()]*\))")


@dataclass(frozen=True)
class _Source:
    """Where a column of a form comes from: a parameter, or what the database fills in."""

    column: Column
    parameter: str | None
    when_null: Any = None

    def encode(self, value: Any) -> bytes:
        return column_bytes(self.column.kind, self.when_null if value is None else value)


@dataclass(frozen=True)
class InsertPlan:
    """How the rows of a form are read from the parameters of a statement."""

    form: Form
    lasting: tuple[_Source, ...]
    losing: tuple[_Source, ...]
    may_conflict: bool

    def note(self, given: Mapping[str, Any]) -> EventRow:
        """The note of a row whose parameters are given by name."""
        return self.noting((), given)(())

    def noting(self, each: Sequence[str], shared: Mapping[str, Any]) -> Callable[[Sequence[Any]], EventRow]:
        """Makes the notes of rows whose parameters `each` stand in sequences; the shared ones are encoded once."""
        places = {name: place for place, name in enumerate(each)}
        lasting, losing = (_split(sources, places, shared) for sources in (self.lasting, self.losing))
        keys = [source.parameter or "" for source in self.lasting[: len(self.form.keys)]]
        name, version = self.form.name, self.form.version

        def note(row: Sequence[Any]) -> EventRow:
            key = [str(row[places[one]] if one in places else shared[one]) for one in keys]
            blankable = _hashed(losing, row) if losing else None
            return EventRow(name, version, SEPARATOR.join(key), _hashed(lasting, row), blankable)

        return note


_Part = bytes | tuple[_Source, int]


def _split(sources: Sequence[_Source], places: Mapping[str, int], shared: Mapping[str, Any]) -> list[_Part]:
    parts: list[_Part] = []
    for source in sources:
        if source.parameter is not None and source.parameter in places:
            parts.append((source, places[source.parameter]))
        else:
            parts.append(source.encode(shared[source.parameter] if source.parameter is not None else None))
    return parts


def _hashed(parts: Sequence[_Part], row: Sequence[Any]) -> bytes:
    return record_hash([part if isinstance(part, bytes) else part[0].encode(row[part[1]]) for part in parts])


@lru_cache(maxsize=1024)
def insert_plan(text: str) -> InsertPlan | None:
    """The plan of a statement that inserts rows of a form that events tell of; None for any other.

    Raises `ValueError` for one whose values the database would compute.
    """
    found = _INSERT.match(text)
    form = BY_TABLE.get(found[1]) if found is not None else None
    if found is None:
        begun = re.match(r"INSERT INTO (\w+)", text)
        other = BY_TABLE.get(begun[1]) if begun is not None else None
        if other is not None and other.id_prefix is None:
            raise ValueError(f"rows of {other.table} are inserted from values that the database computes")
        return None
    if form is None or form.id_prefix is not None:
        return None
    names = [name.strip() for name in found[2].split(",")]
    values = dict(zip(names, [value.strip() for value in _COMMA.split(found[3])], strict=True))
    lasting = tuple(_source(form, column, values.get(column.name)) for column in form.columns)
    losing = tuple(_source(form, column, values.get(column.name)) for column in form.losing)
    return InsertPlan(form, lasting, losing, "ON CONFLICT" in (found[4] or ""))


def _source(form: Form, column: Column, value: str | None) -> _Source:
    if value is None:
        return _Source(column, None, form.defaults.get(column.name))
    if (found := _FOREVER.fullmatch(value)) is not None:
        return _Source(column, found[1], INFINITY)
    if (found := _PARAMETER.fullmatch(value)) is not None:
        return _Source(column, found[1])
    raise ValueError(f"{form.table}.{column.name} is computed by the database: {value}")


def event_row(name: str, given: Mapping[str, Any]) -> EventRow:
    """The note of a row of a form whose columns are given by name."""
    form = BY_NAME[name]
    lasting = record_hash([column_bytes(column.kind, given[column.name]) for column in form.columns])
    losing = [column_bytes(column.kind, given[column.name]) for column in form.losing]
    row_id = SEPARATOR.join([str(given[key.name]) for key in form.keys])
    return EventRow(form.name, form.version, row_id, lasting, record_hash(losing) if losing else None)
