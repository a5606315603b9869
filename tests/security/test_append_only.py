"""SQL with the program's own logins: what is written cannot be changed."""

from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from muniment.testing import TestServer
from tests.cluster.server import unreferenced
from tests.conftest import Connect
from tests.security.catalogue import APPEND_ONLY, DELETABLE, TASKS, WITHOUT_A_TENANT, Connection, tables
from tests.security.rows import insert, mark, one, tick

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
    ("memory_scope", "tomb_seq"),
    ("memory_scope", "tomb_at"),
    ("cursors", "at"),
    ("erasures", "purged_at"),
    ("model_calls", "calls"),
    # A version is retired once; one activation follows another.
    ("packs", "retired_at"),
    ("packs", "retired_by"),
    *(("packs_in_force", column) for column in ("seq", "pack", "txid", "lock")),
    *(("retries", column) for column in ("tries", "next_at", "error", "parked_at", "number", "late")),
    *(("job_runs", column) for column in ("ran_at", "seq", "next_at", "took", "failures", "error")),
    ("embedders", "completed_at"),
    *(("api_keys", column) for column in ("last_used_at", "revoked_at", "revoked_by", "user_id", "label")),
    *(("requests", column) for column in ("status", "answer", "closed")),
    *(("presence", column) for column in ("since", "at")),
    *(("saved_views", column) for column in ("filters", "saved_at")),
    ("subjects", "display_name"),
    # A question is answered once.
    *(
        ("consent_requests", column)
        for column in ("answer", "answered_seq", "answered_at", "answered_txid", "answered_by")
    ),
    *(
        ("erasure_requests", column)
        for column in ("answer", "answered_seq", "answered_at", "answered_txid", "answered_by", "erasure_id")
    ),
    # A code is used once.
    *(("one_time_codes", column) for column in ("used_seq", "used_at", "used_txid")),
    *(("index_holders", column) for column in ("confirmed_seq", "leased_until")),
    *(("backfills", column) for column in ("place_seq", "place", "finished_at")),
    *(
        ("webhooks", column)
        for column in ("secret", "old_secret", "old_secret_until", "removed_at", "seq", "n", "tries")
    ),
    *(("notices", column) for column in ("address", "removed_at", "seq", "n", "digest_at", "sent_at", "tries")),
    *(
        ("notices", column)
        for column in ("next_try_at", "last_error", "lease", "leased_until", "seen_at", "seen_roles")
    ),
    *(("webhooks", column) for column in ("next_try_at", "last_error", "parked_at", "lease", "leased_until")),
}
# Who retracts, with a reason that the login may give; who takes numbers.
RETRACTING = [("writer", "wrong"), ("jobs", "consent_revoked"), ("privacy", "erased")]
TICKING = ["writer", "privacy", "jobs"]


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
        names = set(tables(owner))
    assert {(grantee, table) for grantee, table, privilege in whole if privilege == "DELETE"} == {
        (f"muniment_{task}", table) for task, table in DELETABLE
    }
    assert {privilege for _, _, privilege in whole} == {"DELETE"}
    assert names - APPEND_ONLY - set(WITHOUT_A_TENANT) == {table for table, _ in CHANGEABLE} | {
        "alerts",
        "waiting_proposals",
    }
    assert names >= APPEND_ONLY
    assert {(str(table), str(column)) for table, column in columns} == CHANGEABLE
    assert public == (0,)


@pytest.mark.rule("CAP-1", "REV-1", "PRO-3", "CON-1")
# Of a pack nothing changes but whether it can be used.
@pytest.mark.parametrize("table", sorted({*APPEND_ONLY, "packs", "packs_in_force"}))
def test_update_delete_and_truncate_of_append_only_rows_are_refused(
    furnished: dict[str, Any], as_role: Connect, table: str
) -> None:
    for task in TASKS:
        refused = [f"UPDATE {table} SET tenant_id = tenant_id", f"TRUNCATE {table}"]
        if (task, table) in DELETABLE:
            assert as_role(task).execute(f"SELECT count(*) FROM {table}").fetchone() != (0,)
            with pytest.raises(psycopg.errors.ForeignKeyViolation):  # none of these has a tombstone
                as_role(task).execute(f"DELETE FROM {table}")
        else:
            refused.append(f"DELETE FROM {table}")
        for statement in refused:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                as_role(task).execute(statement)


