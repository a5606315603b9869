"""As the database's own logins, in SQL: what is written stays as it was written."""

from typing import Any

import psycopg
import pytest

from muniment.testing import TestServer
from tests.conftest import Connect
from tests.security.catalogue import APPEND_ONLY, TASKS, tables

# What may change, column by column: counters, cursors, row locks that cannot hold a value, and the one death of a memory.
CHANGEABLE = {
    ("tenant_clock", "seq"),
    ("tenant_clock", "at"),
    ("tenant_clock", "prev_at"),
    ("cursors", "seq"),
    ("cursors", "capture_id"),
    ("subjects", "lock"),
    ("proposals", "lock"),
    ("promotion_locks", "lock"),
    ("memory_scope", "dead_seq"),
}


@pytest.mark.rule("CAP-1", "REV-1", "PRO-3", "CON-1")
def test_no_login_has_update_or_delete_beyond_the_listed_columns(server: TestServer, database: str) -> None:
    with server.connect(database) as owner:
        whole = owner.execute(
            "SELECT grantee, table_name, privilege_type FROM information_schema.role_table_grants"
            " WHERE table_schema = 'muniment' AND grantee LIKE 'muniment_%%' AND grantee <> 'muniment_owner'"
            " AND privilege_type NOT IN ('SELECT', 'INSERT')"
        ).fetchall()
        columns = owner.execute(
            "SELECT table_name, column_name FROM information_schema.column_privileges"
            " WHERE table_schema = 'muniment' AND grantee LIKE 'muniment_%%' AND grantee <> 'muniment_owner'"
            " AND privilege_type = 'UPDATE'"
        ).fetchall()
        public = owner.execute(
            "SELECT count(*) FROM information_schema.role_table_grants WHERE table_schema = 'muniment' AND grantee = 'PUBLIC'"
        ).fetchone()
        assert set(tables(owner)) >= APPEND_ONLY
    assert whole == []
    assert {(str(table), str(column)) for table, column in columns} == CHANGEABLE
    assert public == (0,)


@pytest.mark.rule("CAP-1", "REV-1", "PRO-3", "CON-1")
@pytest.mark.parametrize("table", sorted(APPEND_ONLY))
def test_update_delete_and_truncate_of_append_only_rows_are_refused(
    furnished: dict[str, Any], as_role: Connect, table: str
) -> None:
    for task in TASKS:
        for statement in (
            f"UPDATE {table} SET tenant_id = tenant_id",
            f"DELETE FROM {table}",
            f"TRUNCATE {table}",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                as_role(task).execute(statement)


@pytest.mark.rule("PRO-3", "PRO-6")
def test_a_retraction_cannot_be_undone_moved_or_rewritten(
    furnished: dict[str, Any], as_role: Connect
) -> None:
    writer, memory_id = as_role("writer"), furnished["retracted"]
    for change in ("dead_seq = NULL", "dead_seq = 1", "dead_seq = dead_seq + 1"):
        changed = writer.execute(f"UPDATE memory_scope SET {change} WHERE memory_id = %s", [memory_id])
        assert changed.rowcount == 0, change
    for statement in ("UPDATE retractions SET reason = 'deprecated'", "DELETE FROM retractions"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            writer.execute(statement)
    with pytest.raises(psycopg.errors.UniqueViolation):
        writer.execute(
            "INSERT INTO retractions (tenant_id, memory_id, seq, retracted_at, txid, retracted_by, reason)"
            " SELECT tenant_id, memory_id, seq, retracted_at, pg_current_xact_id(), 'eve', 'wrong' FROM retractions LIMIT 1"
        )


@pytest.mark.rule("PRO-3", "PRO-6", "AUD-1")
def test_a_retraction_cannot_be_back_dated(furnished: dict[str, Any], as_role: Connect, tenant: str) -> None:
    writer, memory_id = as_role("writer"), furnished["memories"][0]
    old = writer.execute("SELECT seq, at, txid::text FROM ticks ORDER BY seq LIMIT 1").fetchone()
    assert old is not None
    retract = (
        "INSERT INTO retractions (tenant_id, memory_id, seq, retracted_at, txid, retracted_by, reason)"
        " VALUES (%s, %s, %s, %s, {txid}, 'eve', 'wrong')"
    )
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        writer.execute(retract.format(txid="pg_current_xact_id()"), [tenant, memory_id, old[0], old[1]])
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        writer.execute(retract.format(txid=f"'{old[2]}'::xid8"), [tenant, memory_id, old[0], old[1]])
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        writer.execute("UPDATE memory_scope SET dead_seq = 1 WHERE memory_id = %s", [memory_id])
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        writer.execute("UPDATE memory_scope SET dead_seq = NULL WHERE memory_id = %s", [memory_id])


@pytest.mark.rule("AUD-1")
def test_a_tick_cannot_be_earlier_than_the_one_before_nor_leave_a_gap(
    furnished: dict[str, Any], as_role: Connect, tenant: str
) -> None:
    writer = as_role("writer")
    last = writer.execute("SELECT seq, at FROM ticks ORDER BY seq DESC LIMIT 1").fetchone()
    assert last is not None
    seq = int(str(last[0]))
    insert = (
        "INSERT INTO ticks (tenant_id, seq, at, prev_seq, prev_at, txid)"
        " VALUES (%s, %s, %s::timestamptz {shift}, %s, %s, pg_current_xact_id())"
    )
    with pytest.raises(psycopg.errors.CheckViolation):
        writer.execute(insert.format(shift="- interval '1 hour'"), [tenant, seq + 1, last[1], seq, last[1]])
    with pytest.raises(psycopg.errors.CheckViolation):
        writer.execute(insert.format(shift=""), [tenant, seq + 2, last[1], seq, last[1]])
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        writer.execute(insert.format(shift=""), [tenant, seq + 2, last[1], seq + 1, last[1]])
    with pytest.raises(psycopg.errors.UniqueViolation):
        writer.execute(insert.format(shift=""), [tenant, seq, last[1], seq - 1, last[1]])
