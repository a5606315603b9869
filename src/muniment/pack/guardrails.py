"""The pack's `policy_layer`: what is masked before a candidate is stored."""

from typing import get_args

from pydantic import Field, field_validator

from muniment.pack.fields import (
    ClassificationName,
    Detector,
    Flag,
    KeepLast,
    Mask,
    Pattern,
    PipelineName,
    Section,
    Share,
    Word,
    setting,
)
from muniment.pack.redaction_exceptions import RedactionExceptions


class RedactionRule(Section):
    """What is looked for, what replaces it, and the classification to which it raises the candidate."""

    name: Word = Field(description="Its name; unique in the pack.")
    detector: Detector | None = setting(
        None,
        "A built-in detector; either this or pattern. url, person, location and address are on only if named here.",
    )
    pattern: Pattern | None = setting(None, "A regular expression in RE2 syntax; either this or detector.")
    mask: Mask | None = setting(None, "What replaces it, such as [EMAIL].")
    keep_last: KeepLast | None = setting(None, "Instead of a mask: how many of the last characters stay readable.")
    classification: ClassificationName | None = setting(
        None, "Label that a match raises to; null raises nothing. Left out: the lowest sensitive label."
    )
    enabled: Flag = setting(True, "Whether it is on; false is the only way to turn a built-in detector off.")
    model: PipelineName | None = setting(
        None,
        "For person and location: an installed spaCy pipeline, or the path of one; null is en_core_web_sm, if any.",
    )


def _with_mask(rule: RedactionRule) -> RedactionRule:
    """The rule of a detector with its usual mask, where it sets none itself."""
    if rule.detector is None or rule.mask is not None or rule.keep_last is not None:
        return rule
    usual = {"keep_last": 4} if rule.detector == "card" else {"mask": f"[{rule.detector.upper()}]"}
    return rule.model_copy(update=usual)


_OPT_IN = ("url", "person", "location", "address")
BUILTIN_RULES: tuple[RedactionRule, ...] = tuple(
    _with_mask(RedactionRule(name=name, detector=name)) for name in get_args(Detector) if name not in _OPT_IN
)


class Guardrails(Section):
    """The redaction rules, and the values that they leave."""

    redaction_rules: tuple[RedactionRule, ...] = setting(
        (), "Applied in order. A built-in detector that no rule names stays on, after these.", validate_default=True
    )
    redaction_exceptions: RedactionExceptions = setting(
        RedactionExceptions, "Values of your own that are found and counted, but not masked; they raise no label."
    )
    tagger: Share | None = setting(
        None, "Score from which a finding of the trained tagger counts; null is the one measured for each label."
    )

    @field_validator("redaction_rules")
    @classmethod
    def _add_builtin_rules(cls, rules: tuple[RedactionRule, ...]) -> tuple[RedactionRule, ...]:
        named = {rule.detector for rule in rules}
        own = tuple(_with_mask(rule) for rule in rules)
        return own + tuple(rule for rule in BUILTIN_RULES if rule.detector not in named)


class PolicyLayer(Section):
    """What is masked before a candidate is stored; the sealed capture keeps the original."""

    guardrails: Guardrails = setting(Guardrails, "Redaction.")


def raise_rules_to(layer: PolicyLayer, label: str | None) -> PolicyLayer:
    """Let every rule that left out its classification raise to this label."""
    rules = tuple(
        rule if "classification" in rule.model_fields_set else rule.model_copy(update={"classification": label})
        for rule in layer.guardrails.redaction_rules
    )
    return PolicyLayer(guardrails=layer.guardrails.model_copy(update={"redaction_rules": rules}))
