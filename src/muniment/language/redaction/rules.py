"""Makes the redaction rules of a pack: a named detector or a pattern each, with its mask."""

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, TypeAlias, cast

from muniment.language.redaction.detectors.birth_dates import find_birth_dates
from muniment.language.redaction.detectors.cards import find_cards
from muniment.language.redaction.detectors.credentials import find_credentials
from muniment.language.redaction.detectors.emails import find_emails
from muniment.language.redaction.detectors.ibans import find_ibans
from muniment.language.redaction.detectors.ips_and_urls import find_ips, find_urls
from muniment.language.redaction.detectors.national_ids import find_national_ids
from muniment.language.redaction.detectors.phones import find_phones
from muniment.language.redaction.masks import Mask
from muniment.language.redaction.normalised import NormalisedText, Span
from muniment.language.redaction.tally import Find, Rule
from muniment.pack import Pack, RedactionRule
from muniment.pack.patterns import compiled

_Detect: TypeAlias = Callable[[str], Iterable[Span]]

_DETECTORS: dict[str, _Detect] = {
    "card": find_cards,
    "iban": find_ibans,
    "phone": find_phones,
    "email": find_emails,
    "ip": find_ips,
    "api_key": find_credentials,
    "national_id": find_national_ids,
    "date_of_birth": find_birth_dates,
    "url": find_urls,
}

# One search is linear, but a pattern may look to the end of the text for every match. So many matches may do so; each
# later one looks only so far.
_UNBOUNDED_MATCHES, _REACH = 64, 2048
_SURROGATE = re.compile("[\ud800-\udfff]")


def rules_of(pack: Pack) -> list[Rule]:
    """Return the enabled rules in the pack's order; raises `PackInvalid` where one needs a package that is missing."""
    return [
        Rule(rule.name, _find_of(rule, index), Mask(rule.mask, rule.keep_last), rule.classification, rule.detector)
        for index, rule in enumerate(pack.policy_layer.guardrails.redaction_rules)
        if rule.enabled
    ]


def _find_of(rule: RedactionRule, index: int) -> Find:
    if rule.pattern is not None:
        return _by_pattern(compiled(rule.pattern))
    if rule.detector in ("person", "location", "address"):
        # Imported here: a pack without such a rule loads nothing of it.
        from muniment.language.redaction.detectors.names import detector_of

        return _by_detector(detector_of(rule.detector, rule.model, index))
    assert rule.detector is not None
    return _by_detector(_DETECTORS[rule.detector])


def _by_detector(detect: _Detect) -> Find:
    def find(_text: str, normalised: NormalisedText) -> Iterable[Span]:
        return [normalised.span(start, end) for start, end in detect(normalised.text)]

    return find


def _by_pattern(pattern: Any) -> Find:
    def find(text: str, normalised: NormalisedText) -> Iterable[Span]:
        yield from _search(pattern, text)
        if normalised.text != text:
            yield from (normalised.span(*found) for found in _search(pattern, normalised.text))

    return find


def _search(pattern: Any, text: str) -> Iterator[Span]:
    """Return the spans of a pattern in a text, in time that grows with the text alone."""
    if not text.isascii():
        text = _SURROGATE.sub("\ufffd", text)
    position = 0
    first = [_span(found) for found in islice(cast("Iterator[Any]", pattern.finditer(text)), _UNBOUNDED_MATCHES)]
    for start, position in first:
        if start < position:
            yield start, position
    while len(first) == _UNBOUNDED_MATCHES and position < len(text):
        # The window has one character more in front, so that the pattern knows whether a word begins there.
        low = max(0, position - 1)
        window = text[low : position + 2 * _REACH]
        last = position + 2 * _REACH >= len(text)
        limit = len(window) if last else position - low + _REACH
        after = position + _REACH
        for found in pattern.finditer(window, position - low):
            start, end = _span(found)
            if start >= limit:
                break
            after = max(after, low + end)
            if start < end:
                yield low + start, low + end
        if last:
            return
        position = after


def _span(found: Any) -> Span:
    return found.span()
