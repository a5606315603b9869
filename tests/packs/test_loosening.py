"""Which rules a pack loosens: each that lets more through is named with both values, and its way back is not."""

import pytest

from muniment.pack import Pack, builtin_pack, load_pack
from muniment.pack.combined import archive_horizon, capture_horizons, may_pin, narrow_recall_policy, replay_horizon
from muniment.packs.loosening import loosened, needs_second_person
from tests.pack_activation import acme

AUTO = "classes: {preference: {risk: low, approval: auto, auto_promotion: {threshold: %s}%s}}"
RULES: dict[str, tuple[str, str, str]] = {
    # What is looser, what is stricter, and how the loosened rule is told.
    "confidence floor": (
        "memory_layer: {promotion_thresholds: {confidence_floor: 0.2}}",
        "",
        "promotion_thresholds.confidence_floor: 0.3 to 0.2",
    ),
    "calibration": (
        "memory_layer: {promotion_thresholds: {calibrate_from: 5}}",
        "",
        "promotion_thresholds.calibrate_from: 20 to 5",
    ),
    "cap": (
        "memory_layer: {promotion_thresholds: {uncalibrated_cap: 0.9}}",
        "",
        "promotion_thresholds.uncalibrated_cap: 0.8 to 0.9",
    ),
    "recall": (
        "memory_layer: {recall_policy: {confidence: 0.4}}",
        "",
        "recall_policy.confidence: 0.5 to 0.4",
    ),
    "samples": (
        "memory_layer: {audit: {floor: 0.5}}",
        "",
        "audit.floor: 0.95 to 0.5",
    ),
    "a proven source": (
        "memory_layer: {proven_sources: [{vouched: user, extractors: [messages@1], declared_by: us, reason: it is}]}",
        "",
        "proven_sources: also user by messages@1",
    ),
    "what a source is": (
        "memory_layer: {promotion_thresholds: {calibrate_by: [tool, extractor]}}",
        "",
        "promotion_thresholds.calibrate_by: without agent",
    ),
    "the working tier": (
        "memory_layer: {promotion_thresholds: {working: 0.6}}",
        "memory_layer: {promotion_thresholds: {working: 0.7}}",
        "promotion_thresholds.working: 0.7 to 0.6",
    ),
    "own updates": (
        "memory_layer: {contradiction: {own_updates: true}}",
        "",
        "contradiction.own_updates: false to true",
    ),
    "undo": ("memory_layer: {undo: {term: 1h}}", "", "undo.term: 1 day to 0.0416667 days"),
    "trust floor": ("memory_layer: {trust: {floor: 0.1}}", "", "trust.floor: 0.4 to 0.1"),
    "penalty": (
        "memory_layer: {trust: {instruction_penalty: 0.1}}",
        "",
        "trust.instruction_penalty: 0.7 to 0.1",
    ),
    "a tool's trust": (
        "memory_layer: {trust: {tools: {crm.lookup: 0.9}}}",
        "memory_layer: {trust: {tools: {crm.lookup: 0.2}}}",
        "trust.tools.crm.lookup: 0.2 to 0.9",
    ),
    "approval": (
        f"memory_layer: {{{AUTO % (0.95, '')}}}",
        "",
        "classes.preference.approval: human to auto",
    ),
    "threshold": (
        f"memory_layer: {{{AUTO % (0.9, '')}}}",
        f"memory_layer: {{{AUTO % (0.95, '')}}}",
        "classes.preference.auto_promotion.threshold: 0.95 to 0.9",
    ),
    "sensitive": (
        "classifications: [{name: PUBLIC}, {name: INTERNAL}, {name: CONFIDENTIAL}, {name: PII}]",
        "classifications: [{name: PUBLIC}, {name: INTERNAL}, {name: CONFIDENTIAL}, {name: PII, sensitive: true}]",
        "classifications.PII.sensitive: true to false",
    ),
    "a detector turned off": (
        "policy_layer: {guardrails: {redaction_rules: [{name: cards, detector: card, enabled: false}]}}",
        "",
        "guardrails.redaction_rules.",
    ),
    "a rule of one's own": (
        "",
        "policy_layer: {guardrails: {redaction_rules: [{name: ext, pattern: 'Q[0-9]+', mask: '[EXT]'}]}}",
        "guardrails.redaction_rules.ext: left out",
    ),
    "an exception": (
        "policy_layer: {guardrails: {redaction_exceptions: {email: [a@acme.example, b@acme.example]}}}",
        "policy_layer: {guardrails: {redaction_exceptions: {email: [a@acme.example]}}}",
        "guardrails.redaction_exceptions.email: 1 more",
    ),
    "a domain": (
        "policy_layer: {guardrails: {redaction_exceptions: {email: ['*@acme.example']}}}",
        "policy_layer: {guardrails: {redaction_exceptions: {email: [a@acme.example]}}}",
        "guardrails.redaction_exceptions.email: 1 more",
    ),
    "a hotline": (
        "policy_layer: {guardrails: {redaction_exceptions: {phone: ['+49 30 901820']}}}",
        "",
        "guardrails.redaction_exceptions.phone: 1 more",
    ),
    "replay": (
        "memory_layer: {retention: {replay_horizon: 1d}}",
        "",
        "retention.replay_horizon: 90 days to 1 day",
    ),
    "captures": (
        "memory_layer: {retention: {captures: {message: 30d}}}",
        "memory_layer: {retention: {captures: {message: null}}}",
        "retention.captures.message: no end to 30 days",
    ),
}


