"""Reads the stores of other systems: PostgreSQL tables and SQLite files. They are read and never changed.

Everything here blocks. What cannot be read raises `InvalidInput`; no message repeats an address, which may hold a
password.
"""

import sqlite3
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from muniment.errors import InvalidInput

_ROWS = 500


def pgvector_points(address: str, collection: str) -> Iterator[tuple[str, Any]]:
    """Yield id and payload of each point of a table that mem0 keeps in pgvector."""
    statement = sql.SQL("SELECT id::text, payload FROM {} ORDER BY id").format(sql.Identifier(collection))
    for row in _rows(address, statement, f"has no table {collection} of mem0's"):
        yield row[0], row[1]


def langgraph_rows(address: str) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of LangGraph's table `store`, by namespace and key: both, the value, when made, changed, ended."""
    statement = sql.SQL(
        "SELECT prefix, key, value, created_at, updated_at, to_jsonb(s) ->> 'expires_at' FROM store s"
        " ORDER BY prefix, key"
    )
    yield from _rows(address, statement, "has no table store of LangGraph's")


def qdrant_points(file: Path) -> Iterator[bytes]:
    """Yield the points of a local Qdrant's SQLite file, pickled as they are."""
    for row in _sqlite(file, "SELECT point FROM points ORDER BY id"):
        yield row["point"]


def history_rows(file: Path) -> Iterator[dict[str, Any]]:
    """Yield the events of mem0's SQLite history by the names of their columns, the oldest first."""
    yield from _sqlite(
        file,
        "SELECT memory_id, old_memory, new_memory, event, created_at, updated_at, is_deleted, actor_id, role"
        " FROM history ORDER BY updated_at, created_at, rowid",
    )


def _sqlite(file: Path, statement: str) -> Iterator[dict[str, Any]]:
    if not file.is_file():
        raise InvalidInput(f"cannot read {file}: there is no such file", field="source")
    try:
        with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            connection.row_factory = sqlite3.Row
            for row in connection.execute(statement):
                yield dict(row)
    except sqlite3.Error:
        raise InvalidInput(f"{file} is no such database of mem0's, or it is in use", field="source") from None


def _rows(address: str, statement: sql.SQL | sql.Composed, missing: str) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a statement, a few at a time, in a transaction that cannot write."""
    with _reading(address, missing) as connection, connection.cursor(name="muniment") as cursor:
        cursor.itersize = _ROWS
        yield from cursor.execute(statement)


@contextmanager
def _reading(address: str, missing: str) -> Generator["psycopg.Connection[tuple[Any, ...]]"]:
    try:
        with psycopg.connect(address, connect_timeout=10) as connection:
            connection.read_only = True
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            yield connection
    except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn):
        raise InvalidInput(f"the database {missing}", field="source") from None
    except psycopg.Error as error:
        raise InvalidInput(f"cannot read the database: {type(error).__name__}", field="source") from None
