"""As the database's own logins, in SQL: what the gate writes down is written once, at its moment, by whom it concerns."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from muniment import Fabric
from muniment.database.cluster.errors import violates
from muniment.testing import FakeClock, People, TestServer
from tests.conftest import Connect
from tests.faults.concurrency import Calls, lock_waits
from tests.security.catalogue import Connection
from tests.security.rows import Tick, insert, old_tick, one, tick
from tests.stories import CONSENT, promoted, proposed, texts

Furnished = dict[str, Any]


def tombstone(tenant: str, memory_id: str) -> dict[str, Any]:
    """Still without its moment."""
    return {"tenant_id": tenant, "memory_id": memory_id, "digest": "\\x" + "00" * 32}


def resolution(tenant: str, contradiction_id: str, outcome: str) -> dict[str, Any]:
    """Still without its moment."""
    return {"tenant_id": tenant, "contradiction_id": contradiction_id, "resolved_by": "eve", "outcome": outcome}


def qualification(tenant: str, contradiction_id: str, memory_id: str) -> dict[str, Any]:
    """Still without its moment."""
    key = {"tenant_id": tenant, "contradiction_id": contradiction_id, "memory_id": memory_id, "outcome": "coexist"}
    return {**key, "qualifiers": {"region": "at"}}


def lift(tenant: str, proposal_id: str, by: str = "eve", kind: str = "operator") -> dict[str, Any]:
    """Still without its moment."""
    key = {"tenant_id": tenant, "verdict_id": "rv_forged", "proposal_id": proposal_id, "action": "lift"}
    return {**key, "by": by, "by_kind": kind, "pack": "p@1.0.0", "holder": "*"}


def resolve_first(connection: Connection, row: dict[str, Any], now: Tick) -> None:
    """The resolution that a qualification belongs to."""
    settled = resolution(row["tenant_id"], row["contradiction_id"], "coexist")
    insert(connection, "resolutions", {**settled, **now.stamp("resolved_at")})


@dataclass(frozen=True)
class Entry:
    """A row that a login may write, at the moment it happens."""

    task: str
    table: str
    time: str
    row: Callable[[str, Furnished], dict[str, Any]]
    before: Callable[[Connection, dict[str, Any], Tick], None] = lambda *_: None


def _contradiction(tenant: str, at: Furnished) -> dict[str, Any]:
    key = {"tenant_id": tenant, "contradiction_id": "ctr_forged", "reason": "other_value"}
    return {**key, "existing": at["memories"][0], "proposal_id": at["waiting"]}


ENTRIES = {
    "contradiction": Entry("writer", "contradictions", "opened_at", _contradiction),
    "resolution": Entry(
        "writer", "resolutions", "resolved_at", lambda tenant, at: resolution(tenant, at["open"], "superseded")
    ),
    "resolution of the jobs": Entry(
        "jobs", "resolutions", "resolved_at", lambda tenant, at: resolution(tenant, at["open"], "consent_revoked")
    ),
    "qualification": Entry(
        "writer",
        "qualifications",
        "qualified_at",
        lambda tenant, at: qualification(tenant, at["open"], at["memories"][0]),
        resolve_first,
    ),
    "tombstone": Entry("jobs", "tombstones", "tombstoned_at", lambda tenant, at: tombstone(tenant, at["retracted"])),
    "consent sweep": Entry(
        "jobs",
        "consent_sweeps",
        "swept_at",
        lambda tenant, at: {"tenant_id": tenant, "root_id": at["consent"].consent_id, "memories": 0},
    ),
    "lift": Entry("writer", "verdicts", "at", lambda tenant, at: lift(tenant, at["rejected"])),
}


@pytest.mark.rule("AUD-1", "CTR-3", "CTR-5", "CON-4", "REV-1", "PRO-3")
@pytest.mark.parametrize("name", ENTRIES)
def test_what_the_gate_writes_carries_the_number_time_and_transaction_of_its_own_moment(
    furnished: Furnished, as_role: Connect, tenant: str, owner: Connection, name: str
) -> None:
    entry = ENTRIES[name]
    connection, row, old = as_role(entry.task), entry.row(tenant, furnished), old_tick(owner, tenant)

    def enter(forged: Callable[[Tick], Tick]) -> None:
        with connection.transaction(force_rollback=True):
            now = tick(connection, tenant)
            entry.before(connection, row, now)
            insert(connection, entry.table, {**row, **forged(now).stamp(entry.time)})

    enter(lambda now: now)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        enter(lambda _: old)
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        enter(lambda now: Tick(old.seq, old.at, now.txid))
    for wrong in (timedelta(hours=-1), timedelta(hours=1)):
        with pytest.raises(psycopg.errors.ForeignKeyViolation) as caught:
            enter(lambda now, wrong=wrong: Tick(now.seq, now.at + wrong, now.txid))
        assert violates(caught.value, f"{entry.table}_tenant_id_seq_{entry.time}_txid_fkey")


def entomb(jobs: Connection, tenant: str, memory_id: str) -> None:
    """A tombstone, and the memory's own word for it."""
    now = tick(jobs, tenant)
    insert(jobs, "tombstones", {**tombstone(tenant, memory_id), **now.stamp("tombstoned_at")})
    jobs.execute(
        "UPDATE memory_scope SET tomb_seq = %s, tomb_at = %s WHERE memory_id = %s", [now.seq, now.at, memory_id]
    )


