"""Parts of packs that tighten or loosen a rule, for the tests of activation."""

STRICT = "memory_layer: {promotion_thresholds: {confidence_floor: 0.75}}"
LAX_MASKS = "policy_layer: {guardrails: {redaction_rules: [{name: cards, detector: card, enabled: false}]}}"
NOT_SENSITIVE = "classifications: [{name: PUBLIC}, {name: INTERNAL}, {name: PII}]"
SHORT = "memory_layer: {retention: {replay_horizon: 1d}}"
AUTO = (
    "memory_layer: {promotion_thresholds: {uncalibrated_cap: 0.8}, "
    "classes: {preference: {risk: low, approval: auto, auto_promotion: {threshold: 0.95}}}}"
)
