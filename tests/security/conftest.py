"""A tenant with a row in every table, for tests that knock at the database itself."""

from collections.abc import Iterator
from typing import Any

import pytest

from muniment import AsyncFabric, Fabric
from muniment.model.metrics import GoldenResult
from muniment.testing import FakeClock, People, TestServer
from tests.connections import Connections
from tests.pack_activation import acme, put_in_force
from tests.security.catalogue import Connection
from tests.stories import CONSENT, promoted, proposed, refused

Pattern = tuple[str, dict[str, Any], list[str]]


@pytest.fixture
def owner(server: TestServer, database: str) -> Iterator[Connection]:
    """Somebody who sees everything."""
    with server.connect(database) as connection:
        yield connection


@pytest.fixture(scope="session")
def pattern(connections: Connections, server: TestServer, database: str) -> Pattern:
    """A tenant that has something in every table, the ids of it, and the statements that copy all of that."""
    people = People("tenant_pattern")
    clock = FakeClock()
    with connections.fabric(clock=clock) as fabric, server.connect(database) as owner:
        brought_back(fabric, people, clock)
        found = furnish(fabric, people, owner)
        columns: dict[str, list[str]] = {}
        for table, column in owner.execute(
            "SELECT relname, quote_ident(attname) FROM pg_attribute JOIN pg_class c ON c.oid = attrelid"
            " WHERE relnamespace = 'muniment'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition"
            " AND attnum > 0 AND NOT attisdropped AND attgenerated = '' ORDER BY relname, attnum"
        ).fetchall():
            columns.setdefault(str(table), []).append(str(column))
    copies = [
        f"INSERT INTO {table} ({', '.join(names)}) OVERRIDING SYSTEM VALUE"
        f" SELECT {', '.join(f'own.{name}' for name in names)}"
        f" FROM (SELECT * FROM {table} WHERE tenant_id = %(like)s ORDER BY tableoid, ctid) AS its,"
        f" jsonb_populate_record(NULL::{table}, regexp_replace("
        r"(to_jsonb(its) || jsonb_build_object('tenant_id', %(tenant)s::text))::text, '\m([a-z]+_[0-9a-f]{28})\M',"
        r" '\1' || %(mark)s, 'g')::jsonb) AS own"
        for table, names in columns.items()
        if "tenant_id" in names
    ]
    return people.tenant_id, found, copies


@pytest.fixture
def furnished(pattern: Pattern, owner: Connection, tenant: str) -> dict[str, Any]:
    """Every table has something of this tenant: what the pattern has, row for row, with a mark of its own on each id.

    What is sealed was sealed for the pattern and does not open here: these tests knock at rows and read no content.
    """
    like, found, copies = pattern
    mark = tenant.removeprefix("tenant")
    with owner.transaction():
        # Tables come in any order; what their rows refer to is there in the end.
        owner.execute("SET LOCAL session_replication_role = replica")
        for copy in copies:
            owner.execute(copy, {"tenant": tenant, "like": like, "mark": mark})  # type: ignore[arg-type]
    consent = found["consent"]
    marked = {name: [f"{one}{mark}" for one in ids] if isinstance(ids, list) else f"{ids}{mark}"
              for name, ids in found.items() if name != "consent"}  # fmt: skip
    return {**marked, "consent": consent.model_copy(update={"consent_id": f"{consent.consent_id}{mark}"})}


def brought_back(fabric: Fabric, people: People, clock: FakeClock) -> None:
    """A clock that was ahead for a moment."""
    clock.advance(minutes=1)
    fabric.capture(people.run(), kind="message", text="early", classification="INTERNAL")
    clock.advance(minutes=-1)
    fabric.work.reset_clock(people.admin, reason="was ahead")


