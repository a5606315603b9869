"""From the rules of a pack to what finds: each named detector, or a pattern."""

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from muniment.language.redaction.addresses import find_ips, find_urls
from muniment.language.redaction.births import find_births
from muniment.language.redaction.cards import find_cards
from muniment.language.redaction.ibans import find_ibans
from muniment.language.redaction.keys import find_keys
from muniment.language.redaction.mails import find_mails
from muniment.language.redaction.masking import Cover
from muniment.language.redaction.matching import find_pattern
from muniment.language.redaction.national import find_national_ids
from muniment.language.redaction.phones import find_phones
from muniment.language.redaction.redactor import Find, Rule
from muniment.language.redaction.sight import NormalisedText, Span
from muniment.pack import Pack, RedactionRule
from muniment.pack.patterns import compiled

_Detect: TypeAlias = Callable[[str], Iterable[Span]]

_DETECTORS: dict[str, _Detect] = {
    "card": find_cards,
    "iban": find_ibans,
    "phone": find_phones,
    "email": find_mails,
    "ip": find_ips,
    "api_key": find_keys,
    "national_id": find_national_ids,
    "date_of_birth": find_births,
    "url": find_urls,
}


def rules_of(pack: Pack) -> list[Rule]:
    """The enabled rules in the pack's order; raises `PackInvalid` where one needs what is not installed."""
    return [
        Rule(rule.name, _find_of(rule, place), Cover(rule.mask, rule.keep_last), rule.classification)
        for place, rule in enumerate(pack.policy_layer.guardrails.redaction_rules)
        if rule.enabled
    ]


def _find_of(rule: RedactionRule, place: int) -> Find:
    if rule.pattern is not None:
        return _by_pattern(compiled(rule.pattern))
    if rule.detector in ("person", "location"):
        # Only here: nothing of it is loaded for a pack that does not ask for names.
        from muniment.language.redaction.names import detector_of

        return _by_detector(detector_of(rule.detector, rule.model, place))
    assert rule.detector is not None
    return _by_detector(_DETECTORS[rule.detector])


def _by_detector(detect: _Detect) -> Find:
    def find(_seen: str, sight: NormalisedText) -> Iterable[Span]:
        return [sight.span(start, end) for start, end in detect(sight.text)]

    return find


def _by_pattern(pattern: Any) -> Find:
    def find(seen: str, sight: NormalisedText) -> Iterable[Span]:
        return find_pattern(pattern, seen, sight)

    return find
