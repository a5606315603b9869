"""Rows held against the log: whatever somebody with all rights to the database does to a row, `verify` names it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from muniment import Fabric
from muniment.database.row_forms import EXEMPT, FORMS, Form
from muniment.testing import TestServer
from tests.cluster.server import unreferenced
from tests.security.catalogue import Connection, tenant_tables
from tests.security.row_history import PEOPLE, Forger, other_value, row_history, without_checks


@pytest.fixture(scope="module")
def history(server: TestServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Fabric, Connection]]:
    """A history with rows of every form, and a superuser who has switched everything off that could hold them."""
    database = server.clone()
    archives: Path = tmp_path_factory.mktemp("archives")
    with row_history(server, database, archives) as fabric, unreferenced(server, database) as owner:
        without_checks(owner)
        yield fabric, owner
    server.drop(database)


def named(fabric: Fabric) -> set[tuple[str, str | None, str | None]]:
    return {(one.kind, one.table, one.row_id) for one in fabric.verify(PEOPLE.auditor).breaks}


@pytest.mark.rule("AUD-4")
def test_after_all_that_can_happen_every_row_is_what_the_log_says(history: tuple[Fabric, Connection]) -> None:
    found = history[0].verify(PEOPLE.auditor)
    assert found.breaks == ()
    assert found.ok and found.covered_from == 1 and found.rows > 100
    for form in FORMS:
        assert Forger(history[1], PEOPLE.tenant_id, form).row() is not None, f"the history has no row of {form.name}"


@pytest.mark.rule("AUD-4")
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_a_row_that_was_changed_in_any_lasting_column_is_named(history: tuple[Fabric, Connection], form: Form) -> None:
    fabric, owner = history
    forger = Forger(owner, PEOPLE.tenant_id, form)
    row = forger.row()
    assert row is not None
    for column in form.columns[len(form.keys) :] + form.losing:
        forger.change(row, {column.name: other_value(column)})
        assert ("row_changed", form.table, forger.row_id(row)) in named(fabric), column.name
        forger.restore(row)
    assert named(fabric) == set()


@pytest.mark.rule("AUD-4")
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_a_row_that_was_taken_away_is_named(history: tuple[Fabric, Connection], form: Form) -> None:
    fabric, owner = history
    forger = Forger(owner, PEOPLE.tenant_id, form)
    row = forger.row()
    assert row is not None
    if form.where is None:
        forger.delete(row)
    else:
        forger.change(row, dict.fromkeys((column.name for column in form.columns[len(form.keys) :]), "NULL"))
    assert ("row_removed", form.table, forger.row_id(row)) in named(fabric)
    forger.restore(row)
    assert named(fabric) == set()


@pytest.mark.rule("AUD-4")
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_a_row_that_was_added_is_named(history: tuple[Fabric, Connection], form: Form) -> None:
    fabric, owner = history
    forger = Forger(owner, PEOPLE.tenant_id, form)
    row: Any = forger.row(tenant_state=form.where is None)
    assert row is not None, "the table has no row without it"
    if form.where is None:
        last = form.keys[-1]
        forged = row | {last.name: row[last.name] + 1 if last.kind == "int" else _forged(row[last.name], form)}
        if form.name == "memories":
            forged |= {"proposal_id": "mwp_forged"}
        forger.insert(forged)
    else:
        forged = row
        values = {"time": "now()", "text": "'eve'", "int": "1"}
        forger.change(row, {column.name: values[column.kind] for column in form.columns[1:]})
    assert ("row_added", form.table, forger.row_id(forged)) in named(fabric)
    if form.where is None:
        forger.delete(forged)
    else:
        forger.restore(row)
    assert named(fabric) == set()


def _forged(row_id: str, form: Form) -> str:
    """An id that nobody has; of rows that the sealing job lists, one of long ago."""
    return f"{form.id_prefix}_{'0' * 28}" if form.id_prefix is not None else f"{row_id}x"


@pytest.mark.rule("AUD-4")
@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ("UPDATE memory_scope SET classification = 'PUBLIC' WHERE {live}", "row_changed"),
        ("UPDATE memory_scope SET user_id = 'eve' WHERE {live}", "row_changed"),
        ("UPDATE memory_scope SET dead_seq = NULL WHERE dead_seq IS NOT NULL AND tomb_seq IS NULL", "row_changed"),
        ("UPDATE memory_scope SET expires_at = 'infinity' WHERE expires_at < 'infinity'", "row_changed"),
        ("DELETE FROM memory_scope WHERE {live}", "row_removed"),
    ],
)
def test_what_recall_finds_memories_by_says_what_they_say(
    history: tuple[Fabric, Connection], change: str, kind: str
) -> None:
    fabric, owner = history
    before = owner.execute("SELECT to_jsonb(f) FROM memory_scope f").fetchall()
    live = (
        "memory_id = (SELECT min(memory_id) FROM memory_scope WHERE dead_seq IS NULL AND classification = 'INTERNAL')"
    )
    assert owner.execute(change.format(live=live)).rowcount > 0  # type: ignore[arg-type]
    assert {(one, table) for one, table, _ in named(fabric)} == {(kind, "memory_scope")}
    form = Form("memory_scope", "memory_id", "")
    owner.execute("DELETE FROM memory_scope")
    for (row,) in before:
        Forger(owner, PEOPLE.tenant_id, form).insert(row)  # type: ignore[arg-type]
    assert named(fabric) == set()


@pytest.mark.rule("AUD-4", "PAC-5")
def test_a_pack_in_force_that_is_not_the_one_activated_last_is_named(history: tuple[Fabric, Connection]) -> None:
    fabric, owner = history
    (pack,) = owner.execute("UPDATE packs_in_force SET seq = seq - 1 RETURNING pack").fetchone() or (None,)
    assert named(fabric) == {("row_changed", "packs_in_force", pack)}
    owner.execute("UPDATE packs_in_force SET seq = seq + 1")
    assert named(fabric) == set()


@pytest.mark.rule("AUD-4")
def test_every_table_has_a_form_or_a_reason_why_it_has_none(server: TestServer, database: str) -> None:
    with server.connect(database) as owner:
        tables = tenant_tables(owner)
        columns: dict[str, set[str]] = {}
        for table, column in owner.execute(
            "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'muniment'"
        ).fetchall():
            columns.setdefault(str(table), set()).add(str(column))
    formed = {form.table for form in FORMS}
    assert formed | EXEMPT.keys() == set(tables), "add a Form to FORMS, or a line to EXEMPT"
    assert not formed & EXEMPT.keys()
    assert all(EXEMPT.values())
    for form in FORMS:
        if form.where is None:
            forms = [one for one in FORMS if one.table == form.table]
            known = {column.name for one in forms for column in one.columns + one.losing}
            known |= form.outside.keys() | {"tenant_id"}
            assert columns[form.table] - {"txid"} == known, form.table
