"""A database that was in use before the gate came: what it held is still there, and fits the new schema."""

from typing import Any

import pytest

from muniment import Fabric
from muniment.database.migrate import migrations
from muniment.testing import People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.database.databases import empty_database, migrate_to, new_database
from tests.database.schema_dump import schema
from tests.security.catalogue import Connection
from tests.security.rows import insert

BEFORE, GATE = 6, 7
AT = "2026-01-05T09:00:00+00:00"
KEY = {"entity": "customer:c", "predicate": "prefers_channel"}
SEALED = "\\x00"


def lived_in(owner: Connection, tenant: str) -> dict[str, Any]:
    """Two promoted memories that contradict each other, openly, as the program of schema 6 wrote them."""

    def add(table: str, **row: Any) -> None:
        insert(owner, table, {"tenant_id": tenant, **row})

    txid: Any = owner.execute("SELECT pg_current_xact_id()::text").fetchone()
    stamp: dict[str, Any] = {"seq": 1, "txid": txid[0]}
    by: dict[str, Any] = {"author": "bot", "editors": []}
    scope: dict[str, Any] = {
        "class": "preference",
        "classification": "INTERNAL",
        "confidence": 0.7,
        "trust": 0.6,
        "holder": "@cust_1",
        "user_id": "cust_1",
        **KEY,
    }
    filtered: dict[str, Any] = {
        "tier": "semantic", "priority": 0.5, "session_id": "", "workflow_id": "", "intent_id": "", "born_seq": 1,
        "promoted_at": AT, "expires_at": "infinity", **{k: v for k, v in scope.items() if k not in ("holder", "trust")},
    }  # fmt: skip
    pack = {"pack": "p@1.0.0", "ontology_version": "1"}
    add("tenants", created_at=AT)
    add("tenant_keys", version=1, wrapped=SEALED, created_at=AT)
    add("subjects", holder="@cust_1", wrapped_key=SEALED, key_version=1, created_at=AT, lock=0)
    add("tenant_clock", seq=1, at=AT)
    add("ticks", at=AT, **stamp)
    add("packs", **pack, pack_id="p", version="1.0.0", digest="d", document={}, seq=1, registered_at=AT, registered_by="a")  # fmt: skip
    add("pack_labels", pack="p@1.0.0", label="INTERNAL", rank=1, sensitive=False)
    for n in ("1", "2"):
        capture, candidate, proposal = f"cap_{n}_{tenant}", f"mc_{n}_{tenant}", f"mwp_{n}_{tenant}"
        verdict, memory = f"rv_{n}_{tenant}", f"pm_{n}_{tenant}"
        add(
            "captures", capture_id=capture, seq=1, author="bot", source="agent", kind="statement", content=SEALED,
            classification="INTERNAL", holder="@cust_1", user_id="cust_1", observed_at=AT, captured_at=AT, **pack,
        )  # fmt: skip
        add(
            "candidates", candidate_id=candidate, seq=1, capture_id=capture, live_capture_id=capture, capture_seq=1,
            source="agent", raw_confidence=0.7, extractor="direct@1", ordinal=0, content=SEALED, **by, **scope,
        )  # fmt: skip
        add(
            "proposals", proposal_id=proposal, seq=1, candidate_id=candidate, tier_derived="semantic", priority=0.5,
            risk="low", sensitive=False, consent_check="not_required", contradicts=[], auto_eligible=False,
            human_reasons=[], enqueued_at=AT, due_at=AT, pack="p@1.0.0", lock=0, **{"class": "preference"},
        )  # fmt: skip
        add(
            "verdicts", verdict_id=verdict, proposal_id=proposal, action="approve", by="boris", by_kind="operator",
            at=AT, pack="p@1.0.0", holder="@cust_1", **stamp,
        )  # fmt: skip
        add(
            "memories", memory_id=memory, candidate_id=candidate, proposal_id=proposal, verdict_id=verdict,
            verdict_action="approve", capture_id=capture, born_txid=txid[0], sensitive=False, tier_derived="semantic",
            kind="statement", source="agent", approver="boris", approver_kind="operator", captured_at=AT,
            observed_at=AT, holder="@cust_1", trust=0.6, **pack, **by, **filtered,
        )  # fmt: skip
        add("memory_bodies", memory_id=memory, content=SEALED)
        add("memory_scope", memory_id=memory, **filtered)
    sides = {"existing": f"pm_1_{tenant}", "incoming": f"pm_2_{tenant}"}
    add("contradictions", contradiction_id=f"ctr_{tenant}", opened_at=AT, **KEY, **sides, reason="other_value", **stamp)  # fmt: skip
    return {**sides, "contradiction_id": f"ctr_{tenant}", "proposal_id": f"mwp_2_{tenant}"}


@pytest.mark.rule("CTR-3", "PRO-3")
def test_an_open_contradiction_of_two_memories_stays_open_between_a_memory_and_its_proposal(
    server: TestServer,
) -> None:
    with empty_database(server) as database:
        assert len(migrate_to(server, database, BEFORE)) == BEFORE
        with server.connect(database) as owner, owner.transaction():
            made = {tenant: lived_in(owner, tenant) for tenant in ("acme", "zenith")}
        assert migrate_to(server, database, GATE) == ("0007_gate",)
        migrate_to(server, database, migrations()[-1].version)
        with Fabric.open(server.url(database), master_keys=MASTER_KEYS) as fabric:
            for tenant, sides in made.items():
                (found,) = fabric.contradictions.list(People(tenant).reviewer)
                assert found.open and found.model_dump(include=set(sides)) == sides
        with server.connect(database) as owner:
            kept = owner.execute(
                "SELECT count(*), count(content) FROM memories LEFT JOIN memory_bodies USING (tenant_id, memory_id)"
            )
            assert kept.fetchone() == (4, 4)
            owner.execute("SET ROLE muniment_owner")
            unseen = owner.execute("SELECT (SELECT count(*) FROM contradictions) + (SELECT count(*) FROM memories)")
            assert unseen.fetchone() == (0,), "row security holds the owner again"
        with new_database(server) as new:
            assert schema(server, database) == schema(server, new)
