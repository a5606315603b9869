"""Words from before schema 30, one row each: packed as a promotion packs them, with the same hashes."""

import pytest

from muniment.database.packed_words import pack_words
from muniment.testing import TestServer
from tests.database.databases import empty_database, migrate_to

BEFORE, PACKED = 28, 30
WORDS = {
    ("acme", "pm_1"): {5: 1, -7: 255, 2**63 - 1: 2, -(2**63): 3},
    ("acme", "pm_2"): {5: 4},
    ("umbrella", "pm_1"): {0: 1, -1: 1},
}


@pytest.mark.rule("ISO-1", "JOB-11")
def test_words_of_before_are_packed_with_the_same_hashes_and_no_postings_are_left(server: TestServer) -> None:
    with empty_database(server) as database:
        migrate_to(server, database, BEFORE)
        with server.connect(database) as owner:
            owner.execute("SET session_replication_role = replica")
            for (tenant, memory), words in WORDS.items():
                owner.execute("INSERT INTO memory_bodies VALUES (%s, %s, '')", [tenant, memory])
                for term, times in words.items():
                    owner.execute(
                        "INSERT INTO memory_terms (tenant_id, term, user_id, memory_id, tf, words)"
                        " VALUES (%s, %s, 'cust_1', %s, %s, 300)",
                        [tenant, term, memory, times],
                    )
        assert "0030_packed_words" in migrate_to(server, database, PACKED)
        with server.connect(database) as owner:
            rows = owner.execute("SELECT tenant_id, memory_id, words, terms FROM memory_words").fetchall()
            assert owner.execute("SELECT FROM memory_terms").fetchall() == []
        assert {row[:2]: row[2:] for row in rows} == {one: (300, pack_words(words)) for one, words in WORDS.items()}
