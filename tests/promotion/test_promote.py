"""Stage 4, promote: the only way in, what is looked at again on the way, and how a memory ends."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Event as Flag
from typing import Any, get_args

import pytest

from muniment import Fabric
from muniment.errors import Conflict, InvalidInput, NotFound, NotPromotable, PackInvalid, RoleMissing
from muniment.model.promoted import StatedReason
from muniment.pack import AutoPromotion, builtin_pack, load_pack
from muniment.testing import FakeClock, People
from tests.conftest import HEAD, Opener
from tests.stories import CONSENT, promoted, proposed, texts, values

SUBJECT = "customer:cust_1"
KEY: dict[str, Any] = {"entity": SUBJECT, "predicate": "prefers_channel"}


# --- what a memory is

# How something was said; nobody said this.
SAID = ("speaker", "said_at", "dates", "follows", "context", "predicate_name")


@pytest.mark.rule("PRO-2")
def test_a_memory_carries_its_provenance_its_scope_and_what_its_capture_said(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    consent = fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    run = people.run(
        "cust_1",
        session_id="s",
        workflow_id="w",
        intent_id="sales.offer",
        decision_key="offer:1",
        qualifiers={"region": "de"},
    )
    seen = clock.now - timedelta(days=2)
    item = proposed(
        fabric,
        run,
        **KEY,
        value={"channel": "email"},
        text="by mail",
        subject=SUBJECT,
        classification="PII",
        evidence_refs=["tool:crm:1"],
        origin="tool:crm.lookup",
        kind="tool_result",
        observed_at=seen,
        valid_from=seen - timedelta(days=365),
        valid_until=seen + timedelta(days=365),
        confidence=0.9,
    )
    captured_at = clock.now
    clock.advance(hours=2)
    done = fabric.queue.approve(people.reviewer, item.proposal_id)
    assert done.memory_id is not None
    memory = fabric.get(people.auditor, done.memory_id)
    assert (memory.vouched, memory.contradiction) == ("tool:crm.lookup", False)
    assert memory.model_dump(
        exclude={"born_seq", "vouched", "contradiction", "claimed_at", "claimed_author", *SAID}
    ) == {
        "memory_id": done.memory_id,
        "candidate_id": item.candidate.candidate_id,
        "proposal_id": item.proposal_id,
        "verdict_id": done.verdicts[-1].verdict_id,
        "capture_id": item.candidate.capture_id,
        "tenant_id": people.tenant_id,
        "scope": {
            "user_id": "cust_1",
            "session_id": "s",
            "workflow_id": "w",
            "intent_id": "sales.offer",
            "qualifiers": {"region": "de"},
            "required": {},
        },
        "decision_key": "offer:1",
        "subject": SUBJECT,
        "write_class": "preference",
        **KEY,
        "value": {"channel": "email"},
        "text": "by mail",
        "evidence_refs": ("tool:crm:1",),
        "classification": "PII",
        "sensitive": True,
        "tier": "semantic",
        "priority": 0.55,
        "confidence": 0.8,
        "trust": 0.7,
        "consent_id": consent.consent_id,
        "third_party": False,
        "pack": "muniment.builtin@1.3.0",
        "ontology_version": "1.0.0",
        "kind": "tool_result",
        "origin": "tool:crm.lookup",
        "source": "agent",
        "author": "bot",
        "editor": None,
        "captured_at": captured_at,
        "observed_at": seen,
        "valid_from": seen - timedelta(days=365),
        "valid_until": seen + timedelta(days=365),
        "approver": "boris",
        "promoted_at": clock.now,
        "expires_at": clock.now + timedelta(days=365),
        "dead_seq": None,
        "retracted_at": None,
        "retracted_by": None,
        "retraction_reason": None,
        "superseded_by": None,
        "tombstoned_at": None,
    }


@pytest.mark.rule("PRO-4", "TIR-2")
@pytest.mark.parametrize(
    ("tier", "term"),
    [
        ("working", timedelta(hours=1)),
        ("episodic", timedelta(days=30)),
        ("semantic", timedelta(days=365)),
        ("durable", None),
    ],
)
def test_expiry_counts_from_the_promotion_by_tier(
    fabric: Fabric, people: People, clock: FakeClock, tier: Any, term: timedelta | None
) -> None:
    item = proposed(fabric, people.run(session_id="s"), **KEY, value="email")
    fabric.queue.override(people.reviewer, item.proposal_id, tier=tier)
    clock.advance(days=2)
    done = fabric.queue.approve(people.reviewer, item.proposal_id)
    memory = fabric.get(people.auditor, done.memory_id or "")
    assert memory.promoted_at == clock.now
    assert memory.expires_at == (clock.now + term if term is not None else None)


@pytest.mark.rule("PRO-4")
def test_a_classs_own_retention_shortens_it(under: Opener, people: People, clock: FakeClock) -> None:
    with under("memory_layer: {classes: {preference: {retention: 7d}}}") as fabric:
        memory = fabric.get(people.auditor, promoted(fabric, people))
    assert memory.expires_at == clock.now + timedelta(days=7)


# --- looking again


@pytest.mark.rule("PRO-1", "CON-2")
@pytest.mark.parametrize("how", ["revoked", "expired", "narrowed"])
def test_a_consent_that_ended_while_it_waited_stops_the_promotion(
    fabric: Fabric, people: People, clock: FakeClock, how: str
) -> None:
    consent = fabric.consent.grant(
        people.officer, subject=SUBJECT, **CONSENT, valid_until=clock.now + timedelta(days=1)
    )
    item = proposed(fabric, people.run(), **KEY, value="email", subject=SUBJECT, classification="PII")
    if how == "revoked":
        fabric.consent.revoke(people.officer, consent.consent_id)
    elif how == "expired":
        clock.advance(days=1)
    else:
        narrow = CONSENT | {"predicates_allowed": ["phone_number"], "supersedes": consent.consent_id}
        fabric.consent.grant(people.officer, subject=SUBJECT, **narrow)
    with pytest.raises(NotPromotable):
        fabric.queue.approve(people.reviewer, item.proposal_id)
    after = fabric.queue.get(people.reviewer, item.proposal_id)
    assert (after.status, after.verdicts, after.memory_id) == ("pending", (), None)
    assert fabric.recall(people.run()).records == ()


@pytest.mark.rule("PRO-1", "CON-2")
def test_the_memory_rests_on_the_consent_that_is_live_when_it_is_promoted(fabric: Fabric, people: People) -> None:
    first = fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    item = proposed(fabric, people.run(), **KEY, value="email", subject=SUBJECT, classification="PII")
    fabric.consent.revoke(people.officer, first.consent_id)
    second = fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    done = fabric.queue.approve(people.reviewer, item.proposal_id)
    assert fabric.get(people.auditor, done.memory_id or "").consent_id == second.consent_id


# --- superseding and retracting


@pytest.mark.rule("PRO-5")
def test_superseding_brings_the_new_and_takes_the_old_in_one_transaction(fabric: Fabric, people: People) -> None:
    old = promoted(fabric, people, "email")
    item = proposed(fabric, people.run(), **KEY, value="phone").proposal_id
    new = fabric.queue.approve(people.reviewer, item, supersedes=old).memory_id
    before, after = fabric.get(people.auditor, old), fabric.get(people.auditor, new or "")
    assert (before.retraction_reason, before.superseded_by) == ("superseded", new)
    assert (before.dead_seq, before.retracted_at) == (after.born_seq, after.promoted_at)
    assert values(fabric, people) == ["phone"]
    assert fabric.contradictions.list(people.reviewer) == []


@pytest.mark.rule("PRO-5")
def test_no_reader_ever_sees_both_or_neither(fabric: Fabric, people: People) -> None:
    current = promoted(fabric, people, 0)
    items = [proposed(fabric, people.run(), **KEY, value=n).proposal_id for n in range(1, 16)]
    stop = Flag()

    def read() -> tuple[list[int], set[int]]:
        sizes, seen = list[int](), set[int]()
        while not stop.is_set():
            answer = fabric.recall(people.run())
            sizes.append(len(answer.records) + sum(len(one.records) for one in answer.conflicts))
            seen |= {record.value for record in answer.records}
        return sizes, seen

    with ThreadPoolExecutor(2) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        for item in items:
            current = fabric.queue.approve(people.reviewer, item, supersedes=current).memory_id or ""
        stop.set()
        for reader in readers:
            sizes, seen = reader.result()
            assert set(sizes) == {1}
            assert len(seen) > 1, "it must have read while things changed"


@pytest.mark.rule("PRO-1", "PRO-5")
def test_what_it_would_supersede_must_still_stand(
    fabric: Fabric, people: People, others: People, clock: FakeClock
) -> None:
    gone = promoted(fabric, people, "email")
    fabric.retract(people.reviewer, gone, reason="wrong")
    expired = promoted(fabric, people, "fax", predicate="other", write_class="decision_outcome")
    theirs = promoted(fabric, others, "email")
    clock.advance(days=30)
    item = proposed(fabric, people.run(), **KEY, value="phone").proposal_id
    for target, error in ((gone, NotPromotable), (expired, NotPromotable), (theirs, NotFound), ("pm_0", NotFound)):
        with pytest.raises(error) as caught:
            fabric.queue.approve(people.reviewer, item, supersedes=target)
        assert caught.value.field == "supersedes"
    assert fabric.queue.get(people.reviewer, item).verdicts == ()


@pytest.mark.rule("PRO-6", "PRO-3")
@pytest.mark.parametrize("reason", get_args(StatedReason))
def test_a_retraction_is_by_a_named_person_with_a_typed_reason_and_keeps_the_row(
    fabric: Fabric, people: People, clock: FakeClock, reason: StatedReason
) -> None:
    memory_id = promoted(fabric, people)
    before = fabric.get(people.auditor, memory_id)
    clock.advance(hours=1)
    gone = fabric.retract(people.second_reviewer, memory_id, reason=reason)
    assert (gone.retracted_by, gone.reason, gone.retracted_at) == ("clara", reason, clock.now)
    assert texts(fabric, people.run()) == []
    with pytest.raises(NotFound):
        fabric.get(people.run(), memory_id)
    died = {"dead_seq", "retracted_at", "retracted_by", "retraction_reason"}
    assert fabric.get(people.auditor, memory_id).model_dump(exclude=died) == before.model_dump(exclude=died)


@pytest.mark.rule("PRO-6", "PRO-3")
def test_a_second_retraction_is_a_conflict_and_changes_nothing(fabric: Fabric, people: People) -> None:
    memory_id = promoted(fabric, people)
    first = fabric.retract(people.reviewer, memory_id, reason="wrong")
    with pytest.raises(Conflict) as caught:
        fabric.retract(people.second_reviewer, memory_id, reason="deprecated")
    assert (caught.value.code, caught.value.field) == ("conflict", "memory_id")
    after = fabric.get(people.auditor, memory_id)
    assert (after.dead_seq, after.retraction_reason, after.retracted_by) == (first.seq, "wrong", "boris")


@pytest.mark.rule("PRO-6", "AUD-3")
def test_only_a_reviewer_retracts(fabric: Fabric, people: People) -> None:
    memory_id = promoted(fabric, people)
    for who in (people.run(), people.service, people.author, people.auditor, people.officer, people.admin):
        with pytest.raises(RoleMissing):
            fabric.retract(who, memory_id, reason="wrong")
    with pytest.raises(InvalidInput) as caught:
        fabric.retract(people.reviewer, memory_id, reason="boring")  # type: ignore[arg-type]
    assert caught.value.field == "reason"
    assert len(texts(fabric, people.run())) == 1


# --- promotion by policy


@pytest.mark.rule("REV-3", "CAN-6")
def test_under_a_pack_that_names_the_class_an_unjudged_source_still_waits_for_a_person(
    under: Opener, people: People
) -> None:
    auto = "memory_layer: {promotion_thresholds: {uncalibrated_cap: 0.95}, "
    auto += "classes: {preference: {approval: auto, auto_promotion: {threshold: 0.96}}}}"
    with under(auto) as fabric:
        item = proposed(fabric, people.run(), **KEY, value="email", confidence=1.0)
        assert item.human_reasons == ("low_confidence",)
        assert (item.auto_promote_eligible, item.candidate.confidence) == (False, 0.95)
        assert fabric.consolidate(people.tenant_id).promoted == ()
        assert values(fabric, people) == []
    assert builtin_pack().policy_for("preference").auto_promotion is None


@pytest.mark.rule("REV-3", "PAC-1")
def test_a_pack_bent_after_loading_cannot_be_registered(fabric: Fabric, people: People) -> None:
    text = "memory_layer: {classes: {preference: {approval: auto, auto_promotion: {threshold: 0.9}}}}"
    sound = load_pack(HEAD + text)
    layer = sound.memory_layer
    preference = layer.classes["preference"].model_copy(update={"auto_promotion": AutoPromotion(threshold=0.5)})
    classes = {**layer.classes, "preference": preference}
    crooked = sound.model_copy(update={"memory_layer": layer.model_copy(update={"classes": classes})})
    with pytest.raises(PackInvalid):
        fabric.packs.register(people.admin, crooked)
