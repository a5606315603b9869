"""Redacts texts, JSON values and candidates under the rules of one pack (RED-1 to RED-4)."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar, cast

from muniment.language.redaction.adjacent_items import rows
from muniment.language.redaction.attributes import Attributes, key_words, scalars
from muniment.language.redaction.masks import Mask, MaskFinder, TakenSpans
from muniment.language.redaction.normalised import FILLER, NormalisedText, Span, normalise
from muniment.language.redaction.repeated_values import MaskedValue, ValueMatcher
from muniment.language.redaction.tags import TagFinding, TaggedTexts
from muniment.model.candidate import Candidate

Content = TypeVar("Content")
# Takes a text and its normalised copy, and returns spans of the text.
Find: TypeAlias = Callable[[str, NormalisedText], Iterable[Span]]

# Two or three rounds are usual; this bounds a pattern that finds more in every round.
_ROUNDS = 12
_STARS = Mask(None, None)


@dataclass(frozen=True)
class Redacted(Generic[Content]):
    """The redacted content, how many findings each rule masked, and the label that they raise it to, if any."""

    content: Content
    counts: dict[str, int] = field(default_factory=dict[str, int])
    label: str | None = None


class Rule(NamedTuple):
    """An enabled rule: its name, what finds the spans, their mask, and the label that a finding raises to."""

    name: str
    find: Find
    mask: Mask
    label: str | None
    detector: str | None = None


class Finding(NamedTuple):
    """A span of a text that a rule found."""

    start: int
    end: int
    name: str


_Matcher: TypeAlias = ValueMatcher[Rule]
_NONE: _Matcher = ValueMatcher(())
_Spans: TypeAlias = list[tuple[int, int, Rule]]


@dataclass
class _Tally:
    """What was masked so far while one text, value or candidate is redacted."""

    counts: Counter[str] = field(default_factory=Counter[str])
    labels: set[str] = field(default_factory=set[str])
    masked_values: dict[MaskedValue, Rule] = field(default_factory=dict[MaskedValue, Rule])
    # What the trained tagger found, in texts as they are between two rounds.
    tags: TaggedTexts | None = None
    # Pairs of context and text in which the rules find nothing.
    clean: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])

    def add(self, rule: Rule, found: str) -> None:
        self.counts[rule.name] += 1
        if rule.label is not None:
            self.labels.add(rule.label)
        if (masked_value := MaskedValue.of(found)) is not None and masked_value.is_long:
            self.masked_values.setdefault(masked_value, rule)

    def matchers(self) -> tuple[_Matcher, _Matcher]:
        """Return what finds all masked values again, and what finds only the long ones."""
        long = {value: rule for value, rule in self.masked_values.items() if value.is_long}
        return ValueMatcher(self.masked_values.items()), ValueMatcher(long.items())


class Redactor:
    """Masks what the rules of a pack find; redacting the result again changes nothing (RED-3)."""

    def __init__(self, rules: Sequence[Rule], attributes: Attributes, rank: Callable[[str], int]) -> None:
        self._rules = tuple(rules)
        self._attributes = attributes
        self._rank = rank
        self._by_detector = {rule.detector: rule for rule in rules if rule.detector is not None}
        self._mask_finder = MaskFinder([*(rule.mask for rule in rules), *attributes.masks()])

    @property
    def detectors(self) -> frozenset[str]:
        """The detectors that have a rule."""
        return frozenset(self._by_detector)

    def find(self, text: str, tags: TaggedTexts | None = None) -> tuple[Finding, ...]:
        """Return what the rules and the tagger find in a first round, in order, without masking it."""
        tagged = tags.findings(text) if tags is not None else ()
        return tuple(Finding(start, end, rule.name) for start, end, rule in self._find_all(text, "", tagged=tagged))

    def is_masked(self, text: str) -> bool:
        """Say whether a text is what masking left of a value: it holds a mask, and no letter beside the masks."""
        masks = self._mask_finder.find(text)
        rest = TakenSpans(len(text), masks).free(0, len(text)) if masks else ()
        return bool(masks) and not any(char.isalpha() for start, end in rest for char in text[start:end])

    def text(self, text: str) -> Redacted[str]:
        """Mask every finding in a text."""
        tally = _Tally()
        return self._result(self._mask_text(text, "", tally), tally)

    def json(self, value: Any) -> Redacted[Any]:
        """Mask every finding in the strings, keys and numbers of a JSON value, at every depth.

        A key is context of its value: `{"phone": "467 3395"}`. Classified attributes are masked whole.
        """
        tally = _Tally()
        return self._result(self._value(value, "", tally), tally)

    def candidate(self, candidate: Candidate, tags: TaggedTexts | None = None) -> Redacted[Candidate]:
        """Mask every finding in the text, value, evidence references and qualifiers of a candidate.

        A value that is masked in one of these fields is masked in the others too. `tags` is what the trained tagger
        found in its texts.
        """
        tally = _Tally(tags=tags)
        fields = self._fields(candidate, tally, _NONE, _NONE)
        if tally.masked_values:
            seen = candidate.model_copy(update=fields)
            fields |= self._fields(seen, tally, *tally.matchers())
        return self._result(candidate.model_copy(update=fields) if fields else candidate, tally)

    def _fields(self, candidate: Candidate, tally: _Tally, every: _Matcher, long: _Matcher) -> dict[str, Any]:
        """Return the fields that change; the text may repeat no masked value, the other fields only very short ones."""
        refs = tuple(self._mask_text(ref, "", tally, long) for ref in candidate.evidence_refs)
        declared = candidate.scope.qualifiers
        qualifiers = {key: self._mask_text(value, key_words(key), tally, long) for key, value in declared.items()}
        value = self._value(candidate.value, candidate.predicate or "", tally, long)
        text = self._mask_text(candidate.text, "", tally, every)
        changed: dict[str, Any] = {}
        if refs != candidate.evidence_refs:
            changed["evidence_refs"] = refs
        if qualifiers != declared:
            changed["scope"] = candidate.scope.model_copy(update={"qualifiers": qualifiers})
        if value != candidate.value:
            changed["value"] = value
        if text != candidate.text:
            changed["text"] = text
        return changed

    def _result(self, content: Content, tally: _Tally) -> Redacted[Content]:
        label = max(tally.labels, key=self._rank) if tally.labels else None
        return Redacted(content, dict(tally.counts), label)

    # --- one text

    def _mask_text(self, text: str, context: str, tally: _Tally, repeated: _Matcher = _NONE) -> str:
        """Mask the findings in a text until a round finds nothing more.

        INVARIANT: a round depends on the text alone, so another one finds nothing in the result either.
        """
        for _ in range(_ROUNDS):
            spans = self._open_findings(text, context, tally, repeated)
            if not spans:
                return text
            text = _masked(text, spans, tally)
        rest = self._open_findings(text, context, tally, repeated)
        if not rest:
            return text
        # Still findings after the last round: everything that is not masked yet is masked.
        rule = rest[-1][2]
        whole = rule._replace(mask=_STARS) if rule.mask.keep_last is not None else rule
        spans = TakenSpans(len(text), self._mask_finder.find(text)).free(0, len(text))
        return _masked(text, [(start, end, whole) for start, end in spans], tally)

    def _open_findings(self, text: str, context: str, tally: _Tally, repeated: _Matcher) -> _Spans:
        """Return what to mask in this round; a text in which the rules found nothing is not searched again."""
        known = (context, text) in tally.clean
        if known and not repeated:
            return []
        tagged = () if known or tally.tags is None else tally.tags.findings(text)
        spans = self._find_all(text, context, repeated, () if known else self._rules, tagged)
        if not spans:
            tally.clean.add((context, text))
        return spans

    def _find_all(
        self,
        text: str,
        context: str,
        repeated: _Matcher = _NONE,
        rules: Sequence[Rule] | None = None,
        tagged: Sequence[TagFinding] = (),
    ) -> _Spans:
        """Return what to mask in this round: spans in order that overlap neither each other nor a mask."""
        if not text:
            return []
        offset = len(context) + 2 if context else 0
        whole = f"{context}: {text}" if context else text
        masks = self._mask_finder.find(whole)
        blanked = _replace(whole, ((start, end, FILLER * (end - start)) for start, end in masks))
        findings = list(_findings(blanked, self._rules if rules is None else rules, repeated))
        findings += [
            (one.start + offset, one.end + offset, self._by_detector[one.detector])
            for one in tagged
            if one.detector in self._by_detector
        ]
        if not findings:
            return []
        taken = TakenSpans(len(whole), masks)
        spans: _Spans = []
        for start, end, rule in findings:
            for low, high in taken.free(max(start, offset), end):
                if (low, high) == (start, end) or any(map(str.isalnum, whole[low:high])):
                    spans.append((low - offset, high - offset, rule))
                    taken.take(low, high)
        spans.sort(key=lambda one: one[0])
        return spans

    # --- values

    def _value(self, value: Any, name: str, tally: _Tally, repeated: _Matcher = _NONE) -> Any:
        """Mask the value of the key or predicate of that name."""
        attribute = self._attributes.named(name)
        if attribute is not None and value is not None:
            if attribute.label is not None:
                tally.labels.add(attribute.label)
            if attribute.mask is not None:
                return self._mask_attribute(
                    value, Rule(attribute.name, _find_nothing, attribute.mask, attribute.label), tally
                )
        match value:
            case str():
                return self._mask_text(value, key_words(name), tally, repeated)
            case bool() | None:
                return value
            case int() | float():
                digits = _number_text(value)
                masked = self._mask_text(digits, key_words(name), tally, repeated)
                return value if masked == digits else masked
            case dict():
                return self._mapping(cast("dict[Any, Any]", value), tally, repeated)
            case list() | tuple():
                items = [self._value(item, name, tally, repeated) for item in cast("list[Any]", value)]
                masked = self._mask_adjacent(items, key_words(name), tally, repeated)
                return masked if isinstance(value, list) else tuple(masked)
            case _:
                return value

    def _mask_adjacent(self, items: list[Any], context: str, tally: _Tally, repeated: _Matcher) -> list[Any]:
        """Mask adjacent items that are one finding together; each was masked by itself before."""
        for _ in range(_ROUNDS if len(items) > 1 else 0):
            together = self._adjacent_changes(items, context, tally)
            if not together:
                return items
            for index, text in together.items():
                items[index] = self._mask_text(text, context, tally, repeated)
        # Still findings after the last round: in stars nothing is found.
        while len(items) > 1 and (together := self._adjacent_changes(items, context, tally)):
            for index in together:
                items[index] = _STARS.apply("")
        return items

    def _adjacent_changes(self, items: Sequence[Any], context: str, tally: _Tally) -> dict[int, str]:
        """Return the items that change, by their index."""
        changed: dict[int, str] = {}
        for row in rows([_scalar_text(item) for item in items]):
            if any(index in changed for index, _, _ in row.spans):
                continue
            # From the last to the first, so that the other spans stay valid.
            for start, end, rule in reversed(self._find_all(row.text, context)):
                parts = row.parts(start, end)
                if parts:
                    tally.add(rule, row.text[start:end])
                for index, (low, high) in parts:
                    text = changed.get(index) or _scalar_text(items[index]) or ""
                    part = text[low:high]
                    last = index == parts[-1][0] or rule.mask.keep_last is None
                    changed[index] = text[:low] + (rule.mask if last else _STARS).apply(part) + text[high:]
                    if (masked_value := MaskedValue.of(part)) is not None:
                        tally.masked_values.setdefault(masked_value, rule)
        return changed

    def _mapping(self, value: dict[Any, Any], tally: _Tally, repeated: _Matcher) -> dict[Any, Any]:
        redacted: dict[Any, Any] = {}
        alike: Counter[str] = Counter()
        for key, item in value.items():
            masked = self._mask_text(key, "", tally, repeated) if isinstance(key, str) else key
            if masked in redacted:
                masked = self._unique_key(str(masked), redacted, alike, tally, repeated)
            redacted[masked] = self._value(item, str(masked), tally, repeated)
        return redacted

    def _unique_key(
        self, name: str, taken: Mapping[Any, Any], alike: Counter[str], tally: _Tally, repeated: _Matcher
    ) -> str:
        """Return another key for one whose masked form is taken, so that neither value is lost.

        `alike` counts the keys of one masked form, so that no key is tried twice.
        """
        while True:
            alike[name] += 1
            count = alike[name] + 1
            for masked in (f"{name} ({count})", f"{name} {_in_stars(count)}"):
                if masked not in taken and not self._open_findings(masked, "", tally, repeated):
                    return masked
            masked = self._mask_text(f"{name}{'****' * alike[name]}", "", tally, repeated)
            if masked not in taken:
                return masked

    def _mask_attribute(self, value: Any, rule: Rule, tally: _Tally) -> Any:
        """Mask the whole value of an attribute, unless it is a mask already."""
        if value in ("", [], {}, ()):
            return value
        text = value if isinstance(value, str) else ""
        if text and not TakenSpans(len(text), self._mask_finder.find(text)).free(0, len(text)):
            return value
        tally.add(rule, text)
        for leaf in scalars(value):
            if (masked_value := MaskedValue.of(leaf)) is not None:
                tally.masked_values.setdefault(masked_value, rule)
        return rule.mask.apply(_number_text(value) if isinstance(value, int | float) else text)


def _findings(text: str, rules: Sequence[Rule], repeated: _Matcher) -> Iterator[tuple[int, int, Rule]]:
    normalised = normalise(text)
    for rule in rules:
        # The longest first, as it covers shorter ones of the same rule.
        for start, end in sorted(rule.find(text, normalised), key=lambda span: (span[0] - span[1], span[0])):
            yield start, end, rule
    if repeated:
        for start, end, rule in repeated.find(normalised.text):
            yield *normalised.span(start, end), rule


def _in_stars(count: int) -> str:
    """Write a number in stars, each digit as that many and four, for packs that mask every other character."""
    return " ".join("*" * (4 + int(digit)) for digit in str(count))


def _masked(text: str, spans: _Spans, tally: _Tally) -> str:
    for start, end, rule in spans:
        tally.add(rule, text[start:end])
    return _replace(text, ((start, end, rule.mask.apply(text[start:end])) for start, end, rule in spans))


def _replace(text: str, replacements: Iterable[tuple[int, int, str]]) -> str:
    pieces: list[str] = []
    done = 0
    for start, end, replacement in replacements:
        pieces += (text[done:start], replacement)
        done = end
    return "".join([*pieces, text[done:]])


def _number_text(number: float) -> str:
    """Return the digits of a number; one without a fraction is written as an integer."""
    if isinstance(number, float) and number.is_integer() and abs(number) < 1e19:
        return str(int(number))
    return str(number)


def _scalar_text(item: Any) -> str | None:
    """Return the text of a string or number; None for anything else."""
    if isinstance(item, str):
        return item
    return _number_text(item) if isinstance(item, int | float) and not isinstance(item, bool) else None


def _find_nothing(_text: str, _normalised: NormalisedText) -> Iterable[Span]:
    return ()
