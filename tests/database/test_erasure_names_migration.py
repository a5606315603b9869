"""Captures and erasures from before schema 23: covered by what their candidates say."""

import pytest

from muniment.database.migrate import migrations
from muniment.testing import TestServer
from tests.database.databases import empty_database, migrate_to

BEFORE = 20


@pytest.mark.rule("ERA-5")
def test_whom_candidates_of_before_name_is_kept_and_erasures_have_their_names(server: TestServer) -> None:
    with empty_database(server) as database:
        migrate_to(server, database, BEFORE)
        with server.connect(database) as owner:
            owner.execute("SET session_replication_role = replica")
            for n, (subject, entity) in enumerate(
                (("order:o_1", "customer:c_1"), (None, "customer:c_1"), ("customer:c_1", "customer:c_1"), (None, None))
            ):
                owner.execute(
                    "INSERT INTO candidates (tenant_id, candidate_id, seq, capture_id, live_capture_id, capture_seq, author,"
                    " source, class, entity, classification, holder, subject, raw_confidence, confidence, trust, extractor,"
                    " ordinal, gates, content) SELECT 'acme', %s, 1, %s, NULL, 1, 'bot', 'agent', 'preference', %s, 'INTERNAL',"
                    " '*', %s, 0.5, 0.5, 0.5, 'x@1', 0, jsonb_agg(jsonb_build_object('gate', g)), '' FROM unnest(ARRAY["
                    "'allow_list','evidence','redaction','classification','consent','trust','confidence','rejection']) g",
                    [f"mc_{n}", f"cap_{n}", entity, subject],
                )
            owner.execute("INSERT INTO ticks (tenant_id, seq, at, txid) VALUES ('acme', 1, '2026-01-02', '1')")
            owner.execute(
                "INSERT INTO erasures (tenant_id, erasure_id, seq, erased_at, txid, by, subject, user_id, holders, memories)"
                " VALUES ('acme', 'era_1', 1, '2026-01-02', '1', 'petra', 'customer:c_9', 'u', '{customer:c_9,@u}', 0)"
            )
        migrate_to(server, database, migrations()[-1].version)
        with server.connect(database) as owner:
            named = owner.execute("SELECT capture_id, candidate_id, name FROM capture_names ORDER BY 1").fetchall()
            assert named == [("cap_0", "mc_0", "customer:c_1"), ("cap_1", "mc_1", "customer:c_1")]
            assert owner.execute("SELECT names FROM erasures").fetchone() == (["customer:c_9", "@u"],)
            owner.execute("SET ROLE muniment_owner")
            for table in ("capture_names", "erasures", "candidates"):
                hidden = owner.execute(f"SELECT count(*) FROM {table}".encode()).fetchone()
                assert hidden == (0,), "row security holds the owner again"