@pytest.mark.rule("PRO-3", "PRO-6")
@pytest.mark.parametrize(("task", "reason"), RETRACTING)
def test_a_retraction_cannot_be_undone_moved_or_rewritten(
    furnished: dict[str, Any], as_role: Connect, owner: Connection, tenant: str, task: str, reason: str
) -> None:
    writer, memory_id = as_role(task), furnished["retracted"]
    for change in ("dead_seq = NULL", "dead_seq = 1", "dead_seq = dead_seq + 1"):
        if task in ("jobs", "privacy"):  # They may touch what is dead, to entomb it, and meets the keys.
            with pytest.raises((psycopg.errors.InsufficientPrivilege, psycopg.errors.ForeignKeyViolation)):
                writer.execute(f"UPDATE memory_scope SET {change} WHERE memory_id = %s", [memory_id])
            continue
        changed = writer.execute(f"UPDATE memory_scope SET {change} WHERE memory_id = %s", [memory_id])
        assert changed.rowcount == 0, change
    for statement in ("UPDATE retractions SET reason = 'deprecated'", "DELETE FROM retractions"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            writer.execute(statement)
    with pytest.raises(psycopg.errors.UniqueViolation), writer.transaction():
        again = {**one(owner, "retractions", memory_id=memory_id), "retracted_by": "eve", "reason": reason}
        insert(writer, "retractions", again | {"txid": mark(writer, tenant)})


@pytest.mark.rule("PRO-3", "PRO-6", "AUD-1")
@pytest.mark.parametrize(("task", "reason"), RETRACTING)
def test_a_retraction_cannot_be_back_dated(
    furnished: dict[str, Any], as_role: Connect, tenant: str, task: str, reason: str
) -> None:
    writer, memory_id = as_role(task), furnished["memories"][0]
    old = writer.execute("SELECT seq, at, txid::text FROM ticks ORDER BY seq LIMIT 1").fetchone()
    assert old is not None
    retract = (
        "INSERT INTO retractions (tenant_id, memory_id, seq, retracted_at, txid, retracted_by, reason)"
        " VALUES (%s, %s, %s, %s, %s::xid8, 'eve', %s)"
    )
    with pytest.raises(psycopg.errors.ForeignKeyViolation), writer.transaction():
        writer.execute(retract, [tenant, memory_id, old[0], old[1], mark(writer, tenant), reason])
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        writer.execute(retract, [tenant, memory_id, old[0], old[1], old[2], reason])
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        writer.execute("UPDATE memory_scope SET dead_seq = 1 WHERE memory_id = %s", [memory_id])
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        writer.execute("UPDATE memory_scope SET dead_seq = NULL WHERE memory_id = %s", [memory_id])


@pytest.mark.rule("AUD-1")
@pytest.mark.parametrize("task", TICKING)
def test_a_tick_cannot_be_earlier_than_the_one_before_nor_leave_a_gap(
    furnished: dict[str, Any], as_role: Connect, tenant: str, task: str
) -> None:
    writer = as_role(task)
    last = writer.execute("SELECT seq, at FROM ticks ORDER BY seq DESC LIMIT 1").fetchone()
    assert last is not None
    seq = int(str(last[0]))
    insert = (
        "INSERT INTO ticks (tenant_id, seq, at, prev_seq, prev_at, txid)"
        " VALUES (%s, %s, %s::timestamptz {shift}, %s, %s, %s)"
    )
    for refusal, shift, number, previous in (
        (psycopg.errors.CheckViolation, "- interval '1 hour'", seq + 1, seq),
        (psycopg.errors.CheckViolation, "", seq + 2, seq),
        (psycopg.errors.ForeignKeyViolation, "", seq + 2, seq + 1),
        (psycopg.errors.UniqueViolation, "", seq, seq - 1),
    ):
        with pytest.raises(refusal), writer.transaction():
            values = [tenant, number, last[1], previous, last[1], mark(writer, tenant)]
            writer.execute(insert.format(shift=shift), values)


@pytest.mark.rule("AUD-1", "REV-1", "CON-1")
@pytest.mark.parametrize(
    ("task", "table", "forge"),
    [
        ("writer", "verdicts", {"verdict_id": "rv_forged", "action": "assign"}),
        ("privacy", "consents", {"consent_id": "cns_forged", "supersedes": None}),
        ("writer", "events", {"n": 99, "event_id": "evt_forged"}),
        ("jobs", "events", {"n": 99, "event_id": "evt_forged"}),
    ],
)
def test_nothing_can_be_entered_under_an_earlier_number(
    furnished: dict[str, Any], as_role: Connect, server: TestServer, database: str, tenant: str,
    task: str, table: str, forge: dict[str, Any],
) -> None:  # fmt: skip
    with server.connect(database) as owner:
        row = owner.execute(f"SELECT to_jsonb(t) FROM {table} t WHERE tenant_id = %s LIMIT 1", [tenant]).fetchone()
    assert row is not None
    old: Any = {**row[0], **forge}  # type: ignore[dict-item]
    connection = as_role(task)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        insert(connection, table, old)
    with pytest.raises(psycopg.errors.ForeignKeyViolation), connection.transaction():
        insert(connection, table, {**old, "txid": mark(connection, tenant)})


@pytest.mark.rule("REC-1", "CON-3")
@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("user_id", "somebody_else"),
        ("tier", "durable"),
        ("classification", "PUBLIC"),
        ("consent_root", None),
        ("expires_at", "infinity"),
        ("intent_id", "other"),
        ("predicate", "other"),
        ("confidence", 0.99),
        ("priority", 1.0),
        ("qualifiers", {"region": "de"}),
        ("valid_from", "2020-01-01T00:00:00+00:00"),
        ("valid_until", "2020-01-01T00:00:00+00:00"),
    ],
)
def test_what_recall_filters_by_cannot_differ_from_the_memory(
    furnished: dict[str, Any],
    as_role: Connect,
    owner: Connection,
    server: TestServer,
    database: str,
    column: str,
    value: Any,
) -> None:
    columns = [
        "tenant_id",
        "user_id",
        "memory_id",
        "born_seq",
        "promoted_at",
        "expires_at",
        "priority",
        "confidence",
        "tier",
        "class",
        "classification",
        "session_id",
        "workflow_id",
        "intent_id",
        "entity",
        "predicate",
        "consent_root",
        "qualifiers",
        "valid_from",
        "valid_until",
    ]
    sensitive, writer = furnished["memories"][2], as_role("writer")
    found = one(owner, "memory_scope", memory_id=sensitive)
    row = {name: found[name] for name in columns}
    with unreferenced(server, database) as superuser:
        superuser.execute("DELETE FROM memory_scope WHERE memory_id = %s", [sensitive])
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        insert(writer, "memory_scope", row | {column: value})
    insert(writer, "memory_scope", row)