@pytest.mark.rule("CON-4", "PRO-3", "ERA-1")
def test_a_body_and_its_vector_go_only_where_a_tombstone_stands(
    furnished: Furnished, as_role: Connect, tenant: str, owner: Connection
) -> None:
    jobs, retracted, live = as_role("jobs"), furnished["retracted"], furnished["memories"][0]

    def left(table: str) -> set[str]:
        rows = owner.execute(f"SELECT memory_id FROM {table}").fetchall()
        return {str(row[0]) for row in rows} & {retracted, live}

    for memory_id in (retracted, live):
        with pytest.raises(psycopg.errors.ForeignKeyViolation):
            jobs.execute("DELETE FROM memory_bodies WHERE memory_id = %s", [memory_id])
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            jobs.execute("DELETE FROM memory_vectors WHERE memory_id = %s", [memory_id])
    with pytest.raises(psycopg.errors.ForeignKeyViolation), jobs.transaction():
        insert(jobs, "tombstones", {**tombstone(tenant, retracted), **tick(jobs, tenant).stamp("tombstoned_at")})
        jobs.execute("DELETE FROM memory_bodies WHERE memory_id = %s", [retracted])
    with pytest.raises(psycopg.errors.ForeignKeyViolation), jobs.transaction():
        entomb(jobs, tenant, retracted)  # and its body stays: at the commit it may not
    with pytest.raises(psycopg.errors.ForeignKeyViolation), jobs.transaction():
        jobs.execute("UPDATE memory_scope SET tomb_seq = 1, tomb_at = now() WHERE memory_id = %s", [retracted])
    with pytest.raises(psycopg.errors.CheckViolation) as caught:
        jobs.execute("UPDATE memory_scope SET tomb_seq = 1, tomb_at = promoted_at WHERE memory_id = %s", [live])
    assert violates(caught.value, "memory_scope_ended_first")
    assert left("memory_bodies") == left("memory_vectors") == {retracted, live}
    with jobs.transaction():
        entomb(jobs, tenant, retracted)
        assert jobs.execute("DELETE FROM memory_bodies WHERE memory_id = %s", [retracted]).rowcount == 1
    assert left("memory_bodies") == left("memory_vectors") == {live}, "with the body goes the vector"
    back = jobs.execute("UPDATE memory_scope SET tomb_seq = NULL WHERE memory_id = %s", [retracted])
    assert back.rowcount == 0, "what is entombed stays so"


