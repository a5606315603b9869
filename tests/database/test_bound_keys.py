"""Keys for one end user that had other roles too, from before the database refused them."""

import pytest

from muniment.database.migrate import migrations
from muniment.testing import TestServer
from tests.database.databases import empty_database, migrate_to

BEFORE = 19


@pytest.mark.rule("ISO-5")
def test_a_key_that_reached_past_its_user_is_revoked(server: TestServer) -> None:
    with empty_database(server) as database:
        migrate_to(server, database, BEFORE)
        with server.connect(database) as owner:
            for key_id, user_id, roles in (
                ("a", "cust_1", "agent"),
                ("b", "cust_1", "agent,auditor"),
                ("c", None, "auditor"),
            ):
                owner.execute(
                    "INSERT INTO api_keys (tenant_id, key_id, digest, principal_id, kind, roles, user_id, clearance, created_at, created_by)"
                    " VALUES ('acme', %s, sha256('x'), 'jane', 'operator', string_to_array(%s, ','), %s, '{PUBLIC}', now(), 'ada')",
                    [key_id, roles, user_id],
                )
            owner.commit()
        migrate_to(server, database, migrations()[-1].version)
        with server.connect(database) as owner:
            live = owner.execute("SELECT key_id FROM api_keys WHERE revoked_at IS NULL ORDER BY key_id").fetchall()
            assert live == [("a",), ("c",)]
            owner.execute("SET ROLE muniment_owner")
            assert owner.execute("SELECT count(*) FROM api_keys").fetchone() == (0,), (
                "row security holds the owner again"
            )