def furnish(fabric: Fabric, people: People, owner: Connection) -> dict[str, Any]:
    """Something in every table."""
    subject = "customer:cust_1"
    consent = fabric.consent.grant(people.officer, subject=subject, **CONSENT)
    fabric.capture(people.run(), kind="message", text="hello", classification="INTERNAL", idempotency_key="k1")
    fabric.consolidate(people.tenant_id)
    first = promoted(fabric, people, "email")
    second = promoted(fabric, people, "phone")
    sensitive = promoted(
        fabric, people, "+49 30 1234567", predicate="phone_number", subject=subject, classification="PII"
    )
    no = refused(fabric, people.run(), entity="customer:x", predicate="p", value="v", classification="PII")
    fabric.captures.rerun(people.reviewer, no.capture_id, "requested")
    fabric.consolidate(people.tenant_id)
    waiting = proposed(fabric, people.run(), entity="customer:cust_1", predicate="likes", value="tea")
    proposed(fabric, people.run(), entity="customer:cust_1", predicate="likes", value="coffee")
    gone = promoted(fabric, people, "blue", predicate="favourite_colour")
    fabric.retract(people.reviewer, gone, reason="wrong")
    fabric.sessions.end(people.run(session_id="s1"), "s1")
    rejected = proposed(fabric, people.run(), entity="customer:cust_1", predicate="hobby", value="falconry")
    fabric.queue.reject(people.reviewer, rejected.proposal_id, reason="hearsay")
    (unsettled,) = fabric.contradictions.list(people.reviewer)
    promoted(fabric, people, "company:acme", predicate="employer")
    fabric.recall(people.run())
    fabric.compile(people.run(), "Where does she work?")
    fabric.webhooks.add(people.admin, url="https://8.8.8.8/hook")
    fabric.notices.set(people.auditor, channel="chat", address="https://8.8.8.8/chat")
    fabric.keys.create(people.admin, principal_id="bot", kind="agent", roles=["agent"], user_id="cust_1", label="shop")
    fabric._portal.call(requested, fabric._fabric, people)
    fabric.queue.attend(people.reviewer, waiting.proposal_id)
    fabric.views.save(people.reviewer, name="mine", filters={"mine": True})
    owner.execute(
        "INSERT INTO tenant_restores VALUES (%s, 'bak_1', now(), 'ada', sha256('x'), '7'::xid8)", [people.tenant_id]
    )
    fabric.seal(people.tenant_id)
    fabric.record_golden(people.admin, [GoldenResult(query="workplace", passed=True)])
    fabric.scan_pii(people.tenant_id)
    backfilled(fabric, people)
    fabric.search_texts(
        people.officer, "Nobody", erasure_id=fabric.erase(people.officer, subject="customer:nobody").erasure_id
    )
    work_in_hand(owner, people.tenant_id)
    return {
        "consent": consent,
        "memories": [first, second, sensitive],
        "waiting": waiting.proposal_id,
        "retracted": gone,
        "rejected": rejected.proposal_id,
        "open": unsettled.contradiction_id,
        **coexisting(fabric, people),
        **swept(fabric, people),
    }


async def requested(fabric: AsyncFabric, people: People) -> None:
    """A request under a caller's key, and its answer."""
    with fabric.requests.begin(people.admin, "request_1", b"what was asked") as asked:
        await fabric.work.requeue(people.admin)
    await fabric.requests.keep(asked, 200, b"what was answered")


def backfilled(fabric: Fabric, people: People) -> None:
    """A memory that was given another name."""
    promoted(fabric, people, "tea", predicate="drink")
    ontology = "ontology: {predicates: {favourite_drink: {renamed_from: [drink]}}}"
    ref = put_in_force(fabric, people.tenant_id, acme("2.0.0", ontology, ontology_version='"2.0.0"'))
    fabric.packs.backfill(people.reviewer, ref)
    fabric.packs.run_backfill(people.tenant_id)


