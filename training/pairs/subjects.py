"""Subjects of facts: people, places, teams, products; how the same one is named again, and different ones of a kind."""

import random
import re
from dataclasses import dataclass
from pathlib import Path

import yaml

from training.pairs.names import Names

# The one who speaks, under the name that a note about them uses.
USER = "the user"


@dataclass(frozen=True)
class Subject:
    """One subject with the forms under which it appears; the first form is its fullest name."""

    forms: tuple[str, ...]

    def form(self, rng: random.Random) -> str:
        """Return a name of the subject, most often the fullest."""
        return self.forms[0] if rng.random() < 0.75 else rng.choice(self.forms)


def grammar(form: str) -> dict[str, str]:
    """Return the words that a pattern takes for a subject: possessive, object, verbs."""
    if form == "I":
        return {"s": "I", "s's": "my", "o": "me", "their": "my", "is": "am", "was": "was", "has": "have", "does": "do"}
    return {
        "s": form,
        "s's": form + "'s",
        "o": form,
        "their": "their",
        "is": "is",
        "was": "was",
        "has": "has",
        "does": "does",
    }


def filled(pattern: str, form: str, value: str) -> str:
    """Return the pattern with the subject's form and the value; `{live|lives}` is the verb of I and of others."""
    if form == "I":
        pattern = re.sub(r"^(?:the )?([^{}:]*?) of \{o\}([^:]*:)", r"my \1\2", pattern)
    found = grammar(form) | {"v": value}

    def word(match: re.Match[str]) -> str:
        name = match.group(1)
        if "|" in name:
            return name.split("|")[0 if form == "I" else 1]
        return found[name]

    return re.sub(r"\{([^}]*)\}", word, pattern)


def fits(pattern: str, form: str) -> bool:
    """Say whether the pattern reads well with the form: "the boss of me" does not."""
    return form != "I" or " of {o}" not in re.sub(r"^(?:the )?[^{}:]* of \{o\}[^:]*:", "", pattern)


class Subjects:
    """Draws subjects by type."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._parts: dict[str, list[str]] = yaml.safe_load(
            (Path(__file__).parent / "vocabulary" / "subjects.yaml").read_text()
        )
        self._modifiers: list[list[str]] = yaml.safe_load(
            (Path(__file__).parent / "vocabulary" / "modifiers.yaml").read_text()
        )
        lists = yaml.safe_load((Path(__file__).parent / "vocabulary" / "lists.yaml").read_text())
        self._cities = [entry.split("<")[0].strip() for entry in lists["city"]]

    def draw(self, kind: str, rng: random.Random) -> Subject:
        """Return a subject of the type; of the type `policy`, which has none, an empty one."""
        if kind == "policy":
            return Subject(("",))
        if kind == "person":
            return self._person(rng)
        if kind == "company":
            return Subject((rng.choice(self._names.companies),))
        if kind == "order":
            number = rng.randint(1000, 99999)
            return Subject((rng.choice([f"order {number}", f"order #{number}", f"invoice {number}"]),))
        part = rng.choice(self._parts[kind + "s"])
        part = part.replace("MODIFIER", rng.choice(rng.choice(self._modifiers)))
        part = part.replace("CITY", rng.choice(self._cities)).replace("STREET", rng.choice(self._parts["streets"]))
        return Subject((part.replace("COMPANY", rng.choice(self._names.companies)),))

    def other(self, kind: str, than: Subject, rng: random.Random) -> Subject:
        """Return a different subject of the type, now and then one with a name close to the first."""
        for _ in range(1000):
            subject = self._close(kind, than, rng) if rng.random() < 0.4 else self.draw(kind, rng)
            if not set(map(str.lower, subject.forms)) & set(map(str.lower, than.forms)):
                return subject
        raise ValueError(f"no second subject of the type {kind}")

    def _person(self, rng: random.Random) -> Subject:
        first, family = rng.choice(self._names.first), rng.choice(self._names.family)
        chance = rng.random()
        if chance < 0.35:
            return Subject(("I", "I", "I", USER))
        if chance < 0.5:
            relation = rng.choice(self._parts["relations"])
            return Subject((relation, f"{relation} {first}")) if rng.random() < 0.3 else Subject((relation,))
        if chance < 0.57:
            return Subject((f"customer {rng.randint(100, 99999)}",))
        if chance < 0.7:
            return Subject((first,))
        return Subject((f"{first} {family}", first)) if rng.random() < 0.6 else Subject((f"{first} {family}",))

    def _close(self, kind: str, than: Subject, rng: random.Random) -> Subject:
        name = than.forms[0]
        if kind == "person" and " " in name and not name.startswith(("my ", "customer ")):
            first, family = name.split(" ", 1)
            if rng.random() < 0.5:
                return Subject((f"{first} {rng.choice(self._names.family)}",))
            return Subject((f"{rng.choice(self._names.first)} {family}",))
        if kind != "person" and (contrasted := self._contrasted(name, rng)):
            return Subject((contrasted,))
        number = re.search(r"\d+$", name)
        if number:
            return Subject((f"{name[: number.start()]}{int(number.group()) + rng.choice([-1, 1, 10, 7])}",))
        for city in self._cities:
            if city in name and kind == "site":
                if rng.random() < 0.5:
                    return Subject((name.replace(city, rng.choice(self._cities)),))
                return Subject((f"the {city} {rng.choice(['car park', 'canteen', 'showroom', 'service desk'])}",))
        return self.draw(kind, rng)

    def _contrasted(self, name: str, rng: random.Random) -> str | None:
        """The name with the other word of a pair such as north and south."""
        for group in self._modifiers:
            for word in group:
                if f" {word} " in f" {name} ":
                    other = rng.choice([one for one in group if one != word])
                    return f" {name} ".replace(f" {word} ", f" {other} ").strip()
        return None
