"""Loads the SQL statements: named and described in the .sql files of the packages, each file read once.

A statement begins with `-- name: <name>` and is called `<file>.<name>`. Parameters are written `:name`, and `{name
alias}` inserts the condition of that name in database/fragments.sql for the table of that alias. Options:

    -- each: a, b         a many-row insert: its VALUES group is repeated per row; these parameters may vary by row
    -- plan: each time    planned for the given values, where one plan for all would be a bad one
    -- results: binary    results in binary format: long columns are read faster
    -- rank: 2            sent after statements of lower rank, where `defer_row` queued rows of several

Statements of the file `form` are generated from the forms of rows.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from importlib.resources import files
from itertools import islice
from typing import Any

from muniment.database.row_digests import TYPES
from muniment.database.row_forms import FORMS, Column, Form

_HEAD = re.compile(r"^-- name: (\w+)\s*$", re.MULTILINE)
_EACH = re.compile(r"^-- each: (.+)$", re.MULTILINE)
_RANK = re.compile(r"^-- rank: (\d)$", re.MULTILINE)
_EACH_TIME = "-- plan: each time\n"
_BINARY = "-- results: binary\n"
_COMMENT = re.compile(r"^--.*$", re.MULTILINE)
_FRAGMENT = re.compile(r"\{(\w+) (\w+)\}")
_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]+)")
_VALUES = re.compile(r"\bVALUES\s*(\(.*?\))\s*(ON CONFLICT.*|RETURNING.*)?$", re.DOTALL)

# The package that each file of statements is in, by the name of the file.
PACKAGES = {
    file.name.removesuffix(".sql"): package.name
    for package in files("muniment").iterdir()
    if package.is_dir()
    for file in package.iterdir()
    if file.name.endswith(".sql")
}

# Rows per statement of a many-row insert: few shapes, so that each is planned once per connection.
CHUNKS = (64, 16, 4, 1)


@dataclass(frozen=True)
class Statement:
    """One named statement in the server's own parameter style."""

    name: str
    sql: str = ""
    parameters: tuple[str, ...] = ()
    each: tuple[str, ...] = ()
    planned_once: bool = True
    binary: bool = False
    rank: int = 0
    # As its file has it, with its parameters by name.
    text: str = ""

    def arguments(self, values: dict[str, Any]) -> list[Any]:
        """The values in the order of the statement's parameters; raises KeyError for a missing one."""
        return [values[name] for name in self.parameters]


@cache
def statement(name: str) -> Statement:
    """The statement of that name; raises KeyError if there is none."""
    file, _, short = name.partition(".")
    found = _statements(file)[short]
    order = _names(found.text)
    return replace(found, sql=_numbered(found.text, _numbers(order)), parameters=order)


@lru_cache(maxsize=1024)
def many(name: str, each: tuple[str, ...], rows: int) -> Statement:
    """A many-row insert for that number of rows, with the parameters `each` given per row.

    Its arguments are the shared ones in the order of `parameters`, then row after row in the order of `each`.
    """
    text, allowed = statement(name).text, statement(name).each
    assert set(each) <= set(allowed), f"{name} takes per row only {allowed}"
    shared = tuple(n for n in _names(text) if n not in each)
    found = _VALUES.search(text)
    assert found is not None, f"{name} has no VALUES group"
    numbers = _numbers(shared)
    groups: list[str] = []
    for row in range(rows):
        own = _numbers(each, len(shared) + row * len(each) + 1)
        groups.append(_numbered(found[1], numbers | own))
    tail = _numbered(found[2] or "", numbers)
    return Statement(name, f"{_numbered(text[: found.start(1)], numbers)}{', '.join(groups)} {tail}", shared, each)


@cache
def _statements(file: str) -> dict[str, Statement]:
    """The statements of a file by their short names, not numbered yet."""
    if file == "form":
        return {name: Statement(f"form.{name}", binary=True, text=text) for name, text in form_statements().items()}
    parts = _HEAD.split((files("muniment") / PACKAGES[file] / f"{file}.sql").read_text("utf-8"))
    loaded: dict[str, Statement] = {}
    for name, body in zip(parts[1::2], parts[2::2], strict=True):
        assert name not in loaded, f"{file}.{name} is there twice"
        each, rank = _EACH.search(body), _RANK.search(body)
        text = _COMMENT.sub("", body)
        while file != "fragments" and _FRAGMENT.search(text):
            text = _FRAGMENT.sub(_fragment, text)
        loaded[name] = Statement(
            f"{file}.{name}",
            each=tuple(n.strip() for n in each[1].split(",")) if each else (),
            planned_once=_EACH_TIME not in body,
            binary=_BINARY in body,
            rank=int(rank[1]) if rank else 0,
            text=text.strip().rstrip(";"),
        )
    return loaded


