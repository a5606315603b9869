"""The Context Pack: its defaults, what its sections may say of each other, its digest, its durations."""

import json
from datetime import timedelta
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from muniment.errors import PackInvalid, UnknownLabel
from muniment.pack import (
    Pack,
    TierWhen,
    builtin_pack,
    format_duration,
    load_pack,
    parse_duration,
)

HEAD = 'pack_meta: {id: acme.support, version: "2.1.0"}\n'


def said_of(text: str) -> dict[str, str]:
    """What is wrong with the pack, by path."""
    with pytest.raises(PackInvalid) as refused:
        load_pack(text)
    return {problem.path: problem.message for problem in refused.value.problems}


# --- the built-in pack


@pytest.mark.rule("PAC-2")
def test_the_built_in_pack_writes_out_exactly_the_defaults_of_a_pack_that_says_nothing():
    minimal = load_pack('pack_meta: {id: muniment.builtin, version: "1.3.0"}')

    assert builtin_pack().document() == minimal.document()
    assert builtin_pack() == minimal
    assert builtin_pack().ref == "muniment.builtin@1.3.0"


@pytest.mark.rule("PAC-2")
def test_the_built_in_pack_allows_every_class_and_promotes_nothing_by_itself():
    pack = builtin_pack()

    assert set(pack.memory_layer.write_classes_allowed) == set(pack.memory_layer.classes)
    assert len(pack.memory_layer.classes) == 5
    for policy in pack.memory_layer.classes.values():
        assert policy.approval == "human"
        assert policy.auto_promotion is None
        assert policy.auto_resolve is None
        assert policy.predicates == policy.consent_purposes == ("*",)


@pytest.mark.rule("PAC-2")
def test_the_built_in_pack_has_every_redaction_detector_on():
    rules = {rule.detector: rule for rule in builtin_pack().policy_layer.guardrails.redaction_rules}

    assert set(rules) == {"card", "iban", "phone", "email", "ip", "api_key", "national_id", "date_of_birth"}
    assert all(rule.enabled and rule.classification == "PII" for rule in rules.values())
    assert (rules["card"].keep_last, rules["card"].mask) == (4, None)
    assert rules["email"].mask == "[EMAIL]"


def test_the_numbers_of_the_specification_are_the_defaults():
    layer = builtin_pack().memory_layer

    assert layer.memory_policy.ttl == {
        "working": timedelta(hours=1),
        "episodic": timedelta(days=30),
        "semantic": timedelta(days=365),
        "durable": None,
    }
    thresholds = layer.promotion_thresholds
    assert (thresholds.confidence_floor, thresholds.auto_confidence, thresholds.uncalibrated_cap) == (
        0.3,
        0.9,
        0.8,
    )
    assert thresholds.sensitive_sla == timedelta(hours=24)
    statement = thresholds.statement_confidence
    assert (statement.operator, statement.system, statement.agent) == (0.95, 0.85, 0.60)
    assert layer.classes["correction"].sla == timedelta(hours=4)
    assert layer.classes["statement"].sla == timedelta(hours=72)
    assert (layer.recall_policy.max_recalls, layer.recall_policy.confidence) == (8, 0.5)
    assert (layer.contradiction.similarity, layer.contradiction.duplicate_similarity) == (0.85, 0.94)
    assert (layer.contradiction.unresolved, layer.contradiction.margin) == ("mark_both", 0.15)
    assert (layer.trust.floor, layer.consent.revocation_note_limit) == (0.4, 100)
    assert layer.rejections.remember == timedelta(days=180)
    assert layer.retention.replay_horizon == timedelta(days=90)
    assert (layer.audit.sample_share, layer.audit.floor, layer.audit.min_samples) == (0.05, 0.95, 30)
    priority = layer.memory_policy.priority
    assert (priority.operator, priority.system, priority.agent) == (0.9, 0.7, 0.5)
    assert (priority.per_evidence, priority.evidence_max) == (0.05, 0.3)


def test_the_default_routing_follows_the_order_of_the_specification():
    routing = builtin_pack().memory_layer.memory_policy.tier_routing

    assert [(rule.when, rule.tier) for rule in routing] == [
        (TierWhen(source="operator"), "durable"),
        (TierWhen(write_class="correction"), "durable"),
        (TierWhen(write_class="preference"), "semantic"),
        (TierWhen(write_class="decision_outcome"), "episodic"),
        (TierWhen(intent="support.*"), "episodic"),
        (TierWhen(sensitive=True), "working"),
        (TierWhen(), "semantic"),
    ]


# --- what a pack answers


