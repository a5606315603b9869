"""Plays sixty days of the shop in a few seconds, through the public verbs; the last day leaves a queue to review.

Every day is determined by its number, and every write has an idempotency key, so an interrupted play continues with
the day at which it stopped.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any, cast

import anyio

from muniment.candidates.languages import adopt_language
from muniment.demo import shop
from muniment.demo.shop import ADA, ANTON, BORIS, BUYERS, CLARA, CUSTOMERS, OLGA, PETRA, SHOP, TENANT, agent_run
from muniment.fabric import AsyncFabric
from muniment.model.context import Principal
from muniment.model.events import Event
from muniment.model.proposal import Submission
from muniment.sync import Fabric
from muniment.verbs.keywords import ProposeFields

DAYS = 60
# The last days are one day of the play, so that some of what arrives then is overdue.
_LAST_DAYS = 4
_PREFERENCES: dict[str, list[str]] = SHOP["preferences"]
_TODAY: dict[str, Any] = SHOP["today"]


class Clock:
    """The time of the play."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    def __call__(self) -> datetime:
        """Return the time, a little later at each call."""
        self.now += timedelta(milliseconds=20)
        return self.now


def is_complete(fabric: Fabric) -> bool:
    """Whether the tenant has the whole play: its last write is the revocation of a consent."""
    records = fabric.consent.list(PETRA, subject=f"customer:{_TODAY['revoked']['customer']}")
    return any(one.action == "revoke" for one in records)


def play(home: Path | None, url: str | None, on_day: Callable[[int], None]) -> None:
    """Fill the demo tenant, from where an interrupted play stopped; does nothing if it is complete."""
    with Fabric.open(url, home=home) as fabric:
        if is_complete(fabric):
            return
        times = [one.at for one in _all_events(fabric)]
    start = times[0] if times else datetime.now(UTC) - timedelta(days=DAYS)
    clock = Clock(times[-1] if times else start)
    # By the rules alone: the trained readers would take most of the time.
    with Fabric.open(url, home=home, clock=clock, readers=None) as fabric:
        shop = _Shop(fabric, clock, start)
        for day in range((clock.now - start).days, DAYS - _LAST_DAYS):
            on_day(day)
            # The shop is closed at weekends.
            if day % 7 < 5:
                shop.play_day(day)
        shop.play_today()
    anyio.run(_adopt_readers, url, home)


async def _adopt_readers(url: str | None, home: Path | None) -> None:
    """Have the trained readers, where they are installed, read what comes after the play."""
    async with AsyncFabric.open(url, home=home) as fabric:
        await adopt_language(fabric.opened.context, TENANT)


def _all_events(fabric: Fabric) -> Iterator[Event]:
    after = 0
    while page := fabric.events(ANTON, after=after, limit=1000):
        yield from page
        after = page[-1].seq


def _seeded(seed: int) -> Random:
    """Return random numbers that are the same each time, so that the demo is."""
    return Random(seed)  # noqa: S311  they guard nothing


