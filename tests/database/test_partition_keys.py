"""Foreign keys between tables that are divided by tenant: from each partition to the one of the same remainder."""

from typing import Any, NamedTuple

import psycopg
import pytest

from muniment import Fabric
from muniment.database.partitions import PARTITIONS
from muniment.testing import People, TestServer
from tests.database.databases import empty_database, migrate_to
from tests.database.schema_dump import schema
from tests.security.catalogue import Connection
from tests.security.rows import insert, one
from tests.stories import remembered

BEFORE, KEYS = 27, 28


class Key(NamedTuple):
    """A foreign key, and how it acts when the row it points at is deleted."""

    child: str
    parent: str
    columns: str
    action: str = ""


EXPECTED = {
    "candidates_tenant_id_capture_seq_live_capture_id_author_fkey": Key(
        "candidates",
        "captures",
        "(tenant_id, capture_seq, live_capture_id, author) to (tenant_id, seq, capture_id, author)",
    ),
    "candidates_tenant_id_edits_prior_editors_prior_confined_to_fkey": Key(
        "candidates",
        "candidates",
        "(tenant_id, edits, prior_editors, prior_confined_to) to (tenant_id, candidate_id, editors, confined_to)",
    ),
    "memory_vectors_tenant_id_memory_id_fkey": Key(
        "memory_vectors", "memory_bodies", "(tenant_id, memory_id) to (tenant_id, memory_id)", " ON DELETE CASCADE"
    ),
    "memory_words_tenant_id_memory_id_fkey": Key(
        "memory_words", "memory_bodies", "(tenant_id, memory_id) to (tenant_id, memory_id)", " ON DELETE CASCADE"
    ),
    "memory_terms_tenant_id_memory_id_fkey": Key(
        "memory_terms", "memory_bodies", "(tenant_id, memory_id) to (tenant_id, memory_id)", " ON DELETE CASCADE"
    ),
}
# Tables that are not divided point at the whole of one that is.
TO_THE_WHOLE = {
    "memories_tenant_id_candidate_id_author_editors_facts_fkey",
    "memory_links_tenant_id_memory_id_fkey",
    "memory_scope_tenant_id_body_id_fkey",
    "proposals_tenant_id_candidate_id_fkey",
}
FOREIGN_KEYS = """
SELECT k.conname, c.relname, p.relname, c.relispartition, p.relkind::text, k.convalidated AND k.conenforced,
  pg_get_constraintdef(k.oid), pg_get_expr(c.relpartbound, c.oid), pg_get_expr(p.relpartbound, p.oid)
FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid JOIN pg_class p ON p.oid = k.confrelid
WHERE k.contype = 'f' AND k.conparentid = 0 AND k.connamespace = 'muniment'::regnamespace
"""
# What of the row that is pointed at stands in which columns of the one that points.
POINTING = {
    "candidates_tenant_id_capture_seq_live_capture_id_author_fkey": {
        "capture_id": "capture_id",
        "live_capture_id": "capture_id",
        "capture_seq": "seq",
    },
    "candidates_tenant_id_edits_prior_editors_prior_confined_to_fkey": {"edits": "candidate_id"},
    "memory_vectors_tenant_id_memory_id_fkey": {"memory_id": "memory_id"},
    "memory_words_tenant_id_memory_id_fkey": {"memory_id": "memory_id"},
    "memory_terms_tenant_id_memory_id_fkey": {"memory_id": "memory_id"},
}
# What makes a second row of a table out of the first, pointing at the same; nothing where there can be one only.
SECOND: dict[str, dict[str, Any]] = {
    "candidates": {"candidate_id": "mc_forged", "ordinal": 90},
    "memory_vectors": {"embedder": "other@1"},
    "memory_words": {},
    "memory_terms": {"term": 1},
}
EDIT = {"prior_editors": [], "editor": "eve", "editors": ["eve"]}


@pytest.fixture
def owner(server: TestServer, database: str) -> Any:
    with server.connect(database) as connection:
        yield connection


