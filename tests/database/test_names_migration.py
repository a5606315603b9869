"""A database that was in use before names were compared by their look and keys belonged to who used them."""

from typing import Any

import pytest

from muniment import Fabric
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.database.databases import empty_database, migrate_to
from tests.security.catalogue import Connection
from tests.stories import promoted, texts

NAMES = 25
MESSAGE: dict[str, Any] = {"kind": "message", "text": "hello", "classification": "INTERNAL"}


def undone(owner: Connection) -> None:
    """Take from the rows what the program of before did not write: whose a key is, and which server a number is of."""
    with owner.transaction():
        owner.execute("SET LOCAL session_replication_role = replica")
        owner.execute("ALTER TABLE memories DROP CONSTRAINT memories_two_people")
        tables = owner.execute(
            "SELECT table_name, column_name FROM information_schema.columns"
            " WHERE table_schema = 'muniment' AND udt_name = 'xid8'"
        ).fetchall()
        for table, column in tables:
            owner.execute(f"UPDATE {table} SET {column} = ({column}::text::bigint & 1099511627775)::text::xid8")
        owner.execute("UPDATE idempotency_keys SET principal = '', principal_kind = ''")


@pytest.mark.rule("CAP-4", "CAP-12", "REV-15", "SCL-5")
def test_what_was_there_stays_valid_and_old_keys_find_their_owners(
    server: TestServer, fresh_database: str, people: People, others: People
) -> None:
    place: dict[str, Any] = {"clock": FakeClock(), "master_keys": MASTER_KEYS}
    with Fabric.open(server.url(fresh_database), **place) as fabric:
        known = fabric.capture(people.run(agent_id="a"), **MESSAGE, idempotency_key="k")
        gone = fabric.capture(people.run(agent_id="a"), **MESSAGE, idempotency_key="gone")
        promoted(fabric, people)
    with server.connect(fresh_database) as owner:
        undone(owner)
        owner.execute("DELETE FROM captures WHERE capture_id = %s", [gone.capture_id])
        # What the migration does to them.
        owner.execute(
            "UPDATE idempotency_keys k SET principal = c.author, principal_kind = c.source"
            " FROM captures c WHERE c.tenant_id = k.tenant_id AND c.capture_id = k.capture_id"
        )
    with Fabric.open(server.url(fresh_database), **place) as fabric:
        again = fabric.capture(people.run(agent_id="a"), **MESSAGE, idempotency_key="k")
        assert (again.capture_id, again.repeated) == (known.capture_id, True)
        assert not fabric.capture(people.run(agent_id="b"), **MESSAGE, idempotency_key="k").repeated
        # Of what is gone nobody knows whose it was: the same principal with the same content finds it, nobody else does.
        for _ in range(2):
            again = fabric.capture(people.run(agent_id="a"), **MESSAGE, idempotency_key="gone")
            assert (again.capture_id, again.repeated) == (gone.capture_id, True)
        assert not fabric.capture(people.run(agent_id="b"), **MESSAGE, idempotency_key="gone").repeated
        assert len(texts(fabric, people.run())) == 1
        promoted(fabric, people, "post", predicate="second")
        fabric.seal(people.tenant_id)
        # The one that this test took away itself is named, and nothing else.
        assert [(one.kind, one.row_id) for one in fabric.verify(people.auditor).breaks] == [
            ("row_removed", gone.capture_id)
        ]


@pytest.mark.rule("CAP-4", "CAP-12")
def test_the_migration_gives_old_keys_to_the_authors_of_their_captures(server: TestServer) -> None:
    with empty_database(server) as database:
        migrate_to(server, database, NAMES - 1)
        with server.connect(database) as owner, owner.transaction():
            owner.execute("SET LOCAL session_replication_role = replica")
            owner.execute(
                "INSERT INTO captures (tenant_id, capture_id, seq, author, source, kind, classification, holder, observed_at,"
                " captured_at, pack, ontology_version, content) SELECT 't', 'cap_' || n, n, 'bot' || n, 'agent', 'message',"
                " 'PUBLIC', '*', now(), now(), 'p@1.0.0', '1', '' FROM generate_series(1, 2) n"
            )
            owner.execute(
                "INSERT INTO idempotency_keys (tenant_id, key, capture_id, digest)"
                " SELECT 't', 'k' || n, 'cap_' || n, '' FROM generate_series(1, 3) n"
            )
        migrate_to(server, database, NAMES)
        with server.connect(database) as owner:
            found = owner.execute("SELECT key, principal, principal_kind FROM idempotency_keys ORDER BY key").fetchall()
            forced = owner.execute(
                "SELECT count(*) FROM pg_class WHERE relname IN ('captures', 'candidates', 'idempotency_keys', 'ticks',"
                " 'clock_resets') AND relnamespace = 'muniment'::regnamespace AND relforcerowsecurity"
            ).fetchone()
    assert found == [("k1", "bot1", "agent"), ("k2", "bot2", "agent"), ("k3", "", "")]
    assert forced == (5,)
