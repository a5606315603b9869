"""The pack's `policy_layer`: what is masked before a candidate is stored."""

from pydantic import Field, field_validator

from muniment.pack.fields import ClassificationName, Detector, Flag, KeepLast, Mask, Pattern, Section, Word


class RedactionRule(Section):
    """What to look for, what to put in its place, and the classification it raises the candidate to."""

    name: Word = Field(description="Its name; unique in the pack.")
    detector: Detector | None = Field(default=None, description="A built-in detector; either this or pattern.")
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
        builtin = {rule.detector: rule for rule in BUILTIN_RULES}
        named = {rule.detector for rule in given}
        own = tuple(_masked_as(rule, builtin[rule.detector]) if rule.detector else rule for rule in given)
        return own + tuple(rule for rule in BUILTIN_RULES if rule.detector not in named)


class PolicyLayer(Section):
    """What is masked before anything is stored."""

    guardrails: Guardrails = Field(default_factory=Guardrails, description="Redaction.")


def raised_to(layer: PolicyLayer, label: str | None) -> PolicyLayer:
    """The layer with every rule that left out its classification raising to this one."""
    rules = tuple(
        rule if "classification" in rule.model_fields_set else rule.model_copy(update={"classification": label})
        for rule in layer.guardrails.redaction_rules
    )
    return PolicyLayer(guardrails=layer.guardrails.model_copy(update={"redaction_rules": rules}))


def _masked_as(rule: RedactionRule, builtin: RedactionRule) -> RedactionRule:
    if rule.mask is not None or rule.keep_last is not None:
        return rule
    return rule.model_copy(update={"mask": builtin.mask, "keep_last": builtin.keep_last})
