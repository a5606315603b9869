"""Documents for exchange: a consent (CON-8) and a proposal (REV-10), taken as they stand and given back the same."""

import json
from typing import Any

import pytest

from muniment import Fabric, Refusal, Submission
from muniment.client import Client
from muniment.errors import Conflict, Denied, InvalidInput, NotFound, UnknownLabel
from muniment.model.speakers import SpeaksFor
from muniment.testing import FakeClock, People, TestServer
from muniment.transfer.sources import consents
from tests.server_thread import ServerThread
from tests.stories import event_data, promoted

CONSENT: dict[str, Any] = {
    "consent_id": "cns_2026_05_04_a01",
    "subject_ceid": "customer:cus_77",
    "tenant_id": "tenant_acme_prod",
    "purpose": "support_personalization",
    "scope": {
        "predicates_allowed": ["prefers_communication_channel", "preferred_language"],
        "data_classifications_allowed": ["INTERNAL"],
    },
    "basis": "user_opt_in",
    "captured_at": "2026-05-04T09:30:00Z",
    "valid_until": "2027-05-04T09:30:00Z",
    "revoked_at": None,
    "evidence_refs": ["channel:app_chat:msg_881", "consent_screen:v3"],
    "auditor_id": None,
}
PROPOSAL: dict[str, Any] = {
    "proposal_id": "mwp_2026_05_04_0931_a17",
    "candidate": {
        "entity_ceid": "customer:cus_77",
        "predicate": "prefers_communication_channel",
        "value": "email",
        "evidence_refs": ["tool:crm.lookup:tc_212", "session:sess_42f1"],
        "confidence": 0.93,
    },
    "class": "preference",
    "tier_target": "semantic",
    "consent_check": "passed",
    "contradiction_check": {"existing": None, "verdict": "no_conflict"},
    "auto_promote_eligible": True,
}


@pytest.fixture
def clock() -> FakeClock:
    made = FakeClock()
    made.advance(days=200)
    return made


def consent(people: People, **changes: Any) -> dict[str, Any]:
    return {**CONSENT, "tenant_id": people.tenant_id, **changes}


def given_back(document: Any) -> dict[str, Any]:
    return json.loads(document.model_dump_json())


@pytest.mark.rule("CON-8")
def test_a_consent_document_round_trips_key_for_key_and_counts_from_its_own_date(
    fabric: Fabric, people: People
) -> None:
    fabric.consent.grant(people.officer, **consent(people))
    assert given_back(fabric.consent.document(people.officer, CONSENT["consent_id"])) == consent(people)
    again = fabric.consent.grant(people.officer, **consent(people))
    assert again.state == "active" and len(fabric.consent.list(people.officer)) == 1
    assert again.auditor_id == "petra" and again.stated_at is not None and again.captured_at > again.stated_at


@pytest.mark.rule("CON-8")
@pytest.mark.rule("ISO-2")
def test_a_consent_for_another_tenant_or_with_other_content_is_refused(
    fabric: Fabric, people: People, others: People
) -> None:
    with pytest.raises(Denied, match="another tenant"):
        fabric.consent.grant(people.officer, **consent(others))
    fabric.consent.grant(people.officer, **consent(people))
    with pytest.raises(Conflict):
        fabric.consent.grant(people.officer, **consent(people, purpose="marketing"))
    wrong: dict[str, Any] = {
        "consent_id": "pm_1",
        "captured_at": "2999-01-01T00:00:00Z",
        "valid_until": "2020-01-01T00:00:00Z",
        "colour": "red",
        "subject_ceid": "joanna@example.com",
    }
    for field, value in wrong.items():
        with pytest.raises(InvalidInput) as caught:
            fabric.consent.grant(people.officer, **consent(people, **{"valid_until": None, field: value}))
        assert caught.value.field == field
    with pytest.raises(UnknownLabel):
        scope = {"predicates_allowed": ["*"], "data_classifications_allowed": ["GEHEIM"]}
        fabric.consent.grant(people.officer, **consent(people, consent_id="cns_2", scope=scope))
    assert len(fabric.consent.list(people.officer)) == 1


