"""Parts of packs that several tests put in force: what tightens or loosens a rule, and an extractor of records."""

STRICT = "memory_layer: {promotion_thresholds: {confidence_floor: 0.75}}"
LAX_MASKS = "policy_layer: {guardrails: {redaction_rules: [{name: cards, detector: card, enabled: false}]}}"
NOT_SENSITIVE = "classifications: [{name: PUBLIC}, {name: INTERNAL}, {name: PII}]"
SHORT = "memory_layer: {retention: {replay_horizon: 1d}}"
AUTO = (
    "memory_layer: {promotion_thresholds: {uncalibrated_cap: 0.8}, "
    "classes: {preference: {risk: low, approval: auto, auto_promotion: {threshold: 0.95}}}}"
)
# Reads facts from the items of a tool's result.
CRM_MAP = """memory_layer:
  extractors:
    - name: crm
      version: 1.0.0
      fields:
        - {each: "$.items[*]", entity: $.who, predicate: $.predicate, value: $.said, write_class: preference}
"""