def work_in_hand(owner: Connection, tenant_id: str) -> None:
    """A row in each table that the jobs write in the course of time."""
    first = owner.execute(
        "SELECT t.seq, t.at, t.txid, c.capture_id, c.holder FROM ticks t, captures c"
        " WHERE t.tenant_id = %s AND c.tenant_id = t.tenant_id ORDER BY t.seq LIMIT 1",
        [tenant_id],
    ).fetchone()
    assert first is not None
    seq, at, txid, capture_id, holder = first
    given = {"t": tenant_id, "seq": seq, "at": at, "txid": txid, "capture": capture_id, "holder": holder}
    for insert in (
        "retries VALUES (%(t)s, %(capture)s, 1, %(holder)s, 1, %(at)s, 'x', NULL)",
        "extractions VALUES (%(t)s, %(capture)s, 'x@1', %(holder)s, %(at)s, 'sealed')",
        "model_calls VALUES (%(t)s, 'x@1', '2026-01-05', 1)",
        "calibrations VALUES (%(t)s, 'cal_1', %(seq)s, %(at)s, %(txid)s, 'agent x@1', 1, 1, '[]')",
        "breakers VALUES (%(t)s, 'preference', %(seq)s, %(at)s, %(txid)s, true, 'auto', 1, 1, 0.5)",
        "alerts VALUES (%(t)s, 'x', %(at)s)",
        "job_runs VALUES (%(t)s, 'seal', %(at)s, 1, NULL, 0)",
        "archives VALUES (%(t)s, 'arc_1', %(seq)s, %(at)s, %(txid)s, 'message', '1.0.0', 1, %(at)s)",
        "archive_files VALUES (%(t)s, 'arc_1', 1, decode(repeat('00', 32), 'hex'), 1, false, %(at)s, %(seq)s, %(txid)s)",
        "archived_captures VALUES (%(t)s, 'cap_gone', 'arc_1', 1, %(at)s, %(holder)s)",
        "index_rebuilds SELECT tenant_id, seq, at, txid FROM ticks WHERE tenant_id = %(t)s AND visible_seq IS NOT NULL LIMIT 1",
        "index_holders VALUES (%(t)s, 'process', 1, now() - interval '1 minute')",
        "memory_terms SELECT %(t)s, 1, 'cust_1', memory_id FROM memory_bodies WHERE tenant_id = %(t)s LIMIT 1",
        "consent_requests SELECT %(t)s, 'csr_1', capture_id, consolidation, extractor, ordinal, 'customer:x', 'PII',"
        " %(seq)s, %(at)s, %(txid)s, %(at)s + interval '30 days', NULL, NULL, NULL, NULL, NULL, decode(repeat('00', 16), 'hex')"
        " FROM refusals WHERE tenant_id = %(t)s LIMIT 1",
        "pack_confirmations SELECT %(t)s, pack, 0.4 FROM packs WHERE tenant_id = %(t)s LIMIT 1",
        "one_time_codes VALUES (%(t)s, 'otc_1', decode(repeat('00', 32), 'hex'), 'cust_1', 'confirm', 'mwp_1', %(seq)s, %(at)s,"
        " %(txid)s, 'ada', 'operator', %(at)s + interval '15 minutes')",
        "erasure_requests VALUES (%(t)s, 'erq_1', 'cust_1', NULL, %(seq)s, %(at)s, %(txid)s)",
    ):
        owner.execute(f"INSERT INTO {insert}", given)  # type: ignore[arg-type]  # literals of this test


def coexisting(fabric: Fabric, people: People) -> dict[str, Any]:
    """A contradiction that was settled so that both sides stand."""
    side = promoted(fabric, people, "German", predicate="language")
    proposed(fabric, people.run(), entity="customer:cust_1", predicate="language", value="French")
    (found,) = (one for one in fabric.contradictions.list(people.reviewer) if one.existing == side)
    settled = fabric.contradictions.resolve(
        people.reviewer, found.contradiction_id, "coexist", existing={"region": "de"}, incoming={"region": "fr"}
    )
    return {"settled": settled.contradiction_id, "sides": [settled.existing, settled.incoming]}


def swept(fabric: Fabric, people: People) -> dict[str, Any]:
    """A memory whose consent was revoked: its content was taken away."""
    subject = "customer:cust_2"
    consent = fabric.consent.grant(people.officer, subject=subject, **CONSENT)
    memory_id = promoted(
        fabric, people, "oolong", entity=subject, predicate="tea", subject=subject, classification="PII"
    )
    fabric.consent.revoke(people.officer, consent.consent_id)
    assert fabric.consent.sweep(people.tenant_id).memories == 1
    return {"tombstoned": memory_id, "swept": consent.consent_id}
