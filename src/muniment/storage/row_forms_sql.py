"""The statements that are generated from the forms of rows, so that adding a table's form is one declaration.

Names are `form.<form> some <version>`, `form.<form> walk` and `form.<form> count`. They are made of the declarations in
policy/row_forms.py alone; no value that anybody gave becomes part of one.
"""

from muniment.policy.row_forms import FORMS, Column, Form
from muniment.policy.row_values import TYPES


def form_statements() -> dict[str, str]:
    """The text of every generated statement, by its short name."""
    made: dict[str, str] = {}
    for form in FORMS:
        for version in range(1, form.version + 1):
            made[f"{form.name} some {version}"] = _some(form, version)
        made[f"{form.name} walk"] = _walk(form)
        made[f"{form.name} count"] = _count(form)
    return made


def _some(form: Form, version: int) -> str:
    """The hashes of the rows with those keys; of a key of several columns more rows may come than were asked for."""
    wanted = [f"{key.name} = ANY (:k{place}::{TYPES[key.kind].sql}[])" for place, key in enumerate(form.keys)]
    return f"SELECT {_hashes(form, version)} FROM {form.table} WHERE {_and('tenant_id = :tenant_id', *wanted, form.where)}"


def _walk(form: Form) -> str:
    """The rows after a key, in the order of the key."""
    names = ", ".join(key.name for key in form.keys)
    after = ", ".join(f":k{place}::{TYPES[key.kind].sql}" for place, key in enumerate(form.keys))
    condition = _and("tenant_id = :tenant_id", f"({names}) > ({after})", form.where)
    return (
        f"SELECT {names}, {_hashes(form, form.version)} FROM {form.table} WHERE {condition} ORDER BY {names} LIMIT :count"
    )


def _count(form: Form) -> str:
    """How many rows there are; of those that the sealing job digests, up to an id."""
    until = f"{form.keys[0].name} < :until" if form.told_by == "seal" else ":until::text IS NULL"
    return f"SELECT count(*) AS rows FROM {form.table} WHERE {_and('tenant_id = :tenant_id', until, form.where)}"


def _hashes(form: Form, version: int) -> str:
    parts = [key.name if key.kind == "text" else f"{key.name}::text" for key in form.keys]
    columns = [f"{' || chr(31) || '.join(parts)} AS id", f"{_hash(form.columns_at(version))} AS lasting"]
    if form.losing:
        columns.append(f"{_hash(form.losing)} AS losing")
    return ", ".join(columns)


def _hash(columns: tuple[Column, ...]) -> str:
    return f"sha256(record_send(ROW({', '.join(f'{one.name}::{TYPES[one.kind].sql}' for one in columns)})))"


def _and(*conditions: str | None) -> str:
    return " AND ".join(condition for condition in conditions if condition is not None)
