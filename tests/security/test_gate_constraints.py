"""Every constraint that the gate's migration brought, met once with a row that is right but for one thing."""

from typing import Any

import psycopg
import pytest

from muniment.database.cluster.errors import violates
from muniment.testing import TestServer
from tests.conftest import Connect
from tests.database.databases import empty_database, migrate_to
from tests.security.catalogue import Connection
from tests.security.rows import Tick, insert, one, tick

Furnished = dict[str, Any]

# What is wrong with the row, by constraint: the table, and one or several ways to break it.
VIOLATIONS: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "candidates_tenant_id_corrects_fkey": ("candidates", [{"corrects": "pm_none"}]),
    "refusals_tenant_id_rejection_fkey": ("refusals", [{"rejection": "mwp_none"}]),
    "proposals_tenant_id_reopens_fkey": ("proposals", [{"reopens": "mwp_none"}]),
    "proposals_check": ("proposals", [{"reopens": "mwp_forged"}]),
    "verdicts_action_check": ("verdicts", [{"action": "forget"}, {"action": "LIFT"}]),
    "verdicts_lift": ("verdicts", [{"by": "auto", "by_kind": "system"}]),
    "rejection_marks_tenant_id_check": ("rejection_marks", [{"tenant_id": ""}]),
    "rejection_marks_tenant_id_proposal_id_fkey": ("rejection_marks", [{"proposal_id": "mwp_none"}]),
    "memory_vectors_tenant_id_check": ("memory_vectors", [{"tenant_id": ""}]),
    "memory_vectors_tenant_id_memory_id_fkey": ("memory_vectors", [{"memory_id": "pm_none"}]),
    "contradictions_tenant_id_proposal_id_fkey": ("contradictions", [{"proposal_id": "mwp_none"}]),
    "resolutions_tenant_id_check": ("resolutions", [{"tenant_id": ""}]),
    "resolutions_outcome_check": ("resolutions", [{"outcome": "forgotten"}, {"outcome": ""}]),
    "resolutions_tenant_id_contradiction_id_fkey": ("resolutions", [{"contradiction_id": "ctr_none"}]),
    "resolutions_tenant_id_seq_resolved_at_txid_fkey": ("resolutions", [{"seq": 1}, {"txid": "3"}]),
    "qualifications_tenant_id_check": ("qualifications", [{"tenant_id": ""}]),
    "qualifications_outcome_check": ("qualifications", [{"outcome": "superseded"}]),
    "qualifications_qualifiers_check": (
        "qualifications",
        [{"qualifiers": {}}, {"qualifiers": []}, {"qualifiers": "region=de"}, {"qualifiers": ["region"]}],
    ),
    "qualifications_tenant_id_memory_id_fkey": ("qualifications", [{"memory_id": "pm_none"}]),
    "qualifications_tenant_id_contradiction_id_outcome_seq_fkey": (
        "qualifications",
        [{"contradiction_id": "ctr_none"}, {"seq": 1}],
    ),
    "qualifications_tenant_id_seq_qualified_at_txid_fkey": (
        "qualifications",
        [{"qualified_at": "2020-01-01T00:00:00Z"}, {"txid": "3"}],
    ),
    "tombstones_tenant_id_check": ("tombstones", [{"tenant_id": ""}]),
    "tombstones_digest_check": ("tombstones", [{"digest": "\\x"}, {"digest": "\\x" + "00" * 33}]),
    "tombstones_tenant_id_memory_id_fkey": ("tombstones", [{"memory_id": "pm_none"}]),
    "tombstones_tenant_id_seq_tombstoned_at_txid_fkey": ("tombstones", [{"seq": 1}, {"txid": "3"}]),
    "consent_sweeps_tenant_id_check": ("consent_sweeps", [{"tenant_id": ""}]),
    "consent_sweeps_memories_check": ("consent_sweeps", [{"memories": -1}]),
    "consent_sweeps_tenant_id_root_id_root_id_fkey": ("consent_sweeps", [{"root_id": "cns_none"}]),
    "consent_sweeps_tenant_id_seq_swept_at_txid_fkey": ("consent_sweeps", [{"seq": 1}, {"txid": "3"}]),
}
# What a second row must share with the first to be refused: all but this.
REPETITIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "proposals_tenant_id_reopens_key": ("proposals", {"proposal_id": "mwp_again", "candidate_id": "mc_again"}),
    "verdicts_one_lift": ("verdicts", {"verdict_id": "rv_again", "by": "adam"}),
    "rejection_marks_pkey": ("rejection_marks", {}),
    "memory_vectors_pkey": ("memory_vectors", {"vector": "[3,4]"}),
    "contradictions_tenant_id_existing_proposal_id_key": (
        "contradictions",
        {"contradiction_id": "ctr_again", "reason": "polarity"},
    ),
    "resolutions_pkey": ("resolutions", {"outcome": "withdrawn", "resolved_by": "adam"}),
    "qualifications_pkey": ("qualifications", {"qualifiers": {"region": "ch"}}),
    "tombstones_pkey": ("tombstones", {"digest": "\\x" + "ff" * 32}),
    "consent_sweeps_pkey": ("consent_sweeps", {"memories": 7}),
}
# For foreign keys to point at: whoever meets it has met the primary key before.
IMPLIED = {
    "resolutions_tenant_id_contradiction_id_outcome_seq_key",
    "tombstones_tenant_id_memory_id_seq_key",
    "memory_scope_tenant_id_body_id_key",
}
# Of bodies and tombstones together: met in test_gate, where a body goes only with a tombstone.
IN_TEST_GATE = {
    "memory_scope_dead_first",
    "memory_scope_tenant_id_memory_id_tomb_seq_fkey",
    "memory_scope_tenant_id_body_id_fkey",
    "memory_bodies_tenant_id_memory_id_fkey1",
}
NEW_TABLES = {"rejection_marks", "memory_vectors", "resolutions", "qualifications", "tombstones", "consent_sweeps"}
TABLES = sorted({table for table, _ in VIOLATIONS.values()})


