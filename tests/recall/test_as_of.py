"""Recall as of a past moment: what was visible then, under the pack of then; rights withdrawn since stay withdrawn."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from muniment import Fabric, RunContext
from muniment.errors import HistoryCollected, InvalidInput, NotFound
from muniment.pack import Pack
from muniment.testing import FakeClock, People
from tests.pack_activation import acme, put_in_force, register
from tests.stories import CONSENT, promoted, proposed, remembered, submitted

SUBJECT = "customer:cust_1"
PII: dict[str, Any] = {"subject": SUBJECT, "classification": "PII"}
MICROSECOND = timedelta(microseconds=1)


def ids(fabric: Fabric, run: RunContext, as_of: datetime | None = None, query: str | None = None) -> list[str]:
    """What a run recalls as plain records."""
    return [record.id for record in fabric.recall(run, query, as_of=as_of).records]


def version(number: int, text: str, **meta: str) -> Pack:
    return acme(f"{number}.0.0", text, **meta)


# --- then and now


@pytest.mark.rule("REC-6", "REC-7")
def test_what_was_promoted_and_retracted_since_does_not_count(fabric: Fabric, people: People, clock: FakeClock) -> None:
    run, begin = people.run(), clock.now
    clock.advance(hours=1)
    first = remembered(fabric, people, "blue", predicate="a")
    promoted_at = clock.now
    clock.advance(hours=1)
    second = remembered(fabric, people, "blue", predicate="b")
    clock.advance(hours=1)
    fabric.retract(people.reviewer, first, reason="wrong")
    retracted_at = clock.now
    clock.advance(hours=1)
    for query in (None, "blue"):
        assert ids(fabric, run, begin, query) == []
        assert ids(fabric, run, promoted_at - MICROSECOND, query) == []
        assert ids(fabric, run, promoted_at, query) == [first]
        assert ids(fabric, run, retracted_at - MICROSECOND, query) == [second, first]
        assert ids(fabric, run, retracted_at, query) == [second]
        assert ids(fabric, run, clock.now, query) == ids(fabric, run, None, query) == [second]


@pytest.mark.rule("REC-7", "PRO-5")
def test_a_fact_that_was_corrected_since_stands_as_it_was(fabric: Fabric, people: People, clock: FakeClock) -> None:
    old = remembered(fabric, people, "email")
    clock.advance(days=1)
    then = clock.now
    clock.advance(days=1)
    correction = fabric.correct(people.author, memory_id=old, value="phone")
    fabric.queue.approve(people.reviewer, submitted(correction))
    answer = fabric.recall(people.run(), as_of=then)
    assert [(record.id, record.value) for record in answer.records] == [(old, "email")]
    assert answer.as_of == then
    assert answer.at == clock.now
    assert [record.value for record in fabric.recall(people.run()).records] == ["phone"]


@pytest.mark.rule("REC-7", "PRO-4")
@pytest.mark.parametrize("tier", ["working", "episodic", "semantic"])
def test_what_expired_since_is_there_as_of_before_and_gone_at_the_moment_it_expired(
    fabric: Fabric, people: People, clock: FakeClock, tier: str
) -> None:
    run = people.run(session_id="s")
    mortal = remembered(fabric, people, tier=tier, session_id="s", classification="PUBLIC")
    (record,) = fabric.recall(run).records
    ends = record.provenance.expires_at
    assert ends is not None
    clock.now = ends + timedelta(days=1)
    assert ids(fabric, run) == []
    assert ids(fabric, run, ends) == []
    assert ids(fabric, run, ends - MICROSECOND) == [mortal]
    assert ids(fabric, people.run(session_id="t"), ends - MICROSECOND) == ([] if tier == "working" else [mortal])


@pytest.mark.rule("REC-7", "REC-1")
def test_freshness_counts_back_from_the_moment_that_is_asked_about(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    put_in_force(fabric, people.tenant_id, version(1, "memory_layer: {recall_policy: {freshness: {semantic: 7d}}}"))
    run, promoted_at = people.run(), clock.now
    memory_id = remembered(fabric, people)
    clock.advance(days=30)
    assert ids(fabric, run) == []
    assert ids(fabric, run, promoted_at + timedelta(days=7)) == [memory_id]
    assert ids(fabric, run, promoted_at + timedelta(days=7) + MICROSECOND) == []


@pytest.mark.rule("REC-7")
def test_the_time_filter_comes_before_ranking_and_limit(fabric: Fabric, people: People, clock: FakeClock) -> None:
    blue: dict[str, Any] = {"value": "blue", "text": "Blue it is."}
    old = [remembered(fabric, people, predicate=f"old{n}", priority=0.1 * n, **blue) for n in range(3)]
    clock.advance(days=1)
    then = clock.now
    clock.advance(days=1)
    for n in range(3):
        remembered(fabric, people, predicate=f"new{n}", priority=0.9, **blue)
    for query in (None, "blue"):
        answer = fabric.recall(people.run(), query, limit=2, as_of=then)
        assert [record.id for record in answer.records] == [old[2], old[1]]
        assert answer.omitted == 1
        now = fabric.recall(people.run(), query, limit=2)
        assert not {record.id for record in now.records} & set(old)
        assert now.omitted == 4


@pytest.mark.rule("REC-7", "REC-9")
def test_the_scores_are_those_that_were_told_then(fabric: Fabric, people: People, clock: FakeClock) -> None:
    for n, text in enumerate(("Parcels leave at noon.", "Tea is at five.", "Parcels are late.")):
        remembered(fabric, people, "x", predicate=f"p{n}", text=text)
    clock.advance(days=1)
    then, answer = clock.now, fabric.recall(people.run(), "late parcels")
    clock.advance(days=60)
    for n, text in enumerate(("Late again.", "Late parcels are parcels.", "Rockets fly.")):
        remembered(fabric, people, "x", predicate=f"q{n}", text=text)
    again = fabric.recall(people.run(), "late parcels", as_of=then)
    assert again.records == answer.records, "word statistics and ages count as of then, to the last digit"
    assert (again.omitted, again.pack, again.embedder) == (answer.omitted, answer.pack, answer.embedder)


@pytest.mark.rule("REC-7", "REC-4")
def test_a_conflict_that_was_settled_since_is_one_as_of_before(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    first = promoted(fabric, people, "email")
    clock.advance(hours=1)
    before = clock.now
    clock.advance(hours=1)
    second = promoted(fabric, people, "phone")
    during = clock.now
    clock.advance(hours=1)
    (found,) = fabric.contradictions.list(people.reviewer)
    fabric.contradictions.resolve(
        people.reviewer, found.contradiction_id, "coexist", existing={"region": "de"}, incoming={"region": "fr"}
    )
    clock.advance(hours=1)
    for run in (people.run(), people.run(qualifiers={"region": "de"})):
        assert ids(fabric, run, before) == [first]
        (conflict,) = fabric.recall(run, as_of=during).conflicts
        assert {record.id for record in conflict.records} == {first, second}
        assert fabric.recall(run).conflicts == ()
    assert ids(fabric, people.run()) == []
    assert ids(fabric, people.run(qualifiers={"region": "de"})) == [first]


@pytest.mark.rule("REC-6", "REC-7")
def test_steps_go_along_the_ties_of_then(fabric: Fabric, people: People, clock: FakeClock) -> None:
    tie = remembered(fabric, people, "order:o1", predicate="ordered")
    far = remembered(fabric, people, "late", entity="order:o1", predicate="state")
    clock.advance(days=1)
    then = clock.now
    clock.advance(days=1)
    fabric.retract(people.reviewer, tie, reason="wrong")
    asked: dict[str, Any] = {"entities": [SUBJECT], "hops": 1}
    assert [record.id for record in fabric.recall(people.run(), as_of=then, **asked).records] == [far, tie]
    assert fabric.recall(people.run(), **asked).records == ()


# --- which moments can be asked about


@pytest.mark.rule("REC-6")
def test_the_future_and_what_lies_beyond_the_horizon_cannot_be_asked_about(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    memory_id = remembered(fabric, people)
    begin = clock.now
    clock.advance(days=90)
    assert ids(fabric, people.run(), begin) == [memory_id]
    with pytest.raises(InvalidInput) as ahead:
        fabric.recall(people.run(), as_of=clock.now + MICROSECOND)
    assert (ahead.value.code, ahead.value.field) == ("invalid_input", "as_of")
    clock.now += MICROSECOND
    for call in (fabric.recall, fabric.compile):
        with pytest.raises(HistoryCollected) as beyond:
            call(people.run(), as_of=begin)
        assert (beyond.value.code, beyond.value.field) == ("history_collected", "as_of")
    for asker in (people.run(), people.auditor):
        with pytest.raises(HistoryCollected):
            fabric.explain(asker, memory_id=memory_id, as_of=begin)


@pytest.mark.rule("REC-6")
def test_the_horizon_is_the_packs(fabric: Fabric, people: People, others: People, clock: FakeClock) -> None:
    pack = version(1, "memory_layer: {retention: {replay_horizon: 7d}}")
    put_in_force(fabric, people.tenant_id, pack)
    register(fabric, others.tenant_id, pack)
    memory_id, elsewhere = remembered(fabric, people), remembered(fabric, others)
    begin = clock.now
    clock.advance(days=7)
    assert ids(fabric, people.run(), begin) == [memory_id]
    clock.advance(days=1)
    assert ids(fabric, others.run(), begin) == [elsewhere], "there the pack is registered and not in force"
    with pytest.raises(HistoryCollected):
        fabric.recall(people.run(), as_of=begin)


@pytest.mark.rule("REC-7", "AUD-1")
def test_of_transactions_at_one_clock_time_the_last_counts_and_a_record_keeps_which_it_was(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    first = remembered(fabric, people, predicate="a")
    early = fabric.recall(people.run(), as_of=clock.now)
    second = remembered(fabric, people, predicate="b")
    late = fabric.recall(people.run(), as_of=clock.now)
    assert [record.id for record in early.records] == [first]
    assert [record.id for record in late.records] == [second, first]
    fabric.retract(people.reviewer, first, reason="wrong")
    assert ids(fabric, people.run(), clock.now) == [second]
    for answer in (early, late):
        assert fabric.replay(people.auditor, answer.recall_id).same


@pytest.mark.rule("REC-7", "AUD-1")
def test_a_clock_that_was_turned_back_does_not_change_what_was_known_when(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    first = remembered(fabric, people, predicate="a")
    at = clock.now
    clock.advance(hours=-3)
    second = remembered(fabric, people, predicate="b")
    clock.advance(hours=5)
    assert ids(fabric, people.run(), at - MICROSECOND) == []
    assert ids(fabric, people.run(), at) == [second, first], "the tenant's own time never goes back"


# --- rights count as of now


@pytest.mark.rule("REC-7", "CON-3")
@pytest.mark.parametrize("how", ["revoked", "expired", "narrowed", "swept"])
def test_a_consent_withdrawn_hides_the_past_too(fabric: Fabric, people: People, clock: FakeClock, how: str) -> None:
    ends = clock.now + timedelta(days=10)
    consent = fabric.consent.grant(people.officer, subject=SUBJECT, valid_until=ends, **CONSENT)
    sensitive = remembered(fabric, people, **PII)
    control = remembered(fabric, people, predicate="other")
    clock.advance(days=1)
    then = clock.now
    clock.advance(days=1)
    for query in (None, "email"):
        assert set(ids(fabric, people.run(), then, query)) == {sensitive, control}
    match how:
        case "revoked" | "swept":
            fabric.consent.revoke(people.officer, consent.consent_id)
        case "expired":
            clock.now = ends
        case _:
            narrow = CONSENT | {"predicates_allowed": ["phone_number"]}
            fabric.consent.grant(people.officer, subject=SUBJECT, supersedes=consent.consent_id, **narrow)
    if how == "swept":
        assert fabric.consent.sweep(people.tenant_id).memories == 1
    for query in (None, "email"):
        answer = fabric.recall(people.run(), query, as_of=then)
        assert [record.id for record in answer.records] == [control]
        assert answer.omitted == 0
    with pytest.raises(NotFound):
        fabric.explain(people.run(), memory_id=sensitive, as_of=then)
    explained = fabric.explain(people.auditor, memory_id=sensitive, as_of=then, run=people.run())
    assert explained.visibility == ("tombstoned" if how == "swept" else "hidden"), (
        "an auditor is told that it was there"
    )
    assert "consent" in explained.hidden_by


@pytest.mark.rule("REC-7", "CON-2")
def test_a_consent_that_came_later_does_not_open_the_past_to_what_was_not_promoted(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    then = clock.now
    clock.advance(days=1)
    fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    remembered(fabric, people, **PII)
    assert ids(fabric, people.run(), then) == []


@pytest.mark.rule("REC-7")
def test_the_callers_clearance_is_that_of_today(fabric: Fabric, clock: FakeClock, people: People) -> None:
    put_in_force(fabric, people.tenant_id, version(1, "roles: {agent: {}, clerk: {}}"))
    closed = remembered(fabric, people, predicate="a", classification="CONFIDENTIAL")
    usual = remembered(fabric, people, predicate="b")
    then = clock.now
    clock.advance(days=1)
    run = people.run(role="clerk")
    assert set(ids(fabric, run, then)) == {closed, usual}
    assert ids(fabric, people.run(role="clerk", classification_allowed={"INTERNAL"}), then) == [usual]
    narrower = "roles: {agent: {}, clerk: {classifications_allowed: [PUBLIC, INTERNAL]}}"
    put_in_force(fabric, people.tenant_id, version(2, narrower))
    remembered(fabric, people, predicate="c")
    answer = fabric.recall(run, as_of=then)
    assert ([record.id for record in answer.records], answer.pack) == ([usual], "acme@1.0.0")
    assert set(ids(fabric, people.run(), then)) == {closed, usual}, "the other role kept its labels"


@pytest.mark.rule("REC-7", "CON-2")
def test_what_became_sensitive_since_needs_consent_for_the_past_too(
    fabric: Fabric, clock: FakeClock, people: People
) -> None:
    closed = remembered(fabric, people, predicate="a", classification="CONFIDENTIAL")
    usual = remembered(fabric, people, predicate="b")
    then = clock.now
    run = people.run(classification_allowed={"INTERNAL", "CONFIDENTIAL"})
    assert set(ids(fabric, run)) == {closed, usual}
    clock.advance(days=1)
    labels = "classifications: [{name: PUBLIC}, {name: INTERNAL}, {name: CONFIDENTIAL, sensitive: true}]"
    put_in_force(fabric, people.tenant_id, version(2, labels))
    assert ids(fabric, run) == ids(fabric, run, then) == [usual]
    assert closed not in fabric.recall(run, "email", as_of=then).model_dump_json()


# --- the pack of then


@pytest.mark.rule("REC-7", "PAC-4")
def test_the_pack_of_then_decides_and_a_pin_narrows_it(fabric: Fabric, clock: FakeClock, people: People) -> None:
    first = version(1, "memory_layer: {recall_policy: {max_recalls: 2, confidence: 0.2}}")
    second = version(2, "memory_layer: {recall_policy: {max_recalls: 3}}", may_pin="[acme@1.0.0]")
    put_in_force(fabric, people.tenant_id, first)
    for n in range(4):
        remembered(fabric, people, predicate=f"p{n}", confidence=0.45 if n == 0 else 0.8, priority=1 - n / 10)
    clock.advance(days=1)
    then = clock.now
    clock.advance(days=1)
    put_in_force(fabric, people.tenant_id, second)
    remembered(fabric, people, predicate="p9", priority=0.0)

    def shape(**asked: Any) -> tuple[int, int, int, str]:
        answer = fabric.recall(people.run(pack=asked.pop("pack", None)), **asked)
        assert fabric.replay(people.auditor, answer.recall_id).same
        return len(answer.records), len(answer.low_confidence), answer.omitted, answer.pack

    assert shape() == (3, 1, 1, "acme@2.0.0")
    assert shape(as_of=then) == (2, 0, 2, "acme@1.0.0")
    assert shape(as_of=clock.now) == (3, 1, 1, "acme@2.0.0")
    # Both count: the limit of the first, the floor of the second.
    assert shape(as_of=then, pack="acme@2.0.0") == (2, 1, 1, "acme@2.0.0")
    assert shape(pack="acme@1.0.0") == (2, 1, 2, "acme@1.0.0")
    assert shape(pack="acme@2.0.0") == shape()


@pytest.mark.rule("REC-7")
def test_a_label_that_is_new_does_not_close_the_past(fabric: Fabric, clock: FakeClock, people: People) -> None:
    memory_id = remembered(fabric, people)
    then = clock.now
    clock.advance(days=1)
    grown = "classifications: [{name: PUBLIC}, {name: INTERNAL}, {name: SECRET}]"
    put_in_force(fabric, people.tenant_id, version(2, grown))
    run = people.run(classification_allowed={"INTERNAL", "SECRET"})
    assert ids(fabric, run) == [memory_id]
    assert ids(fabric, run, then) == [memory_id]


# --- other verbs of that moment


@pytest.mark.rule("REC-6", "REC-11")
def test_a_prompt_can_be_compiled_as_of_then(fabric: Fabric, people: People, clock: FakeClock) -> None:
    old = remembered(fabric, people, "email")
    clock.advance(days=1)
    then = clock.now
    clock.advance(days=1)
    proposal = proposed(fabric, people.run(), entity=SUBJECT, predicate="prefers_channel", value="phone")
    fabric.queue.approve(people.reviewer, proposal.proposal_id, supersedes=old)
    assert "email" in fabric.compile(people.run(), as_of=then).text
    assert "phone" in fabric.compile(people.run()).text


@pytest.mark.rule("REC-10", "REC-7")
def test_an_explanation_of_a_moment_tells_of_that_moment(fabric: Fabric, people: People, clock: FakeClock) -> None:
    begin = clock.now
    clock.advance(days=1)
    memory_id = remembered(fabric, people, tier="episodic")
    promoted_at = clock.now
    clock.advance(days=40)

    def explained(as_of: datetime | None, **asked: Any) -> str:
        return fabric.explain(people.run(), memory_id=memory_id, as_of=as_of, **asked).visibility

    assert explained(begin) == "not_yet_promoted"
    assert explained(promoted_at) == "visible"
    assert explained(None) == "expired"
    assert explained(promoted_at + timedelta(days=30)) == "expired"
    assert explained(promoted_at + timedelta(days=30) - MICROSECOND) == "visible"
