"""A slow, obvious memory of what was done, to compare the fabric with."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import product
from typing import Any

from muniment import RunContext

USERS = (None, "u1", "u2")
SESSIONS = (None, "s1", "s2")
WORKFLOWS = (None, "w1", "w2")
INTENTS = (None, "support.refund", "sales.offer")
LIVES = {"working": timedelta(hours=1), "episodic": timedelta(days=30), "semantic": timedelta(days=365)}


@dataclass
class Believed:
    """A promoted memory."""

    memory_id: str
    user: str | None
    session: str | None
    workflow: str | None
    intent: str | None
    tier: str
    label: str
    write_class: str
    key: tuple[str | None, str | None]
    value: Any
    author: str
    editors: tuple[str, ...]
    approver: str
    promoted_at: datetime
    consent_id: str | None
    retracted: bool = False

    @property
    def strict(self) -> bool:
        return self.tier == "durable" or self.label == "PII"

    def in_scope(self, user: str | None, session: str | None, workflow: str | None, intent: str | None) -> bool:
        """Whether a run of that kind could ever see it."""
        if self.user is not None and self.user != user:
            return False
        if self.tier == "working" and self.session != session:
            return False
        if self.tier == "episodic" and self.user is None and self.workflow is not None and self.workflow != workflow:
            return False
        return self.intent is None or self.intent == intent

    def expired(self, now: datetime) -> bool:
        life = LIVES.get(self.tier)
        return life is not None and now >= self.promoted_at + life


@dataclass
class Agreed:
    """A consent."""

    subject: str
    until: datetime | None
    revoked: bool = False

    def live(self, now: datetime) -> bool:
        return not self.revoked and (self.until is None or now < self.until)


@dataclass
class Tenant:
    """All that was done in one tenant."""

    memories: dict[str, Believed] = field(default_factory=dict)
    consents: dict[str, Agreed] = field(default_factory=dict)

    def standing(self, now: datetime) -> list[Believed]:
        """Neither retracted nor expired, consent or not."""
        return [memory for memory in self.memories.values() if not memory.retracted and not memory.expired(now)]

    def visible(self, run: RunContext, now: datetime) -> list[Believed]:
        """What the run may see now."""
        return [
            memory
            for memory in self.standing(now)
            if memory.in_scope(run.user_id, run.session_id, run.workflow_id, run.intent_id)
            and memory.label in run.classification_allowed
            and (memory.consent_id is None or self.consents[memory.consent_id].live(now))
        ]

    def consented(self, subject: str, now: datetime) -> bool:
        return any(consent.subject == subject and consent.live(now) for consent in self.consents.values())


def meet(one: Believed, other: Believed) -> bool:
    """Whether some run could see both: by trying them all."""
    return any(one.in_scope(*run) and other.in_scope(*run) for run in product(USERS, SESSIONS, WORKFLOWS, INTENTS))


def covers(wide: Believed, narrow: Believed) -> bool:
    """Whether every run that could see the narrow one could see the wide one: by trying them all."""
    runs = product(USERS, SESSIONS, WORKFLOWS, INTENTS)
    return all(wide.in_scope(*run) for run in runs if narrow.in_scope(*run))


def at_odds(one: Believed, other: Believed) -> bool:
    """Whether they say different things on one key to the same run."""
    return one.key[0] is not None and one.key == other.key and one.value != other.value and meet(one, other)
