"""Exports in the clear: one subject's data, or one answer; each is an event, and nobody else's text is in it."""

import pytest

from muniment import Fabric, Principal
from muniment.errors import InvalidInput, NotFound, RoleMissing
from muniment.testing import People
from tests.stories import CONSENT, event_data, promoted

SUBJECT = "customer:cust_1"


def told(fabric: Fabric, people: People) -> None:
    fabric.consent.grant(people.officer, subject=SUBJECT, evidence_refs=["letter_1"], **CONSENT)
    promoted(fabric, people, "+49 30 1234567", predicate="phone_number", subject=SUBJECT, classification="PII")
    promoted(
        fabric,
        people,
        "blue",
        predicate="colour",
        subject="customer:cust_2",
        entity="customer:cust_2",
        user_id="cust_2",
    )
    said = {"kind": "message", "classification": "INTERNAL", "origin": "channel:chat"}
    fabric.capture(people.run("cust_1"), text="My sister Ana likes jazz.", **said)
    fabric.capture(people.run("cust_2"), text="I never eat fish.", **said)
    fabric.consolidate(people.tenant_id)


@pytest.mark.rule("IMP-4")
@pytest.mark.rule("SUB-1")
def test_an_access_request_holds_all_about_the_subject_as_said_and_nothing_of_others(
    fabric: Fabric, people: People
) -> None:
    told(fabric, people)
    whole = fabric.export(people.officer, subject=SUBJECT, user_id="cust_1").subject
    assert whole is not None and (whole.subject, whole.user_id) == (SUBJECT, "cust_1")
    assert [one.value for one in whole.memories] != [] and len(whole.consents) == 1
    assert "My sister Ana likes jazz." in [one.text for one in whole.captures]
    written = whole.model_dump_json()
    assert "fish" not in written and "blue" not in written and "cust_2" not in written
    (event,) = event_data(fabric, people, "exported")
    assert event["kind"] == "subject" and event["subject"] == SUBJECT and event["memories"] == len(whole.memories)


@pytest.mark.rule("IMP-3")
def test_an_answer_is_what_the_run_would_be_told_and_is_recorded(fabric: Fabric, people: People) -> None:
    told(fabric, people)
    run = people.run("cust_2")
    answer = fabric.export(people.auditor, run=run, query="which colour").answer
    assert answer is not None and [one.value for one in answer.records] == ["blue"]
    assert answer.records[0].provenance.approver == "boris"
    (event,) = event_data(fabric, people, "exported")
    assert event == {"kind": "answer", "recall_id": answer.recall_id, "records": 1}


@pytest.mark.rule("ISO-5")
def test_each_export_is_for_its_own_role_and_of_its_own_tenant(fabric: Fabric, people: People, others: People) -> None:
    told(fabric, people)
    for person in (people.auditor, people.reviewer, people.admin, people.author):
        with pytest.raises(RoleMissing):
            fabric.export(person, subject=SUBJECT)
    for person in (people.officer, people.reviewer, people.admin):
        with pytest.raises(RoleMissing):
            fabric.export(person, run=people.run())
    agent = Principal(tenant_id=people.tenant_id, id="bot", kind="agent", roles={"privacy_officer", "auditor"})
    with pytest.raises(RoleMissing):
        fabric.export(agent, subject=SUBJECT)
    with pytest.raises(NotFound):
        fabric.export(others.auditor, run=people.run())
    elsewhere = fabric.export(others.officer, subject=SUBJECT).subject
    assert elsewhere is not None and elsewhere.memories == () and elsewhere.captures == ()


@pytest.mark.rule("ERR-1")
def test_an_export_is_of_a_subject_or_of_an_answer(fabric: Fabric, people: People) -> None:
    with pytest.raises(InvalidInput, match="give a subject"):
        fabric.export(people.officer)
    with pytest.raises(InvalidInput, match="give a subject"):
        fabric.export(people.auditor, subject=SUBJECT, run=people.run())
    with pytest.raises(InvalidInput, match="goes with a run"):
        fabric.export(people.officer, subject=SUBJECT, query="x")