def test_classifications_rank_in_the_order_they_are_declared():
    pack = builtin_pack()

    assert pack.labels == ("PUBLIC", "INTERNAL", "CONFIDENTIAL", "PII", "RESTRICTED")
    assert [pack.rank(label) for label in pack.labels] == [0, 1, 2, 3, 4]
    assert [label for label in pack.labels if pack.is_sensitive(label)] == ["PII", "RESTRICTED"]
    assert pack.has_label("PII")
    assert not pack.has_label("pii")
    with pytest.raises(UnknownLabel):
        pack.rank("pii")
    with pytest.raises(UnknownLabel):
        pack.is_sensitive("SECRET")


def test_a_role_sees_what_the_pack_allows_and_an_unknown_role_sees_nothing():
    pack = load_pack(HEAD + "roles: {agent: {classifications_allowed: [INTERNAL, PUBLIC]}, billing_bot: {}}")

    assert pack.labels_for("agent") == ("PUBLIC", "INTERNAL")
    assert pack.labels_for("billing_bot") == pack.labels
    assert pack.labels_for("auditor") == pack.labels, "the six roles exist in every pack"
    assert pack.labels_for("nobody") == ()


def test_a_predicate_holds_one_value_unless_it_is_declared_to_hold_many():
    pack = load_pack(HEAD + "ontology: {predicates: {speaks: {cardinality: many}, lives_in: {type: string}}}")

    assert not pack.is_single_valued("speaks")
    assert pack.is_single_valued("lives_in")
    assert pack.is_single_valued("never_declared")


def test_a_class_that_is_half_written_keeps_the_defaults_of_its_own_class():
    pack = load_pack(
        HEAD + "memory_layer:\n"
        "  promotion_thresholds: {auto_confidence: 0.97}\n"
        "  contradiction: {margin: 0.2}\n"
        "  classes:\n"
        "    correction: {evidence_required: 1}\n"
        "    preference: {approval: auto, auto_promotion: {}, auto_resolve: {fresher_evidence: false}}\n"
    )

    correction, preference = pack.policy_for("correction"), pack.policy_for("preference")
    assert (correction.evidence_required, correction.sla, correction.risk) == (1, timedelta(hours=4), "high")
    assert preference.auto_promotion is not None
    assert preference.auto_promotion.threshold == 0.97
    assert preference.auto_resolve is not None
    assert (preference.auto_resolve.margin, preference.auto_resolve.fresher_evidence) == (0.2, False)
    assert pack.policy_for("statement") == builtin_pack().policy_for("statement")


def test_setting_one_tier_leaves_the_others_as_they_were():
    layer = load_pack(HEAD + "memory_layer: {memory_policy: {ttl: {episodic: 7d}}}").memory_layer

    assert layer.memory_policy.ttl["episodic"] == timedelta(days=7)
    assert layer.memory_policy.ttl["working"] == timedelta(hours=1)


def test_a_pack_that_adds_a_redaction_rule_does_not_turn_the_detectors_off():
    rules = load_pack(
        HEAD + "policy_layer: {guardrails: {redaction_rules: ["
        "{name: order, pattern: 'ORD-[0-9]+', mask: '[ORDER]', classification: null},"
        "{name: ip, detector: ip, enabled: false}]}}"
    ).policy_layer.guardrails.redaction_rules

    assert [rule.name for rule in rules[:2]] == ["order", "ip"]
    assert rules[0].classification is None
    assert (rules[1].enabled, rules[1].mask) == (False, "[IP]")
    assert len({rule.detector for rule in rules if rule.enabled and rule.detector}) == 7


def test_what_a_detector_finds_raises_to_the_lowest_sensitive_label_of_the_pack():
    pack = load_pack(HEAD + "classifications: [{name: open}, {name: inner, sensitive: true}, {name: deep}]")
    assert {rule.classification for rule in pack.policy_layer.guardrails.redaction_rules} == {"inner"}

    without = load_pack(HEAD + "classifications: [{name: open}]")
    assert {rule.classification for rule in without.policy_layer.guardrails.redaction_rules} == {None}


# --- identity of a pack


