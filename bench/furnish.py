"""Fill a database with promoted memories fast: sealed for real, written by the superuser around the pipeline."""

import random
from datetime import UTC, datetime, timedelta

from muniment import AsyncFabric
from muniment.model.capture import holder_of
from muniment.pack import builtin_pack
from muniment.storage.rows import fact_content
from muniment.testing import People, TestServer
from muniment.testing.database import MASTER_KEYS

WORDS = [
    "order",
    "parcel",
    "window",
    "invoice",
    "refund",
    "address",
    "morning",
    "evening",
    "courier",
    "garden",
    "phone",
    "letter",
    "blue",
    "green",
    "fast",
    "slow",
]
_MEMORIES = (
    "tenant_id, memory_id, candidate_id, proposal_id, verdict_id, capture_id, born_seq, promoted_at, born_txid, expires_at, class,"
    " entity, predicate, classification, sensitive, tier, tier_derived, priority, confidence, trust, holder, subject, user_id,"
    " session_id, workflow_id, intent_id, pack, ontology_version, kind, source, author, editors, approver, approver_kind,"
    " captured_at, observed_at"
)
_SCOPE = (
    "tenant_id, user_id, memory_id, born_seq, promoted_at, expires_at, priority, confidence, tier, class, classification,"
    " session_id, workflow_id, intent_id, entity, predicate"
)


async def furnish(server: TestServer, database: str, *, tenants: int, per_tenant: int, users: int) -> None:
    """As many semantic memories as asked, a tenth of each tenant's its own, the rest spread over its users."""
    chance, pack = random.Random(11), builtin_pack().ref
    now = datetime.now(UTC)
    async with AsyncFabric.open(server.url(database), master_keys=MASTER_KEYS) as fabric:
        desk = fabric._desk
        with server.connect(database) as owner:
            owner.execute("SET session_replication_role = replica")
            for number in range(tenants):
                people = People(f"tenant_{number}")
                names = ["", *(f"user_{n}" for n in range(users))]
                await fabric.capture_many(
                    people.service,
                    [
                        {"kind": "message", "text": "hello", "classification": "INTERNAL", "user_id": n or None}
                        for n in names
                    ],
                )
                async with desk.transaction(people.tenant_id, "writer") as tx:
                    keys = await desk.vault.keys(tx, [holder_of(None, name or None) for name in names])
                memories: list[tuple[object, ...]] = []
                bodies: list[tuple[object, ...]] = []
                scopes: list[tuple[object, ...]] = []
                for n in range(per_tenant):
                    user = names[0] if n % 10 == 0 else names[1 + n % users]
                    holder = holder_of(None, user or None)
                    memory_id = f"pm_{n:012x}{number:04x}"
                    at = now - timedelta(minutes=chance.randrange(100_000))
                    text = " ".join(chance.choices(WORDS, k=14))
                    priority = round(chance.uniform(0.5, 0.8), 2)
                    confidence = round(chance.uniform(0.45, 0.8), 2)
                    entity, predicate = f"customer:c{n % 50}", f"p{n}"
                    sealed = keys[holder].seal(
                        "memory_bodies.content", memory_id, fact_content(text, n, ("session:s1",))
                    )
                    expires = at + timedelta(days=365)
                    intent = chance.choice(["", "", "support.*", "support.orders.change", "sales.*"])
                    ids = tuple(f"{p}_{n:012x}{number:04x}" for p in ("mc", "mwp", "rv", "cap"))
                    memories.append((people.tenant_id, memory_id, *ids, n + 1, at, "1", expires, "preference", entity, predicate,
                                     "INTERNAL", False, "semantic", "semantic", priority, confidence, 0.6, holder, None, user,
                                     "", "", intent, pack, "1", "statement", "agent", "bot", [], "boris", "operator", at, at))  # fmt: skip
                    bodies.append((people.tenant_id, memory_id, sealed))
                    scopes.append((people.tenant_id, user, memory_id, n + 1, at, expires, priority, confidence, "semantic",
                                   "preference", "INTERNAL", "", "", intent, entity, predicate))  # fmt: skip
                for table, columns, rows in (
                    ("memories", _MEMORIES, memories),
                    ("memory_bodies", "tenant_id, memory_id, content", bodies),
                    ("memory_scope", _SCOPE, scopes),
                ):
                    with owner.cursor().copy(f"COPY {table} ({columns}) FROM STDIN") as copy:
                        for row in rows:
                            copy.write_row(row)
            owner.execute("RESET session_replication_role")
            owner.execute("VACUUM ANALYZE")
