"""The pack's `policy_layer`: what is masked before a candidate is stored."""

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
    Word,
)


class RedactionRule(Section):
    """What to look for, what to put in its place, and the classification it raises the candidate to."""

    name: Word = Field(description="Its name; unique in the pack.")
    detector: Detector | None = Field(
        default=None,
        description="A built-in detector; either this or pattern. url, person and location act only where named here.",
    )
    pattern: Pattern | None = Field(
        default=None, description="A regular expression in RE2 syntax; either this or detector."
    )
    mask: Mask | None = Field(default=None, description="What stands in its place, such as [EMAIL].")
    keep_last: KeepLast | None = Field(
        default=None, description="Instead of a mask: how many last characters stay readable."
    )
    classification: ClassificationName | None = Field(
        default=None,
        description="Raised to when found; null raises nothing. Left out: the lowest sensitive label.",
    )
    enabled: Flag = Field(
        default=True, description="Whether it acts; false is the only way to turn a built-in detector off."
    )
    model: PipelineName | None = Field(
        default=None,
        description="For person and location: an installed spaCy pipeline, or the path of one; null is en_core_web_sm.",
    )


BUILTIN_RULES: tuple[RedactionRule, ...] = (
    RedactionRule(name="card", detector="card", keep_last=4),
    RedactionRule(name="iban", detector="iban", mask="[IBAN]"),
    RedactionRule(name="phone", detector="phone", mask="[PHONE]"),
    RedactionRule(name="email", detector="email", mask="[EMAIL]"),
    RedactionRule(name="ip", detector="ip", mask="[IP]"),
    RedactionRule(name="api_key", detector="api_key", mask="[API_KEY]"),
    RedactionRule(name="national_id", detector="national_id", mask="[NATIONAL_ID]"),
    RedactionRule(name="date_of_birth", detector="date_of_birth", mask="[DATE_OF_BIRTH]"),
)

# Off until a rule names them.
_OPT_IN_MASKS: dict[Detector, str] = {"url": "[URL]", "person": "[PERSON]", "location": "[LOCATION]"}


class Guardrails(Section):
    """The rules of redaction."""

    redaction_rules: tuple[RedactionRule, ...] = Field(
        default=(),
        validate_default=True,
        description="Applied in order. A built-in detector that no rule names stays on, after these.",
    )

    @field_validator("redaction_rules")
    @classmethod
    def _detectors_stay_on(cls, given: tuple[RedactionRule, ...]) -> tuple[RedactionRule, ...]:
        named = {rule.detector for rule in given}
        own = tuple(_masked_as_usual(rule) for rule in given)
        return own + tuple(rule for rule in BUILTIN_RULES if rule.detector not in named)


class PolicyLayer(Section):
    """What is masked before a candidate is stored; the sealed capture keeps what was said."""

    guardrails: Guardrails = Field(default_factory=Guardrails, description="Redaction.")


def raised_to(layer: PolicyLayer, label: str | None) -> PolicyLayer:
    """The layer with every rule that left out its classification raising to this one."""
    rules = tuple(
        rule if "classification" in rule.model_fields_set else rule.model_copy(update={"classification": label})
        for rule in layer.guardrails.redaction_rules
    )
    return PolicyLayer(guardrails=layer.guardrails.model_copy(update={"redaction_rules": rules}))


def _masked_as_usual(rule: RedactionRule) -> RedactionRule:
    if rule.detector is None or rule.mask is not None or rule.keep_last is not None:
        return rule
    if rule.detector in _OPT_IN_MASKS:
        return rule.model_copy(update={"mask": _OPT_IN_MASKS[rule.detector]})
    usual = next(builtin for builtin in BUILTIN_RULES if builtin.detector == rule.detector)
    return rule.model_copy(update={"mask": usual.mask, "keep_last": usual.keep_last})
