"""Redacts texts, JSON values and candidates under the rules of one pack (RED-1 to RED-5)."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar, cast

from muniment.language.readers.tagger import Tag
from muniment.language.redaction.adjacent_items import number_text, rows, scalar_text
from muniment.language.redaction.attributes import Attributes, key_words, scalars
from muniment.language.redaction.exceptions import Exceptions
from muniment.language.redaction.masks import Mask, MaskFinder, TakenSpans, replaced
from muniment.language.redaction.normalised import NormalisedText, Span
from muniment.language.redaction.repeated_values import MaskedValue
from muniment.language.redaction.search import Search
from muniment.language.redaction.tags import TaggedTexts
from muniment.language.redaction.tally import NO_EXCEPTIONS, NO_VALUES, Matcher, Round, Rule, Spans, Tally
from muniment.model.candidate import Candidate

Content = TypeVar("Content")

# Two or three rounds are usual; this bounds a pattern that finds more in every round.
_ROUNDS = 12
_STARS = Mask(None, None)


@dataclass(frozen=True)
class Redacted(Generic[Content]):
    """The redacted content, how many findings each rule masked, and the label that they raise it to, if any.

    `excepted` are the findings of each rule that stay, as the pack excepts them (RED-5).
    """

    content: Content
    counts: dict[str, int] = field(default_factory=dict[str, int])
    label: str | None = None
    excepted: dict[str, int] = field(default_factory=dict[str, int])


class Finding(NamedTuple):
    """A span of a text that a rule found."""

    start: int
    end: int
    name: str


class Redactor:
    """Masks what the rules of a pack find; redacting the result again changes nothing (RED-3)."""

    def __init__(
        self,
        rules: Sequence[Rule],
        attributes: Attributes,
        rank: Callable[[str], int],
        exceptions: Exceptions = NO_EXCEPTIONS,
    ) -> None:
        self._rules = tuple(rules)
        self._attributes = attributes
        self._rank = rank
        self._exceptions = exceptions
        self._by_detector = {rule.detector: rule for rule in rules if rule.detector is not None}
        self._mask_finder = MaskFinder([*(rule.mask for rule in rules), *attributes.masks()])
        self._search = Search(self._by_detector, self._mask_finder, exceptions)

    @property
    def detectors(self) -> frozenset[str]:
        """The detectors that have a rule."""
        return frozenset(self._by_detector)

    def find(self, text: str, tags: TaggedTexts | None = None) -> tuple[Finding, ...]:
        """Return what the rules and the tagger find in a first round, in order, without masking it."""
        tagged = tags.findings(text) if tags is not None else ()
        found = self._search.find(text, "", self._rules, tagged=tagged)
        return tuple(Finding(start, end, rule.name) for start, end, rule in found.spans)

    def tag_scores(self, tags: TaggedTexts, texts: Iterable[str]) -> dict[str, float]:
        """Return the lowest score of each label of which a tag in these texts is masked."""
        found = dict.fromkeys(texts, cast("Spans", []))
        if self._exceptions:
            for text in found:
                found[text] = self._search.find(text, "", self._rules, tagged=tags.findings(text)).excepted

        def stays(text: str, tag: Tag) -> bool:
            return any(start <= tag.start and tag.end <= end for start, end, _ in found[text])

        return tags.scores(found, self._by_detector, stays)

    def is_masked(self, text: str) -> bool:
        """Say whether a text is what masking left of a value: it holds a mask, and no letter beside the masks."""
        masks = self._mask_finder.find(text)
        rest = TakenSpans(len(text), masks).free(0, len(text)) if masks else ()
        return bool(masks) and not any(char.isalpha() for start, end in rest for char in text[start:end])

    def text(self, text: str) -> Redacted[str]:
        """Mask every finding in a text."""
        tally = Tally(exceptions=self._exceptions)
        return self._result(self._mask_text(text, "", tally), tally)

    def open_text(self, text: str) -> Redacted[str]:
        """Mask every finding in a text that is kept in the open, such as an id: nothing is excepted there (ERA-7)."""
        tally = Tally(exceptions=self._exceptions)
        return self._result(self._mask_text(text, "", tally, excepting=False), tally)

    def json(self, value: Any) -> Redacted[Any]:
        """Mask every finding in the strings, keys and numbers of a JSON value, at every depth.

        A key is context of its value: `{"phone": "467 3395"}`. Classified attributes are masked whole.
        """
        tally = Tally(exceptions=self._exceptions)
        return self._result(self._value(value, "", tally), tally)

    def content(
        self, text: str | None, payload: Any, tags: TaggedTexts | None = None
    ) -> Redacted[tuple[str | None, Any]]:
        """Mask every finding in the text and the payload of a capture; a value masked in one is masked in the other."""
        tally = Tally(tags=tags, exceptions=self._exceptions)

        def mask(every: Matcher, long: Matcher) -> tuple[str | None, Any]:
            value = self._value(payload, "", tally, long)
            return (None if text is None else self._mask_text(text, "", tally, every)), value

        found = mask(NO_VALUES, NO_VALUES)
        if tally.masked_values:
            text, payload = found
            tally.excepted.clear()  # They are counted in what stays.
            found = mask(*tally.matchers())
        return self._result(found, tally)

    def candidate(self, candidate: Candidate, tags: TaggedTexts | None = None) -> Redacted[Candidate]:
        """Mask every finding in the text, value, evidence references and qualifiers of a candidate, and in how it was
        said.

        A value that is masked in one of these fields is masked in the others too. In qualifiers, which are kept in the
        open, nothing is excepted. `tags` is what the trained tagger found in its texts.
        """
        tally = Tally(tags=tags, exceptions=self._exceptions)
        fields = self._fields(candidate, tally, NO_VALUES, NO_VALUES)
        if tally.masked_values:
            seen = candidate.model_copy(update=fields)
            tally.excepted.clear()  # They are counted in what stays.
            fields |= self._fields(seen, tally, *tally.matchers())
        return self._result(candidate.model_copy(update=fields) if fields else candidate, tally)

    def _fields(self, candidate: Candidate, tally: Tally, every: Matcher, long: Matcher) -> dict[str, Any]:
        """Return the fields that change; the text may repeat no masked value, the other fields only very short ones."""
        refs = tuple(self._mask_text(ref, "", tally, long) for ref in candidate.evidence_refs)
        declared = candidate.scope.qualifiers
        qualifiers = {
            key: self._mask_text(value, key_words(key), tally, long, excepting=False) for key, value in declared.items()
        }
        value = self._value(candidate.value, candidate.predicate or "", tally, long)
        text = self._mask_text(candidate.text, "", tally, every)
        changed: dict[str, Any] = {}
        for name in ("speaker", "context", "predicate_name", "claimed_author"):
            said: str = getattr(candidate, name) or ""
            if said and (masked := self._mask_text(said, "", tally, every)) != said:
                changed[name] = masked
        if refs != candidate.evidence_refs:
            changed["evidence_refs"] = refs
        if qualifiers != declared:
            changed["scope"] = candidate.scope.model_copy(update={"qualifiers": qualifiers})
        if value != candidate.value:
            changed["value"] = value
        if text != candidate.text:
            changed["text"] = text
        return changed

    def _result(self, content: Content, tally: Tally) -> Redacted[Content]:
        label = max(tally.labels, key=self._rank) if tally.labels else None
        return Redacted(content, dict(tally.counts), label, dict(+tally.excepted))

    # --- one text

    def _mask_text(
        self, text: str, context: str, tally: Tally, repeated: Matcher = NO_VALUES, *, excepting: bool = True
    ) -> str:
        """Mask the findings in a text until a round finds nothing more to mask.

        INVARIANT: a round depends on the text alone, so another one finds nothing in the result either.
        """
        for _ in range(_ROUNDS):
            found = self._open_findings(text, context, tally, repeated, excepting=excepting)
            if not found.spans:
                tally.keep(found.excepted)
                return text
            text = _masked(text, found.spans, tally)
        rest = self._open_findings(text, context, tally, repeated, excepting=excepting).spans
        if not rest:
            return text
        # Still findings after the last round: everything that is not masked yet is masked.
        rule = rest[-1][2]
        whole = rule._replace(mask=_STARS) if rule.mask.keep_last is not None else rule
        spans = TakenSpans(len(text), self._mask_finder.find(text)).free(0, len(text))
        return _masked(text, [(start, end, whole) for start, end in spans], tally)

    def _open_findings(
        self, text: str, context: str, tally: Tally, repeated: Matcher, *, excepting: bool = True
    ) -> Round:
        """Return what a round finds; a text in which the rules found nothing to mask is not searched again by them."""
        known = tally.clean.get((context, text, excepting))
        if known is not None and not repeated:
            return known
        tagged = () if known is not None or tally.tags is None else tally.tags.findings(text)
        rules, standing = (self._rules, ()) if known is None else ((), known.excepted)
        found = self._search.find(text, context, rules, repeated, tagged, standing, excepting=excepting)
        if known is None and not found.spans:
            tally.clean[context, text, excepting] = found
        return found

    # --- values

    def _value(self, value: Any, name: str, tally: Tally, repeated: Matcher = NO_VALUES) -> Any:
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
                digits = number_text(value)
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

    def _mask_adjacent(self, items: list[Any], context: str, tally: Tally, repeated: Matcher) -> list[Any]:
        """Mask adjacent items that are one finding together; each was masked by itself before."""
        for _ in range(_ROUNDS if len(items) > 1 else 0):
            together = self._adjacent_changes(items, context, tally)
            if not together:
                return items
            for index, text in together.items():
                tally.forget(context, scalar_text(items[index]) or "")
                items[index] = self._mask_text(text, context, tally, repeated)
        # Still findings after the last round: in stars nothing is found.
        while len(items) > 1 and (together := self._adjacent_changes(items, context, tally)):
            for index in together:
                tally.forget(context, scalar_text(items[index]) or "")
                items[index] = _STARS.apply("")
        return items

    def _adjacent_changes(self, items: Sequence[Any], context: str, tally: Tally) -> dict[int, str]:
        """Return the items that change, by their index."""
        changed: dict[int, str] = {}
        standing: Spans = []
        for row in rows([scalar_text(item) for item in items]):
            if any(index in changed for index, _, _ in row.spans):
                continue
            found = self._search.find(row.text, context, self._rules)
            standing += [one for one in found.excepted if row.parts(one[0], one[1])]
            # From the last to the first, so that the other spans stay valid.
            for start, end, rule in reversed(found.spans):
                parts = row.parts(start, end)
                if parts:
                    tally.add(rule, row.text[start:end])
                for index, (low, high) in parts:
                    text = changed.get(index) or scalar_text(items[index]) or ""
                    part = text[low:high]
                    last = index == parts[-1][0] or rule.mask.keep_last is None
                    changed[index] = text[:low] + (rule.mask if last else _STARS).apply(part) + text[high:]
                    if (masked_value := MaskedValue.of(part)) is not None:
                        tally.masked_values.setdefault(masked_value, rule)
        if not changed:
            tally.keep(standing)
        return changed

    def _mapping(self, value: dict[Any, Any], tally: Tally, repeated: Matcher) -> dict[Any, Any]:
        redacted: dict[Any, Any] = {}
        alike: Counter[str] = Counter()
        for key, item in value.items():
            masked = self._mask_text(key, "", tally, repeated) if isinstance(key, str) else key
            if masked in redacted:
                masked = self._unique_key(str(masked), redacted, alike, tally, repeated)
            redacted[masked] = self._value(item, str(masked), tally, repeated)
        return redacted

    def _unique_key(
        self, name: str, taken: Mapping[Any, Any], alike: Counter[str], tally: Tally, repeated: Matcher
    ) -> str:
        """Return another key for one whose masked form is taken, so that neither value is lost.

        `alike` counts the keys of one masked form, so that no key is tried twice.
        """
        while True:
            alike[name] += 1
            count = alike[name] + 1
            for masked in (f"{name} ({count})", f"{name} {_in_stars(count)}"):
                if masked not in taken and not self._open_findings(masked, "", tally, repeated).spans:
                    return masked
            masked = self._mask_text(f"{name}{'****' * alike[name]}", "", tally, repeated)
            if masked not in taken:
                return masked

    def _mask_attribute(self, value: Any, rule: Rule, tally: Tally) -> Any:
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
        return rule.mask.apply(number_text(value) if isinstance(value, int | float) else text)


def _in_stars(count: int) -> str:
    """Write a number in stars, each digit as that many and four, for packs that mask every other character."""
    return " ".join("*" * (4 + int(digit)) for digit in str(count))


def _masked(text: str, spans: Spans, tally: Tally) -> str:
    for start, end, rule in spans:
        tally.add(rule, text[start:end])
    return replaced(text, ((start, end, rule.mask.apply(text[start:end])) for start, end, rule in spans))


def _find_nothing(_text: str, _normalised: NormalisedText) -> Iterable[Span]:
    return ()