@pytest.mark.rule("ISO-1")
def test_every_partition_points_at_the_partition_of_the_same_remainder(owner: Connection) -> None:
    found: dict[str, list[Key]] = {name: [] for name in EXPECTED}
    whole: set[object] = set()
    for name, child, parent, is_partition, kind, checked, said, bound, parent_bound in owner.execute(
        FOREIGN_KEYS
    ).fetchall():
        assert checked, name
        if kind == "p":
            whole.add(name)
            continue
        if parent_bound is None:
            assert not is_partition, "a key to an undivided table is the whole table's"
            continue
        assert bound == parent_bound
        number = str(child).rpartition("_")[2]
        assert f"remainder {number})" in str(bound) and f"modulus {PARTITIONS}," in str(bound)
        key = EXPECTED[str(name)]
        assert (child, parent) == (f"{key.child}_{number}", f"{key.parent}_{number}")
        columns, parent_columns = key.columns.split(" to ")
        assert said == f"FOREIGN KEY {columns} REFERENCES {parent}{parent_columns}{key.action}"
        found[str(name)].append(key)
    assert found == {name: [key] * PARTITIONS for name, key in EXPECTED.items()}
    assert whole == TO_THE_WHOLE, "where both tables are divided, the key is between their partitions"


@pytest.mark.rule("ISO-1")
@pytest.mark.parametrize("name", EXPECTED)
def test_a_row_of_another_tenant_and_one_that_is_not_there_are_refused(
    name: str, fabric: Fabric, people: People, owner: Connection
) -> None:
    key = EXPECTED[name]
    numbered = [People(f"{people.tenant_id}_{n}") for n in range(200)]
    here = partition(owner, people)
    beside = next(one for one in numbered if partition(owner, one) == here)
    elsewhere = next(one for one in numbered if partition(owner, one) != here)
    for each in (people, beside, elsewhere):
        posted = {"term": 0, "user_id": "", "memory_id": remembered(fabric, each, "green tea")}
        insert(owner, "memory_terms", {"tenant_id": each.tenant_id, **posted})

    def pointing(at: dict[str, Any]) -> dict[str, Any]:
        row = one(owner, key.child, tenant_id=people.tenant_id) | SECOND[key.child]
        if key.parent == key.child:
            row |= EDIT
        return row | {column: at[there] for column, there in POINTING[name].items()}

    right = one(owner, key.parent, tenant_id=people.tenant_id)
    wrong = [one(owner, key.parent, tenant_id=each.tenant_id) for each in (beside, elsewhere)]
    nobody = right | {there: "none" for there in POINTING[name].values() if there != "seq"}
    for at in (*wrong, nobody):
        with pytest.raises(psycopg.errors.ForeignKeyViolation) as caught, owner.transaction():
            insert(owner, key.child, pointing(at))
        assert caught.value.diag.constraint_name == name
    right_row = pointing(right)
    with owner.transaction(force_rollback=True):
        if not SECOND[key.child]:
            owner.execute(f"DELETE FROM {key.child} WHERE tenant_id = %s", [people.tenant_id])
        insert(owner, key.child, right_row)


def partition(owner: Connection, people: People) -> object:
    found = owner.execute(
        "SELECT n FROM generate_series(0, %(count)s - 1) n"
        " WHERE satisfies_hash_partition('captures'::regclass, %(count)s, n, %(tenant)s::text)",
        {"count": PARTITIONS, "tenant": people.tenant_id},
    ).fetchone()
    assert found is not None
    return found[0]


@pytest.mark.rule("ISO-1")
def test_what_a_database_holds_is_checked_when_its_keys_change(server: TestServer) -> None:
    """The owner sees no row of a partition under forced row security: a check that saw none would pass."""
    people = People("acme")
    with empty_database(server) as name:
        migrate_to(server, name, BEFORE)
        with server.connect(name) as owner:
            owner.execute("SET session_replication_role = replica")
            insert(owner, "memory_terms", {"tenant_id": people.tenant_id, "term": 1, "user_id": "", "memory_id": "pm_none", "tf": 1, "words": 1})  # fmt: skip
            with pytest.raises(psycopg.errors.ForeignKeyViolation):
                migrate_to(server, name, KEYS)
            owner.execute("DELETE FROM memory_terms")
        assert "0028_partition_keys" in migrate_to(server, name, KEYS)
        with empty_database(server) as fresh:
            migrate_to(server, fresh, KEYS)
            assert schema(server, name) == schema(server, fresh)