def test_a_document_loads_again_to_an_equal_pack_with_the_same_digest():
    pack = load_pack(
        HEAD + "memory_layer:\n"
        "  classes:\n"
        "    preference: {retention: P2W, sla: PT36H, approval: auto, auto_promotion: {threshold: 1}}\n"
        "  trust: {tools: {crm.lookup: 0.95}}\n"
        "  budgets: [{tier: semantic, records: 10}]\n"
        "  extractors: [{name: crm, version: 0.1.0, fields: [{entity: $.id, namespace: customer,"
        " predicate: $.what, value: $.value, write_class: preference}]}]\n"
        "identity: {classified_attributes: {iban: {label: PII, keep_last: 4}}}\n"
    )

    again = load_pack(json.dumps(pack.document()))
    assert again == pack
    assert again.digest == pack.digest
    assert Pack.model_validate(pack.document()) == pack
    policy = pack.document()["memory_layer"]["classes"]["preference"]
    assert (policy["retention"], policy["sla"]) == ("14d", "36h")


def test_the_digest_depends_on_what_is_said_and_not_on_how():
    one = load_pack(HEAD + "memory_layer: {trust: {floor: 1}, rejections: {remember: 24h}}")
    same = load_pack(
        '{"memory_layer": {"rejections": {"remember": "P1D"}, "trust": {"floor": 1.0}},'
        ' "pack_meta": {"version": "2.1.0", "id": "acme.support"}}'
    )
    other = load_pack(HEAD + "memory_layer: {trust: {floor: 0.99}, rejections: {remember: 24h}}")

    assert one.digest == same.digest
    assert one.digest != other.digest
    assert len(one.digest) == 64


def test_a_pack_cannot_be_changed_through_itself_or_its_document():
    pack = load_pack(HEAD)
    before = pack.digest

    pack.document()["memory_layer"]["trust"]["floor"] = 0.0
    with pytest.raises(ValidationError):
        pack.memory_layer.trust.floor = 0.0  # pyright: ignore[reportAttributeAccessIssue]  that is the point
    load_pack(HEAD).memory_layer.memory_policy.ttl["working"] = None
    assert pack.digest == load_pack(HEAD).digest == before


# --- what sections must not say of each other


@pytest.mark.rule("REV-3")
def test_auto_approval_of_a_high_risk_class_is_a_pack_error():
    said = said_of(
        HEAD + "memory_layer: {classes: {"
        "preference: {risk: high, approval: auto, auto_promotion: {}},"
        "correction: {approval: auto, auto_promotion: {}},"
        "statement: {auto_promotion: {}},"
        "decision_outcome: {approval: auto}}}"
    )

    assert "the risk is high" in said["memory_layer.classes.preference.approval"]
    assert "the risk is high" in said["memory_layer.classes.correction.approval"], "high by default"
    assert "approval is human" in said["memory_layer.classes.statement.auto_promotion"]
    assert "without auto_promotion" in said["memory_layer.classes.decision_outcome.approval"]
    assert len(said) == 4


@pytest.mark.rule("CAN-6")
def test_no_threshold_lets_a_source_without_history_promote_itself():
    said = said_of(HEAD + "memory_layer: {classes: {preference: {approval: auto, auto_promotion: {threshold: 0.8}}}}")
    assert "uncalibrated_cap (0.8), got 0.8" in said["memory_layer.classes.preference.auto_promotion.threshold"]