@pytest.mark.rule("PRO-6", "REC-1")
@pytest.mark.parametrize(("task", "reason"), RETRACTING)
def test_a_retraction_that_leaves_its_memory_recallable_cannot_commit(
    furnished: dict[str, Any], as_role: Connect, tenant: str, task: str, reason: str
) -> None:
    writer, memory_id = as_role(task), furnished["memories"][0]
    with pytest.raises(psycopg.errors.ForeignKeyViolation), writer.transaction():
        now = tick(writer, tenant).stamp("retracted_at")
        retraction = {"tenant_id": tenant, "memory_id": memory_id, "retracted_by": "eve", "reason": reason}
        insert(writer, "retractions", {**retraction, **now})


@pytest.mark.rule("CON-2", "CON-3")
def test_a_consent_cannot_join_the_chain_of_another_subject(
    furnished: dict[str, Any], server: TestServer, database: str
) -> None:
    with server.connect(database) as owner, pytest.raises(psycopg.errors.ForeignKeyViolation):
        owner.execute(
            "INSERT INTO consents SELECT (jsonb_populate_record(c, %s)).* FROM consents c WHERE consent_id = %s",
            [Jsonb({"consent_id": "cns_forged", "subject": "customer:other"}), furnished["consent"].consent_id],
        )


@pytest.mark.rule("CON-1")
def test_a_request_for_consent_is_answered_once_in_time_and_by_the_officer_alone(
    furnished: dict[str, Any], as_role: Connect, tenant: str
) -> None:
    answer = (
        "UPDATE consent_requests SET answer = %(answer)s, answered_by = 'boris', answered_seq = %(seq)s,"
        " answered_at = %(at)s, answered_txid = %(txid)s WHERE tenant_id = %(tenant)s"
    )
    officer = as_role("privacy")
    old = officer.execute("SELECT seq, at, txid::text FROM ticks ORDER BY seq LIMIT 1").fetchone()
    assert old is not None
    given: dict[str, Any] = {"tenant": tenant, "answer": "granted", "seq": old[0], "at": old[1]}
    for task in ("writer", "auditor", "jobs"):
        other = as_role(task)
        with pytest.raises(psycopg.errors.InsufficientPrivilege), other.transaction():
            other.execute(answer, given | {"txid": mark(other, tenant)})
    with pytest.raises(psycopg.errors.InsufficientPrivilege):  # under an earlier transaction's number
        officer.execute(answer, given | {"txid": old[2]})
    with pytest.raises(psycopg.errors.ForeignKeyViolation), officer.transaction():
        officer.execute(answer, given | {"txid": mark(officer, tenant)})
    with officer.transaction():
        now = tick(officer, tenant)
        given |= {"seq": now.seq, "at": now.at, "txid": now.txid}
        for wrong in ({"answer": "perhaps"}, {"at": now.at.replace(year=now.at.year + 1)}, {"at": None}):
            with pytest.raises(psycopg.errors.CheckViolation), officer.transaction():
                officer.execute(answer, given | wrong)
        assert officer.execute(answer, given).rowcount == 1
        assert officer.execute(answer, given | {"answer": "refused"}).rowcount == 0


@pytest.mark.rule("AUD-1")
@pytest.mark.parametrize("task", TICKING)
def test_the_clock_cannot_be_set_to_the_end_of_time(furnished: dict[str, Any], as_role: Connect, task: str) -> None:
    with pytest.raises(psycopg.errors.CheckViolation):
        as_role(task).execute("UPDATE tenant_clock SET at = 'infinity'")


@pytest.mark.rule("CAP-6", "ISO-4")
def test_the_recall_login_cannot_read_what_others_recalled(furnished: dict[str, Any], as_role: Connect) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        as_role("recall").execute("SELECT result_ids FROM recalls")
