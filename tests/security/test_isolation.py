"""As the database's own logins, in SQL: one tenant cannot read, write or find anything of another."""

from typing import Any

import psycopg
import pytest
from psycopg import sql

from muniment import Fabric
from muniment.errors import NotFound
from muniment.testing import People, TestServer
from tests.conftest import Connect
from tests.security.catalogue import (
    AS_CALLER,
    COMPUTED,
    FUNCTIONS,
    SEEN_BY_JOBS,
    TASKS,
    WITHOUT_A_TENANT,
    tables,
    tenant_tables,
)
from tests.security.rows import insert
from tests.stories import promoted, texts


@pytest.mark.rule("ISO-1")
def test_every_table_and_partition_has_forced_row_security_or_stands_on_the_list(
    server: TestServer, database: str
) -> None:
    with server.connect(database) as owner:
        rows = owner.execute(
            "SELECT relname, relrowsecurity, relforcerowsecurity, relispartition FROM pg_class"
            " WHERE relnamespace = 'muniment'::regnamespace AND relkind IN ('r', 'p', 'f', 'm')"
        ).fetchall()
    assert len(rows) > 25
    unprotected = {name for name, enabled, forced, _ in rows if not (enabled and forced)}
    assert unprotected == set(WITHOUT_A_TENANT)


@pytest.mark.rule("ISO-1")
def test_every_policy_compares_the_tenant(server: TestServer, database: str) -> None:
    with server.connect(database) as owner:
        policies = owner.execute(
            "SELECT tablename, cmd, coalesce(qual, ''), coalesce(with_check, '') FROM pg_policies WHERE schemaname = 'muniment'"
        ).fetchall()
        names = set(tenant_tables(owner))
    assert {policy[0] for policy in policies} == names
    wanted = "(tenant_id = current_setting('muniment.tenant'::text, true))"
    # The exception: the jobs look for work in all tenants.
    open_to_jobs = {policy[0] for policy in policies if policy[2] == "true"}
    assert open_to_jobs == SEEN_BY_JOBS
    policies = [policy for policy in policies if policy[2] != "true"]
    for table, command, using, check in policies:
        assert wanted in f"{using} {check}", f"{table} {command}"
        assert " OR " not in f"{using} {check}", f"{table} {command}"


@pytest.mark.rule("ISO-1")
def test_tenant_stands_first_in_every_key_and_foreign_key(server: TestServer, database: str) -> None:
    with server.connect(database) as owner:
        rows = owner.execute(
            """SELECT c.conrelid::regclass::text, c.conname, a.attname FROM pg_constraint c
               JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = c.conkey[1]
               WHERE c.connamespace = 'muniment'::regnamespace AND c.contype IN ('p', 'u', 'f')"""
        ).fetchall()
    astray = {str(row[0]) for row in rows if row[2] != "tenant_id"}
    assert astray == {"schema_migrations"}
    assert len(rows) > 50


@pytest.mark.rule("ISO-1")
def test_no_login_of_the_program_owns_anything_or_can_bypass_row_security(server: TestServer, database: str) -> None:
    with server.connect(database) as owner:
        roles = owner.execute(
            "SELECT rolname, rolsuper, rolbypassrls, rolcreaterole, rolcreatedb, rolcanlogin FROM pg_roles"
            " WHERE rolname = ANY (%s)",
            [[f"muniment_{task}" for task in TASKS]],
        ).fetchall()
        owners = {
            str(row[0])
            for row in owner.execute(
                "SELECT DISTINCT pg_get_userbyid(relowner) FROM pg_class WHERE relnamespace = 'muniment'::regnamespace"
            ).fetchall()
        }
        members = owner.execute(
            "SELECT count(*) FROM pg_auth_members m JOIN pg_roles r ON r.oid = m.member WHERE r.rolname = ANY (%s)",
            [[f"muniment_{task}" for task in TASKS]],
        ).fetchone()
    assert [row[1:] for row in roles] == [(False, False, False, False, True)] * len(TASKS)
    assert owners == {"muniment_owner"}
    assert members == (0,)


