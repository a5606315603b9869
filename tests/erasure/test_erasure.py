"""Erasure: facts about a person disappear at once from every interface; a receipt and tombstones stay."""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from muniment import Fabric
from muniment.errors import InvalidInput, RoleMissing
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.conftest import Connect
from tests.stories import CONSENT, proposed, refused, remembered

SUBJECT, USER = "customer:cus_77", "cus_77"
SECRET = "the violet giraffe sings at noon"
ABOUT: dict[str, Any] = {"subject": SUBJECT, "user_id": USER}
STATEMENT: dict[str, Any] = {"write_class": "statement", "entity": None, "predicate": None, "value": None}


def said(fabric: Fabric, people: People, text: str = SECRET, **fields: Any) -> str:
    """A promoted statement about the subject."""
    return remembered(fabric, people, **STATEMENT | {"text": text} | ABOUT | fields)


def events(fabric: Fabric, people: People, kind: str) -> list[dict[str, Any]]:
    return [one.data for one in fabric.events(people.auditor, limit=200) if one.type == kind]


@pytest.mark.rule("ERA-2", "PRO-6", "REV-1", "REC-10")
def test_what_was_erased_is_gone_from_recall_queue_trail_and_explain(fabric: Fabric, people: People) -> None:
    memory_id = said(fabric, people)
    waiting = proposed(fabric, people.run(USER), **STATEMENT | {"text": f"{SECRET} in winter, too"} | ABOUT)
    recall = fabric.recall(people.run(USER), "violet giraffe")
    assert [record.id for record in recall.records] == [memory_id]

    receipt = fabric.erase(people.officer, subject=SUBJECT, user_id=USER)

    assert (receipt.memories, receipt.by, receipt.purged_at) == (1, people.officer.id, None)
    assert (receipt.rows["captures"], receipt.rows["candidates"], receipt.rows["recall_queries"]) == (2, 2, 1)
    assert fabric.recall(people.run(USER), "giraffe").records == ()
    assert fabric.queue.list(people.reviewer) == []
    assert fabric.queue.get(people.reviewer, waiting.proposal_id).status == "withdrawn"
    trail = fabric.trail(people.auditor, memory_id)
    assert trail.memory.retraction_reason == "erased"
    assert trail.capture is not None
    assert trail.capture.content is None
    output = fabric.explain(people.auditor, memory_id=memory_id, recall_id=recall.recall_id)
    assert "erased" in output.model_dump_json()
    replayed = fabric.replay(people.auditor, recall.recall_id)
    for shown in (trail, output, replayed, fabric.get(people.auditor, memory_id)):
        assert "giraffe" not in shown.model_dump_json()
    assert fabric.erasures(people.auditor) == [receipt]
    assert events(fabric, people, "memory.erased")[0]["memories"] == 1


@pytest.mark.rule("ERA-2")
def test_what_concerns_a_person_goes_though_it_was_sealed_under_another_key(fabric: Fabric, people: People) -> None:
    """Of an order, said to the person; about the person, said of somebody else."""
    of_order = said(fabric, people, subject="order:o_1", user_id=USER)
    on_key = remembered(
        fabric, people, "by night", entity=SUBJECT, predicate="prefers_hour", subject="shop:s_1", user_id="other"
    )
    stays = said(fabric, people, "the shop opens at nine", subject="order:o_1", user_id="other")
    fabric.erase(people.officer, subject=SUBJECT, user_id=USER)
    for memory_id in (of_order, on_key):
        trail = fabric.trail(people.auditor, memory_id)
        assert trail.memory.tombstoned_at is not None
        assert [candidate.text for candidate in trail.candidates] == [""]
    assert fabric.trail(people.auditor, of_order).capture.content is None  # type: ignore[union-attr]  # it is there, blank
    assert fabric.get(people.auditor, stays).text == "the shop opens at nine"


