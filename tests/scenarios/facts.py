"""Facts as the oracle knows them: what is left of them at the gates, how two of them relate, and what became of them."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from tests.scenarios.world import ABOUT, LABELS, MARGIN, MASKED, SETTLES_ITSELF, Place, Seat, seats

LIVES = {"working": timedelta(hours=1), "episodic": timedelta(days=30), "semantic": timedelta(days=365)}
SENSITIVE = LABELS[3:]


def rank(label: str) -> int:
    return LABELS.index(label)


@dataclass(frozen=True)
class Fact:
    """Something somebody said: on a key, or in plain text."""

    write_class: str
    author: str
    by_operator: bool
    label: str
    place: Place
    confidence: float
    observed_at: datetime
    entity: str | None = None
    predicate: str | None = None
    value: Any = None
    text: str | None = None
    subject: str | None = None
    corrects: str | None = None

    @property
    def key(self) -> tuple[str, str] | None:
        return (self.entity, self.predicate) if self.entity is not None and self.predicate is not None else None

    @property
    def correction(self) -> bool:
        return self.write_class == "correction"

    @property
    def sensitive(self) -> bool:
        return self.label in SENSITIVE

    @property
    def whom(self) -> str | None:
        return self.entity or self.subject

    def masked(self) -> "Fact":
        """As it goes on behind the gate of redaction: an address is covered, and makes it PII."""
        if self.value not in MASKED and self.text not in MASKED:
            return self
        label = max(self.label, "PII", key=rank)
        return replace(
            self, value=MASKED.get(self.value, self.value), text=MASKED.get(self.text, self.text), label=label
        )

    @property
    def tier(self) -> str:
        """Where it would go if nobody said otherwise."""
        if self.by_operator or self.correction:
            return "durable"
        if self.write_class in ("preference", "decision_outcome"):
            return "semantic" if self.write_class == "preference" else "episodic"
        if (self.place.intent or "").startswith("support."):
            return "episodic"
        return "working" if self.sensitive and self.place.session is not None else "semantic"


def relation(one: Fact, other: Fact) -> str:
    """`same`, `contradicts` or `different`."""
    if one.key is not None and other.key is not None:
        if one.key != other.key:
            return "different"
        if one.value == other.value:
            return "same"
        return "different" if one.predicate == "tag" else "contradicts"
    if one.text is None or other.text is None or not _of_one(one.whom, other.whom):
        return "different"
    topic, said = ABOUT[one.text]
    other_topic, other_said = ABOUT[other.text]
    if topic != other_topic:
        return "different"
    return "same" if said == other_said else "contradicts"


def repeats_rejected(one: Fact, rejected: Fact) -> bool:
    """Whether it says again what was rejected for the same user or for all."""
    return rejected.place.user in (None, one.place.user) and relation(one, rejected) == "same"


def _of_one(one: str | None, other: str | None) -> bool:
    return one is None or other is None or one == other


@dataclass
class Memory:
    """A promoted fact, and how it ended if it did."""

    memory_id: str
    proposal_id: str
    fact: Fact
    tier: str
    approver: str
    editors: tuple[str, ...]
    promoted_at: datetime
    root: str | None
    required: str | None = None
    ended: str | None = None
    superseded_by: str | None = None
    tombstoned: bool = False

    @property
    def seats(self) -> frozenset[Seat]:
        return seats(self.fact.place, self.tier, self.required)

    @property
    def strict(self) -> bool:
        return self.tier == "durable" or self.fact.sensitive

    @property
    def low(self) -> bool:
        return self.fact.confidence < 0.5

    def stands(self, now: datetime) -> bool:
        """Neither withdrawn nor expired, consent or not."""
        life = LIVES.get(self.tier)
        return self.ended is None and (life is None or now < self.promoted_at + life)


def covers(fact: Fact, tier: str, old: Memory) -> bool:
    """Whether every run that could see the old memory could see the fact: by trying them all."""
    return old.seats <= seats(fact.place, tier, None)


def takes_over(fact: Fact, tier: str, old: Memory) -> bool:
    """Whether the fact, once promoted, takes the place of a memory it contradicts, with nobody asked."""
    if not covers(fact, tier, old):
        return False
    if fact.correction or old.fact.correction:
        return fact.correction
    if fact.write_class not in SETTLES_ITSELF or rank(old.fact.label) > rank(fact.label):
        return False
    fresher = fact.observed_at > old.fact.observed_at or not SETTLES_ITSELF[fact.write_class]
    return fresher and round(fact.confidence - old.fact.confidence, 6) >= MARGIN


def stands_for(memory: Memory, fact: Fact, tier: str) -> bool:
    """Whether a memory that says the same may stand for a fact: seen by as many, and for as long."""
    given, own = LIVES.get(memory.tier), LIVES.get(tier)
    return rank(memory.fact.label) <= rank(fact.label) and (given is None or (own is not None and own <= given))
