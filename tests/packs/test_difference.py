"""Two packs held against each other, rule by rule."""

import json
from typing import Any

import pytest

from muniment.pack import Pack, builtin_pack, load_pack
from muniment.packs.difference import differences

HEAD = 'pack_meta: {id: acme, version: "1.0.0"}\n'
MAP = "{name: %s, version: 1.0.0, fields: [{predicate: plan, value: $.plan, write_class: preference%s}]}"


def changes_between(before: str, after: str) -> list[tuple[str, str, Any, Any]]:
    found = differences(load_pack(HEAD + before), load_pack(HEAD + after))
    return [(one.path, one.kind, one.before, one.after) for one in found.changes]


ONE_RULE: dict[str, tuple[str, str, list[tuple[str, str, Any, Any]]]] = {
    "a number": (
        "",
        "memory_layer: {recall_policy: {max_recalls: 3}}",
        [("memory_layer.recall_policy.max_recalls", "changed", 8, 3)],
    ),
    "a term of a class": (
        "memory_layer: {classes: {preference: {sla: 72h}}}",
        "memory_layer: {classes: {preference: {sla: 24h}}}",
        [("memory_layer.classes.preference.sla", "changed", "3d", "1d")],
    ),
    "a default written out": ("", "memory_layer: {classes: {preference: {sla: 72h}}}", []),
    "a predicate": (
        "ontology: {predicates: {a: {type: string}}}",
        "ontology: {predicates: {a: {type: number}, b: {cardinality: many}}}",
        [
            ("ontology.predicates.a.type", "changed", "string", "number"),
            (
                "ontology.predicates.b",
                "added",
                None,
                {"cardinality": "many", "type": "any", "label": None, "renamed_from": []},
            ),
        ],
    ),
    "a rule of redaction before the others": (
        "",
        "policy_layer: {guardrails: {redaction_rules: [{name: order, pattern: 'A-[0-9]+', mask: '[ORDER]'}]}}",
        [
            (
                "policy_layer.guardrails.redaction_rules.order",
                "added",
                None,
                {
                    "name": "order",
                    "detector": None,
                    "pattern": "A-[0-9]+",
                    "mask": "[ORDER]",
                    "keep_last": None,
                    "classification": "PII",
                    "enabled": True,
                    "model": None,
                },
            )
        ],
    ),
    "an exception": (
        "policy_layer: {guardrails: {redaction_exceptions: {phone: ['+49 30 901820']}}}",
        "policy_layer: {guardrails: {redaction_exceptions: {phone: ['+49 30 901820', '+49 30 901821']}}}",
        [
            (
                "policy_layer.guardrails.redaction_exceptions.phone",
                "changed",
                ["+4930901820"],
                ["+4930901820", "+4930901821"],
            )
        ],
    ),
    "a detector turned off": (
        "",
        "policy_layer: {guardrails: {redaction_rules: [{name: ip, detector: ip, enabled: false}]}}",
        [
            ("policy_layer.guardrails.redaction_rules.ip.enabled", "changed", True, False),
            (
                "policy_layer.guardrails.redaction_rules.(order)",
                "changed",
                ["card", "iban", "phone", "email", "ip", "api_key", "national_id", "date_of_birth"],
                ["ip", "card", "iban", "phone", "email", "api_key", "national_id", "date_of_birth"],
            ),
        ],
    ),
    "a label in another place": (
        "classifications: [{name: LOW}, {name: HIGH}, {name: TOP, sensitive: true}]",
        "classifications: [{name: HIGH}, {name: LOW}, {name: TOP, sensitive: true}]",
        [("classifications.(order)", "changed", ["LOW", "HIGH", "TOP"], ["HIGH", "LOW", "TOP"])],
    ),
    "a budget by what it counts": (
        "memory_layer: {budgets: [{tier: semantic, records: 5}, {records: 9}]}",
        "memory_layer: {budgets: [{records: 7}, {tier: semantic, records: 5}]}",
        [
            ("memory_layer.budgets.every tier, every class.records", "changed", 9, 7),
            (
                "memory_layer.budgets.(order)",
                "changed",
                ["semantic, every class", "every tier, every class"],
                ["every tier, every class", "semantic, every class"],
            ),
        ],
    ),
    "a field of an extractor": (
        f"memory_layer: {{extractors: [{MAP % ('crm', '')}]}}",
        f"memory_layer: {{extractors: [{MAP % ('crm', ', confidence: 0.5')}]}}",
        [("memory_layer.extractors.crm.fields.plan.confidence", "changed", 0.8, 0.5)],
    ),
    "a line of routing": (
        "",
        "memory_layer: {memory_policy: {tier_routing: [{when: {sensitive: true}, tier: working}, {tier: episodic}]}}",
        [
            ("memory_layer.memory_policy.tier_routing.when source=operator", "removed"),
            ("memory_layer.memory_policy.tier_routing.when write_class=correction", "removed"),
            ("memory_layer.memory_policy.tier_routing.when write_class=preference", "removed"),
            ("memory_layer.memory_policy.tier_routing.when write_class=decision_outcome", "removed"),
            ("memory_layer.memory_policy.tier_routing.when intent=support.*", "removed"),
            ("memory_layer.memory_policy.tier_routing.otherwise.tier", "changed"),
        ],  # type: ignore[dict-item]  # where the sides are long, the place is enough
    ),
    "what was none": (
        "",
        "memory_layer: {classes: {preference: {approval: auto, auto_promotion: {threshold: 0.9}}}}",
        [
            ("memory_layer.classes.preference.approval", "changed", "human", "auto"),
            ("memory_layer.classes.preference.auto_promotion", "changed", None, {"threshold": 0.9}),
        ],
    ),
}


@pytest.mark.rule("PAC-4")
@pytest.mark.parametrize("case", ONE_RULE)
def test_a_rule_is_named_by_its_place_with_both_sides(case: str) -> None:
    before, after, expected = ONE_RULE[case]
    assert [
        one[: len(wanted)] for one, wanted in zip(changes_between(before, after), expected, strict=True)
    ] == expected


@pytest.mark.rule("PAC-4")
def test_what_one_side_adds_the_other_lacks() -> None:
    layer = f"memory_layer: {{extractors: [{MAP % ('crm', '')}]}}"
    (added,), (removed,) = changes_between("", layer), changes_between(layer, "")
    assert (added[0], added[1], removed[1]) == ("memory_layer.extractors.crm", "added", "removed")
    assert added[3] == removed[2] and added[3]["name"] == "crm"


def test_changes_stand_by_section_in_the_order_of_the_pack() -> None:
    other = HEAD + (
        "roles: {agent: {classifications_allowed: [PUBLIC]}}\n"
        "memory_layer: {recall_policy: {max_recalls: 3}, classes: {statement: {risk: high}}}\n"
    )
    found = differences(load_pack(HEAD), load_pack(other.replace("1.0.0", "1.1.0")))
    assert (found.one, found.other, found.same) == ("acme@1.0.0", "acme@1.1.0", False)
    assert list(found.by_section()) == ["pack_meta", "roles", "memory_layer.recall_policy", "memory_layer.classes"]
    assert [one.path for one in found.by_section()["pack_meta"]] == ["pack_meta.version"]


@pytest.mark.parametrize("pack", [builtin_pack(), load_pack(HEAD)])
def test_a_pack_does_not_differ_from_itself(pack: Pack) -> None:
    found = differences(pack, load_pack(json.dumps(pack.document())))
    assert (found.same, found.changes) == (True, ())