def _fragment(found: re.Match[str]) -> str:
    return re.sub(r"\balias\b", found[2], _statements("fragments")[found[1]].text)


def _numbers(names: Iterable[str], first: int = 1) -> dict[str, str]:
    return {name: f"${number}" for number, name in enumerate(names, first)}


def _names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_PARAMETER.findall(text)))


def _numbered(text: str, numbers: dict[str, str]) -> str:
    return _PARAMETER.sub(lambda found: numbers[found[1]], text)


def chunks(rows: Iterable[Sequence[Any]]) -> Iterator[list[Sequence[Any]]]:
    """The rows in chunks of few sizes, the largest first, so that few shapes of the statement are planned."""
    waiting = iter(rows)
    while len(chunk := list(islice(waiting, CHUNKS[0]))) == CHUNKS[0]:
        yield chunk
    while chunk:
        size = next(size for size in CHUNKS if size <= len(chunk))
        yield chunk[:size]
        del chunk[:size]


def form_statements() -> dict[str, str]:
    """The text of every statement that is generated from a form, by its short name.

    No caller's value becomes part of a text: it is made of the declarations in row_forms.py alone.
    """
    made: dict[str, str] = {}
    for form in FORMS:
        for version in range(1, form.version + 1):
            made[f"{form.name} some {version}"] = _some(form, version)
            if len(form.keys) == 1:
                made[f"{form.name} together {version}"] = _together(form, version)
        made[f"{form.name} walk"] = _walk(form)
        made[f"{form.name} count"] = _count(form)
    return made


def _some(form: Form, version: int) -> str:
    """The hashes of the rows with those keys; a key of several columns may select more rows than were named."""
    wanted = [f"{key.name} = ANY (:key_{key.name}::{TYPES[key.kind].sql}[])" for key in form.keys]
    return _select(_hashes(form, version), form, *wanted)


def _together(form: Form, version: int) -> str:
    """How many of the rows with those ids there are, and their hashes concatenated in the order of the ids."""
    (key,) = form.keys
    assert key.kind == "text", f"{form.name}: a key of one column is a text"
    order = f'ORDER BY {key.name} COLLATE "C"'
    columns = [f"count(*) AS rows, string_agg({_hash(form.columns_at(version))}, ''::bytea {order}) AS lasting"]
    if form.losing:
        columns.append(f"string_agg({_hash(form.losing)}, ''::bytea {order}) AS losing")
    return _select(", ".join(columns), form, f"{key.name} = ANY (string_to_array(:ids::text, chr(31)))")


def _walk(form: Form) -> str:
    """The rows after a key, in the order of the key."""
    names = ", ".join(key.name for key in form.keys)
    after = ", ".join(f":key_{key.name}::{TYPES[key.kind].sql}" for key in form.keys)
    selected = _select(f"{names}, {_hashes(form, form.version)}", form, f"({names}) > ({after})")
    return f"{selected} ORDER BY {names} LIMIT :count"


def _count(form: Form) -> str:
    """How many rows there are; of rows that the sealing job lists, up to an id."""
    until = f"{form.keys[0].name} < :until" if form.id_prefix is not None else ":until::text IS NULL"
    return _select("count(*) AS rows", form, until)


def _select(columns: str, form: Form, *conditions: str) -> str:
    wanted = " AND ".join(("tenant_id = :tenant_id", *conditions, *([form.where] if form.where else [])))
    return f"SELECT {columns} FROM {form.table} WHERE {wanted}"  # noqa: S608  names of our declarations, and parameters


def _hashes(form: Form, version: int) -> str:
    parts = [key.name if key.kind == "text" else f"{key.name}::text" for key in form.keys]
    columns = [f"{' || chr(31) || '.join(parts)} AS id", f"{_hash(form.columns_at(version))} AS lasting"]
    if form.losing:
        columns.append(f"{_hash(form.losing)} AS losing")
    return ", ".join(columns)


def _hash(columns: tuple[Column, ...]) -> str:
    return f"sha256(record_send(ROW({', '.join(f'{one.name}::{TYPES[one.kind].sql}' for one in columns)})))"