@pytest.mark.rule("CON-8")
@pytest.mark.rule("CON-3")
def test_a_predicate_may_end_in_a_star_and_a_revoked_document_allows_nothing(fabric: Fabric, people: People) -> None:
    scope = {"predicates_allowed": ["phone*"], "data_classifications_allowed": ["PII"]}
    fact = {
        "subject": "customer:cus_77",
        "entity": "customer:cus_77",
        "classification": "PII",
        "value": "+49 30 1234567",
    }
    revoked = consent(people, scope=scope, consent_id="cns_old", revoked_at="2026-05-05T00:00:00Z")
    fabric.consent.grant(people.officer, **revoked)
    assert given_back(fabric.consent.document(people.officer, "cns_old")) == revoked
    tried = {"write_class": "preference", "predicate": "phone_number", "confidence": 0.7, **fact}
    assert isinstance(fabric.propose(people.run(), **tried), Refusal)  # type: ignore[arg-type]
    fabric.consent.grant(people.officer, **consent(people, scope=scope))
    promoted(fabric, people, predicate="phone_number", **fact)
    assert [one.value for one in fabric.recall(people.run()).records] != []
    beyond = tried | {"predicate": "mobile_phone"}
    assert isinstance(fabric.propose(people.run(), **beyond), Refusal)  # type: ignore[arg-type]
    fabric.consent.revoke(people.officer, CONSENT["consent_id"])
    assert fabric.recall(people.run()).records == ()
    # An older copy of the document does not undo the revocation.
    fabric.consent.grant(people.officer, **consent(people, scope=scope))
    assert fabric.recall(people.run()).records == ()


@pytest.mark.rule("CON-8")
def test_many_consents_are_recorded_all_or_none_or_each_with_errors_by_place(
    fabric: Fabric, people: People, others: People
) -> None:
    documents: list[Any] = [
        consent(people, consent_id="cns_1"),
        consent(others, consent_id="cns_2"),
        consent(people, consent_id="cns_3", captured_at="yesterday"),
        "no object",
        consent(people, consent_id="cns_1", basis="contract"),
        consent(people, consent_id="cns_4"),
    ]
    none = fabric.consent.grant_many(people.officer, documents)
    assert [one.recorded for one in none] == [False] * 6 and fabric.consent.list(people.officer) == []
    each = fabric.consent.grant_many(people.officer, documents, each=True)
    assert [one.error for one in each] == [None, "denied", "invalid_input", "invalid_input", "conflict", None]
    again = fabric.consent.grant_many(people.officer, [documents[0], documents[5]])
    assert [(one.recorded, one.repeated) for one in again] == [(True, True)] * 2
    assert len(event_data(fabric, people, "consent_granted")) == 2 and fabric.verify(people.auditor).ok


@pytest.mark.rule("CON-8")
def test_files_of_consents_are_read_as_csv_as_json_lines_and_as_one_document(people: People) -> None:
    head = "consent_id,subject_ceid,purpose,predicates_allowed,data_classifications_allowed,basis,captured_at,evidence_refs"
    rows = "cns_1,customer:a,support,likes;drinks,PII,opt_in,2026-01-01T00:00:00Z,screen:v3 mail:1\ncns_2,customer:b\n"
    first, second = consents.items(f"{head}\n{rows}", people.tenant_id)
    assert isinstance(first.item, dict) and first.place == "line 2"
    assert first.item["scope"] == {"predicates_allowed": ["likes", "drinks"], "data_classifications_allowed": ["PII"]}
    assert first.item["evidence_refs"] == ["screen:v3", "mail:1"] and first.item["tenant_id"] == people.tenant_id
    assert isinstance(second.item, InvalidInput) and second.place == "line 3"
    lines = f"{json.dumps(CONSENT)}\nnot json\n{json.dumps(CONSENT)}"
    found = list(consents.items(lines, people.tenant_id))
    assert [one.place for one in found] == ["line 1", "line 2", "line 3"]
    assert isinstance(found[1].item, InvalidInput) and found[2].item == CONSENT  # The tenant that it names stays.
    assert [one.item for one in consents.items(json.dumps([CONSENT]), people.tenant_id)] == [CONSENT]
    with pytest.raises(InvalidInput, match="which consents do not have"):
        list(consents.items("consent_id,subject_ceid,approved\n", people.tenant_id))