@pytest.mark.rule("ISO-1", "CON-5")
def test_no_tenant_sees_nothing_and_another_tenant_sees_nothing_in_any_table(
    furnished: dict[str, Any], tenant: str, others: People, as_role: Connect, server: TestServer, database: str
) -> None:
    with server.connect(database) as owner:
        names = tenant_tables(owner)
    empty: set[str] = set()
    for table in names:
        seen = 0
        for task in TASKS:
            try:
                own = as_role(task).execute(f"SELECT count(*) FROM {table}").fetchone()
            except psycopg.errors.InsufficientPrivilege:
                continue
            assert own is not None
            seen = max(seen, int(str(own[0])))
            for stranger in () if task == "jobs" and table in SEEN_BY_JOBS else (others.tenant_id, "", "%", None):
                asked = f"SELECT count(tenant_id) FROM {table} WHERE tenant_id = %s"
                found = as_role(task, stranger).execute(asked, [tenant]).fetchone()
                assert found == (0,), f"{task} in {stranger!r} sees {table}"
        if not seen:
            empty.add(table)
    assert empty == set(), "tables this test proves nothing about"


@pytest.mark.rule("ISO-1")
def test_inserting_a_row_of_another_tenant_is_refused_in_every_table(
    furnished: dict[str, Any],
    tenant: str,
    others: People,
    as_role: Connect,
    server: TestServer,
    database: str,
) -> None:
    with server.connect(database) as owner:
        names = tenant_tables(owner)
        generated = {
            (str(row[0]), str(row[1]))
            for row in owner.execute(
                "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'muniment'"
                " AND is_generated = 'NEVER'"
            ).fetchall()
        }
        rows: dict[str, Any] = {}
        for table in names:
            one = owner.execute(f"SELECT to_jsonb(t) FROM {table} t WHERE tenant_id = %s LIMIT 1", [tenant]).fetchone()
            rows[table] = one[0] if one else None
    tried = 0
    for table in names:
        assert rows[table] is not None, table
        columns = [column for name, column in sorted(generated) if name == table]
        for task in TASKS:
            connection = as_role(task, others.tenant_id)
            try:
                insert(connection, table, {column: rows[table][column] for column in columns})
            except psycopg.errors.InsufficientPrivilege as error:
                tried += "row-level security" in str(error.diag.message_primary)
            else:
                pytest.fail(f"{task} wrote a row of {tenant} into {table} while acting for another tenant")
    # Nobody but the owner restores a tenant.
    assert tried >= len(names) - 2, (
        "each table has a login that may insert; row security must have been what stopped it"
    )


@pytest.mark.rule("ISO-1")
def test_partitions_cannot_be_reached_around_their_table(
    furnished: dict[str, Any], as_role: Connect, server: TestServer, database: str
) -> None:
    with server.connect(database) as owner:
        parts = sorted(set(tables(owner, partitions=True)) - set(tables(owner)))
    assert len(parts) == 8 * 8
    for part in parts:
        for task in TASKS:
            for statement in (f"SELECT count(*) FROM {part}", f"DELETE FROM {part}"):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    as_role(task).execute(statement)


@pytest.mark.rule("ISO-1")
def test_the_tenant_of_a_transaction_does_not_outlive_it(
    fabric: Fabric, people: People, others: People, server: TestServer, database: str
) -> None:
    promoted(fabric, people)
    promoted(fabric, others)
    with server.connect(database, "muniment_recall") as connection:
        with connection.transaction():
            connection.execute(sql.SQL("SET LOCAL muniment.tenant = {}").format(people.tenant_id))
            assert connection.execute("SELECT count(*) FROM memories").fetchone() == (1,)
        assert connection.execute("SELECT current_setting('muniment.tenant', true)").fetchone() == ("",)
        assert connection.execute("SELECT count(*) FROM memories").fetchone() == (0,)


