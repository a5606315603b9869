"""Reads the records of an evaluation from `.jsonl` files or one `.json` array, plain or `.gz`."""

import gzip
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

from muniment.errors import InvalidInput

FieldType = TypeVar("FieldType")

_ENDINGS = (".jsonl", ".jsonl.gz", ".json", ".json.gz")
_NAMES: dict[type[Any], str] = {
    str: "a text",
    bool: "true or false",
    int: "a whole number",
    list: "a list",
    dict: "an object",
}


class Record(dict[str, Any]):
    """One record; `source` says where it was read, such as `spans.jsonl line 7`."""

    source: str = "the record"


def read_records(path: Path) -> list[Record]:
    """Return the records of a file; raises `InvalidInput` naming the file and the line that is wrong."""
    if not path.name.endswith(_ENDINGS):
        raise InvalidInput(f"{path.name}: expected a file that ends in {', '.join(_ENDINGS)}", field="data")
    text = _text(path)
    is_array = path.name.removesuffix(".gz").endswith(".json")
    found = list(_of_array(text, path.name) if is_array else _of_lines(text, path.name))
    if not found:
        raise InvalidInput(f"{path.name}: holds no records", field="data")
    return found


def required(record: Mapping[str, Any], field: str, kind: type[FieldType]) -> FieldType:
    """Return a field that must be there and of that type; raises `InvalidInput` with the source of the record."""
    if not isinstance(record, Mapping):
        raise InvalidInput("expected an object", field="record")
    value = record.get(field)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise invalid_record(record, field, f"expected {_NAMES.get(kind, kind.__name__)}")
    return value


def invalid_record(record: Mapping[str, Any], field: str, expected: str) -> InvalidInput:
    """Return the error for a field of a record."""
    return InvalidInput(f"{_source_of(record)}: {expected}", field=field)


def required_objects(record: Mapping[str, Any], field: str) -> list[Record]:
    """Return the objects of a list that must be there, each with its own source."""
    return objects_of(record, required(record, field, list), field)


def objects_of(record: Mapping[str, Any], items: Any, field: str) -> list[Record]:
    """Return the items of a list as records; raises `InvalidInput` where it is no list of objects."""
    if not isinstance(items, list):
        raise invalid_record(record, field, "expected a list")
    found: list[Record] = []
    for number, item in enumerate(cast("list[Any]", items)):
        if not isinstance(item, dict):
            raise invalid_record(record, f"{field}.{number}", "expected an object")
        found.append(part_of(record, cast("dict[str, Any]", item), f"{field}.{number}"))
    return found


def part_of(record: Mapping[str, Any], part: Mapping[str, Any], field: str) -> Record:
    """Return a part of a record as a record with its own source."""
    return _with_source(part, f"{_source_of(record)} {field}")


def failure_reason(error: Exception) -> str:
    """Return why a file could not be read or written, without its path."""
    return (getattr(error, "strerror", None) or "it is no path").lower()


def _text(path: Path) -> str:
    try:
        content = path.read_bytes()
        return (gzip.decompress(content) if path.name.endswith(".gz") else content).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInput(f"{path.name}: is not UTF-8", field="data") from None
    except (gzip.BadGzipFile, EOFError):
        raise InvalidInput(f"{path.name}: is not gzip", field="data") from None
    except (OSError, ValueError) as error:
        raise InvalidInput(f"cannot read {path}: {failure_reason(error)}", field="data") from None


def _of_lines(text: str, name: str) -> Iterator[Record]:
    # Not splitlines: a record may hold other line separators unescaped.
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            raise InvalidInput(f"{name} line {number}: is not JSON", field="data") from None
        yield _record(found, f"{name} line {number}")


def _of_array(text: str, name: str) -> Iterator[Record]:
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidInput(f"{name} line {error.lineno}: is not JSON", field="data") from None
    except (ValueError, RecursionError):
        raise InvalidInput(f"{name}: is not JSON", field="data") from None
    if not isinstance(found, list):
        raise InvalidInput(f"{name}: expected one array of records", field="data")
    for number, item in enumerate(cast("list[Any]", found), 1):
        yield _record(item, f"{name} record {number}")


def _record(found: Any, source: str) -> Record:
    if not isinstance(found, dict):
        raise InvalidInput(f"{source}: expected an object", field="data")
    return _with_source(cast("dict[str, Any]", found), source)


def _with_source(fields: Mapping[str, Any], source: str) -> Record:
    record = Record(fields)
    record.source = source
    return record


def _source_of(record: Mapping[str, Any]) -> str:
    return record.source if isinstance(record, Record) else Record.source
