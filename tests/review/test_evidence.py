"""The evidence of a proposal: its sources and what it contradicts, in one answer, for those who may read the queue."""

import pytest

from muniment import Fabric
from muniment.errors import NotFound, RoleMissing
from muniment.testing import FakeClock, People
from tests.stories import CONSENT, KEY, promoted, proposed, submitted

SUBJECT = "customer:cust_1"


@pytest.mark.rule("CAN-1")
def test_a_proposal_is_shown_with_its_capture_its_consent_and_the_labels_it_may_have(
    fabric: Fabric, people: People
) -> None:
    consent = fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    said = "I prefer email, please."
    captured = fabric.capture(people.run(), kind="message", text=said, subject=SUBJECT, classification="PII")
    fabric.consolidate(people.tenant_id)
    (item,) = fabric.queue.list(people.reviewer)
    for who in (people.reviewer, people.auditor):
        found = fabric.queue.evidence(who, item.proposal_id)
        assert found.proposal == item
        assert found.capture is not None and found.capture.content is not None
        assert (found.capture.capture_id, found.capture.content.text) == (captured.capture_id, said)
        assert found.consent is not None and found.consent.consent_id == consent.consent_id
        assert found.labels == ("PII", "RESTRICTED")
        assert (found.edits, found.contradictions, found.memories, found.archive) == ((), (), {}, None)


def test_what_it_contradicts_and_what_it_was_before_it_was_edited_come_with_it(fabric: Fabric, people: People) -> None:
    memory_id = promoted(fabric, people, "email")
    first = proposed(fabric, people.run(), **KEY, value="phone")
    edited = fabric.queue.edit(people.reviewer, first.proposal_id, value="post")
    found = fabric.queue.evidence(people.reviewer, submitted(edited))
    assert [one.value for one in found.edits] == ["phone"]
    assert [one.existing for one in found.contradictions] == [memory_id]
    assert found.memories[memory_id] == fabric.get(people.reviewer, memory_id)
    done = fabric.queue.approve(people.reviewer, submitted(edited), supersedes=memory_id)
    after = fabric.queue.evidence(people.reviewer, done.proposal_id)
    assert done.memory_id is not None
    assert (after.memories[done.memory_id].value, after.memories[memory_id].superseded_by) == ("post", done.memory_id)


@pytest.mark.rule("REV-4")
def test_it_says_who_cannot_approve_it(fabric: Fabric, people: People) -> None:
    both = people.person("mia", "reviewer", "correction_writer")
    own = proposed(fabric, both, write_class="statement", text="Mia has an NDA", user_id="cust_1").proposal_id
    assert fabric.queue.evidence(both, own).barred == "the author of the capture cannot approve it"
    assert fabric.queue.evidence(people.reviewer, own).barred is None


def test_after_an_erasure_nothing_of_its_content_is_left(fabric: Fabric, people: People, clock: FakeClock) -> None:
    item = proposed(fabric, people.run(), **KEY, value="email", subject=SUBJECT)
    clock.advance(minutes=1)
    fabric.erase(people.officer, subject=SUBJECT)
    found = fabric.queue.evidence(people.reviewer, item.proposal_id)
    assert found.capture is not None
    assert found.capture.content is None
    assert found.proposal.candidate.value is None


def test_it_is_for_who_may_read_the_queue_of_that_tenant(fabric: Fabric, people: People, others: People) -> None:
    item = proposed(fabric, people.run(), **KEY, value="email")
    proposed(fabric, others.run(), **KEY, value="email")
    with pytest.raises(NotFound):
        fabric.queue.evidence(others.reviewer, item.proposal_id)
    for who in (people.officer, people.admin, people.run()):
        with pytest.raises(RoleMissing):
            fabric.queue.evidence(who, item.proposal_id)
