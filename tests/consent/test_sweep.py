"""The sweep after a revocation or an expiry: content is removed, a tombstone stays, an event has the number."""

from datetime import timedelta
from typing import Any

import pytest

from muniment import Fabric
from muniment.errors import NotFound
from muniment.model.consent import Sweep
from muniment.testing import FakeClock, People
from tests.conftest import Opener
from tests.stories import CONSENT, KEY, proposed

SUBJECT = "customer:cust_1"


def believed(fabric: Fabric, people: People, count: int, subject: str = SUBJECT) -> list[str]:
    found: list[str] = []
    for n in range(count):
        item = proposed(
            fabric,
            people.run(),
            entity=subject,
            predicate=f"likes_{n}",
            value="tea",
            subject=subject,
            classification="PII",
        )
        found.append(str(fabric.queue.approve(people.reviewer, item.proposal_id).memory_id))
    return found


def events(fabric: Fabric, people: People, kind: str) -> list[dict[str, Any]]:
    return [event.data for event in fabric.events(people.auditor, limit=1000) if event.type == kind]


@pytest.mark.rule("CON-4", "CON-3", "PRO-3")
def test_after_a_revocation_the_content_is_taken_away_and_tombstones_stay(
    fabric: Fabric, people: People, clock: FakeClock, rows: Any
) -> None:
    consent = fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    memories = believed(fabric, people, 3)
    fabric.consent.revoke(people.officer, consent.consent_id)
    assert fabric.recall(people.run()).records == (), "hidden before any pass"
    assert len(rows("memory_bodies")) == 3
    clock.advance(hours=1)
    assert fabric.consent.sweep(people.tenant_id) == Sweep(consents=1, memories=3)
    assert (rows("memory_bodies"), rows("memory_vectors")) == ([], [])
    assert [len(row["digest"]) for row in rows("tombstones")] == [32] * 3
    left = fabric.get(people.auditor, memories[0])
    assert (left.text, left.value, left.tombstoned_at) == ("", None, clock.now)
    assert (left.retraction_reason, left.retracted_by) == ("consent_revoked", "petra")
    assert fabric.trail(people.auditor, memories[0]).memory == left
    with pytest.raises(NotFound):
        fabric.get(people.run(), memories[0])
    assert events(fabric, people, "memory.consent_revoked")[-1] == {"consent_id": consent.consent_id, "memories": 3}
    assert [one.state for one in fabric.consent.list(people.officer)] == ["tombstoned", "tombstoned"]
    assert fabric.consent.sweep(people.tenant_id) == Sweep()


@pytest.mark.rule("CON-4", "CON-7")
def test_after_an_expiry_too(fabric: Fabric, people: People, clock: FakeClock) -> None:
    until = clock.now + timedelta(days=1)
    consent = fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT, valid_until=until)
    (memory,) = believed(fabric, people, 1)
    clock.advance(hours=23)
    assert fabric.consent.sweep(people.tenant_id) == Sweep()
    clock.advance(hours=1)
    assert fabric.consent.sweep(people.tenant_id) == Sweep(consents=1, memories=1)
    assert events(fabric, people, "memory.consent_expired") == [{"consent_id": consent.consent_id, "memories": 1}]
    assert fabric.get(people.auditor, memory).retracted_by == "auto"


@pytest.mark.rule("CON-4", "CON-2")
def test_a_renewed_consent_and_other_subjects_keep_theirs(fabric: Fabric, people: People, clock: FakeClock) -> None:
    until = clock.now + timedelta(days=1)
    first = fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT, valid_until=until)
    fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT, supersedes=first.consent_id)
    ended = fabric.consent.grant(people.officer, subject="customer:cust_2", **CONSENT)
    (kept,) = believed(fabric, people, 1)
    (gone,) = believed(fabric, people, 1, "customer:cust_2")
    fabric.consent.revoke(people.officer, ended.consent_id)
    clock.advance(days=2)
    assert fabric.consent.sweep(people.tenant_id) == Sweep(consents=1, memories=1)
    assert [record.id for record in fabric.recall(people.run()).records] == [kept]
    assert fabric.get(people.auditor, gone).tombstoned_at is not None


@pytest.mark.rule("CON-4")
def test_what_was_withdrawn_before_loses_its_content_too_and_keeps_its_reason(fabric: Fabric, people: People) -> None:
    consent = fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    (memory,) = believed(fabric, people, 1)
    fabric.retract(people.reviewer, memory, reason="wrong")
    fabric.consent.revoke(people.officer, consent.consent_id)
    assert fabric.consent.sweep(people.tenant_id).memories == 1
    left = fabric.get(people.auditor, memory)
    assert (left.retraction_reason, left.retracted_by, left.text) == ("wrong", "boris", "")


@pytest.mark.rule("CON-4")
@pytest.mark.parametrize(("memories", "notes"), [(2, 0), (3, 1)])
def test_past_the_packs_limit_there_is_a_note(under: Opener, people: People, memories: int, notes: int) -> None:
    with under("memory_layer: {consent: {revocation_note_limit: 2}}\n") as fabric:
        consent = fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
        believed(fabric, people, memories)
        fabric.consent.revoke(people.officer, consent.consent_id)
        fabric.consent.sweep(people.tenant_id)
        assert len(events(fabric, people, "memory.note")) == notes


@pytest.mark.rule("CON-4", "CTR-3")
def test_a_contradiction_with_what_was_taken_away_is_ended(fabric: Fabric, people: People) -> None:
    consent = fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    given: dict[str, Any] = {**KEY, "subject": SUBJECT, "classification": "PII"}
    for value in ("email", "phone"):
        item = proposed(fabric, people.run(), **given, value=value)
        fabric.queue.approve(people.reviewer, item.proposal_id)
    assert len(fabric.contradictions.list(people.reviewer)) == 1
    fabric.consent.revoke(people.officer, consent.consent_id)
    fabric.consent.sweep(people.tenant_id)
    (found,) = fabric.contradictions.list(people.reviewer, closed=True)
    assert (found.outcome, found.open) == ("consent_revoked", False)


@pytest.mark.rule("CON-5", "ISO-1")
def test_a_pass_over_one_tenant_touches_no_other(fabric: Fabric, people: People, others: People) -> None:
    for cast in (people, others):
        consent = fabric.consent.grant(cast.officer, subject=SUBJECT, **CONSENT)
        believed(fabric, cast, 1)
        fabric.consent.revoke(cast.officer, consent.consent_id)
    assert fabric.consent.sweep(people.tenant_id).memories == 1
    assert fabric.consent.sweep(others.tenant_id).memories == 1


@pytest.mark.rule("CON-2", "CON-4")
def test_a_consent_renewed_after_the_pass_begins_a_chain_of_its_own(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    until = clock.now + timedelta(days=1)
    first = fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT, valid_until=until)
    clock.advance(days=1)
    fabric.consent.sweep(people.tenant_id)
    again = fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT, supersedes=first.consent_id)
    assert again.state == "active"
    believed(fabric, people, 1)
    assert len(fabric.recall(people.run()).records) == 1