def right_row(owner: Connection, tenant: str, furnished: Furnished, table: str, now: Tick) -> dict[str, Any]:
    """A row of the table with which nothing is wrong; what it points at is written first."""
    waiting = one(owner, "proposals", proposal_id=furnished["waiting"])
    candidate = one(owner, "candidates", candidate_id=waiting["candidate_id"])
    memory = furnished["memories"][0]
    match table:
        case "candidates":
            row = {**candidate, "candidate_id": "mc_forged", "ordinal": 90, "corrects": memory}
        case "refusals":
            row = {**one(owner, table, tenant_id=tenant), "ordinal": 90, "rejection": furnished["rejected"]}
        case "proposals":
            for n, candidate_id in enumerate(("mc_forged", "mc_again")):
                insert(owner, "candidates", {**candidate, "candidate_id": candidate_id, "ordinal": 90 + n})
            changed = {"proposal_id": "mwp_forged", "candidate_id": "mc_forged", "reopens": furnished["rejected"]}
            row = {**waiting, **changed}
        case "verdicts":
            said = {"verdict_id": "rv_forged", "proposal_id": furnished["rejected"], "action": "lift"}
            row = {**said, "by": "eve", "by_kind": "operator", "pack": "p@1.0.0", "holder": "*", **now.stamp("at")}
        case "rejection_marks":
            row = {"mark": 1, "proposal_id": furnished["waiting"]}
        case "memory_vectors":
            row = {"memory_id": memory, "embedder": "other@1", "vector": "[1,2]"}
        case "contradictions":
            sides = {"existing": memory, "proposal_id": furnished["waiting"]}
            row = {"contradiction_id": "ctr_forged", **sides, "reason": "other_value", **now.stamp("opened_at")}
        case "resolutions":
            row = resolution(furnished, now)
        case "qualifications":
            insert(owner, "resolutions", {"tenant_id": tenant, **resolution(furnished, now)})
            key = {"memory_id": memory, "contradiction_id": furnished["open"], "outcome": "coexist"}
            row = {**key, "qualifiers": {"region": "at"}, **now.stamp("qualified_at")}
        case "tombstones":
            row = {"memory_id": furnished["retracted"], "digest": "\\x" + "00" * 32, **now.stamp("tombstoned_at")}
        case _:
            row = {"root_id": furnished["consent"].consent_id, "memories": 0, **now.stamp("swept_at")}
    return {**row, "tenant_id": tenant}