def pack(text: str, version: str = "1.0.0", **meta: object) -> Pack:
    return acme(version, text, **meta)


@pytest.mark.rule("PAC-5")
@pytest.mark.parametrize("name", RULES)
def test_a_loosened_rule_is_named_and_takes_a_second_person_and_the_way_back_takes_none(name: str) -> None:
    looser, stricter, said = RULES[name]
    before, after = pack(stricter), pack(looser, "1.1.0")
    found = loosened(before, after)
    assert [one for one in found if one.startswith(said)], found
    assert needs_second_person(before, after)
    assert [one for one in loosened(after, before) if one.startswith(said.partition(":")[0])] == []


@pytest.mark.rule("PAC-5")
@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("memory_layer: {trust: {guard: 0.02}}", "trust.guard"),
        ("memory_layer: {contradiction: {judge: {contradicts: 0.1}}}", "contradiction.judge.contradicts"),
        ("policy_layer: {guardrails: {tagger: 0.1}}", "guardrails.tagger"),
    ],
)
def test_a_score_that_a_reader_measured_may_be_higher_than_the_packs_own(text: str, path: str) -> None:
    strict, measured = pack(text), pack("", "1.1.0")
    assert [one for one in loosened(strict, measured) if one.startswith(f"{path}: 0.")]
    assert needs_second_person(strict, measured)
    assert [one for one in loosened(measured, strict) if one.startswith(f"{path}: as measured to")]
    assert loosened(strict, pack(text, "1.1.0")) == ()


@pytest.mark.rule("PAC-5")
def test_a_pack_that_says_the_same_loosens_nothing() -> None:
    assert loosened(builtin_pack(), builtin_pack()) == ()
    assert loosened(builtin_pack(), pack("")) == ()
    assert not needs_second_person(builtin_pack(), pack(""))


@pytest.mark.rule("PAC-5", "RED-5")
def test_an_address_of_a_domain_that_is_excepted_already_loosens_nothing() -> None:
    exceptions = "policy_layer: {guardrails: {redaction_exceptions: {email: [%s]}}}"
    assert loosened(pack(exceptions % "'*@acme.example'"), pack(exceptions % "a@acme.example", "1.1.0")) == ()


@pytest.mark.rule("PAC-5")
def test_either_pack_can_ask_for_four_eyes() -> None:
    plain, asks = pack(""), pack("", "1.1.0", activation="four_eyes")
    assert needs_second_person(plain, asks) and needs_second_person(asks, plain)
    assert not needs_second_person(plain, plain)


@pytest.mark.rule("PAC-4")
def test_a_pin_takes_the_narrower_of_each_and_the_version_in_force_can_always_be_named() -> None:
    one = pack("memory_layer: {recall_policy: {max_recalls: 3, confidence: 0.7, freshness: {semantic: 9d}}}")
    other = pack("memory_layer: {recall_policy: {max_recalls: 5, confidence: 0.6, freshness: {semantic: 5d}}}", "1.1.0")
    both = [narrow_recall_policy(one, [other]), narrow_recall_policy(other, [one])]
    policies = [found.memory_layer.recall_policy for found in both]
    assert {policy.max_recalls for policy in policies} == {3}
    assert {policy.confidence for policy in policies} == {0.7}
    assert {policy.freshness["semantic"].days for policy in policies if policy.freshness["semantic"]} == {5}
    assert [found.ref for found in both] == ["acme@1.0.0", "acme@1.1.0"]
    assert may_pin(one, "acme@1.0.0") and not may_pin(one, "acme@1.1.0")
    assert may_pin(pack("", may_pin="[acme@0.9.0]"), "acme@0.9.0")


@pytest.mark.rule("PAC-9")
def test_of_several_horizons_the_longest_counts_and_none_is_longer_than_all() -> None:
    short = load_pack(
        'pack_meta: {id: acme, version: "1.0.0"}\n'
        "memory_layer: {retention: {replay_horizon: 1d, captures: {message: 2d, decision: 3d}, archives: 9d}}"
    )
    long = load_pack(
        'pack_meta: {id: acme, version: "1.1.0"}\n'
        "memory_layer: {retention: {replay_horizon: 5d, captures: {message: 7d, decision: null}, archives: null}}"
    )
    for packs in ([short, long], [long, short]):
        assert replay_horizon(packs).days == 5
        assert capture_horizons(packs)["message"].days == 7
        assert "decision" not in capture_horizons(packs)
        assert archive_horizon(packs) is None
    assert (archive_horizon([short]) or replay_horizon([long])).days == 9
