"""Files of consents: CSV with a header, JSON lines, or one JSON document. Pure."""

import csv
import io
from collections.abc import Iterator
from typing import Any, cast

from pydantic_core import from_json, to_json

from muniment.errors import InvalidInput
from muniment.transfer.sources.found import Found

_LISTS = ("predicates_allowed", "data_classifications_allowed", "evidence_refs")
_IN_SCOPE = ("predicates_allowed", "data_classifications_allowed")
COLUMNS = (
    *("consent_id", "subject_ceid", "tenant_id", "purpose", "predicates_allowed", "data_classifications_allowed"),
    *("basis", "captured_at", "valid_until", "revoked_at", "evidence_refs", "auditor_id"),
)


def items(content: str, tenant_id: str) -> Iterator[Found]:
    """Yield the consent documents of a file with their places; a document without a tenant is for this one.

    Raises `InvalidInput` for a file that is none of the three kinds.
    """
    head = content.lstrip()[:1]
    if head == "{":
        yield from _json(content, tenant_id)
    elif head == "[":
        yield from _list(content, tenant_id)
    else:
        yield from _csv(content, tenant_id)


def header_of(content: str) -> str:
    """Return the line that a part of the file needs above it to be a file of its own: the header of CSV, else none."""
    return "" if content.lstrip()[:1] in ("{", "[") else content.lstrip().partition("\n")[0].rstrip("\r")


def _json(content: str, tenant_id: str) -> Iterator[Found]:
    try:
        yield Found("document 1", _with_tenant(from_json(content, allow_inf_nan=False), tenant_id), content.strip())
    except ValueError:
        for number, line in enumerate(content.split("\n"), 1):
            if line.strip():
                yield Found(f"line {number}", _parsed(line, tenant_id), line.strip())


def _list(content: str, tenant_id: str) -> Iterator[Found]:
    try:
        found = cast("list[Any]", from_json(content, allow_inf_nan=False))
    except ValueError as error:
        raise InvalidInput(f"is not JSON: {error}", field="file") from None
    for number, one in enumerate(found, 1):
        yield Found(f"document {number}", _with_tenant(one, tenant_id), to_json(one).decode())


def _parsed(line: str, tenant_id: str) -> dict[str, Any] | InvalidInput:
    try:
        return _with_tenant(from_json(line, allow_inf_nan=False), tenant_id)
    except ValueError as error:
        return InvalidInput(f"is not JSON: {error}")


def _with_tenant(document: Any, tenant_id: str) -> dict[str, Any] | InvalidInput:
    if not isinstance(document, dict):
        return InvalidInput("expected an object with the fields of a consent")
    return {"tenant_id": tenant_id, **cast("dict[str, Any]", document)}


def _csv(content: str, tenant_id: str) -> Iterator[Found]:
    lines = io.StringIO(content, newline="").readlines()
    # A spreadsheet of a country that writes decimals with a comma separates cells by semicolons.
    head = header_of(content)
    reader = csv.reader(iter(lines), delimiter=";" if ";" in head and "," not in head else ",", strict=True)
    names: list[str] | None = None
    before = 0
    try:
        for cells in reader:
            first, before = before, reader.line_num
            if not cells:
                continue
            if names is None:
                names = _header(cells)
                continue
            yield Found(f"line {first + 1}", _row(names, cells, tenant_id), "".join(lines[first:before]).rstrip("\r\n"))
    except csv.Error as error:
        raise InvalidInput(f"line {before + 1} is not CSV: {error}", field="file") from None
    if names is None:
        _header([])


def _header(cells: list[str]) -> list[str]:
    """Return the names of the columns; raises `InvalidInput` for an unknown one, or without those that all need."""
    names = [name.strip() for name in cells]
    if unknown := [name for name in names if name not in COLUMNS]:
        known = ", ".join(COLUMNS)
        raise InvalidInput(f"has a column {unknown[0]!r}, which consents do not have; expected {known}", field="file")
    if "consent_id" not in names or "subject_ceid" not in names:
        raise InvalidInput("expected a header with consent_id and subject_ceid", field="file")
    return names


def _row(names: list[str], cells: list[str], tenant_id: str) -> dict[str, Any] | InvalidInput:
    if len(cells) != len(names):
        return InvalidInput("has not as many cells as the header")
    found: dict[str, Any] = {}
    for name, cell in zip(names, cells, strict=True):
        value = cell.strip()
        if name in _LISTS:
            found[name] = [one for one in value.replace(";", " ").split() if one]
        elif value:
            found[name] = value
    scope = {name: found.pop(name) for name in _IN_SCOPE if name in found}
    return _with_tenant({**found, "scope": scope}, tenant_id)
