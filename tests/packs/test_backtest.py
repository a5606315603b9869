"""A pack tried against history: what it would decide differently, by rule, in a shadow that cannot write."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from muniment import Fabric
from muniment.errors import InvalidInput, NotFound, RoleMissing
from muniment.pack import load_pack
from muniment.packs import backtest_history as read_only
from muniment.testing import FakeClock, People, TestServer
from tests.conftest import HEAD, Opener
from tests.security.catalogue import tenant_tables
from tests.stories import KEY, event_data, promoted, proposed, remembered, run_job

BASE = "memory_layer: {promotion_thresholds: {calibrate_from: 4}}"
MAP = "{name: crm, version: 1.0.0, fields: [{predicate: plan, value: $.plan, write_class: preference, namespace: customer, entity: $.id}]}"


@dataclass(frozen=True)
class History:
    """Captures and recalls under the built-in pack, the interesting ones by name."""

    unsure: str
    outcome: str
    order: str
    phone: str
    rejected: str
    tool: str
    recall: str
    memories: tuple[str, ...]


@pytest.fixture
def history(fabric: Fabric, people: People, clock: FakeClock) -> History:
    """One memory on a key; a fact that contradicts it, one that was rejected, one that is unsure; and so on."""
    email = promoted(fabric, people, "email")
    phone = proposed(fabric, people.run(), **KEY, value="phone")
    rejected = proposed(fabric, people.run(), entity="customer:cust_2", predicate="plan", value="gold")
    fabric.queue.reject(people.reviewer, rejected.proposal_id, reason="wrong")
    unsure = proposed(fabric, people.run(), entity="customer:cust_3", predicate="plan", value="silver", confidence=0.35)
    outcome = proposed(
        fabric, people.run(), write_class="decision_outcome", entity="order:o_1", predicate="refund", value="granted"
    )
    said = {"kind": "statement", "classification": "INTERNAL"}
    order = fabric.capture(people.run(), text="Order A-123 was late again.", **said)
    payload = {"id": "cust_4", "plan": "gold"}
    tool = fabric.capture(people.run(), kind="tool_result", classification="INTERNAL", payload=payload)
    fabric.consolidate(people.tenant_id)
    clock.advance(hours=2)
    coffee = remembered(fabric, people, "coffee", predicate="drinks", priority=0.9)
    secret = remembered(fabric, people, "late", predicate="arrives", classification="CONFIDENTIAL", priority=0.2)
    recall = fabric.recall(people.run())
    assert [record.id for record in recall.records] == [coffee, email, secret]
    fabric.recall(people.run("nobody"))
    return History(
        unsure.candidate.capture_id,
        outcome.candidate.capture_id,
        order.capture_id,
        phone.candidate.capture_id,
        rejected.candidate.capture_id,
        tool.capture_id,
        recall.recall_id,
        (coffee, email, secret),
    )


def differing(fabric: Fabric, people: People, text: str, **window: Any) -> dict[tuple[str, str, str], Any]:
    """What a pack does differently, with the ids of the examples."""
    found = fabric.packs.backtest(people.admin, load_pack(HEAD + text), **window)
    assert all(one.count >= len(one.examples) > 0 for one in found.differences)
    return {(one.rule, one.before, one.after): [shown.id for shown in one.examples] for one in found.differences}


LAYER = "memory_layer: "
REFUSED = "refused: "


@pytest.mark.rule("PAC-3")
def test_a_stricter_pack_differs_in_exactly_the_rules_it_changes(
    fabric: Fabric, people: People, history: History
) -> None:
    one = history
    shorter = "classes: {preference: {retention: 10d, sla: 1d}}"
    routed = "memory_policy: {tier_routing: [{when: {write_class: decision_outcome}, tier: durable}, {tier: semantic}]}"
    order = "policy_layer: {guardrails: {redaction_rules: [{name: order, pattern: 'A-[0-9]+', mask: '[ORDER]'%s}]}}"
    assert differing(fabric, people, "") == {}, "its name alone changes nothing"
    below = "confidence.confidence_below_floor"
    assert differing(fabric, people, LAYER + "{promotion_thresholds: {confidence_floor: 0.5}}") == {
        (below, "person", REFUSED + below): [one.unsure]
    }
    not_allowed = "allow_list.class_not_allowed"
    classes = "[evidence_link, preference, correction, statement]"
    assert differing(fabric, people, LAYER + f"{{write_classes_allowed: {classes}}}") == {
        (not_allowed, "person", REFUSED + not_allowed): [one.outcome]
    }
    assert differing(fabric, people, order % ", classification: null") == {
        ("redaction", "nothing", "order 1"): [one.order]
    }
    missing = "consent.consent_missing"
    assert differing(fabric, people, order % "") == {
        (missing, "person", REFUSED + missing): [one.order],
        ("redaction", "nothing", "order 1"): [one.order],
    }
    found = differing(fabric, people, LAYER + f"{{{shorter}}}", recalls=0)
    assert {rule: len(ids) for rule, ids in found.items()} == {
        ("retention", "365d", "10d"): 5,
        ("sla", "3d", "1d"): 5,
    }
    assert differing(fabric, people, LAYER + f"{{{routed}}}") == {
        ("approval", "a person: approval_mode, low_confidence", "a person: approval_mode, durable, low_confidence"): [
            one.outcome
        ],
        ("retention", "30d", "no end"): [one.outcome],
        ("tier", "episodic", "durable"): [one.outcome],
    }
    assert differing(fabric, people, "ontology: {predicates: {prefers_channel: {cardinality: many}}}") == {
        ("contradiction", "open", "nothing"): [one.phone]
    }
    assert differing(fabric, people, LAYER + f"{{extractors: [{MAP}]}}") == {
        ("extractor.crm", "no fact", "a fact"): [one.tool]
    }


@pytest.mark.rule("PAC-3")
def test_recalls_are_ranked_again_and_the_rule_that_moves_a_record_is_named(
    fabric: Fabric, people: People, history: History, clock: FakeClock
) -> None:
    coffee, email, secret = history.memories
    cases: dict[str, tuple[str, str, str, tuple[str, ...]]] = {
        "{recall_policy: {max_recalls: 2}}": ("recall.max_recalls", "returned", "not returned", (secret,)),
        "{recall_policy: {freshness: {semantic: 1h}}}": ("recall.freshness", "returned", "not returned", (email,)),
        "{recall_policy: {confidence: 0.75}}": (
            "recall.confidence",
            "plain",
            "low_confidence",
            (coffee, email, secret),
        ),
    }
    for layer, (rule, before, after, records) in cases.items():
        found = fabric.packs.backtest(people.admin, load_pack(HEAD + LAYER + layer))
        assert [(one.rule, one.before, one.after, one.count) for one in found.differences] == [(rule, before, after, 1)]
        assert found.differences[0].examples[0].records == records
        assert (found.differences[0].examples[0].id, found.recalls.recalls) == (history.recall, 2)
        assert found.recalls.gone == (0 if rule == "recall.confidence" else len(records))
    narrowed = "roles: {agent: {classifications_allowed: [PUBLIC, INTERNAL]}}"
    labels = fabric.packs.backtest(people.admin, load_pack(HEAD + narrowed))
    assert [(one.rule, one.examples[0].records) for one in labels.differences] == [("recall.labels", (secret,))]
    # The other way round what is gone comes back, and another moment's recalls are not looked at.
    wider = fabric.packs.register(people.admin, load_pack(HEAD + narrowed)).ref
    back = fabric.packs.backtest(people.auditor, load_pack(HEAD.replace("1.0.0", "2.0.0")), against=wider)
    assert [(one.rule, one.before, one.after) for one in back.differences] == [
        ("recall.labels", "not returned", "returned")
    ]
    assert (back.against, back.pack, back.recalls.come) == (wider, "acme@2.0.0", 1)
    clock.advance(days=1)
    later = fabric.packs.backtest(people.admin, load_pack(HEAD + narrowed), since=clock.now - timedelta(hours=1))
    assert (later.captures, later.recalls.recalls, later.differences) == (0, 0, ())


@pytest.mark.rule("PAC-3", "REV-3")
def test_what_policy_would_promote_alone_is_counted_under_both_packs(
    under: Opener, people: People, clock: FakeClock
) -> None:
    with under(BASE) as fabric:
        for n in range(4):
            promoted(fabric, people, "email", entity=f"customer:cust_{n}", confidence=0.95)
        assert run_job(fabric, "calibrate", people.tenant_id).nonzero == {"sources": 1}
        auto = HEAD.replace("1.0.0", "2.0.0") + (
            "memory_layer: {classes: {preference: {approval: auto, auto_promotion: {threshold: 0.82}}}}"
        )
        fabric.packs.backtest(people.reviewer, load_pack(auto))
        assert event_data(fabric, people, "capture_read") == []
        found = fabric.packs.backtest(people.reviewer, load_pack(auto), texts=True)
        readings = event_data(fabric, people, "capture_read")
    assert (found.before.fates, found.after.fates) == ({"person": 4}, {"promoted": 4})
    (approval,) = found.differences
    assert (approval.rule, approval.before, approval.after, approval.count) == (
        "approval",
        "a person: approval_mode, low_confidence",
        "policy alone",
        4,
    )
    assert approval.examples[-1].text == "customer:cust_0 prefers channel: email"
    # Who is shown what was captured is recorded.
    assert {one["capture_id"] for one in readings} == {one.id for one in approval.examples}


@pytest.mark.rule("PAC-3")
def test_a_backtest_writes_nothing_and_its_shadow_is_refused_by_the_database(
    fabric: Fabric, people: People, history: History, server: TestServer, database: str
) -> None:
    stricter = load_pack(HEAD + LAYER + "{promotion_thresholds: {confidence_floor: 0.5}}")

    def everything() -> dict[str, Any]:
        with server.connect(database) as owner:
            return {
                table: owner.execute(
                    f"SELECT count(*), max(xmin::text::bigint) FROM {table} WHERE tenant_id = %s",  # type: ignore[arg-type]
                    [people.tenant_id],
                ).fetchone()
                for table in tenant_tables(owner)
            }

    before = everything()
    found = fabric.packs.backtest(people.admin, stricter)
    assert (found.captures, found.differences != ()) == (9, True)
    assert everything() == before
    # Neither is held against itself: what became a memory is no duplicate, what was rejected no repetition.
    assert found.before.fates == {"person": 7, "contradiction": 1}
    fabric.retract(people.reviewer, history.memories[1], reason="superseded")
    assert fabric.packs.backtest(people.admin, stricter).before == found.before, "it stood when the other came"
    context = fabric._fabric._context

    async def write() -> None:
        async with context.read_only(people.tenant_id) as tx:
            await tx.do("tenant.add")

    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        fabric._portal.call(write)


@pytest.mark.rule("PAC-3", "CTR-2")
@pytest.mark.parametrize("fetched", [0, read_only.FETCHED])
def test_texts_are_compared_with_what_stood_however_many_there_are(
    fabric: Fabric, people: People, monkeypatch: pytest.MonkeyPatch, fetched: int
) -> None:
    monkeypatch.setattr(read_only, "FETCHED", fetched)
    for days in (30, 14):
        text = f"Returns are accepted within {days} days."
        first = proposed(fabric, people.run(None), write_class="statement", text=text)
        if days == 30:
            fabric.queue.approve(people.reviewer, first.proposal_id)
    found = fabric.packs.backtest(people.admin, load_pack(HEAD))
    assert found.before.fates == found.after.fates == {"person": 1, "contradiction": 1}


@pytest.mark.rule("PAC-3", "CTR-1")
def test_what_people_say_in_their_own_words_meets_what_is_stored_of_it(fabric: Fabric, people: People) -> None:
    said = {"kind": "message", "classification": "INTERNAL", "subject": "customer:cust_1"}
    for text in ("I love hiking.", "I no longer like hiking."):
        fabric.capture(people.run(), text=text, **said)
        fabric.consolidate(people.tenant_id)
        (item,) = fabric.queue.list(people.reviewer)
        if text == "I love hiking.":
            fabric.queue.approve(people.reviewer, item.proposal_id)
    found = fabric.packs.backtest(people.admin, load_pack(HEAD))
    assert found.before.fates == found.after.fates == {"person": 1, "contradiction": 1}
    # Stored in the open under a pack that declares it, it is the same fact, and stands on another key.
    declares = "ontology: {predicates: {likes_hiking: {}}}"
    assert list(differing(fabric, people, declares)) == [("contradiction", "open", "nothing")]


@pytest.mark.rule("PAC-3")
def test_a_backtest_is_bounded_tells_what_it_left_and_shows_text_to_reviewers_alone(
    fabric: Fabric, people: People, history: History
) -> None:
    stricter = load_pack(HEAD + LAYER + "{promotion_thresholds: {confidence_floor: 0.5}}")
    result: list[int] = []
    found = fabric.packs.backtest(people.admin, stricter, limit=2, recalls=1, on_progress=result.append)
    assert (found.captures, found.more, found.recalls.recalls, result[-1]) == (2, True, 1, 3)
    whole = fabric.packs.backtest(people.admin, stricter, limit=9)
    assert (whole.captures, whole.more) == (9, False)
    assert all(shown.text is None for one in whole.differences for shown in one.examples)
    assert len(whole.notes) == 3
    # A model is not asked: nobody listens there, and it would be told as failed.
    fabric.capture(people.run(), kind="message", classification="INTERNAL", text="The parcel came yesterday.")
    asks = load_pack(HEAD + LAYER + "{extraction: {model: {model: small}}}")
    assert list(fabric.packs.backtest(people.admin, asks).left_out.values()) == [1]
    with pytest.raises(RoleMissing):
        fabric.packs.backtest(people.admin, stricter, texts=True)
    with pytest.raises(RoleMissing):
        fabric.packs.backtest(people.run(), stricter)
    with pytest.raises(NotFound, match="against"):
        fabric.packs.backtest(people.admin, stricter, against="acme@9.0.0")
    with pytest.raises(InvalidInput, match="limit"):
        fabric.packs.backtest(people.admin, stricter, limit=0)


@pytest.mark.rule("PAC-4")
def test_packs_are_compared_as_registered_as_files_or_as_text(fabric: Fabric, people: People, tmp_path: Any) -> None:
    ref = fabric.packs.register(people.admin, load_pack(HEAD)).ref
    file = tmp_path / "acme.yaml"
    file.write_text(HEAD.replace("1.0.0", "1.1.0") + "memory_layer: {recall_policy: {max_recalls: 3}}")
    found = fabric.packs.compare(people.auditor, ref, file)
    assert [(one.path, one.before, one.after) for one in found.changes] == [
        ("pack_meta.version", "1.0.0", "1.1.0"),
        ("memory_layer.recall_policy.max_recalls", 8, 3),
    ]
    assert fabric.packs.compare(people.reviewer, file.read_text(), file).same
    with pytest.raises(NotFound):
        fabric.packs.compare(people.admin, ref, "acme@3.0.0")
    with pytest.raises(RoleMissing):
        fabric.packs.compare(people.run(), ref, file)
