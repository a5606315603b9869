"""The whole way once: the worked correction, from capture to recall and back along the trail."""

import pytest

from muniment import Fabric
from muniment.errors import SelfApproval
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.stories import CONSENT, promoted, texts

SUBJECT = "customer:cust_8861"
TEXT = "Customer cust_8861 has a verbal NDA limiting card number exposure to the last four digits."


@pytest.mark.rule("AUD-1", "REC-5", "REV-2", "REV-4", "CON-2", "AUD-3")
def test_the_worked_correction_goes_from_capture_to_recall_with_its_provenance(fabric: Fabric, people: People) -> None:
    consent = fabric.consent.grant(people.officer, subject=SUBJECT, evidence_refs=["consent_screen:v3"], **CONSENT)
    receipt = fabric.capture(
        people.author,
        kind="statement",
        text=TEXT,
        subject=SUBJECT,
        user_id="cust_8861",
        intent_id="support.refund.execute",
        evidence_refs=["operator:override:fb_2026_05_09_x9"],
        classification="PII",
    )
    run = people.run("cust_8861", intent_id="support.refund.execute")
    assert fabric.consolidate(people.tenant_id).captures == 1
    assert fabric.recall(run).records == ()

    (item,) = fabric.queue.list(people.reviewer)
    assert (item.tier_target, item.priority, item.status) == ("durable", 0.95, "pending")
    assert {"operator_source", "sensitive"} <= set(item.human_reasons)

    itself = people.person("olga", "reviewer", "correction_writer")
    with pytest.raises(SelfApproval):
        fabric.queue.approve(itself, item.proposal_id)
    done = fabric.queue.approve(people.reviewer, item.proposal_id, note="seen in the call log")
    assert done.status == "promoted"

    (record,) = fabric.recall(run).records
    assert record.text == TEXT
    assert record.provenance.capture_id == receipt.capture_id
    assert record.provenance.approver == "boris"
    assert record.provenance.evidence_refs == ("operator:override:fb_2026_05_09_x9",)
    assert record.provenance.consent_id == consent.consent_id

    trail = fabric.trail(people.auditor, record.id)
    assert trail.capture is not None and trail.capture.content is not None
    assert trail.capture.content.text == TEXT
    assert [verdict.note for verdict in trail.proposals[0].verdicts] == ["seen in the call log"]
    assert trail.consent is not None and trail.consent.consent_id == consent.consent_id
    assert [event.type for event in trail.events] == [
        "memory.captured",
        "memory.proposed",
        "memory.reviewed",
        "memory.promoted",
    ]
    assert len(trail.recalls) == 1
    denied = [event for event in fabric.events(people.auditor) if event.type == "memory.security"]
    assert [(event.actor, event.data["code"]) for event in denied] == [("olga", "self_approval")]


@pytest.mark.rule("ERR-2", "CAP-10")
def test_what_one_process_promoted_another_recalls(
    fabric: Fabric, people: People, server: TestServer, database: str, clock: FakeClock
) -> None:
    promoted(fabric, people, "email")
    with Fabric.open(server.url(database), clock=clock, master_keys=MASTER_KEYS) as another:
        assert texts(another, people.run()) == ["customer:cust_1 prefers channel: email"]


@pytest.mark.rule("REC-1")
def test_a_tenant_that_never_wrote_recalls_nothing_and_is_not_made_by_asking(
    fabric: Fabric, people: People, server: TestServer, database: str
) -> None:
    assert fabric.recall(people.run()).records == ()
    assert fabric.queue.list(people.reviewer) == []
    assert fabric.consolidate(people.tenant_id).captures == 0
    with server.connect(database) as owner:
        found = owner.execute("SELECT count(*) FROM tenants WHERE tenant_id = %s", [people.tenant_id]).fetchone()
    assert found == (0,)