LAYER = "memory_layer: "
RULES = "policy_layer: {guardrails: {redaction_rules: "
INCONSISTENT = [
    ("roles: {agent: {classifications_allowed: [PUBLIC, SECRET]}}", "roles.agent.classifications_allowed.1"),
    ("ontology: {predicates: {a: {label: SECRET}}}", "ontology.predicates.a.label"),
    ("identity: {classified_attributes: {a: {label: SECRET}}}", "identity.classified_attributes.a.label"),
    ("identity: {classified_attributes: {a: {}}}", "identity.classified_attributes.a"),
    ("identity: {classified_attributes: {a: {mask: x, keep_last: 2}}}", "identity.classified_attributes.a"),
    ("identity: {namespaces: [customer], aliases: {cust: person}}", "identity.aliases.cust"),
    ("identity: {namespaces: [customer], aliases: {customer: customer}}", "identity.aliases.customer"),
    ("identity: {aliases: {a: b, b: c}}", "identity.aliases.a"),
    ("identity: {namespaces: [a, a]}", "identity.namespaces"),
    ("ontology: {predicates: {a: {renamed_from: [b]}, b: {}}}", "ontology.predicates.a.renamed_from.0"),
    ("ontology: {predicates: {a: {}}, dropped: [b, a]}", "ontology.dropped.1"),
    ("ontology: {predicates: {a: {renamed_from: [b]}}, dropped: [b]}", "ontology.dropped.0"),
    (
        "ontology: {predicates: {a: {renamed_from: [c]}, b: {renamed_from: [c]}}}",
        "ontology.predicates.b.renamed_from.0",
    ),
    ("classifications: [{name: A}, {name: A}]", "classifications.1.name"),
    ("classifications: []", "classifications"),
    (
        LAYER + "{classes: {preference: {classifications_allowed: [SECRET]}}}",
        "memory_layer.classes.preference.classifications_allowed.0",
    ),
    (
        LAYER + "{memory_policy: {tier_routing: [{when: {sensitive: true}, tier: working}]}}",
        "memory_layer.memory_policy.tier_routing.0",
    ),
    (
        LAYER + "{memory_policy: {tier_routing: [{tier: working}, {tier: semantic}]}}",
        "memory_layer.memory_policy.tier_routing.0",
    ),
    (
        LAYER + "{recall_policy: {weights: {vector: 0, words: 0, priority: 0, recency: 0, confidence: 0,"
        " intent: 0, entity: 0}}}",
        "memory_layer.recall_policy.weights",
    ),
    (LAYER + "{budgets: [{tier: semantic}]}", "memory_layer.budgets.0"),
    (LAYER + "{budgets: [{records: 5}, {bytes: 9}]}", "memory_layer.budgets.1"),
    (
        "identity: {namespaces: [order]}\n" + LAYER + "{write_classes_allowed: [statement], extractors: [{name: a,"
        " version: 1.0.0, fields: [{entity: $.a, predicate: p, value: $.b, write_class: preference}]}]}",
        "memory_layer.extractors.0.fields.0.write_class",
    ),
    (
        "identity: {namespaces: [order]}\n" + LAYER + "{extractors: [{name: a, version: 1.0.0, fields:"
        " [{entity: $.a, namespace: customer, predicate: p, value: $.b, write_class: preference}]}]}",
        "memory_layer.extractors.0.fields.0.namespace",
    ),
    (RULES + "[{name: a, mask: x}]}}", "policy_layer.guardrails.redaction_rules.0"),
    (RULES + "[{name: a, pattern: x}]}}", "policy_layer.guardrails.redaction_rules.0"),
    (
        RULES + "[{name: a, detector: card, pattern: x, mask: y}]}}",
        "policy_layer.guardrails.redaction_rules.0",
    ),
    (
        RULES + "[{name: a, detector: card, mask: x, keep_last: 2}]}}",
        "policy_layer.guardrails.redaction_rules.0",
    ),
    (RULES + "[{name: email, pattern: x, mask: y}]}}", "policy_layer.guardrails.redaction_rules.0.name"),
    (
        RULES + "[{name: a, pattern: x, mask: y}, {name: a, pattern: z, mask: y}]}}",
        "policy_layer.guardrails.redaction_rules.1.name",
    ),
    (
        RULES + "[{name: a, detector: card}, {name: b, detector: card}]}}",
        "policy_layer.guardrails.redaction_rules.1.detector",
    ),
    (
        RULES + "[{name: a, detector: card, classification: NO}]}}",
        "policy_layer.guardrails.redaction_rules.0.classification",
    ),
]


@pytest.mark.rule("PAC-1")
@pytest.mark.parametrize(("text", "path"), INCONSISTENT)
def test_sections_that_do_not_fit_each_other_are_refused_at_the_place_that_is_wrong(text: str, path: str):
    assert list(said_of(HEAD + text)) == [path]
    with pytest.raises(ValidationError):
        Pack.model_validate(_plain(HEAD + text))


def _plain(text: str) -> Any:
    return yaml.safe_load(text)


# --- durations


@pytest.mark.parametrize(
    ("text", "duration", "canonical"),
    [
        ("30d", timedelta(days=30), "30d"),
        ("4h", timedelta(hours=4), "4h"),
        ("90s", timedelta(seconds=90), "90s"),
        ("60m", timedelta(hours=1), "1h"),
        ("P1DT12H", timedelta(hours=36), "36h"),
        ("PT15M", timedelta(minutes=15), "15m"),
        ("P2W", timedelta(days=14), "14d"),
    ],
)
def test_a_duration_is_read_and_written_back_to_the_same_length(text: str, duration: timedelta, canonical: str):
    assert parse_duration(text) == duration
    assert format_duration(duration) == canonical
    assert parse_duration(canonical) == duration


@pytest.mark.parametrize(
    "text", ["", "d", "0d", "PT0S", "-1d", "1.5h", "1 d", "1D", "P", "PT", "P1DT", "P1M", "36501d", "٣d"]
)
def test_what_is_not_a_positive_duration_is_refused(text: str):
    with pytest.raises(ValueError, match="expected a duration"):
        parse_duration(text)