@pytest.mark.rule("ERA-1", "ERA-2")
def test_the_fingerprint_of_a_candidate_goes_with_its_content(
    fabric: Fabric, people: People, server: TestServer, database: str, rows: Any
) -> None:
    said(fabric, people)
    said(fabric, people, "the shop opens at nine", subject="order:o_1", user_id="other")
    with server.connect(database) as owner:
        given = [b"f" * 16, people.tenant_id]
        owner.execute("UPDATE candidates SET fingerprint = %s WHERE tenant_id = %s", given)
    fabric.erase(people.officer, subject=SUBJECT, user_id=USER)
    assert [(row["content"] == b"", row["fingerprint"]) for row in rows("candidates")] == [
        (True, None),
        (False, b"f" * 16),
    ]
    assert fabric.verify(people.auditor).ok


@pytest.mark.rule("ERA-2", "ISO-4")
def test_others_keep_what_is_theirs(fabric: Fabric, people: People, others: People) -> None:
    mine = said(fabric, people, subject="customer:cus_770", user_id="cus_770")
    elsewhere = said(fabric, others)
    receipt = fabric.erase(people.officer, subject=SUBJECT, user_id=USER)
    assert (receipt.memories, set(receipt.rows.values())) == (0, {0})
    assert fabric.get(people.auditor, mine).text == SECRET
    assert fabric.get(others.auditor, elsewhere).text == SECRET


@pytest.mark.rule("ERA-2", "CON-1", "CON-2")
def test_who_comes_back_is_remembered_anew_and_consents_anew(fabric: Fabric, people: People) -> None:
    fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    fact = {"classification": "PII", "entity": SUBJECT, "predicate": "prefers_hour", "value": "noon", **ABOUT}
    before = remembered(fabric, people, **fact)
    fabric.erase(people.officer, subject=SUBJECT)
    (granted, revoked) = fabric.consent.list(people.officer, subject=SUBJECT)
    assert (granted.state, revoked.action, granted.evidence_refs) == ("revoked", "revoke", ())
    assert refused(fabric, people.run(None), **fact).reason == "consent_missing"
    again = said(fabric, people, "the customer is back")
    assert fabric.get(people.auditor, again).text == "the customer is back"
    assert fabric.get(people.auditor, before).text == ""


@pytest.mark.rule("ERA-2", "REV-6")
def test_what_was_rejected_is_forgotten_with_its_subject(fabric: Fabric, people: People) -> None:
    item = proposed(fabric, people.run(None), **STATEMENT | {"text": SECRET} | ABOUT)
    fabric.queue.reject(people.reviewer, item.proposal_id, reason="nonsense", note=f"no {SECRET}")
    receipt = fabric.erase(people.officer, subject=SUBJECT)
    assert receipt.rows["notes"] == 1
    assert receipt.rows["rejection_marks"] > 0
    (verdict,) = fabric.queue.get(people.reviewer, item.proposal_id).verdicts
    assert (verdict.action, verdict.reason, verdict.note) == ("reject", None, None)
    proposed(fabric, people.run(None), **STATEMENT | {"text": SECRET} | ABOUT)


@pytest.mark.rule("ERA-2", "AUD-3", "ISO-5")
def test_only_an_officer_who_is_a_person_may_erase(fabric: Fabric, people: People) -> None:
    memory_id = said(fabric, people)
    service = people.service.model_copy(update={"roles": frozenset({"privacy_officer"})})
    for asker in (people.reviewer, people.auditor, people.admin, people.author, people.run(USER), service):
        with pytest.raises(RoleMissing):
            fabric.erase(asker, subject=SUBJECT)
    with pytest.raises(InvalidInput):
        fabric.erase(people.officer)
    assert fabric.get(people.auditor, memory_id).text == SECRET


