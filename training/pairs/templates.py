"""Made-up pairs of statements as a memory holds them, with the relation that their making gives them.

A fact has a kind (return window, place lived), a subject, a value and perhaps a qualifier. Two facts of one kind meet
only if subject and qualifier are the same; each function below makes the pairs of one relation.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import yaml

from training.pairs.names import Names, draw
from training.pairs.subjects import Subject, Subjects, filled, fits
from training.pairs.values import MEASURES, Value, Values
from training.pairs.wording import FILLER, typed

FOLDER = Path(__file__).parent
CONTRADICTS, ENTAILS, NEITHER, NOT_CONTRADICTION = "contradicts", "entails", "neither", "not_contradiction"
Drawn = tuple[str, str, str] | None


@dataclass(frozen=True)
class Kind:
    """One kind of fact with its patterns; `many` says that several values hold at once, `state` that there is none."""

    name: str
    says: tuple[str, ...]
    denies: tuple[str, ...]
    past: tuple[str, ...] = ()
    plans: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()
    qualifiers: tuple[str, ...] = ()
    subject: str = "policy"
    value: str = ""
    area: str = ""
    clashes: tuple[str, ...] = ()
    many: bool = False
    state: bool = False

    def apart(self, other: "Kind") -> bool:
        """Say whether facts of the two kinds can never exclude or imply each other."""
        clash = other.name in self.clashes or self.name in other.clashes
        return other.name != self.name and not clash and (not self.area or self.area != other.area)

    def single(self) -> bool:
        """Say whether two different values exclude each other."""
        return not self.many and not self.state


def read_kinds() -> list[Kind]:
    """Return all kinds of facts."""
    entries = [
        entry for path in sorted((FOLDER / "kinds").glob("*.yaml")) for entry in yaml.safe_load(path.read_text())
    ]
    return [_kind(entry) for entry in entries]


def _kind(entry: dict[str, Any]) -> Kind:
    fields: dict[str, Any] = {
        name: tuple(cast(list[str], item)) if isinstance(item, list) else item for name, item in entry.items()
    }
    return Kind(**fields)


class Maker:
    """Makes pairs; the same names and seed give the same pairs."""

    def __init__(self, names: Names, seed: int) -> None:
        self.rng = random.Random(seed)  # noqa: S311
        self.values = Values(names)
        self.subjects = Subjects(names)
        self.companies = names.companies
        self.kinds = read_kinds()
        self.ends: list[dict[str, Any]] = yaml.safe_load((FOLDER / "vocabulary" / "ends.yaml").read_text())
        self.groups: dict[str, list[str]] = yaml.safe_load((FOLDER / "vocabulary" / "qualifiers.yaml").read_text())

    def pairs(self, count: int) -> Iterator[dict[str, Any]]:
        """Return about `count` different pairs, each named after its relation."""
        seen: set[tuple[str, str]] = set()
        makers, shares = zip(*RELATIONS, strict=True)
        while len(seen) < count:
            maker: Callable[[Maker], Drawn] = self.rng.choices(makers, shares)[0]
            drawn = maker(self)
            if drawn is None:
                continue
            a, b = typed(drawn[0], self.rng), typed(drawn[1], self.rng)
            if a.lower().rstrip(".") == b.lower().rstrip(".") or (a, b) in seen:
                continue
            seen.add((a, b))
            weight = 0.5 if maker is exceptions_unnamed else 1.0
            yield {"a": a, "b": b, "label": drawn[2], "set": f"made_{maker.__name__}", "weight": weight}

    def kind(self, keep: Callable[[Kind], object] = lambda kind: True) -> Kind:
        """Return a kind for which `keep` holds."""
        return self.rng.choice([kind for kind in self.kinds if keep(kind)])

    def subject(self, kind: Kind) -> Subject:
        """Return a subject of the kind."""
        return self.subjects.draw(kind.subject, self.rng)

    def value(self, kind: Kind) -> Value:
        """Return a value of the kind; a state has none."""
        return Value("", ("",)) if kind.state else self.values.draw(kind.value, self.rng)

    def other(self, kind: Kind, value: Value) -> Value:
        """Return a different value of the kind."""
        return self.values.other(kind.value, value, self.rng)

    def qualifier(self, kind: Kind, chance: float = 0.3) -> str:
        """Return a qualifier of the kind, or none."""
        if self.rng.random() > chance:
            return ""
        if kind.subject == "policy" and self.rng.random() < 0.3:
            return f"at {self.rng.choice(self.companies)}"
        return self.rng.choice(self.groups[self.rng.choice(kind.qualifiers)]) if kind.qualifiers else ""

    def two_qualifiers(self, kind: Kind) -> tuple[str, str]:
        """Return two qualifiers of which one excludes the other."""
        if kind.subject == "policy" and self.rng.random() < 0.2:
            one, other = self.rng.sample(self.companies, 2)
            return f"at {one}", f"at {other}"
        one, other = self.rng.sample(self.groups[self.rng.choice(kind.qualifiers)], 2)
        return one, other

    def write(self, pattern: str, form: str, value: Value, qualifier: str = "") -> str:
        """Return a pattern as a sentence."""
        text = filled(pattern, form, self.rng.choice(value.written))
        if not qualifier:
            return text
        if ": " in text:
            return text.replace(": ", f" {qualifier}: ", 1)
        return f"{qualifier}, {text}" if self.rng.random() < 0.5 else f"{text} {qualifier}"

    def says(self, kind: Kind, subject: Subject | str, value: Value, qualifier: str = "", group: str = "says") -> str:
        """Return a sentence that states the value (or denies it, or asks for it, as the group says)."""
        form = subject if isinstance(subject, str) else subject.form(self.rng)
        patterns: tuple[str, ...] = getattr(kind, group)
        suited = [pattern for pattern in patterns if fits(pattern, form)]
        return self.write(self.rng.choice(suited or [patterns[0]]), form, value, qualifier)


def different_value(make: Maker) -> Drawn:
    """Same subject and attribute, another value where only one can hold."""
    kind = make.kind(Kind.single)
    subject, value, qualifier = make.subject(kind), make.value(kind), make.qualifier(kind)
    second = make.other(kind, value)
    return make.says(kind, subject, value, qualifier), make.says(kind, subject, second, qualifier), CONTRADICTS


def different_value_same_words(make: Maker) -> Drawn:
    """The same sentence with another value."""
    kind = make.kind(Kind.single)
    form, value, qualifier = make.subject(kind).form(make.rng), make.value(kind), make.qualifier(kind)
    pattern = make.rng.choice([pattern for pattern in kind.says if fits(pattern, form)])
    second = make.other(kind, value)
    return make.write(pattern, form, value, qualifier), make.write(pattern, form, second, qualifier), CONTRADICTS


def different_value_other_unit(make: Maker) -> Drawn:
    """Another value, written in another unit."""
    kind = make.kind(lambda kind: kind.single() and kind.value in MEASURES)
    value = make.value(kind)
    second = make.other(kind, value)
    written = [
        (one, other) for one in value.written for other in second.written if one.split()[-1] != other.split()[-1]
    ]
    if not written:
        return None
    one, other = make.rng.choice(written)
    subject, qualifier = make.subject(kind), make.qualifier(kind, 0.15)
    first, last = Value(value.key, (one,)), Value(second.key, (other,))
    return make.says(kind, subject, first, qualifier), make.says(kind, subject, last, qualifier), CONTRADICTS


def denied(make: Maker) -> Drawn:
    """A fact and its denial."""
    kind = make.kind()
    subject, value, qualifier = make.subject(kind), make.value(kind), make.qualifier(kind, 0.2)
    pair = make.says(kind, subject, value, qualifier), make.says(kind, subject, value, qualifier, "denies")
    return (*_either_order(make, pair), CONTRADICTS)


def different_in_longer(make: Maker) -> Drawn:
    """One of two joined facts has another value."""
    kind = make.kind(lambda kind: kind.single() and kind.subject != "policy")
    subject, value = make.subject(kind), make.value(kind)
    joined = _joined(make, kind, subject, value)
    return (*_either_order(make, (joined, make.says(kind, subject, make.other(kind, value)))), CONTRADICTS)


def different_broad_value(make: Maker) -> Drawn:
    """A value against a broader one that excludes it: Lyon and Germany."""
    kind, value = _specific(make, Kind.single)
    subject, second = make.subject(kind), make.other(kind, value)
    if second.broader is None or second.broader.related(value):
        return None
    return (
        *_either_order(make, (make.says(kind, subject, value), make.says(kind, subject, second.broader))),
        CONTRADICTS,
    )


def no_exceptions(make: Maker) -> Drawn:
    """A rule for everyone against another value for some."""
    kind = make.kind(lambda kind: kind.single() and kind.subject == "policy")
    value = make.value(kind)
    rule = make.says(kind, "", value) + make.rng.choice(
        [", no exceptions", " for everyone, everywhere", ", always and in every case"]
    )
    some = make.rng.choice(make.groups[make.rng.choice(kind.qualifiers)])
    return (*_either_order(make, (rule, make.says(kind, "", make.other(kind, value), some))), CONTRADICTS)


def outside_the_exception(make: Maker) -> Drawn:
    """A rule with an exception against another value for a case that is not the exception."""
    kind = make.kind(lambda kind: kind.single() and "regions" in kind.qualifiers)
    subject, value = make.subject(kind), make.value(kind)
    one, other = make.rng.sample(make.groups["regions"], 2)
    rule = make.says(kind, subject, value) + f", except {one}"
    return (*_either_order(make, (rule, make.says(kind, subject, make.other(kind, value), other))), CONTRADICTS)


def changed(make: Maker) -> Drawn:
    """A fact with its former value: it contradicts the former value and implies the present one."""
    kind = make.kind(lambda kind: kind.single() and kind.past)
    subject, former = make.subject(kind), make.value(kind)
    form, present = subject.form(make.rng), make.other(kind, former)
    link = make.rng.choice([", but now ", ", now ", "; since then that has changed: ", ", these days "])
    both = make.says(kind, form, former, group="past") + link + make.says(kind, form, present)
    if make.rng.random() < 0.5:
        return (*_either_order(make, (both, make.says(kind, subject, former))), CONTRADICTS)
    return _one_way(make, both, make.says(kind, subject, present))


def other_words(make: Maker) -> Drawn:
    """The same fact in other words, units or order."""
    kind = make.kind()
    subject, value, qualifier = make.subject(kind), make.value(kind), make.qualifier(kind)
    group = "denies" if kind.state and make.rng.random() < 0.5 else "says"
    pair = make.says(kind, subject, value, qualifier, group), make.says(kind, subject, value, qualifier, group)
    return (*pair, ENTAILS) if pair[0] != pair[1] else None


def other_unit(make: Maker) -> Drawn:
    """The same sentence with the value written in another way."""
    kind = make.kind(lambda kind: not kind.state)
    value = make.value(kind)
    if len(value.written) < 2:
        return None
    subject, qualifier = make.subject(kind), make.qualifier(kind, 0.15)
    one, other = make.rng.sample(value.written, 2)
    first, second = Value(value.key, (one,)), Value(value.key, (other,))
    return make.says(kind, subject, first, qualifier), make.says(kind, subject, second, qualifier), ENTAILS


def more_specific(make: Maker) -> Drawn:
    """A value and the broader one that it implies; the other way round nothing follows."""
    kind, value = _specific(make)
    subject = make.subject(kind)
    assert value.broader
    return _one_way(make, make.says(kind, subject, value), make.says(kind, subject, value.broader))


def part_of_longer(make: Maker) -> Drawn:
    """Two joined facts and one of them."""
    kind = make.kind(lambda kind: kind.subject != "policy")
    subject, value = make.subject(kind), make.value(kind)
    return _one_way(make, _joined(make, kind, subject, value), make.says(kind, subject, value))


def different_subject(make: Maker) -> Drawn:
    """The same attribute of two subjects."""
    kind = make.kind(lambda kind: kind.subject != "policy")
    first = make.subject(kind)
    second = make.subjects.other(kind.subject, first, make.rng)
    value, qualifier = make.value(kind), make.qualifier(kind, 0.15)
    group = "denies" if make.rng.random() < (0.5 if kind.state else 0.2) else "says"
    later = value if kind.state or make.rng.random() < 0.25 or group == "denies" else make.other(kind, value)
    pair = make.says(kind, first.forms[0], value, qualifier), make.says(kind, second.forms[0], later, qualifier, group)
    return (*_either_order(make, pair), NEITHER)


def different_subject_same_words(make: Maker) -> Drawn:
    """The same sentence about two subjects."""
    kind = make.kind(lambda kind: kind.subject != "policy" and not kind.state)
    first = make.subject(kind)
    second = make.subjects.other(kind.subject, first, make.rng)
    forms = first.forms[0], second.forms[0]
    pattern = make.rng.choice([pattern for pattern in kind.says if all(fits(pattern, form) for form in forms)])
    value = make.value(kind)
    later = value if make.rng.random() < 0.2 else make.other(kind, value)
    return make.write(pattern, forms[0], value), make.write(pattern, forms[1], later), NEITHER


def different_qualifier(make: Maker) -> Drawn:
    """The same attribute under two conditions, regions, times or for two groups."""
    kind = make.kind(lambda kind: kind.qualifiers and not kind.many)
    subject, value = make.subject(kind), make.value(kind)
    one, other = make.two_qualifiers(kind)
    if kind.state:
        pair = make.says(kind, subject, value, one), make.says(kind, subject, value, other, "denies")
    else:
        later = value if make.rng.random() < 0.15 else make.other(kind, value)
        pair = make.says(kind, subject, value, one), make.says(kind, subject, later, other)
    return (*_either_order(make, pair), NEITHER)


def different_qualifier_same_words(make: Maker) -> Drawn:
    """The same sentence under two conditions."""
    kind = make.kind(lambda kind: kind.qualifiers and kind.single())
    form, value = make.subject(kind).form(make.rng), make.value(kind)
    pattern = make.rng.choice([pattern for pattern in kind.says if fits(pattern, form)])
    one, other = make.two_qualifiers(kind)
    return make.write(pattern, form, value, one), make.write(pattern, form, make.other(kind, value), other), NEITHER


def exceptions_named(make: Maker) -> Drawn:
    """A rule with an exception, and what holds for the exception."""
    kind = make.kind(lambda kind: kind.single() and kind.qualifiers)
    subject, value, qualifier = make.subject(kind), make.value(kind), make.qualifier(kind, 1.0)
    rule = (
        make.says(kind, subject, value) + make.rng.choice([", except ", ", but not ", " except ", " (not "]) + qualifier
    )
    rule += ")" if " (not " in rule else ""
    pair = rule, make.says(kind, subject, make.other(kind, value), qualifier)
    return (*_either_order(make, pair), NEITHER)


def exceptions_unnamed(make: Maker) -> Drawn:
    """A rule, and another value for some: the second narrows the first, which is no contradiction by itself."""
    kind = make.kind(lambda kind: kind.single() and kind.qualifiers)
    subject, value, qualifier = make.subject(kind), make.value(kind), make.qualifier(kind, 1.0)
    pair = make.says(kind, subject, value), make.says(kind, subject, make.other(kind, value), qualifier)
    return (*_either_order(make, pair), NEITHER)


def different_attribute(make: Maker) -> Drawn:
    """Two attributes of one subject, often with values of one type."""
    kind = make.kind()
    second = _beside(make, kind)
    subject, qualifier = make.subject(kind), make.qualifier(kind, 0.15)
    one, other = make.value(kind), make.value(second)
    return make.says(kind, subject, one, qualifier), make.says(second, subject, other), NEITHER


def other_end(make: Maker) -> Drawn:
    """Two attributes of one thing in like words: it opens at one time and closes at another."""
    entry = make.rng.choice(make.ends)
    subject = make.rng.choice(entry["subjects"])

    def say(side: str) -> str:
        value = make.rng.choice(make.values.draw(entry["value"], make.rng).written)
        return make.rng.choice(entry[side]).replace("{s}", subject).replace("{v}", value)

    return (*_either_order(make, (say("one"), say("other"))), NEITHER)


def several_hold(make: Maker) -> Drawn:
    """Two values of an attribute that can have several."""
    kind = make.kind(lambda kind: kind.many)
    subject, value = make.subject(kind), make.value(kind)
    return make.says(kind, subject, value), make.says(kind, subject, make.other(kind, value)), NEITHER


def past_and_present(make: Maker) -> Drawn:
    """What was once, and what is."""
    kind = make.kind(lambda kind: kind.past)
    subject, value = make.subject(kind), make.value(kind)
    pair = make.says(kind, subject, value, group="past"), make.says(kind, subject, make.other(kind, value))
    return (*_either_order(make, pair), NEITHER)


def plan_and_present(make: Maker) -> Drawn:
    """What someone thinks about, and what is."""
    kind = make.kind(lambda kind: kind.plans)
    subject, value = make.subject(kind), make.value(kind)
    pair = make.says(kind, subject, value, group="plans"), make.says(kind, subject, make.other(kind, value))
    return (*_either_order(make, pair), NEITHER)


def question(make: Maker) -> Drawn:
    """A question and a statement about the same thing."""
    kind = make.kind(lambda kind: kind.asks)
    subject, value = make.subject(kind), make.value(kind)
    asked = value if kind.state else make.other(kind, value)
    group = "denies" if make.rng.random() < 0.3 else "says"
    pair = make.says(kind, subject, asked, group="asks"), make.says(kind, subject, value, group=group)
    return (*_either_order(make, pair), NEITHER)


def greeting(make: Maker) -> Drawn:
    """Plain talk beside a fact or beside plain talk."""
    kind = make.kind()
    fact = make.says(kind, make.subject(kind), make.value(kind))
    second = make.rng.choice(FILLER["greetings"]) if make.rng.random() < 0.1 else fact
    return (*_either_order(make, (make.rng.choice(FILLER["greetings"]), second)), NEITHER)


def unrelated(make: Maker) -> Drawn:
    """Two facts of different kinds about different subjects."""
    first = make.kind()
    second = make.kind(first.apart)
    return (
        make.says(first, make.subject(first), make.value(first)),
        make.says(second, make.subject(second), make.value(second)),
        NEITHER,
    )


def denied_other(make: Maker) -> Drawn:
    """One value denied, another stated."""

    def one_value(pattern: str) -> bool:
        # "Not within eleven days" also denies eight days, and "no children" any number.
        return "{v}" in pattern and "within {v}" not in pattern

    kind = make.kind(lambda kind: not kind.state and any(map(one_value, kind.denies)))
    form, value = make.subject(kind).form(make.rng), make.value(kind)
    pattern = make.rng.choice([pattern for pattern in kind.denies if one_value(pattern)])
    pair = make.write(pattern, form, value), make.says(kind, form, make.other(kind, value))
    return (*_either_order(make, pair), NOT_CONTRADICTION)


def _either_order(make: Maker, pair: tuple[str, str]) -> tuple[str, str]:
    return pair if make.rng.random() < 0.5 else (pair[1], pair[0])


def _one_way(make: Maker, more: str, less: str) -> Drawn:
    return (more, less, ENTAILS) if make.rng.random() < 0.6 else (less, more, NEITHER)


def _beside(make: Maker, kind: Kind) -> Kind:
    """Return another kind of the same type of subject whose facts never exclude those of the first."""

    def apart(second: Kind) -> bool:
        return second.subject == kind.subject and kind.apart(second)

    close = [second for second in make.kinds if apart(second) and second.value == kind.value]
    return make.rng.choice(close) if close and make.rng.random() < 0.5 else make.kind(apart)


def _joined(make: Maker, kind: Kind, subject: Subject, value: Value) -> str:
    """Return the fact joined with another one about the same subject."""
    second = _beside(make, kind)
    form = subject.form(make.rng)
    parts = [make.says(kind, form, value), make.says(second, form, make.value(second))]
    make.rng.shuffle(parts)
    if make.rng.random() < 0.25:
        return f"{parts[0]}. {parts[1][0].upper()}{parts[1][1:]}"
    return make.rng.choice([" and ", ", and ", "; "]).join(parts)


def _specific(make: Maker, keep: Callable[[Kind], object] = lambda kind: True) -> tuple[Kind, Value]:
    kind = make.kind(lambda kind: keep(kind) and kind.value and make.values.broad(kind.value, make.rng))
    value = make.values.broad(kind.value, make.rng)
    assert value
    return kind, value


# Every relation with its share of the pairs.
RELATIONS: tuple[tuple[Callable[[Maker], Drawn], float], ...] = (
    (different_value, 16),
    (different_value_same_words, 5),
    (different_value_other_unit, 4),
    (denied, 9),
    (different_in_longer, 3),
    (different_broad_value, 1.5),
    (no_exceptions, 1),
    (outside_the_exception, 1),
    (changed, 3),
    (other_words, 16),
    (other_unit, 6),
    (more_specific, 4),
    (part_of_longer, 4),
    (different_subject, 14),
    (different_subject_same_words, 6),
    (different_qualifier, 7),
    (different_qualifier_same_words, 3),
    (exceptions_named, 2),
    (exceptions_unnamed, 1.5),
    (different_attribute, 7),
    (other_end, 4),
    (several_hold, 5),
    (past_and_present, 3),
    (plan_and_present, 2),
    (question, 3),
    (greeting, 1),
    (unrelated, 2),
    (denied_other, 3),
)


def made(count: int = 60_000, seed: int = 16) -> Iterator[dict[str, Any]]:
    """Return made-up pairs with Faker's names."""
    return Maker(draw(seed), seed).pairs(count)