class _Shop:
    """Plays the days of the shop on a fabric."""

    def __init__(self, fabric: Fabric, clock: Clock, start: datetime) -> None:
        self._fabric = fabric
        self._clock = clock
        self._start = start
        # With this seed the first days already lead to contradictions on the last one.
        self._random = _seeded(618)
        # The days go through the pairs in this order.
        self._pairs = [(buyer, predicate) for buyer in BUYERS for predicate in _PREFERENCES]
        self._random.shuffle(self._pairs)

    def play_day(self, day: int) -> None:
        """Play what is captured, reviewed and recalled on one day."""
        self._random = _seeded(day)
        self._clock.now = max(self._clock.now, self._start + timedelta(days=day, hours=self._random.randint(0, 2)))
        if day in SHOP["packs"]:
            self._register_pack(day)
        if day == 0:
            self._grant_consents()
            self._propose_addresses()
            self._capture_policies()
            self._propose_relations()
        self._propose_preferences(day)
        if day % 3 == 0:
            self._propose_decision(day)
        self._review(day)
        run = agent_run(day, self._random.choice(BUYERS))
        self._fabric.compile(run, self._random.choice(SHOP["questions"]), token_budget=400)
        if day == DAYS - 21:
            self._correct_policy(day)
        if day % 10 == 9:
            self._fabric.seal(TENANT)

    def _register_pack(self, day: int) -> None:
        ref = self._fabric.packs.register(ADA, SHOP["packs"][day]).ref
        if day == 0 and self._fabric.packs.in_force(ADA).pack != ref:
            self._fabric.packs.activate(ADA, ref, reason="the shop's own pack")

    def _grant_consents(self) -> None:
        """Grant the consents of the customers whose names are known, and name them."""
        for number, (customer, name) in enumerate(CUSTOMERS.items()):
            subject = f"customer:{customer}"
            if not self._fabric.consent.list(PETRA, subject=subject, limit=1):
                # That of the first customer ends three days from today.
                lasts = timedelta(days=DAYS + 3 if number == 0 else DAYS * 4)
                self._fabric.consent.grant(PETRA, **shop.consent_fields(subject, valid_until=self._clock.now + lasts))
            self._fabric.subjects.name(PETRA, subject, name)

    def _propose_addresses(self) -> None:
        """Propose and approve personal data of a few customers, which their consents cover."""
        for customer in list(CUSTOMERS)[:6]:
            proposal_id = self._propose(
                0,
                f"address:{customer}",
                customer,
                write_class="preference",
                predicate="reached_at",
                value=f"{CUSTOMERS[customer].split()[0].lower()}@example.com",
                classification="PII",
                subject=f"customer:{customer}",
            )
            self._approve(CLARA, [proposal_id], "given in the chat")

    def _capture_policies(self) -> None:
        items = [
            {
                "kind": "statement",
                "text": text,
                "classification": "PUBLIC",
                "evidence_refs": [f"handbook:p{number + 4}"],
                "idempotency_key": f"policy:{number}",
            }
            for number, text in enumerate(SHOP["policies"])
        ]
        self._fabric.capture_many(OLGA, items)
        self._fabric.consolidate(TENANT)

    def _propose_relations(self) -> None:
        for number, (entity, predicate, value) in enumerate(SHOP["relations"]):
            proposal_id = self._propose(
                0, f"relation:{number}", None, write_class="preference", entity=entity, predicate=predicate, value=value
            )
            self._approve(CLARA, [proposal_id])

    def _propose_preferences(self, day: int) -> None:
        for number in range(self._random.randint(3, 4)):
            customer, predicate = self._pairs[(5 * day + number) % len(self._pairs)]
            if self._random.random() < 0.06:
                customer, predicate = self._random.choice(self._pairs)
            self._propose(
                day,
                f"preference:{number}",
                customer,
                write_class="preference",
                predicate=predicate,
                value=self._random.choice(_PREFERENCES[predicate]),
                confidence=round(self._random.uniform(0.45, 0.9), 2),
                evidence_refs=[f"chat:{day:02d}-{customer}"],
            )
        if day % 7 == 3:
            customer = self._random.choice(list(CUSTOMERS))
            address = f"{customer[-2:]}@example.com"
            self._propose(
                day,
                "call",
                customer,
                write_class="statement",
                text=f"{CUSTOMERS[customer]} asked to be called back at {address} about the order.",
                classification="PII",
                subject=f"customer:{customer}",
            )

    def _propose_decision(self, day: int) -> None:
        predicate, value = self._random.choice(list(SHOP["outcomes"].items()))
        self._propose(
            day,
            "decision",
            self._random.choice(list(CUSTOMERS)),
            write_class="decision_outcome",
            predicate=predicate,
            value=value,
            confidence=0.85,
            evidence_refs=[f"order:{4000 + day}"],
        )

    def _propose(self, day: int, key: str, customer: str | None, **fields: Any) -> str | None:
        """Propose a fact about a customer in a run of the agent; return the proposal, None if a gate refused it."""
        is_typed = customer is not None and fields["write_class"] != "statement"
        given = {
            "classification": "INTERNAL",
            "idempotency_key": f"day:{day}:{key}",
            **({"entity": f"customer:{customer}"} if is_typed else {}),
            **fields,
        }
        outcome = self._fabric.propose(agent_run(day, customer), **cast("ProposeFields", given))
        return outcome.proposal_id if isinstance(outcome, Submission) else None

    def _approve(
        self, who: Principal, proposal_ids: list[str | None], reason: str | None = None, note: str | None = None
    ) -> None:
        """Approve proposals; those that have a verdict already are left as they are."""
        if ids := [one for one in proposal_ids if one is not None]:
            acknowledge = dict.fromkeys(ids, reason) if reason else None
            self._fabric.queue.approve_many(who, ids, note=note, acknowledge=acknowledge)

    def _review(self, day: int) -> None:
        """Approve most of the queue and reject some; a few proposals stay."""
        self._clock.now += timedelta(hours=self._random.randint(2, 9))
        who = (BORIS, CLARA)[day % 2]
        approved: list[str | None] = []
        for item in self._fabric.queue.list(who, limit=200):
            chance = self._random.random()
            if chance < 0.08:
                reason = self._random.choice(SHOP["rejection_reasons"])
                self._fabric.queue.reject(who, item.proposal_id, reason=reason)
            elif chance < 0.9 and item.contradiction_check.verdict != "contradicts":
                approved.append(item.proposal_id)
        self._approve(who, approved, "compared with the chat", note="as in the chat")
        for one in self._fabric.contradictions.list(who, limit=50)[:2]:
            # Resolving one may have resolved the other.
            if self._random.random() < 0.75 and one.contradiction_id in self._open_contradictions(who):
                self._fabric.contradictions.resolve(who, one.contradiction_id, "supersede", note="the newer statement")

    def _open_contradictions(self, who: Principal) -> set[str]:
        return {one.contradiction_id for one in self._fabric.contradictions.list(who, limit=200)}

    def _correct_policy(self, day: int) -> None:
        correction = SHOP["correction"]
        found = self._fabric.recall(agent_run(day), correction["question"], limit=1)
        # An interrupted day may have made the correction already.
        if found.records and found.records[0].text != correction["text"]:
            outcome = self._fabric.correct(
                OLGA,
                memory_id=found.records[0].id,
                text=correction["text"],
                evidence_refs=[correction["evidence"]],
                idempotency_key=f"day:{day}:correction",
            )
            if isinstance(outcome, Submission):
                self._approve(BORIS, [outcome.proposal_id], "new handbook")

    def play_today(self) -> None:
        """Play the last day, which fills the queue with something of every kind."""
        self._random = _seeded(DAYS)
        self._clock.now = max(self._clock.now, datetime.now(UTC) - timedelta(hours=76))
        self._propose_today()
        self._capture_today()
        self._fabric.consolidate(TENANT)
        for item in self._fabric.queue.list(CLARA, limit=2):
            self._fabric.queue.assign(CLARA, item.proposal_id, to=CLARA.id)
        for customer in list(CUSTOMERS)[:5]:
            self._fabric.recall(agent_run(DAYS, customer), "What does the customer like?", limit=5)
        # The last write: `is_complete` looks for it.
        revoked = _TODAY["revoked"]
        consent = self._fabric.consent.list(PETRA, subject=f"customer:{revoked['customer']}", limit=1)[0]
        self._fabric.consent.revoke(PETRA, consent.consent_id, evidence_refs=[revoked["evidence"]])
        self._fabric.seal(TENANT)

    def _propose_today(self) -> None:
        customers, predicates = list(CUSTOMERS), list(_PREFERENCES)
        for number in range(22):
            # The first third came three days ago and is overdue by now.
            if number == 8:
                self._clock.now = max(self._clock.now, datetime.now(UTC) - timedelta(hours=3))
            customer, predicate = customers[number % 12], predicates[number % len(predicates)]
            self._propose(
                DAYS,
                f"preference:{number}",
                customer,
                write_class="preference",
                predicate=predicate,
                value=_PREFERENCES[predicate][number % len(_PREFERENCES[predicate])],
                confidence=round(self._random.uniform(0.4, 0.95), 2),
                evidence_refs=[f"chat:{DAYS}-{customer}"],
            )

    def _capture_today(self) -> None:
        statements = [
            {"kind": "statement", "text": one["text"], "classification": one["label"], "origin": "mail:inbox"}
            for one in _TODAY["statements"]
        ]
        messages = [
            {"kind": "message", "text": text, "classification": "INTERNAL", "origin": "channel:shop_chat"}
            for text in _TODAY["chat"]["messages"]
        ]
        for author, name, items in (
            (OLGA, "statement", statements),
            (agent_run(DAYS, _TODAY["chat"]["customer"]), "message", messages),
        ):
            keyed = [{**one, "idempotency_key": f"day:{DAYS}:{name}:{n}"} for n, one in enumerate(items)]
            self._fabric.capture_many(author, keyed)
        personal, correction = _TODAY["personal"], _TODAY["correction"]
        self._propose(
            DAYS,
            "personal",
            personal["customer"],
            write_class="statement",
            text=personal["text"],
            classification="PII",
            subject=f"customer:{personal['customer']}",
            evidence_refs=[f"chat:{DAYS}-{personal['customer']}"],
        )
        self._fabric.correct(
            OLGA,
            entity=f"customer:{correction['customer']}",
            predicate=correction["predicate"],
            value=correction["value"],
            classification="INTERNAL",
            evidence_refs=[correction["evidence"]],
            idempotency_key=f"day:{DAYS}:correction",
        )
