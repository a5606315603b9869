"""The statements that are generated from the forms of rows, so that adding a table's form is one declaration.

Names are `form.<form> some <version>`, `form.<form> together <version>`, `form.<form> walk` and `form.<form> count`.
They are made of the declarations in policy/row_forms.py alone; no value that anybody gave becomes part of one.
"""

from muniment.database.row_forms import FORMS, Column, Form
from muniment.database.row_values import TYPES


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