@pytest.mark.rule("CAP-6")
def test_the_recall_login_cannot_read_captures_candidates_or_proposals(as_role: Connect) -> None:
    for table in (
        "captures",
        "candidates",
        "proposals",
        "verdicts",
        "refusals",
        "idempotency_keys",
        "events",
        "rejection_marks",
        "compiles",
        "consent_sweeps",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            as_role("recall").execute(f"SELECT count(*) FROM {table}")


@pytest.mark.rule("ISO-4")
def test_another_tenants_id_answers_exactly_like_one_that_does_not_exist(
    fabric: Fabric, people: People, others: People, furnished: dict[str, Any]
) -> None:
    fabric.capture(others.run(), kind="message", text="hi", classification="INTERNAL")
    theirs, nobodys = furnished["memories"][0], "pm_0000"
    calls: list[Any] = [
        lambda memory: fabric.get(others.auditor, memory),
        lambda memory: fabric.get(others.run(), memory),
        lambda memory: fabric.trail(others.auditor, memory),
        lambda memory: fabric.retract(others.reviewer, memory, reason="wrong"),
        lambda memory: fabric.correct(others.author, memory_id=memory, value="x"),
    ]
    for call in calls:
        answers: list[tuple[str, str]] = []
        for memory_id in (theirs, nobodys):
            with pytest.raises(NotFound) as caught:
                call(memory_id)
            answers.append((caught.value.code, str(caught.value)))
        assert answers[0] == answers[1]
    for call in (fabric.queue.get, fabric.queue.approve):
        with pytest.raises(NotFound):
            call(others.reviewer, furnished["waiting"])
    with pytest.raises(NotFound):
        fabric.queue.lift(others.reviewer, furnished["rejected"])
    with pytest.raises(NotFound):
        fabric.contradictions.resolve(others.reviewer, furnished["open"], "retract")
    with pytest.raises(NotFound):
        fabric.consent.revoke(others.officer, furnished["consent"].consent_id)


@pytest.mark.rule("ISO-4", "REC-1")
@pytest.mark.parametrize("stranger", ["user_10", "USER_1", "user%", "user_", "user_1 ".strip() + "\u200b", "user"])
def test_users_are_compared_byte_for_byte(fabric: Fabric, people: People, stranger: str) -> None:
    promoted(fabric, people, user_id="user_1")
    assert len(texts(fabric, people.run("user_1"))) == 1
    assert texts(fabric, people.run(stranger)) == []
    assert texts(fabric, people.run(None)) == []


@pytest.mark.rule("ISO-4")
def test_tenants_are_compared_byte_for_byte(fabric: Fabric, people: People) -> None:
    promoted(fabric, people, user_id=None)
    for stranger in (people.tenant_id.upper(), people.tenant_id + "0", people.tenant_id[:-1], "%"):
        assert texts(fabric, People(stranger).run(None)) == []


@pytest.mark.rule("CAP-1", "PRO-3", "CON-1")
def test_hostile_tenant_names_are_only_names(fabric: Fabric) -> None:
    for name in ("x'; DROP TABLE captures; --", 'quo"te', "back\\slash", "тенант", "a,b"):
        there = People(name)
        promoted(fabric, there)
        assert len(texts(fabric, there.run())) == 1


@pytest.mark.rule("CAP-1", "ERA-2", "ISO-1")
def test_what_runs_as_the_owner_is_known_and_callable_by_few(server: TestServer, database: str) -> None:
    with server.connect(database) as owner:
        rows = owner.execute(
            "SELECT p.proname, p.prosecdef, p.proconfig, array(SELECT r.rolname FROM pg_roles r WHERE r.rolname LIKE 'muniment_%'"
            " AND r.rolname <> 'muniment_owner' AND has_function_privilege(r.oid, p.oid, 'EXECUTE'))"
            " FROM pg_proc p WHERE p.pronamespace = 'muniment'::regnamespace"
        ).fetchall()
    owned = [row for row in rows if row[0] not in COMPUTED | AS_CALLER.keys()]
    callers: dict[str, Any] = {str(name): roles for name, _, _, roles in rows if name not in COMPUTED}
    assert {name: {role.removeprefix("muniment_") for role in roles} for name, roles in callers.items()} == (
        FUNCTIONS | AS_CALLER
    )
    # A cluster has their statements planned for the tenant each time.
    configured = [set(config) - {"plan_cache_mode=force_custom_plan"} for _, _, config, _ in owned]
    assert all(definer for _, definer, _, _ in owned)
    assert configured == [{"search_path=muniment, pg_temp"}] * len(owned)
    others = {str(name): definer for name, definer, _, _ in rows if name in COMPUTED | AS_CALLER.keys()}
    assert others == dict.fromkeys(COMPUTED | AS_CALLER.keys(), False)
