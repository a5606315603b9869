"""Stage 4, promote: the only way in, what is looked at again on the way, and how a memory ends."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from threading import Event as Flag
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment import Fabric
from muniment.errors import Conflict, InvalidInput, NotFound, NotPromotable, PackInvalid, RoleMissing
from muniment.model.candidate import Candidate
from muniment.model.promoted import RetractionReason
from muniment.pack import AutoPromotion, builtin_pack, load_pack
from muniment.policy.approval import reasons_for_a_person
from muniment.policy.confidence import without_history
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.pipeline.stories import CONSENT, promoted, proposed, texts

SUBJECT = "customer:cust_1"
KEY: dict[str, Any] = {"entity": SUBJECT, "predicate": "prefers_channel"}
HEAD = 'pack_meta: {id: acme, version: "1.0.0"}\n'
Opener = Callable[[str], AbstractContextManager[Fabric]]


@pytest.fixture
def under(server: TestServer, database: str, clock: FakeClock) -> Opener:
    """A fabric whose own pack is the one given."""

    @contextmanager
    def opened(text: str) -> Iterator[Fabric]:
        pack = load_pack(HEAD + text)
        with Fabric.open(server.url(database), pack=pack, clock=clock, master_keys=MASTER_KEYS) as fabric:
            yield fabric

    return opened


def values(fabric: Fabric, people: People, **narrowed: Any) -> list[Any]:
    """What a run recalls as plain records."""
    return [record.value for record in fabric.recall(people.run(), **narrowed).records]


def corrected(fabric: Fabric, people: People, value: Any, **fields: Any) -> str:
    """The id of a promoted correction on the key."""
    item = proposed(fabric, people.author, **KEY, value=value, write_class="correction", user_id="cust_1", **fields)
    done = fabric.queue.approve(people.reviewer, item.proposal_id)
    assert done.memory_id is not None, done.status
    return done.memory_id


def last_events(fabric: Fabric, people: People) -> list[tuple[str, dict[str, Any]]]:
    """The events of the last transaction."""
    log = fabric.events(people.auditor, limit=1000)
    return [(event.type, event.data) for event in log if event.seq == log[-1].seq]


# --- what a memory is


@pytest.mark.rule("PRO-2")
def test_a_memory_carries_its_papers_its_scope_and_what_its_capture_said(
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
        confidence=0.9,
    )
    captured_at = clock.now
    clock.advance(hours=2)
    done = fabric.queue.approve(people.reviewer, item.proposal_id)
    assert done.memory_id is not None
    memory = fabric.get(people.auditor, done.memory_id)
    assert memory.model_dump(exclude={"born_seq"}) == {
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
        "pack": "muniment.builtin@1.0.0",
        "ontology_version": "1.0.0",
        "kind": "tool_result",
        "origin": "tool:crm.lookup",
        "source": "agent",
        "author": "bot",
        "editor": None,
        "captured_at": captured_at,
        "observed_at": seen,
        "approver": "boris",
        "promoted_at": clock.now,
        "expires_at": clock.now + timedelta(days=365),
        "dead_seq": None,
        "retracted_at": None,
        "retracted_by": None,
        "retraction_reason": None,
        "superseded_by": None,
    }


@pytest.mark.rule("PRO-4", "TIR-2")
@pytest.mark.parametrize(
    ("tier", "term"),
    [("working", timedelta(hours=1)), ("episodic", timedelta(days=30)), ("semantic", timedelta(days=365)), ("durable", None)],
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
def test_the_memory_rests_on_the_consent_that_is_live_when_it_is_promoted(
    fabric: Fabric, people: People
) -> None:
    first = fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    item = proposed(fabric, people.run(), **KEY, value="email", subject=SUBJECT, classification="PII")
    fabric.consent.revoke(people.officer, first.consent_id)
    second = fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    done = fabric.queue.approve(people.reviewer, item.proposal_id)
    assert fabric.get(people.auditor, done.memory_id or "").consent_id == second.consent_id


@pytest.mark.rule("PRO-1", "CTR-1", "CTR-3")
def test_a_contradiction_that_arose_while_it_waited_is_found_at_the_approval(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    one, other = (proposed(fabric, people.run(), **KEY, value=value) for value in ("email", "phone"))
    assert other.contradiction_check.verdict == "no_conflict"
    first = fabric.queue.approve(people.reviewer, one.proposal_id).memory_id
    clock.advance(hours=1)
    second = fabric.queue.approve(people.reviewer, other.proposal_id).memory_id
    (found,) = fabric.contradictions.list(people.reviewer)
    assert (found.existing, found.incoming, found.reason, found.opened_at) == (
        first,
        second,
        "other_value",
        clock.now,
    )
    assert (found.entity, found.predicate, found.open) == (*KEY.values(), True)
    assert [kind for kind, _ in last_events(fabric, people)] == [
        "memory.reviewed",
        "memory.promoted",
        "memory.contradiction",
    ]


# --- contradiction


@pytest.mark.rule("CTR-1")
@pytest.mark.parametrize(
    ("first", "second", "contradicts"),
    [
        ({}, {}, True),
        ({"user_id": None}, {}, True),
        ({"user_id": "cust_2"}, {}, False),
        ({"intent_id": "support.*"}, {"intent_id": "support.refund"}, True),
        ({"intent_id": "support.return"}, {"intent_id": "support.refund"}, False),
        ({"entity": "customer:cust_2"}, {}, False),
        ({"predicate": "dislikes_channel"}, {}, False),
        ({"write_class": "decision_outcome"}, {}, True),
    ],
)
def test_another_value_on_the_key_contradicts_only_where_one_run_could_see_both(
    fabric: Fabric, people: People, first: dict[str, Any], second: dict[str, Any], contradicts: bool
) -> None:
    memory = promoted(fabric, people, "email", **first)
    item = proposed(fabric, people.run(), **{**KEY, "value": "phone", **second})
    check = item.contradiction_check
    assert (check.verdict, check.existing) == (
        ("contradicts", memory) if contradicts else ("no_conflict", None)
    )
    assert ("contradiction" in item.human_reasons) is contradicts


@pytest.mark.rule("CTR-1")
def test_what_was_retracted_or_has_expired_contradicts_nothing(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    fabric.retract(people.reviewer, promoted(fabric, people, "email"), reason="wrong")
    promoted(fabric, people, "phone", write_class="decision_outcome")
    clock.advance(days=30)
    promoted(fabric, people, "fax")
    assert values(fabric, people) == ["fax"]
    assert fabric.contradictions.list(people.reviewer, closed=True) == []


@pytest.mark.rule("CTR-1")
def test_a_predicate_the_ontology_gives_many_values_never_contradicts(under: Opener, people: People) -> None:
    with under("ontology: {predicates: {prefers_channel: {cardinality: many}}}") as fabric:
        for value in ("email", "phone", "fax"):
            promoted(fabric, people, value)
        assert set(values(fabric, people)) == {"email", "phone", "fax"}
        assert fabric.contradictions.list(people.reviewer) == []


@pytest.mark.rule("CTR-4", "CTR-3")
def test_by_default_both_sides_stay_live_and_marked(fabric: Fabric, people: People) -> None:
    sides = {promoted(fabric, people, value) for value in ("email", "phone")}
    answer = fabric.recall(people.run())
    assert answer.records == ()
    assert [{record.id for record in one.records} for one in answer.conflicts] == [sides]


@pytest.mark.rule("CTR-4")
@pytest.mark.parametrize(("unresolved", "status"), [("hold", "held"), ("block", "blocked")])
def test_a_pack_can_hold_or_block_what_contradicts(
    under: Opener, people: People, unresolved: str, status: str
) -> None:
    with under(f"memory_layer: {{contradiction: {{unresolved: {unresolved}}}}}") as fabric:
        memory = promoted(fabric, people, "email")
        item = proposed(fabric, people.run(), **KEY, value="phone").proposal_id
        done = fabric.queue.approve(people.reviewer, item)
        assert (done.status, done.memory_id) == (status, None)
        assert [(v.action, v.by, v.reason) for v in done.verdicts] == [(unresolved, "boris", "contradiction")]
        assert values(fabric, people) == ["email"]
        if unresolved == "hold":
            assert fabric.queue.release(people.reviewer, item).status == "pending"
            assert fabric.queue.approve(people.reviewer, item).status == "held"
            assert fabric.queue.approve(people.reviewer, item, supersedes=memory).status == "promoted"
            assert values(fabric, people) == ["phone"]


@pytest.mark.rule("CTR-4", "COR-2", "PRO-5")
def test_a_correction_supersedes_everything_on_its_key_whatever_the_confidence(
    fabric: Fabric, people: People
) -> None:
    sides = [promoted(fabric, people, value, confidence=0.8) for value in ("email", "phone")]
    mine = corrected(fabric, people, "fax", confidence=0.31)
    assert [(type_, data.get("replaced")) for type_, data in last_events(fabric, people)][-1] == (
        "memory.correction",
        sorted(sides),
    )
    assert values(fabric, people) == [], "below the recall confidence it stands apart"
    assert [record.value for record in fabric.recall(people.run()).low_confidence] == ["fax"]
    for memory_id in sides:
        old = fabric.get(people.auditor, memory_id)
        assert (old.retraction_reason, old.superseded_by, old.retracted_by) == ("corrected", mine, "boris")
        assert old.dead_seq == fabric.get(people.auditor, mine).born_seq
    assert fabric.contradictions.list(people.reviewer) == []


@pytest.mark.rule("CTR-4")
def test_a_correction_is_superseded_only_by_a_later_correction(fabric: Fabric, people: People) -> None:
    first = corrected(fabric, people, "email")
    item = proposed(fabric, people.run(), **KEY, value="phone", confidence=1.0).proposal_id
    with pytest.raises(NotPromotable) as caught:
        fabric.queue.approve(people.reviewer, item, supersedes=first)
    assert caught.value.field == "supersedes"
    assert fabric.get(people.auditor, first).retracted_at is None
    second = corrected(fabric, people, "fax")
    assert fabric.get(people.auditor, first).superseded_by == second
    assert values(fabric, people) == ["fax"]


# --- superseding and retracting


@pytest.mark.rule("PRO-5")
def test_superseding_brings_the_new_and_takes_the_old_in_one_transaction(
    fabric: Fabric, people: People
) -> None:
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
def test_what_it_would_supersede_must_still_stand(fabric: Fabric, people: People, others: People, clock: FakeClock) -> None:
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


@pytest.mark.rule("REV-7", "PRO-1")
def test_a_duplicate_is_not_promoted_for_being_said_to_supersede_another(
    fabric: Fabric, people: People
) -> None:
    one, other = (proposed(fabric, people.run(), **KEY, value="email").proposal_id for _ in range(2))
    unrelated = promoted(fabric, people, "blue", predicate="favourite_colour")
    original = fabric.queue.approve(people.reviewer, one).memory_id
    done = fabric.queue.approve(people.reviewer, other, supersedes=unrelated)
    assert (done.status, done.duplicate_check) == ("duplicate", original)


@pytest.mark.rule("PRO-6", "PRO-3")
@pytest.mark.parametrize("reason", get_args(RetractionReason))
def test_a_retraction_is_by_a_named_person_with_a_typed_reason_and_keeps_the_row(
    fabric: Fabric, people: People, clock: FakeClock, reason: RetractionReason
) -> None:
    memory_id = promoted(fabric, people)
    before = fabric.get(people.auditor, memory_id)
    clock.advance(hours=1)
    gone = fabric.retract(people.second_reviewer, memory_id, reason=reason)
    assert (gone.retracted_by, gone.retraction_reason, gone.retracted_at) == ("clara", reason, clock.now)
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
    assert fabric.get(people.auditor, memory_id) == first


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
@pytest.mark.parametrize(
    ("fields", "how", "reasons"),
    [
        ({}, {}, ()),
        ({"confidence": 0.89}, {}, ("low_confidence",)),
        ({"trust": 0.39}, {}, ("low_trust",)),
        ({"classification": "PII"}, {}, ("sensitive",)),
        ({"source": "operator"}, {}, ("operator_source",)),
        ({"write_class": "statement"}, {}, ("approval_mode",)),
        ({}, {"tier": "durable"}, ("durable",)),
        ({}, {"contradicts": True}, ("contradiction",)),
        ({}, {"user_correction": True}, ("user_correction",)),
    ],
)
def test_policy_alone_promotes_only_when_nothing_at_all_speaks_for_a_person(
    fields: dict[str, Any], how: dict[str, Any], reasons: tuple[str, ...]
) -> None:
    pack = load_pack(HEAD + "memory_layer: {classes: {preference: {approval: auto, auto_promotion: {}}}}")
    whole: dict[str, Any] = {
        "candidate_id": "mc_1",
        "tenant_id": "t",
        "capture_id": "cap_1",
        "author": "bot",
        "source": "agent",
        "write_class": "preference",
        "text": "x",
        "raw_confidence": 0.9,
        "confidence": 0.9,
        "classification": "INTERNAL",
        "trust": 0.4,
        "extractor": "direct@1",
    }
    given: dict[str, Any] = {"tier": "semantic", "contradicts": False, "user_correction": False, **how}
    assert reasons_for_a_person(Candidate(**{**whole, **fields}), **given, pack=pack) == reasons


@pytest.mark.rule("REV-3", "CAN-6")
@given(cap=st.integers(0, 100), threshold=st.integers(0, 100), raw=st.floats(0, 1))
def test_no_pack_lets_a_source_without_history_promote_itself(cap: int, threshold: int, raw: float) -> None:
    text = f"""memory_layer:
  promotion_thresholds: {{uncalibrated_cap: {cap / 100}}}
  classes: {{preference: {{approval: auto, auto_promotion: {{threshold: {threshold / 100}}}}}}}
"""
    try:
        pack = load_pack(HEAD + text)
    except PackInvalid:
        assert threshold <= cap
    else:
        assert without_history(raw, pack) < threshold / 100


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
