"""Captures listed, read and run again; refusals listed (CAP-11)."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from muniment import Fabric
from muniment.database.cluster.errors import violates
from muniment.database.storage import Transaction
from muniment.errors import Conflict, InvalidInput, NotFound, RoleMissing
from muniment.model.capture import Rerun
from muniment.pack import load_pack
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.conftest import Connect
from tests.faults.concurrency import Calls, hold_clock
from tests.security.rows import insert, mark, one
from tests.stories import CONSENT, event_data, proposed, refused, run_job, run_worker

SUBJECT = "customer:cust_1"
SECRET: dict[str, Any] = {
    "kind": "statement",
    "text": "The customer keeps bees behind the house",
    "classification": "PII",
    "subject": SUBJECT,
}
PACK = """
pack_meta: {id: acme.rerun, version: "%s", ontology_version: "1.0.0"}
memory_layer: %s
"""


def captured(fabric: Fabric, people: People, **fields: Any) -> str:
    """A capture that was consolidated once."""
    capture_id = fabric.capture(people.run(), **SECRET | fields).capture_id
    fabric.consolidate(people.tenant_id)
    return capture_id


def consented(fabric: Fabric, people: People) -> None:
    fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT)


@pytest.mark.rule("CAP-11", "CON-2")
def test_after_a_consent_a_capture_that_was_refused_is_run_again_and_proposed(fabric: Fabric, people: People) -> None:
    capture_id = captured(fabric, people)
    assert [(one.gate, one.reason) for one in fabric.refusals.list(people.reviewer)] == [("consent", "consent_missing")]
    consented(fabric, people)
    ordered = fabric.captures.rerun(people.reviewer, capture_id, "consent_changed")
    assert (ordered.number, ordered.by, ordered.reason) == (2, "boris", "consent_changed")
    assert [one.state for one in fabric.captures.list(people.auditor)] == ["waiting"]
    assert run_worker(fabric, people.tenant_id) >= 1
    (item,) = fabric.queue.list(people.reviewer)
    assert (item.candidate.text, item.candidate.capture_id) == (SECRET["text"], capture_id)
    found = fabric.captures.get(people.reviewer, capture_id)
    assert (found.state, found.proposals) == ("processed", (item.proposal_id,))
    assert [(one.number, one.by, one.reason) for one in found.consolidations] == [
        (1, None, None),
        (2, "boris", "consent_changed"),
    ]
    assert [(one.consolidation, one.latest) for one in found.refusals] == [(1, False)]
    assert fabric.refusals.list(people.reviewer, latest=True) == []
    assert event_data(fabric, people, "rerun") == [{"capture_id": capture_id, "number": 2, "reason": "consent_changed"}]


@pytest.mark.rule("CAP-11", "CAN-9")
def test_a_capture_that_is_run_again_passes_the_same_gates_and_may_be_refused_again(
    fabric: Fabric, people: People
) -> None:
    capture_id = captured(fabric, people)
    fabric.captures.rerun(people.reviewer, capture_id, "requested")
    again = fabric.consolidate(people.tenant_id)
    assert [(one.gate, one.reason) for one in again.refusals] == [("consent", "consent_missing")]
    listed = fabric.refusals.list(people.auditor, capture_id=capture_id)
    assert [(one.consolidation, one.latest) for one in listed] == [(2, True), (1, False)]
    assert [one.state for one in fabric.captures.list(people.auditor)] == ["refused"]


@pytest.mark.rule("CAP-11")
@pytest.mark.parametrize("verdict", ["pending", "promoted", "rejected", "edited"])
def test_a_fact_that_was_proposed_is_not_proposed_again_whatever_became_of_it(
    fabric: Fabric, people: People, verdict: str
) -> None:
    capture_id = captured(fabric, people, classification="INTERNAL")
    (item,) = fabric.queue.list(people.reviewer)
    if verdict == "promoted":
        fabric.queue.approve(people.reviewer, item.proposal_id)
    elif verdict == "rejected":
        fabric.queue.reject(people.reviewer, item.proposal_id, reason="not so")
        fabric.queue.lift(people.reviewer, item.proposal_id)
    elif verdict == "edited":
        fabric.queue.edit(people.reviewer, item.proposal_id, text="The customer keeps two hives")
    before = [one.proposal_id for one in fabric.queue.list(people.reviewer, closed=True)]
    fabric.captures.rerun(people.reviewer, capture_id, "pack_changed")
    again = fabric.consolidate(people.tenant_id)
    assert (again.captures, again.proposals, again.refusals) == (1, (), ())
    assert [one.proposal_id for one in fabric.queue.list(people.reviewer, closed=True)] == before


def _read(predicate: str, path: str) -> str:
    said = "write_class: preference, confidence: 0.8, namespace: customer, entity: $.id"
    return f"{{{said}, predicate: {predicate}, value: {path}}}"


@pytest.mark.rule("CAP-11", "PAC-5")
def test_another_pack_proposes_only_the_facts_that_are_new_in_a_capture(
    server: TestServer, fresh_database: str, clock: FakeClock, people: People
) -> None:
    def opened(version: str, fields: str, *, activate: bool = False) -> Fabric:
        document = f"""
