"""Measures how redaction finds personal data: cards, accounts, telephones, e-mail, IPs, ids; with readers names too."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from time import perf_counter
from typing import Any, cast

from muniment.evaluation.records import invalid_record, required
from muniment.language.readers import Readers
from muniment.language.readers.readers import TAGGER
from muniment.language.redaction import Finding, redactor_of
from muniment.language.redaction.tags import TaggedTexts
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
# What only the trained tagger finds.
_OF_TAGGER: dict[str, tuple[str, ...]] = {
    "person": ("PERSON", "NAME", "FULL_NAME", "PERSON_NAME"),
    "address": ("ADDRESS", "STREET_ADDRESS"),
}


# By set, the types that its records mark.
Labelled = Mapping[str, Collection[str]]


def labelled(records: Iterable[Mapping[str, Any]]) -> Labelled:
    """Return the types that each set marks; raises `InvalidInput` naming the record and the field that is wrong."""
    marked: dict[str, set[str]] = {}
    for record in records:
        marked.setdefault(_set_of(record), set()).update(kind for _, _, kind in _spans(record))
    return marked


def figures(
    records: Iterable[Mapping[str, Any]], readers: Readers | None = None, sets: Labelled | None = None
) -> dict[str, Any]:
    """Return precision, recall and F1 over all structured types and by type, and the seconds of a text.

    A record has `text` and `spans` (`start`, `end`, `type`). A span is found when a finding of a detector for its type
    shares a character with it; a finding is right when it shares a character with a span of its type. One finding may
    cover two adjacent spans, and the other way round. All detectors act, `url` too. Findings of types that the data (or
    its `set`, if it names sets) does not label are only counted in `not_labelled`; `sets` says what sets label, where
    the records are only a part of them. Types without a detector are only counted in `not_covered`. With `readers` the
    trained tagger finds too: persons and addresses, which `structured` leaves out, and numbers behind a word that
    announces them. Raises `InvalidInput` naming the record and the field that is wrong.
    """
    redactor = redactor_of(_with_rules(builtin_pack(), ("url", *(_OF_TAGGER if readers is not None else ()))))
    names = _NAMES | (_OF_TAGGER if readers is not None else {})
    score = _Score(names, sets or {})
    seconds, items = 0.0, 0
    for record in records:
        text, spans = required(record, "text", str), _spans(record)
        started = perf_counter()
        found = [one for one in redactor.find(text, _tags(text, readers)) if one.name in names]
        seconds += perf_counter() - started
        items += 1
        score.add(_set_of(record), spans, found)
    return {
        "items": items,
        "structured": score.structured(),
        "types": score.types(),
        "not_labelled": score.not_labelled(),
        "not_covered": dict(sorted(score.others.items())),
        "seconds_per_item": seconds / items if items else 0.0,
    }


def _tags(text: str, readers: Readers | None) -> TaggedTexts | None:
    if readers is None:
        return None
    return TaggedTexts(readers.file(TAGGER), {text: readers.load().tagger.read(text)})


def _with_rules(pack: Pack, detectors: Iterable[str]) -> Pack:
    document = pack.document()
    rules = document["policy_layer"]["guardrails"]["redaction_rules"]
    more = [{"name": name, "detector": name} for name in detectors]
    document["policy_layer"]["guardrails"]["redaction_rules"] = [*rules, *more]
    return Pack.model_validate(document)


def _set_of(record: Mapping[str, Any]) -> str:
    return str(record.get("set", ""))


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

    def __init__(self, names: Mapping[str, tuple[str, ...]], sets: Labelled) -> None:
        self.others: Counter[str] = Counter()
        self._names = names
        self._detector = {name: detector for detector, known in names.items() for name in known}
        self._expected: Counter[str] = Counter()
        self._hits: Counter[str] = Counter()
        self._right: Counter[str] = Counter()
        # By set, as a set may not label what another does.
        self._wrong: dict[str, Counter[str]] = {}
        self._labelled = {
            part: {self._detector[kind] for kind in kinds if kind in self._detector} for part, kinds in sets.items()
        }

    def add(self, part: str, spans: list[tuple[int, int, str]], found: list[Finding]) -> None:
        """Count the spans and findings of one text of a set."""
        labelled, wrong = self._labelled.setdefault(part, set()), self._wrong.setdefault(part, Counter())
        for start, end, kind in spans:
            detector = self._detector.get(kind)
            if detector is None:
                self.others[kind] += 1
                continue
            labelled.add(detector)
            self._expected[kind] += 1
            self._hits[kind] += any(name == detector and low < end and start < high for low, high, name in found)
        for low, high, name in found:
            kinds = [kind for start, end, kind in spans if low < end and start < high]
            kinds = [kind for kind in kinds if self._detector.get(kind) == name]
            if kinds:
                self._right[kinds[0]] += 1
            else:
                wrong[name] += 1

    def structured(self) -> dict[str, Any]:
        """Return the figures of all types with a fixed form together."""
        kinds = [kind for kind in self._expected if self._detector[kind] in _NAMES]
        expected, hits, right = (
            sum(counter[kind] for kind in kinds) for counter in (self._expected, self._hits, self._right)
        )
        wrong = sum(count for detector, count in self._counted_wrong().items() if detector in _NAMES)
        return _figures(expected, hits, right, wrong)

    def types(self) -> dict[str, Any]:
        """Return the figures by type; a wrong finding counts against the commonest type of its detector."""
        against: Counter[str] = Counter()
        for detector, count in self._counted_wrong().items():
            against[max(self._names[detector], key=lambda name: self._expected[name])] += count
        return {
            name: _figures(self._expected[name], self._hits[name], self._right[name], against[name])
            for name in sorted(self._expected)
            if self._expected[name]
        }

    def not_labelled(self) -> dict[str, int]:
        """Return the findings of types that their set labels nowhere, by the usual name of the type."""
        return {self._names[name][0]: count for name, count in sorted(self._found_apart(labelled=False).items())}

    def _counted_wrong(self) -> Counter[str]:
        return self._found_apart(labelled=True)

    def _found_apart(self, *, labelled: bool) -> Counter[str]:
        """Return the findings that meet no span, by detector: of types that their set labels, or of the others."""
        counted: Counter[str] = Counter()
        for part, wrong in self._wrong.items():
            known = self._labelled[part]
            counted.update({name: count for name, count in wrong.items() if (name in known) is labelled})
        return counted


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
