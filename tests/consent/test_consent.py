"""The consent ledger: grants, renewals and revocations are records; a state is derived, never written."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from typing import Any

import pytest

from muniment import Fabric
from muniment.errors import ConsentChanged, InvalidInput, MunimentError, NotFound, RoleMissing, UnknownLabel
from muniment.testing import FakeClock, People, TestServer
from tests.stories import CONSENT, promoted, texts

SUBJECT = "customer:cust_1"


def events_of(fabric: Fabric, people: People, type_: str) -> list[tuple[str, dict[str, Any]]]:
    return [(event.actor, event.data) for event in fabric.events(people.auditor) if event.type == type_]


@pytest.mark.rule("CON-1", "CON-7")
def test_a_grant_is_recorded_as_it_was_given(fabric: Fabric, people: People, clock: FakeClock) -> None:
    given: dict[str, Any] = {
        "subject": SUBJECT,
        "purpose": "support",
        "predicates_allowed": ["phone_number", "likes"],
        "data_classifications_allowed": ["PII", "RESTRICTED"],
        "basis": "user_opt_in",
        "valid_until": clock.now + timedelta(days=30),
        "evidence_refs": ["consent_screen:v3"],
    }
    consent = fabric.consent.grant(people.officer, **given)
    shown = consent.model_dump()
    assert {name: list(shown[name]) if isinstance(shown[name], tuple) else shown[name] for name in given} == given
    assert (consent.action, consent.state, consent.auditor_id) == ("grant", "active", "petra")
    assert (consent.captured_at, consent.valid_from) == (clock.now, clock.now)
    assert (consent.root_id, consent.supersedes, consent.revoked_at) == (consent.consent_id, None, None)
    assert fabric.consent.list(people.officer, subject=SUBJECT) == [consent]
    assert events_of(fabric, people, "memory.consent_granted") == [
        ("petra", {"consent_id": consent.consent_id, "purpose": "support", "supersedes": None})
    ]


@pytest.mark.rule("CON-1", "CON-7")
def test_a_revocation_is_a_record_of_its_own_and_revoked_at_is_derived_from_it(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    first = fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    clock.advance(days=1)
    other = people.person("paul", "privacy_officer")
    revoked = fabric.consent.revoke(other, first.consent_id, evidence_refs=["letter:7"])
    assert (revoked.consent_id, revoked.state, revoked.revoked_at) == (first.consent_id, "revoked", clock.now)
    same = {"state", "superseded_by", "superseded_from", "revoked_at"}
    assert revoked.model_dump(exclude=same) == first.model_dump(exclude=same), "the grant itself never changed"
    grant, revocation = fabric.consent.list(people.auditor, subject=SUBJECT)
    assert grant == revoked
    assert (revocation.action, revocation.supersedes, revocation.auditor_id, revocation.evidence_refs) == (
        "revoke",
        first.consent_id,
        "paul",
        ("letter:7",),
    )
    assert (grant.superseded_by, revocation.captured_at) == (revocation.consent_id, clock.now)
    result = events_of(fabric, people, "memory.consent_revoked")
    assert result == [("paul", {"consent_id": first.consent_id, "purpose": "support"})]


@pytest.mark.rule("CON-1", "CON-2")
def test_a_renewal_supersedes_and_keeps_the_root_only_when_it_is_unbroken(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    ends = clock.now + timedelta(days=10)
    first = fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT, valid_until=ends)
    clock.now = ends
    second = fabric.consent.grant(
        people.officer,
        subject=SUBJECT,
        **CONSENT,
        supersedes=first.consent_id,
        valid_until=ends + timedelta(days=1),
    )
    assert (second.supersedes, second.root_id) == (first.consent_id, first.root_id)
    clock.advance(days=1, microseconds=1)
    third = fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT, supersedes=second.consent_id)
    assert third.root_id == third.consent_id
    states = [one.state for one in fabric.consent.list(people.officer, subject=SUBJECT)]
    assert states == ["superseded", "superseded", "active"]


@pytest.mark.rule("CON-7")
def test_a_state_follows_the_clock(fabric: Fabric, people: People, clock: FakeClock) -> None:
    starts, ends = clock.now + timedelta(days=1), clock.now + timedelta(days=2)
    fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT, valid_from=starts, valid_until=ends)

    def state() -> str:
        (one,) = fabric.consent.list(people.auditor)
        return one.state

    for moment, expected in (
        (clock.now, "captured"),
        (starts - timedelta(microseconds=1), "captured"),
        (starts, "active"),
        (ends - timedelta(microseconds=1), "active"),
        (ends, "expired"),
    ):
        clock.now = moment
        assert state() == expected


@pytest.mark.rule("CON-3")
def test_a_revocation_hides_at_the_very_next_recall_and_what_comes_after_needs_a_new_promotion(
    fabric: Fabric, people: People
) -> None:
    first = fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    memory_id = promoted(fabric, people, subject=SUBJECT, classification="PII")
    assert len(texts(fabric, people.run())) == 1
    fabric.consent.revoke(people.officer, first.consent_id)
    assert texts(fabric, people.run()) == []
    with pytest.raises(NotFound):
        fabric.get(people.run(), memory_id)
    fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    assert texts(fabric, people.run()) == [], "a new consent does not bring back what an ended one allowed"


@pytest.mark.rule("CON-1")
def test_what_was_superseded_or_revoked_cannot_be_again(fabric: Fabric, people: People) -> None:
    first = fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    second = fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT, supersedes=first.consent_id)
    with pytest.raises(ConsentChanged):
        fabric.consent.revoke(people.officer, first.consent_id)
    with pytest.raises(ConsentChanged) as caught:
        fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT, supersedes=first.consent_id)
    assert (caught.value.code, caught.value.field) == ("consent_changed", "supersedes")
    fabric.consent.revoke(people.officer, second.consent_id)
    revocation = fabric.consent.list(people.officer)[-1]
    for ended in (second.consent_id, revocation.consent_id):
        with pytest.raises(ConsentChanged) as caught:
            fabric.consent.revoke(people.officer, ended)
        assert caught.value.field == "consent_id"
        with pytest.raises(ConsentChanged):
            fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT, supersedes=ended)
    assert len(fabric.consent.list(people.officer)) == 3


@pytest.mark.rule("CON-1")
def test_of_two_revocations_at_once_one_is_recorded_and_the_other_gets_an_error(fabric: Fabric, people: People) -> None:
    ids = [fabric.consent.grant(people.officer, subject=f"customer:c{n}", **CONSENT).consent_id for n in range(8)]
    start = Barrier(2)

    def revoke(name: str) -> int:
        result = 0
        for consent_id in ids:
            start.wait(timeout=60)
            try:
                fabric.consent.revoke(people.person(name, "privacy_officer"), consent_id)
            except ConsentChanged:
                result += 1
        return result

    with ThreadPoolExecutor(2) as pool:
        assert sum(pool.map(revoke, ("petra", "paul"))) == len(ids)
    records = fabric.consent.list(people.officer)
    assert len([one for one in records if one.action == "revoke"]) == len(ids)
    assert len(events_of(fabric, people, "memory.consent_revoked")) == len(ids)


@pytest.mark.rule("CON-1", "CON-5", "ISO-4")
def test_a_consent_supersedes_only_one_of_its_own_subject_in_its_own_tenant(
    fabric: Fabric, people: People, others: People
) -> None:
    mine = fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    theirs = fabric.consent.grant(others.officer, subject=SUBJECT, **CONSENT)
    with pytest.raises(InvalidInput) as caught:
        fabric.consent.grant(people.officer, subject="customer:cust_2", **CONSENT, supersedes=mine.consent_id)
    assert caught.value.field == "supersedes"
    for unknown in (theirs.consent_id, "cns_0"):
        with pytest.raises(NotFound) as missing:
            fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT, supersedes=unknown)
        assert missing.value.field == "supersedes"
        with pytest.raises(NotFound):
            fabric.consent.revoke(people.officer, unknown)
    assert fabric.consent.list(people.officer) == [mine]
    assert fabric.consent.list(others.officer) == [theirs]


@pytest.mark.rule("CON-1", "AUD-3")
def test_only_a_privacy_officer_grants_and_revokes_and_the_attempt_is_on_record(fabric: Fabric, people: People) -> None:
    mine = fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    askers = (people.run(), people.service, people.author, people.reviewer, people.auditor, people.admin)
    for asker in askers:
        with pytest.raises(RoleMissing):
            fabric.consent.grant(asker, subject=SUBJECT, **CONSENT)
        with pytest.raises(RoleMissing):
            fabric.consent.revoke(asker, mine.consent_id)
    assert len(events_of(fabric, people, "memory.security")) == 2 * len(askers)
    for asker in (people.run(), people.reviewer, people.admin):
        with pytest.raises(RoleMissing):
            fabric.consent.list(asker)
    assert fabric.consent.list(people.auditor) == [mine]


@pytest.mark.rule("CON-1", "ERA-1")
def test_its_evidence_is_sealed(fabric: Fabric, people: People, server: TestServer, database: str) -> None:
    first = fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT, evidence_refs=["mail:aardvark"])
    fabric.consent.revoke(people.officer, first.consent_id, evidence_refs=["letter:aardvark"])
    assert [one.evidence_refs for one in fabric.consent.list(people.auditor)] == [
        ("mail:aardvark",),
        ("letter:aardvark",),
    ]
    with server.connect(database) as owner:
        rows = owner.execute(
            "SELECT c::text, c.evidence FROM consents c WHERE tenant_id = %s", [people.tenant_id]
        ).fetchall()
    assert len(rows) == 2
    assert "aardvark" not in str(rows)


@pytest.mark.rule("CON-1", "ERR-1")
def test_a_label_the_pack_does_not_have_and_a_term_that_is_over_are_refused(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    with pytest.raises(UnknownLabel) as unknown:
        fabric.consent.grant(
            people.officer, subject=SUBJECT, **CONSENT | {"data_classifications_allowed": ["PII", "SECRET"]}
        )
    assert unknown.value.field == "data_classifications_allowed"
    terms: list[dict[str, Any]] = [
        {"valid_until": clock.now},
        {"valid_from": clock.now + timedelta(days=2), "valid_until": clock.now + timedelta(days=1)},
        {"valid_from": clock.now - timedelta(days=2), "valid_until": clock.now - timedelta(days=1)},
    ]
    for term in terms:
        with pytest.raises(InvalidInput) as caught:
            fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT, **term)
        assert caught.value.field == "valid_until"
    assert fabric.consent.list(people.officer) == []


@pytest.mark.rule("CON-1", "ERR-1", "AUD-1")
def test_a_clock_that_went_backwards_gives_a_clear_error_or_a_sound_record(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    clock.advance(hours=-2)
    ends = clock.now + timedelta(hours=1)
    try:
        late = fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT, valid_until=ends)
    except MunimentError as error:
        assert error.field == "valid_until"
    else:
        assert late.valid_from < ends