def resolution(furnished: Furnished, now: Tick) -> dict[str, Any]:
    """One that lets both sides of the open contradiction stand."""
    said = {"contradiction_id": furnished["open"], "resolved_by": "eve", "outcome": "coexist"}
    return {**said, **now.stamp("resolved_at")}


def met(error: psycopg.Error, constraint: str) -> bool:
    """Whether that constraint was met; a partition's index is called after the partition."""
    parts = (constraint.removesuffix("_pkey") + f"_{n}_pkey" for n in range(8) if constraint.endswith("_pkey"))
    return any(violates(error, name) for name in (constraint, *parts))


def constraints(connection: Connection) -> dict[str, str]:
    """Every check, key and foreign key by its name, unique indexes too, each with what it says."""
    rows = connection.execute(
        """SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint
             WHERE connamespace = 'muniment'::regnamespace AND conparentid = 0 AND contype IN ('c', 'u', 'p', 'f', 'x')
               AND NOT (SELECT relispartition FROM pg_class WHERE pg_class.oid = conrelid)
           UNION ALL SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid) FROM pg_index i
             JOIN pg_class c ON c.oid = i.indexrelid
             WHERE relnamespace = 'muniment'::regnamespace AND indisunique AND NOT relispartition
               AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid)"""
    ).fetchall()
    return {str(name): str(said) for name, said in rows}


def test_every_constraint_of_the_gates_migration_is_met_below(server: TestServer) -> None:
    with empty_database(server) as database:
        migrate_to(server, database, 6)
        with server.connect(database) as earlier:
            before = constraints(earlier)
        migrate_to(server, database, 7)
        with server.connect(database) as later:
            after = constraints(later)
    new = {name for name, said in after.items() if before.get(name) != said}
    assert new == VIOLATIONS.keys() | REPETITIONS.keys() | IMPLIED | IN_TEST_GATE
    assert before.keys() - after.keys() == {
        "contradictions_check",
        "contradictions_tenant_id_existing_incoming_key",
        "contradictions_tenant_id_incoming_fkey",
    }


@pytest.mark.rule("AUD-1", "CTR-3", "CTR-5", "CON-4", "COR-1", "REV-6", "REV-8", "ISO-1")
@pytest.mark.parametrize("table", TABLES)
def test_a_row_of_the_gate_with_one_thing_wrong_is_refused_and_the_right_one_is_not(
    furnished: Furnished, tenant: str, owner: Connection, table: str
) -> None:
    tried = 0
    with owner.transaction(force_rollback=True):
        row = right_row(owner, tenant, furnished, table, tick(owner, tenant))
        for constraint, (where, ways) in VIOLATIONS.items():
            for wrong in ways if where == table else []:
                with pytest.raises(psycopg.errors.IntegrityError) as caught, owner.transaction():
                    insert(owner, table, {**row, **wrong})
                assert met(caught.value, constraint), wrong
                tried += 1
        insert(owner, table, row)
    assert tried


