"""How well redaction finds personal data that has a form: cards, accounts, telephones, mail, addresses, ids."""

from collections import Counter
from collections.abc import Iterable, Mapping
from time import perf_counter
from typing import Any, cast

from muniment.evaluation.reading import taken, wrong
from muniment.language.redaction import Redactor, redactor_of
from muniment.pack import Pack, builtin_pack

# What data sets call the things that a detector finds; the first of each is ours where the data has none.
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
    """Precision, recall and F1 over all structured types and by type, and the seconds a text takes.

    A record has `text` and `spans` (`start`, `end`, `type`). A span is found when a finding of a detector for its type
    shares at least one character with it; a finding is right when it shares one with a span of a type it is for. One
    finding may cover two spans that touch, and the other way round. Findings where the data marks nothing, or something
    else, are wrong. All detectors act, `url` too; what they find beside the structured types (keys, dates of birth) is
    not counted, and types of the data that no detector is for are told by number only. Raises `InvalidInput` where a
    record is not of this form.
    """
    redactor = redactor_of(_with_pages(builtin_pack()))
    score = _Score()
    seconds, items = 0.0, 0
    for record in records:
        text, spans = taken(record, "text", str), _spans(record)
        begun = perf_counter()
        found = _found(redactor, text)
        seconds += perf_counter() - begun
        items += 1
        score.add(spans, found)
    return {
        "items": items,
        "structured": score.structured(),
        "types": score.types(),
        "not_covered": dict(sorted(score.others.items())),
        "seconds_per_item": seconds / items if items else 0.0,
    }


def _with_pages(pack: Pack) -> Pack:
    document = pack.document()
    rules = document["policy_layer"]["guardrails"]["redaction_rules"]
    document["policy_layer"]["guardrails"]["redaction_rules"] = [*rules, {"name": "url", "detector": "url"}]
    return Pack.model_validate(document)


def _found(redactor: Redactor, text: str) -> list[tuple[int, int, str]]:
    return [(one.start, one.end, one.name) for one in redactor.find(text) if one.name in _NAMES]


def _spans(record: Mapping[str, Any]) -> list[tuple[int, int, str]]:
    spans: list[tuple[int, int, str]] = []
    for span in cast("list[Any]", taken(record, "spans", list)):
        if not isinstance(span, dict):
            raise wrong(record, "spans", "expected objects with start, end and type")
        said = cast("dict[str, Any]", span)
        start, end, kind = said.get("start"), said.get("end"), said.get("type")
        if not isinstance(start, int) or not isinstance(end, int) or not isinstance(kind, str) or start > end:
            raise wrong(record, "spans", "expected start and end as whole numbers and type as a text")
        spans.append((start, end, kind))
    return spans


class _Score:
    """Hits and misses, by the data's types."""

    def __init__(self) -> None:
        self.others: Counter[str] = Counter()
        self._marked: Counter[str] = Counter()
        self._met: Counter[str] = Counter()
        self._right: Counter[str] = Counter()
        self._wrong: Counter[str] = Counter()

    def add(self, spans: list[tuple[int, int, str]], found: list[tuple[int, int, str]]) -> None:
        """Count one text."""
        for start, end, kind in spans:
            detector = _DETECTOR.get(kind)
            if detector is None:
                self.others[kind] += 1
                continue
            self._marked[kind] += 1
            self._met[kind] += any(name == detector and low < end and start < high for low, high, name in found)
        for low, high, name in found:
            kinds = [kind for start, end, kind in spans if _DETECTOR.get(kind) == name and low < end and start < high]
            if kinds:
                self._right[kinds[0]] += 1
            else:
                self._wrong[name] += 1

    def structured(self) -> dict[str, Any]:
        """All of them together."""
        return _figures(
            sum(self._marked.values()), sum(self._met.values()), sum(self._right.values()), sum(self._wrong.values())
        )

    def types(self) -> dict[str, Any]:
        """By the data's names; what is wrongly found counts against the commonest name of its kind."""
        names: dict[str, str] = {}
        for detector, known in _NAMES.items():
            present = [name for name in known if self._marked[name]]
            names[detector] = max(present, key=lambda name: self._marked[name]) if present else known[0]
        told = {name for name in self._marked if self._marked[name]}
        told |= {names[detector] for detector, count in self._wrong.items() if count}
        against = {names[detector]: count for detector, count in self._wrong.items()}
        return {
            name: _figures(self._marked[name], self._met[name], self._right[name], against.get(name, 0))
            for name in sorted(told)
        }


def _figures(marked: int, met: int, right: int, missed: int) -> dict[str, Any]:
    """Where nothing was found nothing was found wrongly; where nothing is marked nothing was missed."""
    precision = right / (right + missed) if right + missed else 1.0
    recall = met / marked if marked else 1.0
    both = precision + recall
    return {
        "precision": precision,
        "recall": recall,
        "f1": 2 * precision * recall / both if both else 0.0,
        "n": marked,
    }
