"""Attacks on the person's own interface: forged bindings, other people's ids, agents with a person's words."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from muniment import Fabric, Principal
from muniment.errors import InvalidInput
from muniment.model.api_key import Credential
from muniment.testing import FakeClock, People, TestServer
from tests.conftest import Connect
from tests.interfaces.http import RunningServer
from tests.pack_activation import acme, put_in_force
from tests.subject.conftest import PACK, Say, subject


@pytest.fixture(scope="module")
def running(server: TestServer, database: str) -> Iterator[RunningServer]:
    with RunningServer(server, database) as opened:
        yield opened


# ---- forged bindings ----


@pytest.mark.rule("SUB-1", "ISO-5")
@pytest.mark.parametrize(
    "fields",
    [
        {"kind": "end_user", "roles": ["subject"], "user_id": "tom"},
        {"kind": "end_user", "roles": ["subject"]},
        {"kind": "agent", "roles": ["agent", "subject"], "user_id": "joanna"},
        {"kind": "operator", "roles": ["subject"]},
        {"kind": "operator", "roles": ["reviewer", "subject"]},
        {"kind": "end_user", "roles": ["subject", "reviewer"], "user_id": "joanna"},
    ],
)
def test_no_key_binds_a_subject_to_another_user(home: Fabric, people: People, fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        home.keys.create(people.admin, principal_id="joanna", **fields)


@pytest.mark.rule("SUB-1")
@pytest.mark.parametrize(
    "change",
    [
        "user_id = 'tom'",
        "kind = 'agent'",
        "kind = 'operator'",
        "roles = ARRAY['subject', 'reviewer']",
        "user_id = NULL",
    ],
)
def test_the_database_refuses_a_key_whose_binding_was_forged(
    home: Fabric, people: People, server: TestServer, database: str, change: str
) -> None:
    home.keys.create(people.admin, principal_id="joanna", kind="end_user", roles=["subject"], user_id="joanna")
    with server.connect(database) as owner, pytest.raises(psycopg.errors.CheckViolation):
        owner.execute(f"UPDATE api_keys SET {change} WHERE tenant_id = %s", [people.tenant_id])


@pytest.mark.rule("SUB-1")
def test_no_credential_is_a_subject_for_another_user(people: People) -> None:
    with pytest.raises(ValueError, match="only for that user"):
        Credential(principal=subject(people, "joanna"), user_id="tom")
    agent = Principal(tenant_id=people.tenant_id, id="joanna", kind="agent", roles={"agent", "subject"})
    with pytest.raises(ValueError, match="end_user"):
        Credential(principal=agent, user_id="joanna")


@pytest.mark.rule("SUB-1")
def test_the_names_of_a_person_cannot_be_widened_by_a_user_id(home: Fabric, people: People, say: Say) -> None:
    home.queue.approve(people.reviewer, say("joanna", "Joanna lives by the sea."))
    for user_id in ("x,@joanna", "{joanna}", "x' OR true --", "user:joanna"):
        assert home.me.list(subject(people, user_id)) == []


# ---- over HTTP ----


@pytest.mark.rule("SUB-1", "SUB-2", "SUB-5")
def test_over_http_a_person_reaches_their_own_rows_and_an_agent_none_without_a_code(
    running: RunningServer, people: People
) -> None:
    local = running.local
    put_in_force(local, people.tenant_id, acme("1.0.0", PACK))
    run = people.run("joanna")
    waits = local.propose(run, write_class="statement", text="Joanna lives by the sea.", classification="INTERNAL")
    proposal_id = getattr(waits, "proposal_id", "")
    joanna, tom = running.key(subject(people, "joanna")), running.key(subject(people, "tom"))
    bot = running.key(run, user_id="joanna")
    place = f"/v1/me/proposals/{proposal_id}/confirm"
    assert running.ask("POST", place, {}, key=tom).status_code == 404
    carried = {"run": {"run_id": "r", "user_id": "joanna"}}
    assert running.ask("POST", place, carried, key=bot).status_code == 403
    assert running.ask("POST", place, carried | {"code": "AAAA-BBBB-CCCC"}, key=bot).status_code == 403
    assert running.ask("GET", "/v1/me/export", key=bot).status_code == 403
    code = local.codes.create(people.admin, "joanna", "confirm", proposal_id).code
    other = {"run": {"run_id": "r", "user_id": "tom"}, "code": code}
    assert running.ask("POST", place, other, key=bot).status_code == 403
    done = running.ask("POST", place, carried | {"code": code}, key=bot)
    assert (done.status_code, done.json()["status"]) == (200, "promoted")
    (memory,) = running.ask("GET", "/v1/me/memories", key=joanna).json()["items"]
    assert memory["memory_id"] == done.json()["memory_id"]
    assert running.ask("GET", "/v1/me/memories", key=tom).json()["items"] == []
    assert running.ask("GET", f"/v1/me/memories/{memory['memory_id']}", key=tom).status_code == 404
    assert running.ask("POST", f"/v1/me/memories/{memory['memory_id']}/forget", {}, key=tom).status_code == 404
    for path in ("/v1/queue", "/v1/memories", "/v1/captures", "/v1/events", "/v1/consents", "/v1/erasures"):
        assert running.ask("GET", path, key=joanna).status_code == 403, path
    assert running.ask("POST", f"/v1/queue/{proposal_id}/approve", {}, key=joanna).status_code == 403


# ---- what an export holds ----


@pytest.mark.rule("SUB-5", "IMP-4")
def test_an_export_holds_all_of_one_person_and_nothing_of_another(
    home: Fabric, people: People, joanna: Principal, say: Say, clock: FakeClock
) -> None:
    home.me.consent(joanna, data_classifications_allowed=["PII"])
    home.me.confirm(joanna, say("joanna", "I am allergic to nuts.", "PII", kind="message"))
    say("joanna", "Joanna lives by the sea.")
    about_tom = home.propose(
        people.run("joanna"),
        write_class="statement",
        text="Tom likes jazz.",
        subject="user:tom",
        classification="INTERNAL",
    )
    home.queue.approve(people.reviewer, getattr(about_tom, "proposal_id", ""))
    say("tom", "Tom plays the cello.")
    home.recall(people.run("joanna"), "nuts")
    whole = home.me.export(joanna)
    shown = whole.model_dump_json()
    assert "allergic to nuts" in shown and "by the sea" in shown and "jazz" not in shown and "cello" not in shown
    assert len(whole.memories) == 2 and len(whole.proposals) == 1 and len(whole.captures) == 3
    assert len(whole.consents) == 1 and [one.query for one in whole.recalls] == ["nuts"]
    assert [one.type for one in home.events(people.auditor, types=["memory.exported"])] == ["memory.exported"]


@pytest.mark.rule("SUB-1")
def test_the_login_of_subjects_writes_nothing(as_role: Connect) -> None:
    login = as_role("subject")
    for table in ("memories", "consents", "verdicts", "consent_requests", "retractions", "events"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            login.execute(f"DELETE FROM {table}")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            login.execute(f"INSERT INTO {table} DEFAULT VALUES")


@pytest.mark.rule("SUB-1")
def test_every_table_that_the_login_of_subjects_reads_is_held_to_the_person(server: TestServer, database: str) -> None:
    with server.connect(database) as owner:
        found = owner.execute(
            "SELECT table_name, column_name FROM information_schema.column_privileges WHERE grantee = 'muniment_subject'"
            " AND table_schema = 'muniment' AND privilege_type = 'SELECT'"
        ).fetchall()
        held = {
            str(row[0])
            for row in owner.execute(
                "SELECT tablename FROM pg_policies WHERE policyname = 'person' AND roles = '{muniment_subject}'"
                " AND qual LIKE '%person_names()%'"
            ).fetchall()
        }
    readable: dict[str, set[str]] = {}
    for table, column in found:
        readable.setdefault(str(table), set()).add(str(column))
    # The tenant's wrapped keys and its clock are nobody's, and there is one row of each.
    beside = set(readable) - held - {"schema_migrations", "tenant_keys", "tenant_clock"}
    # What belongs to a row of the person: ids, numbers, times and sealed bytes, and no column that names anybody it is about.
    assert beside == {"memory_bodies", "retractions", "tombstones", "proposals", "consent_sweeps"}
    for table in beside:
        assert not readable[table] & {
            "holder",
            "subject",
            "entity",
            "user_id",
            "retracted_by",
            "by",
            "remark",
            "run_id",
            "lock",
        }


@pytest.mark.rule("SUB-1", "ISO-1")
def test_the_login_of_subjects_has_only_policies_of_its_own(server: TestServer, database: str) -> None:
    """A policy for everybody would show it a whole tenant: policies are joined by OR."""
    with server.connect(database) as owner:
        shared = owner.execute(
            "SELECT tablename, policyname FROM pg_policies WHERE schemaname = 'muniment'"
            " AND (roles && '{public}' OR ('muniment_subject' = ANY (roles) AND cardinality(roles) > 1))"
        ).fetchall()
    assert shared == []
