"""Measures how redaction finds personal data with a fixed form: cards, accounts, telephones, e-mail, IPs, ids."""

from collections import Counter
from collections.abc import Iterable, Mapping
from time import perf_counter
from typing import Any, cast

from muniment.evaluation.records import invalid_record, required
from muniment.language.redaction import Finding, redactor_of
from muniment.pack import Pack, builtin_pack

# What data sets call the findings of each detector; the first name is used where the data has none.
_NAMES: dict[str, tuple[str, ...]] = {
    "card": ("CREDIT_CARD", "CREDIT_CARD_NUMBER", "CARD", "CREDITCARD"),
    "iban": ("IBAN", "IBAN_CODE"),
    "phone": ("PHONE", "PHONE_NUMBER", "TELEPHONE", "TELEPHONENUM", "FAX_NUMBER"),
    "email": ("EMAIL", "EMAIL_ADDRESS"),
    "ip": ("IP_ADDRESS", "IP", "IPV4", "IPV6", "IP_ADDRESS_V4", "IP_ADDRESS_V6"),
    "national_id": ("SSN", "US_SSN", "NATIONAL_ID", "SOCIAL_SECURITY_NUMBER", "US_ITIN", "UK_NHS", "UK_NINO", "ES_NIF"),
    "url": ("URL", "DOMAIN_NAME", "DOMAIN", "URL_PERSONAL"),
}
_DETECTOR = {name: detector for detector, names in _NAMES.items() for name in names}


def figures(records: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return precision, recall and F1 over all structured types and by type, and the seconds of a text.

    A record has `text` and `spans` (`start`, `end`, `type`). A span is found when a finding of a detector for its type
    shares a character with it; a finding is right when it shares a character with a span of its type. One finding may
    cover two adjacent spans, and the other way round. All detectors act, `url` too. Findings of other types (keys,
    dates of birth) are not counted; types without a detector are only counted in `not_covered`. Raises `InvalidInput`
    naming the record and the field that is wrong.
    """
    redactor = redactor_of(_with_urls(builtin_pack()))
    score = _Score()
    seconds, items = 0.0, 0
    for record in records:
        text, spans = required(record, "text", str), _spans(record)
        started = perf_counter()
        found = [one for one in redactor.find(text) if one.name in _NAMES]
        seconds += perf_counter() - started
        items += 1
        score.add(spans, found)
    return {
        "items": items,
        "structured": score.structured(),
        "types": score.types(),
        "not_covered": dict(sorted(score.others.items())),
        "seconds_per_item": seconds / items if items else 0.0,
    }


def _with_urls(pack: Pack) -> Pack:
    document = pack.document()
    rules = document["policy_layer"]["guardrails"]["redaction_rules"]
    document["policy_layer"]["guardrails"]["redaction_rules"] = [*rules, {"name": "url", "detector": "url"}]
    return Pack.model_validate(document)


def _spans(record: Mapping[str, Any]) -> list[tuple[int, int, str]]:
    spans: list[tuple[int, int, str]] = []
    for span in cast("list[Any]", required(record, "spans", list)):
        if not isinstance(span, dict):
            raise invalid_record(record, "spans", "expected objects with start, end and type")
        fields = cast("dict[str, Any]", span)
        start, end, kind = fields.get("start"), fields.get("end"), fields.get("type")
        if not isinstance(start, int) or not isinstance(end, int) or not isinstance(kind, str) or start > end:
            raise invalid_record(record, "spans", "expected start and end as whole numbers and type as a text")
        spans.append((start, end, kind))
    return spans


class _Score:
    """Hits and misses by the types of the data."""

    def __init__(self) -> None:
        self.others: Counter[str] = Counter()
        self._expected: Counter[str] = Counter()
        self._hits: Counter[str] = Counter()
        self._right: Counter[str] = Counter()
        self._wrong: Counter[str] = Counter()

    def add(self, spans: list[tuple[int, int, str]], found: list[Finding]) -> None:
        """Count the spans and findings of one text."""
        for start, end, kind in spans:
            detector = _DETECTOR.get(kind)
            if detector is None:
                self.others[kind] += 1
                continue
            self._expected[kind] += 1
            self._hits[kind] += any(name == detector and low < end and start < high for low, high, name in found)
        for low, high, name in found:
            kinds = [kind for start, end, kind in spans if _DETECTOR.get(kind) == name and low < end and start < high]
            if kinds:
                self._right[kinds[0]] += 1
            else:
                self._wrong[name] += 1

    def structured(self) -> dict[str, Any]:
        """Return the figures of all types together."""
        return _figures(
            sum(self._expected.values()), sum(self._hits.values()), sum(self._right.values()), sum(self._wrong.values())
        )

    def types(self) -> dict[str, Any]:
        """Return the figures by type; a wrong finding counts against the commonest type of its detector."""
        names: dict[str, str] = {}
        for detector, known in _NAMES.items():
            present = [name for name in known if self._expected[name]]
            names[detector] = max(present, key=lambda name: self._expected[name]) if present else known[0]
        shown = {name for name in self._expected if self._expected[name]}
        shown |= {names[detector] for detector, count in self._wrong.items() if count}
        against = {names[detector]: count for detector, count in self._wrong.items()}
        return {
            name: _figures(self._expected[name], self._hits[name], self._right[name], against.get(name, 0))
            for name in sorted(shown)
        }


def _figures(expected: int, hits: int, right: int, wrong: int) -> dict[str, Any]:
    """Return the figures; precision is 1 where nothing was found, recall is 1 where nothing was expected."""
    precision = right / (right + wrong) if right + wrong else 1.0
    recall = hits / expected if expected else 1.0
    both = precision + recall
    return {
        "precision": precision,
        "recall": recall,
        "f1": 2 * precision * recall / both if both else 0.0,
        "n": expected,
    }