@pytest.mark.rule("CON-4", "ERA-1")
def test_a_vector_written_while_its_body_goes_goes_with_it(
    furnished: Furnished, as_role: Connect, tenant: str, server: TestServer, database: str
) -> None:
    jobs, writer, memory_id = as_role("jobs"), as_role("writer"), furnished["retracted"]

    def take_away() -> int:
        with jobs.transaction():
            entomb(jobs, tenant, memory_id)
            return jobs.execute("DELETE FROM memory_bodies WHERE memory_id = %s", [memory_id]).rowcount

    with lock_waits(server, database) as waits:
        with writer.transaction():
            vector = {"tenant_id": tenant, "memory_id": memory_id, "embedder": "late@1", "vector": "[1,2]"}
            insert(writer, "memory_vectors", vector)
            calls = Calls([take_away])
            waits.until_waiting(1)
        assert calls.wait() == [1]
    for table in ("memory_vectors", "memory_bodies"):
        found = writer.execute(f"SELECT count(*) FROM {table} WHERE memory_id = %s", [memory_id]).fetchone()
        assert found == (0,), table


@pytest.mark.rule("CON-4", "PRO-3")
def test_a_tombstone_needs_an_end(furnished: Furnished, as_role: Connect, tenant: str) -> None:
    """A retraction, or the memory's own time: neither can be said of one that lives."""
    jobs, live = as_role("jobs"), furnished["memories"][0]
    with pytest.raises(psycopg.errors.CheckViolation) as caught, jobs.transaction():
        stamp = tick(jobs, tenant).stamp("tombstoned_at")
        insert(jobs, "tombstones", {**tombstone(tenant, live), **stamp})
        jobs.execute(
            "UPDATE memory_scope SET tomb_seq = %s, tomb_at = %s WHERE memory_id = %s",
            [stamp["seq"], stamp["tombstoned_at"], live],
        )
    assert violates(caught.value, "memory_scope_ended_first")
    with pytest.raises(psycopg.errors.ForeignKeyViolation):  # by a time that is not the tombstone's
        jobs.execute("UPDATE memory_scope SET tomb_seq = 1, tomb_at = expires_at WHERE memory_id = %s", [live])


@pytest.mark.rule("CON-4", "PRO-3", "ERA-1")
def test_what_was_tombstoned_gets_no_other_body_and_no_vector(
    furnished: Furnished, as_role: Connect, tenant: str
) -> None:
    writer = as_role("writer")
    for memory_id in (furnished["tombstoned"], furnished["retracted"], furnished["memories"][0]):
        with pytest.raises((psycopg.errors.ForeignKeyViolation, psycopg.errors.UniqueViolation)):
            insert(writer, "memory_bodies", {"tenant_id": tenant, "memory_id": memory_id, "content": "\\x00"})
    vector = {"tenant_id": tenant, "memory_id": furnished["tombstoned"], "embedder": "late@1", "vector": "[1,2]"}
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        insert(writer, "memory_vectors", vector)


@pytest.mark.rule("CTR-5")
@pytest.mark.parametrize(("task", "outcome"), [("writer", "superseded"), ("jobs", "consent_revoked")])
def test_a_contradiction_is_resolved_once(
    furnished: Furnished, as_role: Connect, tenant: str, task: str, outcome: str
) -> None:
    connection = as_role(task)
    with pytest.raises(psycopg.errors.UniqueViolation) as caught, connection.transaction():
        row = resolution(tenant, furnished["settled"], outcome)
        insert(connection, "resolutions", {**row, **tick(connection, tenant).stamp("resolved_at")})
    assert violates(caught.value, "resolutions_pkey")


@pytest.mark.rule("CTR-5")
@pytest.mark.parametrize(
    ("contradiction", "resolved"), [("open", None), ("open", "superseded"), ("settled", None)]
)  # fmt: skip
def test_a_qualification_belongs_to_the_resolution_that_lets_both_sides_stand(
    furnished: Furnished, as_role: Connect, tenant: str, contradiction: str, resolved: str | None
) -> None:
    writer, contradiction_id = as_role("writer"), furnished[contradiction]
    with pytest.raises(psycopg.errors.ForeignKeyViolation) as caught, writer.transaction():
        now = tick(writer, tenant)
        if resolved is not None:
            row = resolution(tenant, contradiction_id, resolved)
            insert(writer, "resolutions", {**row, **now.stamp("resolved_at")})
        row = qualification(tenant, contradiction_id, furnished["memories"][0])
        insert(writer, "qualifications", {**row, **now.stamp("qualified_at")})
    assert violates(caught.value, "qualifications_tenant_id_contradiction_id_outcome_seq_fkey")


