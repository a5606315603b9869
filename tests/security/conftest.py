"""A tenant with a row in every table, for tests that knock at the database itself."""

from collections.abc import Iterator
from typing import Any

import pytest

from muniment import Fabric
from muniment.model.metrics import GoldenResult
from muniment.testing import People, TestServer
from tests.pipeline.stories import CONSENT, promoted, proposed, refused
from tests.security.catalogue import Connection


@pytest.fixture
def owner(server: TestServer, database: str) -> Iterator[Connection]:
    """Somebody who sees everything."""
    with server.connect(database) as connection:
        yield connection


@pytest.fixture
def furnished(fabric: Fabric, people: People, owner: Connection) -> dict[str, Any]:
    """Every table has something of this tenant."""
    subject = "customer:cust_1"
    consent = fabric.consent.grant(people.officer, subject=subject, **CONSENT)
    fabric.capture(people.run(), kind="message", text="hello", classification="INTERNAL", idempotency_key="k1")
    fabric.consolidate(people.tenant_id)
    first = promoted(fabric, people, "email")
    second = promoted(fabric, people, "phone")
    sensitive = promoted(
        fabric, people, "+49 30 1234567", predicate="phone_number", subject=subject, classification="PII"
    )
    refused(fabric, people.run(), entity="customer:x", predicate="p", value="v", classification="PII")
    waiting = proposed(fabric, people.run(), entity="customer:cust_1", predicate="likes", value="tea")
    gone = promoted(fabric, people, "blue", predicate="favourite_colour")
    fabric.retract(people.reviewer, gone, reason="wrong")
    rejected = proposed(fabric, people.run(), entity="customer:cust_1", predicate="hobby", value="falconry")
    fabric.queue.reject(people.reviewer, rejected.proposal_id, reason="hearsay")
    (unsettled,) = fabric.contradictions.list(people.reviewer)
    promoted(fabric, people, "company:acme", predicate="employer")
    fabric.recall(people.run())
    fabric.compile(people.run(), "Where does she work?")
    fabric.webhooks.add(people.admin, url="https://8.8.8.8/hook")
    fabric.seal(people.tenant_id)
    fabric.record_golden(people.run(), [GoldenResult(query="workplace", passed=True)])
    fabric.scan_pii(people.tenant_id)
    backfilled(fabric, people)
    fabric.erase(people.officer, subject="customer:nobody")
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


def backfilled(fabric: Fabric, people: People) -> None:
    """A memory that was given another name."""
    promoted(fabric, people, "tea", predicate="drink")
    ontology = "ontology: {predicates: {favourite_drink: {renamed_from: [drink]}}}"
    head = 'pack_meta: {id: acme, version: "2.0.0", ontology_version: "2.0.0"}'
    fabric.packs.backfill(people.reviewer, fabric.packs.register(people.admin, f"{head}\n{ontology}").ref)
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