@pytest.mark.rule("ERA-2", "PRO-7")
def test_an_approval_and_an_erasure_at_once_leave_nothing_promoted(
    fabric: Fabric, people: People, server: TestServer, database: str, clock: FakeClock
) -> None:
    """Whoever is first: the memory is a tombstone, or was never made."""
    outcomes: set[str] = set()
    with Fabric.open(server.url(database), clock=clock, master_keys=MASTER_KEYS) as other:
        for turn in range(12):
            about = {"subject": f"customer:c_{turn}", "user_id": None}
            item = proposed(fabric, people.run(None), **STATEMENT | {"text": f"{SECRET} {turn}"} | about)
            with ThreadPoolExecutor(2) as pool:
                erased = pool.submit(other.erase, people.officer, subject=f"customer:c_{turn}")
                time.sleep(turn / 1000)
                approved = pool.submit(fabric.queue.approve, people.reviewer, item.proposal_id)
                erased.result()
            outcomes.add(type(error).__name__ if (error := approved.exception()) else "promoted")
            after = fabric.queue.get(people.reviewer, item.proposal_id)
            if after.memory_id is not None:
                assert fabric.get(people.auditor, after.memory_id).tombstoned_at is not None
            assert fabric.recall(people.run(None)).records == ()
    assert outcomes <= {"promoted", "NotPromotable", "AlreadyDecided"}
    assert len(outcomes) > 1, "both must have been first at times, or nothing ran at once"


@pytest.mark.rule("ERA-2", "CAP-1")
def test_no_login_can_blank_anything_but_by_an_erasure_of_its_own_transaction(
    fabric: Fabric, people: People, as_role: Connect, tenant: str
) -> None:
    said(fabric, people)
    receipt = fabric.erase(people.officer, subject="customer:nobody")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        as_role("privacy", tenant).execute("SELECT erase_content(%s, %s)", [tenant, receipt.erasure_id])
    for task in ("writer", "recall", "auditor", "jobs"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            as_role(task, tenant).execute("SELECT erase_content('x', 'x')")
    for task in ("writer", "recall", "auditor", "privacy", "jobs"):
        for statement in (
            "UPDATE captures SET content = ''",
            "DELETE FROM captures",
            "UPDATE candidates SET content = ''",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                as_role(task, tenant).execute(statement)  # type: ignore[arg-type]  # a literal of this test


@pytest.mark.rule("ERA-2", "JOB-1")
def test_a_capture_that_was_erased_before_it_was_read_gives_nothing(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    fabric.capture(people.run(USER), kind="statement", text=SECRET, subject=SUBJECT, classification="INTERNAL")
    fabric.erase(people.officer, subject=SUBJECT)
    done = fabric.consolidate(people.tenant_id)
    assert (done.captures, done.proposals, done.failed) == (1, (), ())


@pytest.mark.rule("ERA-2")
def test_a_fact_about_the_person_that_was_refused_goes_too(
    fabric: Fabric, people: People, server: TestServer, database: str
) -> None:
    """Told under somebody else's name, and never a candidate: its capture is found by whom it is about."""
    refused(fabric, people.run("shop"), entity=SUBJECT, predicate="p", value=SECRET, classification="PII")
    assert fabric.erase(people.officer, subject=SUBJECT).rows["captures"] == 1


@pytest.mark.rule("ERA-1", "ERA-2", "CAN-2")
def test_a_predicate_made_of_what_was_said_is_stored_as_a_hash_of_the_persons_own(
    fabric: Fabric, people: People
) -> None:
    for subject in (SUBJECT, "customer:other"):
        for said_ in ("I love violet giraffes", "I no longer like violet giraffes"):
            fabric.capture(people.run(None), kind="message", text=said_, subject=subject, classification="INTERNAL")
    fabric.consolidate(people.tenant_id)
    found = [item.candidate for item in fabric.queue.list(people.reviewer)]
    assert len(found) == 4
    assert not any("giraffe" in (one.predicate or "") for one in found)
    keys = {(one.entity, one.predicate) for one in found}
    assert len(keys) == 2, "the same words of one person meet on one key"
    assert len({predicate for _, predicate in keys}) == 2, "and of two persons they do not"
