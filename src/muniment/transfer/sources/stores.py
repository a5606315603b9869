"""Opens the stores of other systems: files, PostgreSQL tables, Qdrant, SQLite. They are read and never changed.

Everything here blocks. What cannot be opened raises `InvalidInput`; no message repeats an address, which may hold a
password.
"""

import io
import pickle
import re
import sqlite3
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NoReturn, cast

import httpx2
import psycopg
from psycopg import sql
from pydantic_core import from_json

from muniment.errors import InvalidInput
from muniment.transfer.sources import mem0
from muniment.transfer.sources.langgraph import StoredValue

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_$-]{0,62}")
_ROWS = 500
_TIMEOUT = 60.0


def is_postgres(source: str) -> bool:
    """Whether a source is the address of a PostgreSQL database."""
    return source.startswith(("postgresql://", "postgres://"))


def is_http(source: str) -> bool:
    """Whether a source is the address of a server."""
    return source.startswith(("http://", "https://"))


def read_document(path: Path) -> Any:
    """Read a file of JSON, or of JSON lines as a list."""
    try:
        content = path.read_bytes()
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or "it is no path").lower()
        raise InvalidInput(f"cannot read {path}: {reason}", field="file") from None
    try:
        return from_json(content, allow_inf_nan=False)
    except ValueError as error:
        lines = [line for line in content.split(b"\n") if line.strip()]
        if len(lines) < 2:
            raise InvalidInput(f"is not JSON: {error}", field="file") from None
    return [_line(number, line) for number, line in enumerate(lines, 1)]


def _line(number: int, line: bytes) -> Any:
    try:
        return from_json(line, allow_inf_nan=False)
    except ValueError as error:
        raise InvalidInput(f"line {number} is not JSON: {error}", field="file") from None


# ---- mem0 ----


def mem0_memories(source: str, collection: str) -> Iterator[dict[str, Any]]:
    """Yield the memories of a vector store of mem0's: pgvector or Qdrant by address, or Qdrant's local folder."""
    if not _NAME.fullmatch(collection):
        raise InvalidInput("expected the name of a collection", field="collection")
    if is_postgres(source):
        yield from _of_pgvector(source, collection)
    elif is_http(source):
        yield from _of_qdrant(source, collection)
    else:
        yield from _of_qdrant_folder(Path(source), collection)


def _of_pgvector(address: str, collection: str) -> Iterator[dict[str, Any]]:
    statement = sql.SQL("SELECT id::text, payload FROM {} ORDER BY id").format(sql.Identifier(collection))
    for point_id, payload in _rows(address, statement, f"has no table {collection} of mem0's"):
        yield mem0.of_point(point_id, payload)


def _of_qdrant(address: str, collection: str) -> Iterator[dict[str, Any]]:
    """Scroll through a collection of a Qdrant server."""
    offset: Any = None
    with httpx2.Client(base_url=address, timeout=_TIMEOUT) as client:
        while True:
            body = {"limit": _ROWS, "with_payload": True, "with_vector": False, "offset": offset}
            try:
                answer = client.post(f"/collections/{collection}/points/scroll", json=body)
                answer.raise_for_status()
                page: dict[str, Any] = answer.json()["result"]
                points = cast("list[dict[str, Any]]", page["points"])
            except (httpx2.HTTPError, KeyError, TypeError, ValueError) as error:
                message = f"cannot read the collection {collection} of that server ({type(error).__name__})"
                raise InvalidInput(message, field="source") from None
            for point in points:
                yield mem0.of_point(point["id"], point.get("payload"))
            offset = page.get("next_page_offset")
            if offset is None:
                return


def _of_qdrant_folder(folder: Path, collection: str) -> Iterator[dict[str, Any]]:
    """Read the SQLite file of a local Qdrant, in which each point is pickled."""
    file = folder / "collection" / collection / "storage.sqlite"
    for (packed,) in _sqlite(file, "SELECT point FROM points ORDER BY id"):
        point = _unpickled(packed)
        yield mem0.of_point(point.get("id"), point.get("payload"))


def mem0_history(file: Path) -> dict[str, list[dict[str, Any]]]:
    """Read mem0's SQLite history: the events of each memory, the oldest first."""
    names: tuple[str, ...] = (
        "memory_id",
        "old_memory",
        "new_memory",
        "event",
        "created_at",
        "updated_at",
        "is_deleted",
        "actor_id",
        "role",
    )
    told: dict[str, list[dict[str, Any]]] = {}
    for row in _sqlite(file, f"SELECT {', '.join(names)} FROM history ORDER BY updated_at, created_at, rowid"):  # noqa: S608  names of ours
        event: dict[str, Any] = dict(zip(names, row, strict=True))
        told.setdefault(str(event["memory_id"]), []).append(event)
    return told


def _sqlite(file: Path, statement: str) -> Iterator[tuple[Any, ...]]:
    if not file.is_file():
        raise InvalidInput(f"cannot read {file}: there is no such file", field="source")
    try:
        with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            yield from connection.execute(statement)
    except sqlite3.Error:
        raise InvalidInput(f"{file} is no such database of mem0's, or it is in use", field="source") from None


class _Point(dict[str, Any]):
    """Stands for any class that a pickled point names: it only keeps what it is given."""

    def __setstate__(self, state: Any) -> None:
        held = cast("dict[str, Any]", state) if isinstance(state, dict) else {}
        own = held.get("__dict__", held)
        self.update(cast("dict[str, Any]", own) if isinstance(own, dict) else {})


class _PointReader(pickle.Unpickler):
    """Reads pickled points without loading anything that they name.

    INVARIANT: the only class that a pickle can reach is `_Point`; every name of another module is refused. Pickled code
    can thus call nothing else.
    """

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        if module_name.split(".")[0] == "qdrant_client" and global_name == "PointStruct":
            return _Point
        raise pickle.UnpicklingError(f"a point of Qdrant's names no {module_name}.{global_name}")

    def persistent_load(self, pid: Any) -> NoReturn:
        raise pickle.UnpicklingError("a point of Qdrant's refers to nothing outside")


def _unpickled(packed: Any) -> _Point:
    try:
        found = _PointReader(io.BytesIO(packed)).load()
    except Exception:
        # A pickle that is broken, or that was made to do something, may raise anything.
        raise InvalidInput("the folder holds a point that is none of Qdrant's", field="source") from None
    if not isinstance(found, _Point):
        raise InvalidInput("the folder holds a point that is none of Qdrant's", field="source")
    return found


# ---- LangGraph ----


def langgraph_values(address: str) -> Iterator[StoredValue]:
    """Yield the rows of LangGraph's table `store`, by namespace and key."""
    statement = sql.SQL(
        "SELECT prefix, key, value, created_at, updated_at, to_jsonb(s) ->> 'expires_at' FROM store s"
        " ORDER BY prefix, key"
    )
    for row in _rows(address, statement, "has no table store of LangGraph's"):
        yield StoredValue(*row)


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
