"""Fill a database with promoted memories fast: sealed for real, written by the superuser around the pipeline."""

import random
from datetime import UTC, datetime, timedelta

import psycopg

from muniment import AsyncFabric
from muniment.candidates.neighbours import to_sql
from muniment.database import vector_index
from muniment.database.address import Address
from muniment.database.rows import fact_content
from muniment.language.embedding import Vectors, builtin_embedder
from muniment.language.words import index_of
from muniment.model.capture import holder_of
from muniment.pack import builtin_pack
from muniment.promotion.store import term_hash as mark
from muniment.testing import People, TestServer
from muniment.testing.database import MASTER_KEYS

# Enough of them that two texts are seldom alike.
WORDS = """
order parcel window invoice refund address morning evening courier garden phone letter blue green fast slow river stone
bread copper ladder winter summer engine candle mirror basket doctor teacher painter sailor farmer lawyer baker tailor
north south mountain valley desert island harbour station airport library museum theatre hospital market kitchen cellar
apple orange lemon cherry pepper onion carrot garlic butter cheese honey sugar coffee water wine beer juice soup salad
guitar violin piano trumpet drum chess tennis football hockey cycling swimming running skiing climbing fishing sewing
monday tuesday friday january march april august october december birthday holiday meeting contract payment delivery
returns warranty discount voucher shipping customs storage account password profile language currency report budget
laptop printer keyboard monitor camera battery charger cable headset router server database backup update ticket queue
""".split()  # noqa: SIM905  a list of them would take a page
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


async def furnish(
    server: TestServer,
    database: str,
    *,
    tenants: int,
    per_tenant: int,
    users: int,
    vectors: bool = False,
    terms: bool = False,
    words: int = 14,
    index: bool = True,
) -> None:
    """As many semantic memories as asked, a tenth of each tenant's its own, the rest spread over its users.

    With `vectors` and `terms` they can be found by a query; with `index` every tenant has a vector index, as a large one has.
    """
    chance, pack = random.Random(11), builtin_pack().ref
    now = datetime.now(UTC)
    async with AsyncFabric.open(server.url(database), master_keys=MASTER_KEYS) as fabric:
        context = fabric._context
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
                async with context.transaction(people.tenant_id, "writer") as tx:
                    keys = await context.vault.keys(tx, [holder_of(None, name or None) for name in names])
                embedder = builtin_embedder()
                said: list[tuple[str, str]] = []
                postings: list[tuple[object, ...]] = []
                memories: list[tuple[object, ...]] = []
                bodies: list[tuple[object, ...]] = []
                scopes: list[tuple[object, ...]] = []
                for n in range(per_tenant):
                    user = names[0] if users == 0 or n % 10 == 0 else names[1 + n % users]
                    holder = holder_of(None, user or None)
                    memory_id = f"pm_{n:012x}{number:04x}"
                    at = now - timedelta(minutes=chance.randrange(100_000))
                    text = " ".join(chance.choices(WORDS, k=words))
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
                    said.append((memory_id, text))
                    if terms:
                        found = index_of(text, at)
                        postings += [
                            (people.tenant_id, mark(keys["*"], term), user, memory_id, times, found.words)
                            for term, times in found.terms.items()
                        ]
                    scopes.append((people.tenant_id, user, memory_id, n + 1, at, expires, priority, confidence, "semantic",
                                   "preference", "INTERNAL", "", "", intent, entity, predicate))  # fmt: skip
                for table, columns, rows in (
                    ("memories", _MEMORIES, memories),
                    ("memory_bodies", "tenant_id, memory_id, content", bodies),
                    ("memory_scope", _SCOPE, scopes),
                    ("memory_terms", "tenant_id, term, user_id, memory_id, tf, words", sorted(postings)),
                ):
                    with owner.cursor().copy(f"COPY {table} ({columns}) FROM STDIN") as copy:
                        for row in rows:
                            copy.write_row(row)
                # What is promoted at a number was there when that number was taken: long ago, for who asks about the past.
                owner.execute(
                    "INSERT INTO ticks (tenant_id, seq, at, prev_seq, prev_at, txid) VALUES (%s, %s, %s, %s, %s, '1')",
                    [
                        people.tenant_id,
                        10 * per_tenant,
                        now - timedelta(days=1),
                        10 * per_tenant - 1,
                        now - timedelta(days=1),
                    ],
                )
                if vectors:
                    places = embedder.embed([text for _, text in said])
                    _place(owner, people.tenant_id, embedder.name, [one for one, _ in said], places)
            for number in range(tenants if vectors and index else 0):
                await vector_index.take(Address.parse(server.url(database), None), f"tenant_{number}", "make")
            owner.execute("RESET session_replication_role")
            owner.execute("VACUUM ANALYZE")


def _place(
    owner: "psycopg.Connection[tuple[object, ...]]", tenant_id: str, embedder: str, ids: list[str], places: Vectors
) -> None:
    columns = "tenant_id, memory_id, embedder, vector"
    with owner.cursor().copy(f"COPY memory_vectors ({columns}) FROM STDIN (FORMAT binary)") as copy:
        for memory_id, place in zip(ids, places, strict=True):
            copy.write_row((tenant_id, memory_id, embedder, to_sql(place)))