@pytest.mark.rule("REV-6")
def test_a_rejection_is_lifted_by_a_person_and_once(furnished: Furnished, as_role: Connect, tenant: str) -> None:
    writer = as_role("writer")
    with pytest.raises(psycopg.errors.CheckViolation) as caught, writer.transaction():
        row = lift(tenant, furnished["rejected"], by="auto", kind="system")
        insert(writer, "verdicts", {**row, **tick(writer, tenant).stamp("at")})
    assert violates(caught.value, "verdicts_lift")
    with pytest.raises(psycopg.errors.UniqueViolation) as again, writer.transaction():
        now = tick(writer, tenant).stamp("at")
        insert(writer, "verdicts", {**lift(tenant, furnished["rejected"]), **now})
        insert(writer, "verdicts", {**lift(tenant, furnished["rejected"]), **now, "verdict_id": "rv_again"})
    assert violates(again.value, "verdicts_one_lift")


@pytest.mark.rule("REV-8")
def test_a_duplicate_comes_back_once_and_never_as_itself(
    furnished: Furnished, as_role: Connect, tenant: str, owner: Connection
) -> None:
    writer = as_role("writer")
    proposal = one(owner, "proposals", proposal_id=furnished["waiting"])
    candidate = one(owner, "candidates", candidate_id=proposal["candidate_id"])

    def bring_back(n: int, reopens: str) -> None:
        insert(writer, "candidates", {**candidate, "candidate_id": f"mc_{n}", "ordinal": n})
        forged = {**proposal, "proposal_id": f"mwp_{n}", "candidate_id": f"mc_{n}", "reopens": reopens}
        insert(writer, "proposals", forged)

    with pytest.raises(psycopg.errors.UniqueViolation) as caught, writer.transaction():
        bring_back(90, furnished["rejected"])
        bring_back(91, furnished["rejected"])
    assert violates(caught.value, "proposals_tenant_id_reopens_key")
    with pytest.raises(psycopg.errors.CheckViolation), writer.transaction():
        bring_back(92, "mwp_92")


@pytest.mark.rule("COR-1", "ISO-1")
def test_a_candidate_corrects_a_memory_of_its_own_tenant(
    fabric: Fabric, furnished: Furnished, as_role: Connect, others: People, owner: Connection
) -> None:
    writer, theirs = as_role("writer"), promoted(fabric, others)
    proposal = one(owner, "proposals", proposal_id=furnished["waiting"])
    candidate = one(owner, "candidates", candidate_id=proposal["candidate_id"])

    def correct(memory_id: str) -> None:
        with writer.transaction(force_rollback=True):
            forged = {**candidate, "candidate_id": "mc_forged", "ordinal": 90, "corrects": memory_id}
            insert(writer, "candidates", forged)

    correct(furnished["memories"][0])
    for stranger in (theirs, "pm_none", furnished["waiting"]):
        with pytest.raises(psycopg.errors.ForeignKeyViolation) as caught:
            correct(stranger)
        assert violates(caught.value, "candidates_tenant_id_corrects_fkey")


@pytest.mark.rule("CON-4", "PRO-6")
def test_the_jobs_retract_and_settle_for_want_of_consent_alone(
    furnished: Furnished, as_role: Connect, tenant: str
) -> None:
    jobs = as_role("jobs")
    for reason in ("superseded", "corrected", "wrong", "erased", "deprecated"):
        row = {"tenant_id": tenant, "memory_id": furnished["memories"][0], "retracted_by": "eve", "reason": reason}
        with (
            pytest.raises(psycopg.errors.InsufficientPrivilege, match='policy for table "retractions'),
            jobs.transaction(),
        ):
            insert(jobs, "retractions", {**row, **tick(jobs, tenant).stamp("retracted_at")})
    for outcome in ("superseded", "coexist", "retracted", "rejected"):
        row = resolution(tenant, furnished["open"], outcome)
        with (
            pytest.raises(psycopg.errors.InsufficientPrivilege, match='policy for table "resolutions'),
            jobs.transaction(),
        ):
            insert(jobs, "resolutions", {**row, **tick(jobs, tenant).stamp("resolved_at")})