@pytest.mark.rule("REV-10")
def test_a_proposal_document_round_trips_under_its_id_and_its_checks_are_computed_anew(
    fabric: Fabric, people: People
) -> None:
    done = fabric.propose(people.run("cus_77"), **PROPOSAL)
    assert isinstance(done, Submission) and done.proposal_id == PROPOSAL["proposal_id"]
    back = given_back(fabric.queue.document(people.reviewer, done.proposal_id))
    # INTERNAL needs no consent, and the built-in pack promotes nothing by itself, whatever the document says.
    assert back == PROPOSAL | {"consent_check": "not_required", "auto_promote_eligible": False}
    again = fabric.propose(people.run("cus_77"), **back)
    assert isinstance(again, Submission) and again.proposal_id == done.proposal_id
    assert len(fabric.queue.list(people.reviewer)) == 1
    with pytest.raises(Conflict):
        fabric.propose(people.run("cus_77"), **(PROPOSAL | {"candidate": {**PROPOSAL["candidate"], "value": "fax"}}))
    with pytest.raises(Conflict):
        fabric.propose(people.run("cus_77", agent_id="other_bot"), **PROPOSAL)


@pytest.mark.rule("REV-10")
def test_a_forged_check_promotes_nothing_and_hides_no_contradiction(fabric: Fabric, people: People) -> None:
    promoted(
        fabric, people, "phone", entity="customer:cus_77", predicate="prefers_communication_channel", user_id="cus_77"
    )
    forged = PROPOSAL | {"auto_promote_eligible": True, "tier_target": "durable", "consent_check": "passed"}
    done = fabric.propose(people.run("cus_77"), **forged)
    assert isinstance(done, Submission)
    item = fabric.queue.get(people.reviewer, done.proposal_id)
    assert item.status == "pending" and item.tier_target == "semantic" and not item.auto_promote_eligible
    assert item.contradiction_check.verdict == "contradicts" and "contradiction" in item.human_reasons
    for field, value in {"status": "promoted", "approver": "boris", "tenant_id": "t"}.items():
        with pytest.raises(InvalidInput):
            fabric.propose(people.run("cus_77"), **(PROPOSAL | {field: value}))
    with pytest.raises(NotFound):
        fabric.queue.document(people.reviewer, "mwp_none")


@pytest.mark.rule("CON-8")
@pytest.mark.rule("REV-10")
def test_both_documents_are_the_same_through_http_and_the_client(
    server: TestServer, database: str, people: People, clock: FakeClock
) -> None:
    from muniment.testing.database import MASTER_KEYS

    place = server.url(database)
    with (
        ServerThread.on(place, clock=clock) as running,
        Fabric.open(place, clock=clock, master_keys=MASTER_KEYS) as local,
    ):

        def client(name: str, kind: Any, role: str) -> Client:
            key = local.keys.create(people.admin, principal_id=name, kind=kind, roles=[role])
            return Client.open(running.url, key.token or "")

        with client("petra", "operator", "privacy_officer") as officer:
            officer.consent.grant(people.officer, **consent(people))
            back = officer.consent.document(people.officer, CONSENT["consent_id"])
            assert given_back(back) == consent(people)
            (one,) = officer.consent.grant_many(people.officer, [consent(people)])
            assert one.recorded and one.repeated
        with client("bot", "agent", "agent") as agent:
            run = people.run("cus_77", speaks_for=SpeaksFor(), classification_allowed={"INTERNAL"})
            done = agent.propose(run, **PROPOSAL)
            assert isinstance(done, Submission) and done.proposal_id == PROPOSAL["proposal_id"]
        with client("boris", "operator", "reviewer") as reviewer:
            document = reviewer.queue.document(people.reviewer, PROPOSAL["proposal_id"])
            assert given_back(document)["candidate"] == PROPOSAL["candidate"]
