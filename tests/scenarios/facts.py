"""Facts as the oracle knows them: what is left of them at the gates, how two of them relate, and what became of them."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

from tests.scenarios.world import (
    ABOUT,
    FRESH,
    LABELS,
    LIVES,
    MARGIN,
    MASKED,
    SETTLES_ITSELF,
    Place,
    Seat,
    let_in,
    seats,
)

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
    def words(self) -> str:
        """It as text."""
        return self.text if self.text is not None else f"{self.entity} {self.predicate}: {self.value}"

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


def is_one_item(one: Fact, other: Fact) -> bool:
    """Whether two that wait say the same to the same runs, word for word."""
    said = (one.key, one.value, one.text, one.whom, one.correction)
    if said != (other.key, other.value, other.text, other.whom, other.correction):
        return False
    return _seen_from(one) == _seen_from(other)


def _seen_from(fact: Fact) -> tuple[str | None, ...]:
    place, tenants_own = fact.place, fact.place.user is None
    session = place.session if fact.tier == "working" else None
    workflow = place.workflow if fact.tier == "episodic" and tenants_own else None
    return (place.user, session, workflow, place.intent, place.region)


def repeats_rejected(one: Fact, rejected: Fact) -> bool:
    """Whether it says again what was rejected for the same user or for all."""
    return rejected.place.user in (None, one.place.user) and relation(one, rejected) == "same"


def _of_one(one: str | None, other: str | None) -> bool:
    return one is None or other is None or one == other


class PointInTime(NamedTuple):
    """A point in a tenant's history: all that was done up to a step, and the time."""

    step: int
    at: datetime


@dataclass
class Memory:
    """A promoted fact, and how it ended if it did; each with the step it happened in."""

    memory_id: str
    proposal_id: str
    fact: Fact
    tier: str
    approver: str
    editors: tuple[str, ...]
    promoted_at: datetime
    root: str | None
    born: int
    required: str | None = None
    required_since: int | None = None
    ended: str | None = None
    ended_in: int | None = None
    ended_at: datetime | None = None
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

    @property
    def expires_at(self) -> datetime | None:
        life = LIVES.get(self.tier)
        return self.promoted_at + life if life is not None else None

    def stands(self, now: datetime) -> bool:
        """Neither withdrawn nor expired, consent or not."""
        return self.ended is None and not self._expired(now)

    def _expired(self, at: datetime) -> bool:
        return self.expires_at is not None and at >= self.expires_at

    def _fresh(self, at: datetime) -> bool:
        return self.tier not in FRESH or self.promoted_at >= at - FRESH[self.tier]

    def required_in(self, step: int) -> str | None:
        """The region that a run had to name by then."""
        return self.required if self.required_since is not None and self.required_since <= step else None

    def verdicts(self, seat: Seat, labels: frozenset[str], then: PointInTime) -> dict[str, bool]:
        """What each filter says of it to a run there, at that moment; all but the two that count as of now."""
        return let_in(seat, self.fact.place, self.tier, self.required_in(then.step)) | {
            "classification": self.fact.label in labels,
            "promoted": self.born <= then.step,
            "retracted": self.ended_in is None or then.step < self.ended_in,
            "expired": not self._expired(then.at),
            "freshness": self._fresh(then.at),
            # No fact of these histories says when it holds in the world.
            "validity": True,
            # No session of these stories ends; tests/sessions has that.
            "session_end": True,
        }


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
