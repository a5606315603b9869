"""Opens the stores of other systems: files, their databases, a Qdrant server. They are read and never changed.

Everything here blocks. What cannot be opened raises `InvalidInput`; no message repeats an address, which may hold a
password.
"""

import io
import pickle
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn, cast

import httpx2
from pydantic_core import from_json

from muniment.database import other_stores
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
    for point_id, payload in other_stores.pgvector_points(address, collection):
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
    for packed in other_stores.qdrant_points(folder / "collection" / collection / "storage.sqlite"):
        point = _unpickled(packed)
        yield mem0.of_point(point.get("id"), point.get("payload"))


def mem0_history(file: Path) -> dict[str, list[dict[str, Any]]]:
    """Read mem0's SQLite history: the events of each memory, the oldest first."""
    events: dict[str, list[dict[str, Any]]] = {}
    for event in other_stores.history_rows(file):
        events.setdefault(str(event["memory_id"]), []).append(event)
    return events


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
    """Yield the values of LangGraph's table `store`, by namespace and key."""
    for row in other_stores.langgraph_rows(address):
        yield StoredValue(*row)