@pytest.mark.rule("CTR-3", "CTR-5", "CON-4", "REV-6", "REV-8", "PRO-3")
@pytest.mark.parametrize("constraint", REPETITIONS)
def test_what_happens_once_is_not_written_a_second_time(
    furnished: Furnished, tenant: str, owner: Connection, constraint: str
) -> None:
    table, other = REPETITIONS[constraint]
    with owner.transaction(force_rollback=True):
        row = right_row(owner, tenant, furnished, table, tick(owner, tenant))
        insert(owner, table, row)
        with pytest.raises(psycopg.errors.UniqueViolation) as caught, owner.transaction():
            insert(owner, table, {**row, **other})
        assert met(caught.value, constraint)


@pytest.mark.rule("CON-4", "CON-7")
def test_a_sweep_is_of_a_whole_chain_of_consents_and_not_of_a_renewal(
    furnished: Furnished, tenant: str, owner: Connection
) -> None:
    later = owner.execute(
        "SELECT consent_id FROM consents WHERE tenant_id = %s AND root_id = %s AND consent_id <> root_id",
        [tenant, furnished["swept"]],
    ).fetchone()
    assert later is not None
    with pytest.raises(psycopg.errors.ForeignKeyViolation) as caught, owner.transaction():
        row = right_row(owner, tenant, furnished, "consent_sweeps", tick(owner, tenant))
        insert(owner, "consent_sweeps", {**row, "root_id": later[0]})
    assert met(caught.value, "consent_sweeps_tenant_id_root_id_root_id_fkey")


@pytest.mark.rule("TIR-1", "AUD-1")
@pytest.mark.parametrize("table", sorted(NEW_TABLES | {"contradictions"}))
def test_nothing_that_the_gate_writes_leaves_out_a_part(
    furnished: Furnished, tenant: str, owner: Connection, table: str
) -> None:
    with owner.transaction(force_rollback=True):
        row = right_row(owner, tenant, furnished, table, tick(owner, tenant))
        for column in row:
            # A cluster's coordinator refuses a row that belongs to no shard itself.
            refused = psycopg.errors.NotNullViolation, psycopg.errors.NullValueNotAllowed
            with pytest.raises(refused) as caught, owner.transaction():
                insert(owner, table, {**row, column: None})
            where = "partition column" if isinstance(caught.value, refused[1]) else f'in column "{column}" of'
            assert where in str(caught.value) and (column == "tenant_id" or isinstance(caught.value, refused[0]))


@pytest.mark.rule("CAN-4", "CAN-9")
def test_a_candidate_without_the_record_of_every_gate_in_order_is_refused_by_the_database(
    furnished: Furnished, as_role: Connect, owner: Connection
) -> None:
    writer = as_role("writer")
    waiting = one(owner, "proposals", proposal_id=furnished["waiting"])
    candidate = one(owner, "candidates", candidate_id=waiting["candidate_id"])
    whole = candidate["gates"]
    extra = [*whole, ["horoscope", "fine"]]
    as_before = [{"gate": name, "reason": why} for name, why in whole]
    for gates in ([], whole[:-1], whole[1:], [*reversed(whole)], extra, [*whole, whole[0]], {}, as_before):
        with pytest.raises(psycopg.errors.InsufficientPrivilege), writer.transaction():
            insert(writer, "candidates", {**candidate, "candidate_id": "mc_forged", "ordinal": 90, "gates": gates})
    with writer.transaction(force_rollback=True):
        insert(writer, "candidates", {**candidate, "candidate_id": "mc_forged", "ordinal": 90})
    for login in ("writer", "privacy", "jobs", "auditor", "recall"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            as_role(login).execute("CREATE OR REPLACE FUNCTION required_gates() RETURNS jsonb LANGUAGE sql RETURN '[]'")


def test_no_constraint_names_a_gate(owner: Connection) -> None:
    rows = owner.execute(
        "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = 'muniment'::regnamespace"
        " AND contype = 'c' AND conrelid::regclass::text LIKE '%candidates%'"
    ).fetchall()
    assert [name for name, said in rows if "allow_list" in str(said)] == []