pack_meta: {{id: acme.rerun, version: "{version}", ontology_version: "1.0.0"}}
memory_layer:
  extraction: {{messages: false}}
  extractors:
    - name: crm
      version: "{version}"
      match: {{kind: tool_result, origin: "tool:crm.lookup"}}
      fields: [{fields}]
"""
        place: dict[str, Any] = {"clock": clock, "master_keys": MASTER_KEYS, "activate": activate}
        return Fabric.open(server.url(fresh_database), pack=load_pack(document), **place)

    language = _read("preferred_language", "$.language")
    channel = _read("prefers_channel", "$.channel")
    with opened("1.0.0", channel) as fabric:
        capture_id = fabric.capture(
            people.run(),
            kind="tool_result",
            origin="tool:crm.lookup",
            payload={"id": "cust_1", "channel": "email", "language": "German"},
            classification="INTERNAL",
        ).capture_id
        fabric.consolidate(people.tenant_id)
        (first,) = fabric.queue.list(people.reviewer)
    # Another version of the extractor, which reads the known fact at another place of the list.
    with opened("2.0.0", f"{language}, {channel}", activate=True) as fabric:
        fabric.captures.rerun(people.reviewer, capture_id, "extractor_changed")
        again = fabric.consolidate(people.tenant_id)
        assert len(again.proposals) == 1
        item = fabric.queue.get(people.reviewer, again.proposals[0])
        assert (item.candidate.predicate, item.candidate.value) == ("preferred_language", "German")
        assert (item.pack, first.pack) == ("acme.rerun@2.0.0", "acme.rerun@1.0.0")


@pytest.mark.rule("CAP-11")
def test_a_fact_proposed_before_there_were_digests_is_known_by_its_extractor_and_place(
    fabric: Fabric, people: People, server: TestServer, database: str
) -> None:
    capture_id = captured(fabric, people, classification="INTERNAL")
    with server.connect(database) as owner:
        owner.execute("UPDATE candidates SET fact = NULL WHERE tenant_id = %s", [people.tenant_id])
    fabric.captures.rerun(people.reviewer, capture_id, "requested")
    assert fabric.consolidate(people.tenant_id).proposals == ()


@pytest.mark.rule("CAP-11", "CAN-8")
def test_what_was_proposed_directly_and_refused_can_be_run_again_too(fabric: Fabric, people: People) -> None:
    fact: dict[str, Any] = {"entity": SUBJECT, "predicate": "keeps", "value": "bees", "subject": SUBJECT}
    no = refused(fabric, people.run(), **fact, classification="PII", idempotency_key="k1")
    consented(fabric, people)
    fabric.captures.rerun(people.reviewer, no.capture_id, "consent_changed")
    assert len(fabric.consolidate(people.tenant_id).proposals) == 1
    # Who proposed it and asks again is told of the proposal that came of it.
    assert proposed(fabric, people.run(), **fact, classification="PII", idempotency_key="k1").status == "pending"


@pytest.mark.rule("CAP-11", "REV-5")
def test_of_two_who_run_a_capture_again_at_once_one_does_and_the_other_gets_an_error(
    fabric: Fabric, people: People, server: TestServer, database: str
) -> None:
    capture_id = captured(fabric, people)
    with hold_clock(server, database, people.tenant_id) as gate:
        first = Calls([lambda: fabric.captures.rerun(people.reviewer, capture_id, "requested")])
        gate.until_waiting(1)
        second = Calls([lambda: fabric.captures.rerun(people.second_reviewer, capture_id, "requested")])
        gate.until_waiting(2)
    ((one,), (other,)) = first.wait(), second.wait()
    assert {type(one), type(other)} == {Rerun, Conflict}
    assert len(fabric.consolidate(people.tenant_id).refusals) == 1
    assert fabric.captures.rerun(people.reviewer, capture_id, "requested").number == 3


@pytest.mark.rule("CAP-11")
def test_an_order_that_read_an_old_number_cannot_block_consolidation(
    fabric: Fabric, people: People, as_role: Connect, server: TestServer, database: str
) -> None:
    capture_id = captured(fabric, people)
    fabric.captures.rerun(people.reviewer, capture_id, "requested")
    fabric.consolidate(people.tenant_id)
    writer = as_role("writer")
    with server.connect(database) as owner:
        order = one(owner, "reruns", tenant_id=people.tenant_id)
        done = one(owner, "consolidations", tenant_id=people.tenant_id, number=2)
    for table, row in (("reruns", order), ("consolidations", done)):
        refused = pytest.raises((psycopg.errors.UniqueViolation, psycopg.errors.ForeignKeyViolation))
        with refused, writer.transaction():
            own = {"txid": mark(writer, people.tenant_id)} if "txid" in row else {}
            insert(writer, table, row | own)
    with pytest.raises(psycopg.errors.ForeignKeyViolation) as caught:
        writer.execute(
            "INSERT INTO consolidations (tenant_id, capture_id, number, at) VALUES (%s, %s, 7, now())",
            [people.tenant_id, capture_id],
        )
    assert violates(caught.value, "consolidations_ordered")


@pytest.mark.rule("CAP-11")
def test_the_database_refuses_a_fact_that_was_proposed_from_its_capture_before(
    fabric: Fabric, people: People, as_role: Connect
) -> None:
    captured(fabric, people, classification="INTERNAL")
    writer = as_role("writer")
    names = [
        str(row[0])
        for row in writer.execute(
            "SELECT column_name FROM information_schema.columns WHERE table_schema = 'muniment'"
            " AND table_name = 'candidates' AND is_generated = 'NEVER'"
        ).fetchall()
    ]
    copied = ", ".join(name for name in names if name not in ("candidate_id", "consolidation"))
    with pytest.raises(psycopg.errors.UniqueViolation) as caught:
        writer.execute(
            f"INSERT INTO candidates ({copied}, candidate_id, consolidation)"
            f" SELECT {copied}, 'mc_again', 2 FROM candidates WHERE tenant_id = %s",
            [people.tenant_id],
        )
    assert "_tenant_id_fact_" in str(caught.value)


@pytest.mark.rule("CAP-11", "ERR-2")
def test_killed_while_it_is_run_again_nothing_is_lost_and_nothing_done_twice(
    fabric: Fabric, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    capture_id = captured(fabric, people)
    consented(fabric, people)
    commit: Callable[..., Any] = Transaction.emit

    def killed(self: Transaction, kind: str, *given: Any, **data: Any) -> None:
        if kind in ("memory.rerun", "memory.proposed"):
            raise RuntimeError("killed")
        commit(self, kind, *given, **data)

    with monkeypatch.context() as patched:
        patched.setattr(Transaction, "emit", killed)
        with pytest.raises(RuntimeError, match="killed"):
            fabric.captures.rerun(people.reviewer, capture_id, "requested")
    assert [one.state for one in fabric.captures.list(people.auditor)] == ["refused"]
    assert fabric.captures.rerun(people.reviewer, capture_id, "requested").number == 2
    with monkeypatch.context() as patched:
        patched.setattr(Transaction, "emit", killed)
        with pytest.raises(RuntimeError, match="killed"):
            fabric.consolidate(people.tenant_id)
    assert [one.state for one in fabric.captures.list(people.auditor)] == ["waiting"]
    assert len(fabric.consolidate(people.tenant_id).proposals) == 1
    assert fabric.consolidate(people.tenant_id).captures == 0


@pytest.mark.rule("CAP-11", "ERR-1")
def test_what_waits_was_erased_or_is_archived_cannot_be_run_again_and_says_so(
    server: TestServer, fresh_database: str, clock: FakeClock, people: People, others: People, tmp_path: Path
) -> None:
    pack = load_pack(PACK % ("1.0.0", "{retention: {replay_horizon: 1d, captures: {statement: 2d}}}"))
    with Fabric.open(
        server.url(fresh_database), clock=clock, master_keys=MASTER_KEYS, pack=pack, archives=tmp_path
    ) as fabric:
        waiting = fabric.capture(people.run(), **SECRET).capture_id
        with pytest.raises(Conflict, match="waits to be consolidated already"):
            fabric.captures.rerun(people.reviewer, waiting, "requested")
        fabric.consolidate(people.tenant_id)
        fabric.captures.rerun(people.reviewer, waiting, "requested")
        with pytest.raises(Conflict, match="waits to be consolidated already"):
            fabric.captures.rerun(people.second_reviewer, waiting, "requested")
        fabric.consolidate(people.tenant_id)
        other = captured(fabric, people, subject="customer:cust_2")
        fabric.erase(people.officer, subject="customer:cust_2")
        with pytest.raises(Conflict, match="erased"):
            fabric.captures.rerun(people.reviewer, other, "requested")
        assert [one.state for one in fabric.captures.list(people.auditor, state="erased")] == ["erased"]
        assert fabric.captures.get(people.auditor, other).capture is not None
        for stranger in (waiting, "cap_none"):
            with pytest.raises(NotFound, match="no such capture"):
                fabric.captures.rerun(others.reviewer, stranger, "requested")
        clock.advance(days=3)
        run_job(fabric, "compact", people.tenant_id)
        with pytest.raises(Conflict, match="archive"):
            fabric.captures.rerun(people.reviewer, waiting, "requested")
        # The auditor reads it from the archive, a reviewer is told where it is.
        assert fabric.captures.list(people.auditor) == []
        (entry, _) = sorted(fabric.captures.list(people.auditor, state="archived"), key=lambda one: one.subject or "")
        assert (entry.capture_id, entry.subject, entry.kind, entry.refused) == (waiting, SUBJECT, "statement", 2)
        read = fabric.captures.get(people.auditor, waiting)
        assert read.capture is not None and read.capture.content is not None
        assert (read.state, read.capture.content.text) == ("archived", SECRET["text"])
        seen = fabric.captures.get(people.reviewer, waiting)
        assert (seen.state, seen.capture, seen.archive) == ("archived", None, read.archive)
        # Where the reviewer was shown no content, nothing was read.
        assert [one["archived"] for one in event_data(fabric, people, "capture_read")] == [True]
        with pytest.raises(InvalidInput, match="not known of archived"):
            fabric.captures.list(people.auditor, state="archived", run_id="run_1")


@pytest.mark.rule("CAP-11", "JOB-4")
def test_a_capture_that_waits_to_be_run_again_is_not_archived(
    server: TestServer, fresh_database: str, clock: FakeClock, people: People, tmp_path: Path
) -> None:
    pack = load_pack(PACK % ("1.0.0", "{retention: {replay_horizon: 1d, captures: {statement: 2d}}}"))
    with Fabric.open(
        server.url(fresh_database), clock=clock, master_keys=MASTER_KEYS, pack=pack, archives=tmp_path
    ) as fabric:
        capture_id = captured(fabric, people)
        clock.advance(days=3)
        fabric.captures.rerun(people.reviewer, capture_id, "requested")
        run_job(fabric, "compact", people.tenant_id)
        assert [one.state for one in fabric.captures.list(people.auditor)] == ["waiting"]


@pytest.mark.rule("CAP-11", "ISO-4", "ISO-5")
def test_an_auditor_reads_every_capture_and_a_reviewer_what_they_review_each_reading_recorded(
    fabric: Fabric, people: People, others: People
) -> None:
    reviewed = captured(fabric, people)
    nothing = captured(fabric, people, kind="message", text="Hello there", classification="PUBLIC")
    assert [one.capture_id for one in fabric.captures.list(people.auditor)] == [nothing, reviewed]
    assert [one.capture_id for one in fabric.captures.list(people.reviewer)] == [reviewed]
    found = fabric.captures.get(people.auditor, nothing)
    assert found.capture is not None and found.capture.content is not None
    assert found.capture.content.text == "Hello there"
    assert fabric.captures.get(people.reviewer, reviewed).state == "refused"
    with pytest.raises(NotFound, match="no such capture"):
        fabric.captures.get(people.reviewer, nothing)
    for stranger in (people.tenant_id, others.tenant_id):
        with pytest.raises(NotFound, match="no such capture"):
            fabric.captures.get(others.auditor, reviewed if stranger == people.tenant_id else "cap_none")
    assert fabric.captures.list(others.auditor) == []
    assert fabric.refusals.list(others.auditor) == []
    assert [one["capture_id"] for one in event_data(fabric, people, "capture_read")] == [nothing, reviewed]
    readings = [one.actor for one in fabric.events(people.auditor, types=["memory.capture_read"])]
    assert readings == ["anton", "boris"]
    for who in (people.run(), people.author, people.officer, people.admin, people.service):
        for verb in (fabric.captures.list, fabric.refusals.list):
            with pytest.raises(RoleMissing):
                verb(who)
        with pytest.raises(RoleMissing):
            fabric.captures.get(who, reviewed)
    for who in (people.run(), people.auditor, people.admin, people.service):
        with pytest.raises(RoleMissing):
            fabric.captures.rerun(who, reviewed, "requested")


@pytest.mark.rule("CAP-11")
def test_captures_are_listed_by_what_they_are_and_page_by_page(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    start = clock.now
    made: list[str] = []
    for n in range(5):
        fields: dict[str, Any] = {"session_id": f"s_{n % 2}", "user_id": f"u_{n}", "run_id": f"r_{n}"}
        made.append(fabric.capture(people.service, **SECRET | fields | {"subject": f"customer:c_{n}"}).capture_id)
        clock.advance(minutes=1)
    made.append(fabric.capture(people.run("cust_9"), kind="message", text="hi", classification="PUBLIC").capture_id)

    def listed(**narrowed: Any) -> list[int]:
        return [made.index(one.capture_id) for one in fabric.captures.list(people.auditor, **narrowed)]

    assert listed() == [5, 4, 3, 2, 1, 0]
    assert (listed(kind="message"), listed(source="agent"), listed(source="system", limit=2)) == ([5], [5], [4, 3])
    assert (listed(subject="customer:c_3"), listed(user_id="u_2"), listed(run_id="r_1")) == ([3], [2], [1])
    assert listed(session_id="s_1") == [3, 1]
    # What was captured for a user and names no subject is about that user.
    assert (listed(subject="user:cust_9"), listed(subject="user:u_2")) == ([5], [])
    assert listed(since=start + timedelta(minutes=1), until=start + timedelta(minutes=3)) == [2, 1]
    assert (listed(state="waiting", limit=1), listed(state="processed")) == ([5], [])
    fabric.consolidate(people.tenant_id)
    assert (listed(state="waiting"), listed(state="refused"), listed(state="processed")) == ([], [4, 3, 2, 1, 0], [5])
    assert listed(limit=2, after=made[4]) == [3, 2]
    with pytest.raises(NotFound, match="no such row"):
        fabric.captures.list(people.auditor, after="cap_none")


@pytest.mark.rule("CAP-11", "CAN-5")
def test_refusals_are_listed_by_gate_reason_and_time_and_page_by_page(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    for _ in range(3):
        captured(fabric, people)
        clock.advance(minutes=1)
    refused(fabric, people.run(), entity=SUBJECT, predicate="keeps", value="bees", confidence=0.1)
    found = fabric.refusals.list(people.reviewer)
    assert [one.gate for one in found] == ["confidence", "consent", "consent", "consent"]
    assert [one.gate for one in fabric.refusals.list(people.auditor, gate="confidence")] == ["confidence"]
    assert len(fabric.refusals.list(people.reviewer, reason="consent_missing")) == 3
    assert len(fabric.refusals.list(people.reviewer, since=clock.now - timedelta(minutes=1))) == 2
    first = fabric.refusals.list(people.reviewer, limit=2)
    assert fabric.refusals.list(people.reviewer, limit=9, after=first[-1].refusal_id) == found[2:]
    assert "bees" not in str(found)
    with pytest.raises(NotFound, match="no such row"):
        fabric.refusals.list(people.reviewer, after=f"{found[0].capture_id}.9.9")
    for wrong in ("nonsense", "cap.1.99999999999", "a.b.c"):
        with pytest.raises((InvalidInput, NotFound)):
            fabric.refusals.list(people.reviewer, after=wrong)
    for narrowed in ({"gate": "none"}, {"latest": "yes"}, {"since": 5}):
        with pytest.raises(InvalidInput):
            fabric.refusals.list(people.reviewer, **narrowed)  # type: ignore[arg-type]
