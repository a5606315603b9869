"""Redaction of texts, JSON and candidates under the rules of one pack (RED-1 to RED-4)."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, TypeVar, cast

from muniment.language.redaction.adjacent import rows
from muniment.language.redaction.attributes import Attributes, leaves, words_of
from muniment.language.redaction.elsewhere import Secret, Sought
from muniment.language.redaction.masking import Barriers, Cover, Covered
from muniment.language.redaction.sight import FILLER, NormalisedText, Span, sight_of
from muniment.model.candidate import Candidate

Content = TypeVar("Content")
# Looks at the text as it is and at its plain copy; gives spans of the text as it is.
Find: TypeAlias = Callable[[str, NormalisedText], Iterable[Span]]

# Texts settle in two or three rounds. A pattern that finds more each time it is asked ends here.
_ROUNDS = 12
_STARS = Cover(None, None)


@dataclass(frozen=True)
class Redacted(Generic[Content]):
    """What is left to be stored, what was masked by kind, and the label that raises it to, if any does."""

    content: Content
    counts: dict[str, int] = field(default_factory=dict[str, int])
    label: str | None = None


@dataclass(frozen=True)
class Rule:
    """One enabled rule: its name, how it finds, what it puts in place, and the label it raises to."""

    name: str
    find: Find
    cover: Cover
    label: str | None


@dataclass(frozen=True)
class Finding:
    """What a rule found, by its place in the text."""

    start: int
    end: int
    name: str


_Secrets: TypeAlias = Sought[Rule]
_NONE: _Secrets = Sought(())
_Placed: TypeAlias = list[tuple[int, int, Rule]]


@dataclass
class _Tally:
    """What was masked so far, and what it was, while one thing is redacted."""

    counts: Counter[str] = field(default_factory=Counter[str])
    labels: set[str] = field(default_factory=set[str])
    secrets: dict[Secret, Rule] = field(default_factory=dict[Secret, Rule])
    # What is said before a text, and a text in which the rules find nothing then.
    clean: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])

    def add(self, rule: Rule, found: str) -> None:
        self.counts[rule.name] += 1
        if rule.label is not None:
            self.labels.add(rule.label)
        if (secret := Secret.of(found)) is not None and secret.is_long:
            self.secrets.setdefault(secret, rule)

    def sought(self) -> tuple[_Secrets, _Secrets]:
        """All secrets, and those that are long."""
        long = [(secret, rule) for secret, rule in self.secrets.items() if secret.is_long]
        sought = Sought(long)
        return (sought if len(long) == len(self.secrets) else Sought(self.secrets.items())), sought


class Redactor:
    """Masks what the rules of a pack find; the same again finds nothing more (RED-3)."""

    def __init__(self, rules: Sequence[Rule], attributes: Attributes, rank: Callable[[str], int]) -> None:
        self._rules = tuple(rules)
        self._attributes = attributes
        self._rank = rank
        self._barriers = Barriers([*(rule.cover for rule in rules), *attributes.covers()])

    def find(self, text: str) -> tuple[Finding, ...]:
        """What the rules find at first sight, in order; nothing is masked."""
        return tuple(Finding(start, end, rule.name) for start, end, rule in self._look(text, ""))

    def text(self, text: str) -> Redacted[str]:
        """The text with every finding masked."""
        tally = _Tally()
        return self._told(self._settled(text, "", tally), tally)

    def json(self, value: Any) -> Redacted[Any]:
        """The value with findings masked in its strings, its keys and its numbers, at every depth.

        A key counts as said before its value: `{"phone": "467 3395"}`. Classified attributes are replaced whole.
        """
        tally = _Tally()
        return self._told(self._value(value, "", tally), tally)

    def candidate(self, candidate: Candidate) -> Redacted[Candidate]:
        """The candidate with text, value, evidence references and qualifiers masked.

        What is masked in one of them is masked where it stands in another, too.
        """
        tally = _Tally()
        fields = self._fields(candidate, tally, _NONE, _NONE)
        if tally.secrets:
            seen = candidate.model_copy(update=fields)
            fields |= self._fields(seen, tally, *tally.sought())
        return self._told(candidate.model_copy(update=fields) if fields else candidate, tally)

    def _fields(self, candidate: Candidate, tally: _Tally, anything: _Secrets, long: _Secrets) -> dict[str, Any]:
        """The fields that change; the text is to hold no secret at all, the others none but very short ones."""
        refs = tuple(self._settled(ref, "", tally, long) for ref in candidate.evidence_refs)
        said = candidate.scope.qualifiers
        qualifiers = {key: self._settled(value, words_of(key), tally, long) for key, value in said.items()}
        value = self._value(candidate.value, candidate.predicate or "", tally, long)
        text = self._settled(candidate.text, "", tally, anything)
        changed: dict[str, Any] = {}
        if refs != candidate.evidence_refs:
            changed["evidence_refs"] = refs
        if qualifiers != said:
            changed["scope"] = candidate.scope.model_copy(update={"qualifiers": qualifiers})
        if value != candidate.value:
            changed["value"] = value
        if text != candidate.text:
            changed["text"] = text
        return changed

    def _told(self, content: Content, tally: _Tally) -> Redacted[Content]:
        label = max(tally.labels, key=self._rank) if tally.labels else None
        return Redacted(content, dict(tally.counts), label)

    # --- one text

    def _settled(self, text: str, said_before: str, tally: _Tally, secrets: _Secrets = _NONE) -> str:
        """The text when nothing more is found in it.

        INVARIANT: each round asks nothing but the text itself, so the last one would find nothing in the result either.
        """
        for _ in range(_ROUNDS):
            placed = self._unsettled(text, said_before, tally, secrets)
            if not placed:
                return text
            text = _masked(text, placed, tally)
        rest = self._unsettled(text, said_before, tally, secrets)
        if not rest:
            return text
        # It does not settle: what is still open is masked whole, and then nothing is left to find.
        rule = rest[-1][2]
        whole = Rule(rule.name, rule.find, _STARS if rule.cover.keep_last is not None else rule.cover, rule.label)
        spans = Covered(len(text), self._barriers.in_text(text)).open(0, len(text))
        return _masked(text, [(start, end, whole) for start, end in spans], tally)

    def _unsettled(self, text: str, said_before: str, tally: _Tally, secrets: _Secrets) -> _Placed:
        """What to mask now; the rules are not asked twice for the same."""
        known = (said_before, text) in tally.clean
        if known and not secrets:
            return []
        placed = self._look(text, said_before, secrets, () if known else self._rules)
        if not placed:
            tally.clean.add((said_before, text))
        return placed

    def _look(
        self, text: str, said_before: str, secrets: _Secrets = _NONE, rules: Sequence[Rule] | None = None
    ) -> _Placed:
        """What to mask now: spans in order that overlap neither each other nor a mask that is there already."""
        if not text:
            return []
        lead = len(said_before) + 2 if said_before else 0
        whole = f"{said_before}: {text}" if said_before else text
        masks = self._barriers.in_text(whole)
        findings = list(_findings(_blotted(whole, masks), self._rules if rules is None else rules, secrets))
        if not findings:
            return []
        taken = Covered(len(whole), masks)
        placed: _Placed = []
        for start, end, rule in findings:
            for low, high in taken.open(max(start, lead), end):
                if (low, high) == (start, end) or any(map(str.isalnum, whole[low:high])):
                    placed.append((low - lead, high - lead, rule))
                    taken.take(low, high)
        placed.sort(key=lambda one: one[0])
        return placed

    # --- values

    def _value(self, value: Any, name: str, tally: _Tally, secrets: _Secrets = _NONE) -> Any:
        """The value of a key or predicate of that name."""
        attribute = self._attributes.named(name)
        if attribute is not None and value is not None:
            if attribute.label is not None:
                tally.labels.add(attribute.label)
            if attribute.cover is not None:
                return self._replaced(value, Rule(attribute.name, _nothing, attribute.cover, attribute.label), tally)
        match value:
            case str():
                return self._settled(value, words_of(name), tally, secrets)
            case bool() | None:
                return value
            case int() | float():
                written = _written(value)
                masked = self._settled(written, words_of(name), tally, secrets)
                return value if masked == written else masked
            case dict():
                return self._mapping(cast("dict[Any, Any]", value), tally, secrets)
            case list():
                done = [self._value(item, name, tally, secrets) for item in cast("list[Any]", value)]
                return self._side_by_side(done, words_of(name), tally, secrets)
            case tuple():
                done = [self._value(item, name, tally, secrets) for item in cast("tuple[Any, ...]", value)]
                return tuple(self._side_by_side(done, words_of(name), tally, secrets))
            case _:
                return value

    def _side_by_side(self, items: list[Any], said_before: str, tally: _Tally, secrets: _Secrets) -> list[Any]:
        """Items that were masked each by itself, with those masked too that are one thing together."""
        for _ in range(_ROUNDS if len(items) > 1 else 0):
            together = self._together(items, said_before, tally)
            if not together:
                return items
            for place, text in together.items():
                items[place] = self._settled(text, said_before, tally, secrets)
        # It does not settle: in stars nothing is left to find.
        while len(items) > 1 and (together := self._together(items, said_before, tally)):
            for place in together:
                items[place] = _STARS.over("")
        return items

    def _together(self, items: Sequence[Any], said_before: str, tally: _Tally) -> dict[int, str]:
        """The items that change, by their place."""
        changed: dict[int, str] = {}
        for row in rows([_shown(item) for item in items]):
            if any(place in changed for place, _, _ in row.places):
                continue
            # The last first, so that the places of the others stay.
            for start, end, rule in reversed(self._look(row.text, said_before)):
                parts = row.parts(start, end)
                if parts:
                    tally.add(rule, row.text[start:end])
                for place, (low, high) in parts:
                    text = changed.get(place) or _shown(items[place]) or ""
                    part = text[low:high]
                    last = place == parts[-1][0] or rule.cover.keep_last is None
                    changed[place] = text[:low] + (rule.cover if last else _STARS).over(part) + text[high:]
                    if (secret := Secret.of(part)) is not None:
                        tally.secrets.setdefault(secret, rule)
        return changed

    def _mapping(self, value: dict[Any, Any], tally: _Tally, secrets: _Secrets) -> dict[Any, Any]:
        redacted: dict[Any, Any] = {}
        alike: Counter[str] = Counter()
        for key, item in value.items():
            place = self._settled(key, "", tally, secrets) if isinstance(key, str) else key
            if place in redacted:
                place = self._beside(str(place), redacted, alike, tally, secrets)
            redacted[place] = self._value(item, str(place), tally, secrets)
        return redacted

    def _beside(
        self, name: str, taken: Mapping[Any, Any], alike: Counter[str], tally: _Tally, secrets: _Secrets
    ) -> str:
        """A key of its own for one that comes to the same mask as another: neither value is lost for it.

        The count goes on where the last one of that name left it, so that no place is tried twice.
        """
        while True:
            alike[name] += 1
            count = alike[name] + 1
            for place in (f"{name} ({count})", f"{name} {_in_stars(count)}"):
                if place not in taken and not self._unsettled(place, "", tally, secrets):
                    return place
            place = self._settled(f"{name}{'****' * alike[name]}", "", tally, secrets)
            if place not in taken:
                return place

    def _replaced(self, value: Any, rule: Rule, tally: _Tally) -> Any:
        """What stands for the whole value of an attribute; the value itself where it is a mask already."""
        if value in ("", [], {}, ()):
            return value
        said = value if isinstance(value, str) else ""
        if said and not Covered(len(said), self._barriers.in_text(said)).open(0, len(said)):
            return value
        tally.add(rule, said)
        for leaf in leaves(value):
            if (secret := Secret.of(leaf)) is not None:
                tally.secrets.setdefault(secret, rule)
        return rule.cover.over(_written(value) if isinstance(value, int | float) else said)


def _findings(seen: str, rules: Sequence[Rule], secrets: _Secrets) -> Iterator[tuple[int, int, Rule]]:
    sight = sight_of(seen)
    for rule in rules:
        # Longest first: what it covers no shorter one of the same rule is asked for.
        for start, end in sorted(rule.find(seen, sight), key=lambda span: (span[0] - span[1], span[0])):
            yield start, end, rule
    if secrets:
        for start, end, rule in secrets.find(sight.text):
            yield *sight.span(start, end), rule


def _in_stars(count: int) -> str:
    """A number in stars, for packs that let no other sign stand: each digit as so many and four."""
    return " ".join("*" * (4 + int(digit)) for digit in str(count))


def _masked(text: str, placed: _Placed, tally: _Tally) -> str:
    pieces: list[str] = []
    done = 0
    for start, end, rule in placed:
        found = text[start:end]
        tally.add(rule, found)
        pieces += (text[done:start], rule.cover.over(found))
        done = end
    return "".join([*pieces, text[done:]])


def _blotted(text: str, masks: Sequence[Span]) -> str:
    pieces: list[str] = []
    done = 0
    for start, end in masks:
        pieces += (text[done:start], FILLER * (end - start))
        done = end
    return "".join([*pieces, text[done:]]) if masks else text


def _written(number: float) -> str:
    """A number as it is read; one without a fraction as a whole one."""
    if isinstance(number, float) and number.is_integer() and abs(number) < 1e19:
        return str(int(number))
    return str(number)


def _shown(item: Any) -> str | None:
    """A scalar as it is read beside others."""
    if isinstance(item, str):
        return item
    return _written(item) if isinstance(item, int | float) and not isinstance(item, bool) else None


def _nothing(_seen: str, _sight: NormalisedText) -> Iterable[Span]:
    return ()