@pytest.mark.rule("CON-4", "ERA-1", "ISO-1")
@pytest.mark.parametrize(
    ("table", "column"),
    [
        ("subjects", "wrapped_key"),
        ("tenant_keys", "wrapped"),
        ("memory_vectors", "vector"),
        ("captures", "content"),
        ("candidates", "content"),
        ("verdicts", "remark"),
        ("rejection_marks", "mark"),
    ],
)
def test_the_jobs_take_content_away_without_a_key_to_read_it(as_role: Connect, table: str, column: str) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        as_role("jobs").execute(f"SELECT {column} FROM {table}")


@pytest.mark.rule("CON-4", "CON-5", "ISO-1")
def test_a_sweep_of_one_tenant_takes_nothing_of_another(
    fabric: Fabric, people: People, others: People, as_role: Connect, clock: FakeClock
) -> None:
    subject = "customer:same"
    fact: dict[str, Any] = {"entity": subject, "predicate": "tea", "subject": subject, "classification": "PII"}
    for there in (people, others):
        consent = fabric.consent.grant(there.officer, subject=subject, **CONSENT)
        promoted(fabric, there, "oolong", **fact)
    fabric.consent.revoke(others.officer, consent.consent_id)
    assert fabric.consent.sweep(people.tenant_id).memories == 0
    assert fabric.consent.sweep(others.tenant_id).memories == 1
    assert len(texts(fabric, people.run())) == 1
    for table in ("memory_bodies", "memory_vectors"):
        assert as_role("writer").execute(f"SELECT count(*) FROM {table}").fetchone() == (1,)


@pytest.mark.rule("ERA-1", "REV-6")
def test_a_vector_is_kept_for_what_was_promoted_and_for_nothing_else(
    furnished: Furnished, as_role: Connect, tenant: str, owner: Connection
) -> None:
    holding = owner.execute(
        "SELECT DISTINCT relname FROM pg_attribute JOIN pg_class c ON c.oid = attrelid"
        " WHERE relnamespace = 'muniment'::regnamespace AND relkind IN ('r', 'p', 'm') AND NOT relispartition"
        " AND (SELECT extname FROM pg_extension e JOIN pg_depend d ON d.refobjid = e.oid AND d.objid = atttypid) = 'vector'"
    ).fetchall()
    assert holding == [("memory_vectors",)], "no other table could hold one"
    writer = as_role("writer")
    with_vector = {row[0] for row in writer.execute("SELECT memory_id FROM memory_vectors").fetchall()}
    promoted_ids = {row[0] for row in writer.execute("SELECT memory_id FROM memories").fetchall()}
    assert with_vector == promoted_ids - {furnished["tombstoned"]}
    proposals = writer.execute("SELECT count(*) FROM proposals").fetchone()
    assert proposals is not None and int(str(proposals[0])) > len(promoted_ids), "some were never promoted"


@pytest.mark.rule("REV-6", "ERA-1")
def test_marks_of_the_same_rejected_words_have_nothing_in_common_across_tenants(
    fabric: Fabric, people: People, others: People, owner: Connection
) -> None:
    marks: list[set[object]] = []
    for there in (people, people, others):
        item = proposed(fabric, there.run(), entity="customer:c", predicate="hobby", value="falconry at dawn")
        fabric.queue.reject(there.reviewer, item.proposal_id, reason="hearsay")
        fabric.queue.lift(there.reviewer, item.proposal_id)
        rows = owner.execute("SELECT mark FROM rejection_marks WHERE proposal_id = %s", [item.proposal_id]).fetchall()
        marks.append({row[0] for row in rows})
    first, again, elsewhere = marks
    assert first == again and len(first) > 1
    assert not first & elsewhere
