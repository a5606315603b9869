"""Fill a database with promoted memories fast: sealed for real, written by the superuser around the pipeline."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import psycopg

from muniment import AsyncFabric
from muniment.database import vector_index
from muniment.database.address import Address
from muniment.database.packed_words import pack_words
from muniment.database.rows import fact_content
from muniment.database.sealing import SubjectKey
from muniment.database.vectors import to_sql
from muniment.language.embedding import Vectors, builtin_embedder
from muniment.language.words import index_of
from muniment.model.candidate import StoredFact
from muniment.model.capture import holder_of
from muniment.pack import Pack, builtin_pack
from muniment.promotion import postings
from muniment.promotion.store import term_hash
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
# What a memory is for; a run with the intent support.orders.change sees all but the last.
INTENTS = ("", "", "support.*", "support.orders.change", "sales.*")
# Memories written at a time.
AT_ONCE = 20_000
_MEMORIES = (
    "tenant_id, memory_id, candidate_id, proposal_id, verdict_id, capture_id, born_seq, promoted_at, born_txid, expires_at, class,"
    " entity, predicate, classification, sensitive, tier, tier_derived, priority, confidence, trust, holder, subject, user_id,"
    " session_id, workflow_id, intent_id, pack, ontology_version, kind, source, author, editors, approver, approver_kind,"
    " captured_at, observed_at, proposal_action"
)
_SCOPE = (
    "tenant_id, user_id, memory_id, born_seq, promoted_at, expires_at, priority, confidence, tier, class, classification,"
    " session_id, workflow_id, intent_id, entity, predicate"
)


Owner = psycopg.Connection[tuple[object, ...]]


@dataclass(frozen=True)
class Shape:
    """What each tenant holds: so many memories, one in `shared` its own, the rest spread over its users."""

    per_tenant: int
    users: int
    words: int
    shared: int
    intents: Sequence[str]
    vectors: bool
    terms: bool
    postings: bool

    def user_of(self, n: int) -> str:
        """Whose the memory with that number is; the tenant's own are nobody's."""
        return "" if not self.users or n % self.shared == 0 else f"user_{n // self.shared % self.users}"


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
    pack: Pack | None = None,
    shared: int = 10,
    intents: Sequence[str] = INTENTS,
) -> None:
    """As many semantic memories as asked, one in `shared` the tenant's own, the rest spread over its users.

    With `vectors` and `terms` they can be found by a query; with `index` every tenant has a vector index and postings, as a
    large one has.
    """
    chance, pack = random.Random(11), pack or builtin_pack()
    shape = Shape(per_tenant, users, words, shared, intents, vectors, terms, terms and index)
    async with AsyncFabric.open(server.url(database), master_keys=MASTER_KEYS, pack=pack) as fabric:
        with server.connect(database) as owner:
            owner.execute("SET session_replication_role = replica")
            for number in range(tenants):
                people = People(f"tenant_{number}")
                keys = await _keys(fabric, people, users)
                for first in range(0, per_tenant, AT_ONCE):
                    some = range(first, min(first + AT_ONCE, per_tenant))
                    _fill(owner, people.tenant_id, number, some, keys, pack.ref, shape, chance)
                # What is promoted at a number was there when that number was taken: long ago, for who asks about the past.
                last, then = 10 * per_tenant, datetime.now(UTC) - timedelta(days=1)
                owner.execute(
                    "INSERT INTO ticks (tenant_id, seq, at, prev_seq, prev_at, txid, visible_seq)"
                    " VALUES (%s, %s, %s, %s, %s, '1', %s)",
                    [people.tenant_id, last, then, last - 1, then, last],
                )
                # The clock goes on from there: otherwise these memories would look promoted after whatever comes next, and
                # an index in a process would read them again with every change.
                owner.execute(
                    "UPDATE tenant_clock SET seq = %s, at = %s, prev_at = %s WHERE tenant_id = %s",
                    [last, then, then, people.tenant_id],
                )
                if shape.postings:
                    owner.execute(
                        "INSERT INTO cursors (tenant_id, name, seq, capture_id) VALUES (%s, %s, %s, '')",
                        [people.tenant_id, postings.CURSOR, last],
                    )
            for number in range(tenants if vectors and index else 0):
                await vector_index.take(Address.parse(server.url(database), None), f"tenant_{number}", "make")
            owner.execute("RESET session_replication_role")
            owner.execute("VACUUM ANALYZE")


async def _keys(fabric: AsyncFabric, people: People, users: int) -> Mapping[str, SubjectKey]:
    """The keys of the tenant and its users, which are made with their first captures."""
    names = [None, *(f"user_{n}" for n in range(users))]
    for first in range(0, len(names), 500):
        hello = {"kind": "message", "text": "hello", "classification": "INTERNAL"}
        await fabric.capture_many(people.service, [{**hello, "user_id": name} for name in names[first : first + 500]])
    async with fabric._context.transaction(people.tenant_id, "writer") as tx:
        return await fabric._context.vault.keys(tx, [holder_of(None, name) for name in names])


def _fill(
    owner: Owner,
    tenant_id: str,
    number: int,
    numbers: range,
    keys: Mapping[str, SubjectKey],
    pack: str,
    shape: Shape,
    chance: random.Random,
) -> None:
    """Write the memories with these numbers, and what recall finds them by."""
    now = datetime.now(UTC)
    said: list[tuple[str, str]] = []
    words: list[tuple[object, ...]] = []
    posted: list[tuple[object, ...]] = []
    memories: list[tuple[object, ...]] = []
    bodies: list[tuple[object, ...]] = []
    scopes: list[tuple[object, ...]] = []
    for n in numbers:
        user = shape.user_of(n)
        holder = holder_of(None, user or None)
        memory_id = f"pm_{n:012x}{number:04x}"
        at = now - timedelta(minutes=chance.randrange(100_000))
        text = " ".join(chance.choices(WORDS, k=shape.words))
        priority = round(chance.uniform(0.5, 0.8), 2)
        confidence = round(chance.uniform(0.45, 0.8), 2)
        entity, predicate = f"customer:c{n % 50}", f"p{n}"
        fact = StoredFact(write_class="preference", text=text, value=n, evidence_refs=("session:s1",))
        sealed = keys[holder].seal("memory_bodies.content", memory_id, fact_content(fact))
        expires = at + timedelta(days=365)
        intent = chance.choice(shape.intents)
        ids = tuple(f"{p}_{n:012x}{number:04x}" for p in ("mc", "mwp", "rv", "cap"))
        memories.append((tenant_id, memory_id, *ids, n + 1, at, "1", expires, "preference", entity, predicate, "INTERNAL", False,
                         "semantic", "semantic", priority, confidence, 0.6, holder, None, user, "", "", intent, pack, "1",
                         "statement", "agent", "bot", [], "boris", "operator", at, at, "promote"))  # fmt: skip
        bodies.append((tenant_id, memory_id, sealed))
        scopes.append((tenant_id, user, memory_id, n + 1, at, expires, priority, confidence, "semantic", "preference",
                       "INTERNAL", "", "", intent, entity, predicate))  # fmt: skip
        said.append((memory_id, text))
        if shape.terms:
            found = index_of(text, at)
            terms = {term_hash(keys["*"], term): times for term, times in found.terms.items()}
            words.append((tenant_id, memory_id, found.words, pack_words(terms)))
            posted += [(tenant_id, term, user, memory_id) for term in terms if shape.postings]
    for table, columns, rows in (
        ("memories", _MEMORIES, memories),
        ("memory_bodies", "tenant_id, memory_id, content", bodies),
        ("memory_scope", _SCOPE, scopes),
        ("memory_words", "tenant_id, memory_id, words, terms", words),
        ("memory_terms", "tenant_id, term, user_id, memory_id", sorted(posted)),
    ):
        with owner.cursor().copy(f"COPY {table} ({columns}) FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
    if shape.vectors:
        embedder = builtin_embedder()
        _place(owner, tenant_id, embedder.name, [one for one, _ in said], embedder.embed([text for _, text in said]))


def scope_size(per_tenant: int, users: int, shared: int = 10, intents: Sequence[str] = INTENTS) -> int:
    """About how many of these a run of a user sees: the tenant's own and that user's, less those for another intent."""
    own = -(-per_tenant // shared) if users else per_tenant
    seen = own + (per_tenant - own) // max(users, 1)
    return seen * sum(intent != INTENTS[-1] for intent in intents) // len(intents)


def _place(owner: Owner, tenant_id: str, embedder: str, ids: list[str], places: Vectors) -> None:
    columns = "tenant_id, memory_id, embedder, vector"
    with owner.cursor().copy(f"COPY memory_vectors ({columns}) FROM STDIN (FORMAT binary)") as copy:
        for memory_id, place in zip(ids, places, strict=True):
            copy.write_row((tenant_id, memory_id, embedder, to_sql(place)))
