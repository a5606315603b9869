"""Loads the SQL: each package keeps its statements in .sql files, named and described, and each file is read once.

A statement begins with `-- name: <name>` and is called `<file>.<name>`. Parameters are written `:name`.
`{name alias}` stands for the condition of that name in database/fragments.sql, on the table of that alias.
One that says `-- each: a, b` inserts many rows: its VALUES group is repeated per row. The parameters listed may be
given per row, all others are given once for the whole statement.
One that says `-- plan: each time` is planned for the values it is given: one plan for all of them would be a bad one.
One that says `-- results: binary` has its results sent so: long columns are read faster.
Statements of the stage `form` are generated from the forms of rows (row_forms_sql.py).
One that says `-- rank: 2` goes out after those of lower rank where rows of several are added together.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
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

# The package that each file of statements is in.
PACKAGES = {
    "archive": "archives",
    "audit": "audit",
    "backfill": "packs",
    "backtest": "packs",
    "browse": "recall",
    "candidate": "candidates",
    "capture": "capture",
    "chain": "audit",
    "consent": "consent",
    "contradictions": "contradictions",
    "credential": "access",
    "cursor": "database",
    "durable": "promotion",
    "erasure": "erasure",
    "fragments": "database",
    "history": "capture",
    "indexing": "promotion",
    "jobs": "worker",
    "metrics": "metrics",
    "neighbours": "candidates",
    "pack": "packs",
    "promote": "promotion",
    "recall": "recall",
    "request": "access",
    "review": "review",
    "rows": "database",
    "search": "recall",
    "tenant": "database",
    "tombstone": "consent",
    "webhook": "webhooks",
}

# Rows per statement of a many-row insert: few shapes, so that each is planned once per connection.
CHUNKS = (128, 16, 4, 1)


@dataclass(frozen=True)
class Statement:
    """One named statement in the server's own parameter style."""

    name: str
    sql: str
    parameters: tuple[str, ...]
    each: tuple[str, ...] = ()
    planned_once: bool = True
    binary: bool = False
    rank: int = 0
    # As its file has it, with its parameters by name.
    text: str = ""

    def arguments(self, given: dict[str, Any]) -> list[Any]:
        """The values in the order of the statement's parameters; raises KeyError for one not given."""
        return [given[name] for name in self.parameters]


@dataclass(frozen=True)
class _Written:
    """A statement as its file has it."""

    text: str
    each: tuple[str, ...]
    planned_once: bool
    binary: bool
    rank: int


@cache
def statement(name: str) -> Statement:
    """The statement of that name; raises KeyError if there is none."""
    stage, _, short = name.partition(".")
    found = _stage(stage)[short]
    order = _names(found.text)
    numbered = _numbered(found.text, {n: f"${place}" for place, n in enumerate(order, 1)})
    return Statement(name, numbered, order, found.each, found.planned_once, found.binary, found.rank, found.text)


@lru_cache(maxsize=1024)
def many(name: str, each: tuple[str, ...], rows: int) -> Statement:
    """A many-row insert for that number of rows, with those of its parameters given per row.

    Its arguments are the shared ones in the order of `parameters`, then row after row in the order of `each`.
    """
    stage, _, short = name.partition(".")
    text, allowed = (written := _stage(stage)[short]).text, written.each
    assert set(each) <= set(allowed), f"{name} takes per row only {allowed}"
    shared = tuple(n for n in _names(text) if n not in each)
    found = _VALUES.search(text)
    assert found is not None, f"{name} has no VALUES group"
    numbers = {n: f"${place}" for place, n in enumerate(shared, 1)}
    groups: list[str] = []
    for row in range(rows):
        first = len(shared) + row * len(each) + 1
        groups.append(_numbered(found[1], numbers | {n: f"${first + place}" for place, n in enumerate(each)}))
    tail = _numbered(found[2] or "", numbers)
    return Statement(name, f"{_numbered(text[: found.start(1)], numbers)}{', '.join(groups)} {tail}", shared, each)


@cache
def _stage(stage: str) -> dict[str, _Written]:
    if stage == "form":
        # Generated from the forms of rows; planned for the ids that are asked for, and long.
        return {name: _Written(text, (), True, True, 0) for name, text in form_statements().items()}
    text = (files("muniment") / PACKAGES[stage] / f"{stage}.sql").read_text("utf-8")
    parts = _HEAD.split(text)
    loaded: dict[str, _Written] = {}
    for name, body in zip(parts[1::2], parts[2::2], strict=True):
        each = _EACH.search(body)
        names = tuple(n.strip() for n in each[1].split(",")) if each else ()
        assert name not in loaded, f"{stage}.{name} stands twice"
        text = _COMMENT.sub("", body)
        while stage != "fragments" and _FRAGMENT.search(text):
            text = _FRAGMENT.sub(_fragment, text)
        rank = int(found[1]) if (found := _RANK.search(body)) else 0
        loaded[name] = _Written(text.strip().rstrip(";"), names, _EACH_TIME not in body, _BINARY in body, rank)
    return loaded


def _fragment(found: re.Match[str]) -> str:
    return re.sub(r"\balias\b", found[2], _stage("fragments")[found[1]].text)


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
    """The text of every generated statement, by its short name."""
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
    """The hashes of the rows with those keys; of a key of several columns more rows may come than were asked for."""
    wanted = [f"{key.name} = ANY (:key_{key.name}::{TYPES[key.kind].sql}[])" for key in form.keys]
    return _select(_hashes(form, version), form, *wanted)


def _together(form: Form, version: int) -> str:
    """The same of many rows in one: how many there are, and their hashes one after the other, by the order of ids."""
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
    """How many rows there are; of those that the sealing job digests, up to an id."""
    until = f"{form.keys[0].name} < :until" if form.id_prefix is not None else ":until::text IS NULL"
    return _select("count(*) AS rows", form, until)


def _select(columns: str, form: Form, *conditions: str) -> str:
    wanted = " AND ".join(("tenant_id = :tenant_id", *conditions, *([form.where] if form.where else [])))
    # Names of our own declarations, and parameters.
    return f"SELECT {columns} FROM {form.table} WHERE {wanted}"  # noqa: S608


def _hashes(form: Form, version: int) -> str:
    parts = [key.name if key.kind == "text" else f"{key.name}::text" for key in form.keys]
    columns = [f"{' || chr(31) || '.join(parts)} AS id", f"{_hash(form.columns_at(version))} AS lasting"]
    if form.losing:
        columns.append(f"{_hash(form.losing)} AS losing")
    return ", ".join(columns)


def _hash(columns: tuple[Column, ...]) -> str:
    return f"sha256(record_send(ROW({', '.join(f'{one.name}::{TYPES[one.kind].sql}' for one in columns)})))"
