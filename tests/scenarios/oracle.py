"""A slow, obvious model of one tenant: what the fabric must say to each step, and what is true after it.

All is kept in the order it came: a story that is told again must find everything in the same place, whatever its ids.
Nothing is forgotten: every change has the step it happened in, and so what was true in any of them can be asked.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from muniment.errors import NotPromotable, SelfApproval
from tests.scenarios.facts import (
    Fact,
    Memory,
    PointInTime,
    covers,
    is_one_item,
    rank,
    relation,
    repeats_rejected,
    stands_for,
    takes_over,
)
from tests.scenarios.ledger import Agreed, Ledger
from tests.scenarios.world import FIRST, VERSIONS, Seat, seats

REMEMBERED = timedelta(days=180)
# How a contradiction ends when a side of it is withdrawn.
ENDS = {"wrong": "retracted", "deprecated": "retracted"}
BRINGS_BACK = ("wrong", "deprecated")
# What time alone changes: whom all else lets through may be told of the rest.
OF_TIME = ("promoted", "retracted", "expired", "freshness", "session_end", "validity")


@dataclass
class Proposal:
    """A fact in the queue, or what became of it there."""

    proposal_id: str
    fact: Fact
    tier: str
    editors: tuple[str, ...] = ()
    status: str = "pending"
    repeats: str | None = None
    rejected_at: datetime | None = None
    lifted: bool = False
    returned: bool = False
    overridden: bool = False
    version: str = FIRST

    @property
    def waits(self) -> bool:
        return self.status in ("pending", "held")

    @property
    def strict(self) -> bool:
        return "durable" in (self.tier, self.fact.tier) or self.fact.sensitive

    def is_remembered(self, now: datetime) -> bool:
        """Whether its rejection still stands."""
        return self.rejected_at is not None and not self.lifted and now < self.rejected_at + REMEMBERED


@dataclass(frozen=True)
class Refused:
    """A gate lets it not through; `because` are the rejections it may name."""

    gate: str
    because: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Repeats:
    """A memory says so already."""

    memory_id: str


@dataclass(frozen=True)
class Waits:
    """It waits in the queue, against those memories."""

    against: tuple[str, ...]


@dataclass(frozen=True)
class Barred:
    """It cannot be approved so."""

    error: type[Exception]


@dataclass(frozen=True)
class Stopped:
    """It contradicts something, and the pack does not let that pass."""

    status: str
    against: tuple[str, ...]


@dataclass(frozen=True)
class Promoted:
    """It becomes a memory: in the place of some, against others."""

    replaced: tuple[Memory, ...]
    against: tuple[str, ...]
    consent: Agreed | None


@dataclass
class Dispute:
    """A contradiction: the step it was opened in, and how and in which it ended."""

    opened: int
    outcome: str | None = None
    ended: int | None = None


@dataclass
class Tenant:
    """All that was done in one tenant; `steps` are the times of its changes."""

    unresolved: str
    memories: dict[str, Memory] = field(default_factory=dict)
    proposals: dict[str, Proposal] = field(default_factory=dict)
    disputes: dict[tuple[str, str], Dispute] = field(default_factory=dict)
    ledger: Ledger = field(default_factory=Ledger)
    steps: list[datetime] = field(default_factory=list)
    # The versions that were put in force, each with the step it was, and those that were retired.
    activations: list[tuple[int, str]] = field(default_factory=lambda: [(0, FIRST)])
    registered: set[str] = field(default_factory=lambda: {FIRST})
    retired: set[str] = field(default_factory=set)

    # Under which pack

    @property
    def in_force(self) -> str:
        return self.activations[-1][1]

    def version_in(self, step: int) -> str:
        """The version that was in force in a step."""
        return [version for began, version in self.activations if began <= step][-1]

    def activate(self, version: str, now: datetime) -> None:
        self.activations.append((self._step(now), version))

    def cleared(self, step: int) -> frozenset[str]:
        """What an agent may see of a step: what the pack of then allowed, and the pack of now allows too."""
        return VERSIONS[self.version_in(step)].cleared & VERSIONS[self.in_force].cleared

    def may_pin(self, version: str) -> bool:
        listed = version == self.in_force or version in VERSIONS[self.in_force].may_pin
        return listed and version in self.registered and version not in self.retired

    # When

    def moment(self, at: datetime) -> PointInTime:
        """All that was done by that time."""
        return PointInTime(sum(step <= at for step in self.steps), at)

    def _step(self, now: datetime) -> int:
        """One more change."""
        self.steps.append(now)
        return len(self.steps)

    # What is there

    def tenant_state(self, now: datetime) -> list[Memory]:
        """Neither withdrawn nor expired, consent or not."""
        return [memory for memory in self.memories.values() if memory.stands(now)]

    def believed(self, now: datetime) -> list[Memory]:
        """Standing, and with the consent it needs."""
        return [memory for memory in self.tenant_state(now) if self._allowed(memory, now)]

    def _allowed(self, memory: Memory, now: datetime) -> bool:
        return memory.root is None or self.ledger.allows(memory.root, memory.fact.predicate, now)

    def _may_return(self, memory: Memory, now: datetime) -> bool:
        return memory.root is None or self.ledger.may_return(memory.root, now)

    def verdicts(
        self, memory: Memory, seat: Seat, labels: frozenset[str], then: PointInTime, now: datetime
    ) -> dict[str, bool]:
        """What each filter says of a memory to a run there: what was, at that moment; consent and content, as of now."""
        rights = {"consent": self._allowed(memory, now), "content": not memory.tombstoned}
        return memory.verdicts(seat, labels & self.cleared(then.step), then) | rights

    def visible(
        self, seat: Seat, labels: frozenset[str], now: datetime, then: PointInTime | None = None
    ) -> dict[str, Memory]:
        """What a run there may see now, of what there was at a moment."""
        then = then or self.moment(now)
        return {
            memory.memory_id: memory
            for memory in self.memories.values()
            if all(self.verdicts(memory, seat, labels, then, now).values())
        }

    def waiting(self) -> list[Proposal]:
        return [proposal for proposal in self.proposals.values() if proposal.waits]

    def item(self, proposal: Proposal) -> list[Proposal]:
        """All that wait and say the same, in the order they came."""
        return [one for one in self.waiting() if one is proposal or is_one_item(one.fact, proposal.fact)]

    def to_promote(self, proposal: Proposal, who: str) -> list[Proposal]:
        """Those of an item of which the first that can be is promoted: none of the approver's own words."""
        others = [one for one in self.item(proposal) if who not in (one.fact.author, *one.editors)]
        if proposal in others and proposal.overridden:
            return [proposal, *(one for one in others if one is not proposal)]
        return others or [proposal]

    def became(self, proposal_id: str) -> Memory | None:
        return next((memory for memory in self.memories.values() if memory.proposal_id == proposal_id), None)

    def sides(self, dispute: tuple[str, str]) -> tuple[Memory, Memory | None]:
        """The memory that stood first, and the one it was contradicted by, once that is one."""
        return self.memories[dispute[0]], self.became(dispute[1])

    def is_open(self, dispute: tuple[str, str], now: datetime) -> bool:
        """Whether it waits to be settled: neither ended nor has a side expired."""
        return self.disputes[dispute].outcome is None and all(
            side is None or side.stands(now) for side in self.sides(dispute)
        )

    def conflicts(self, shown: dict[str, Memory], then: PointInTime) -> set[frozenset[str]]:
        """The conflict sets of a run that sees those: whoever was in dispute then, directly or through others."""
        sets: list[set[str]] = []
        for sides, dispute in self.disputes.items():
            members = {side.memory_id for side in self.sides(sides) if side is not None}
            was_open = dispute.opened <= then.step and (dispute.ended is None or then.step < dispute.ended)
            if was_open and len(members) == 2 and members <= shown.keys():
                touching = [one for one in sets if one & members]
                sets = [one for one in sets if not one & members] + [members.union(*touching)]
        return {frozenset(one) for one in sets}

    # What must come of it

    def _around(self, fact: Fact, tier: str, now: datetime) -> tuple[list[Memory], list[Memory]]:
        """What it contradicts and what it repeats, among all that some run could see beside it.

        What is hidden and may come back is contradicted, and not repeated.
        """
        meeting = [m for m in self.tenant_state(now) if m.seats & seats(fact.place, tier, None)]
        return (
            [m for m in meeting if relation(fact, m.fact) == "contradicts" and self._may_return(m, now)],
            [m for m in meeting if relation(fact, m.fact) == "same" and self._allowed(m, now)],
        )

    def admission(self, fact: Fact, now: datetime) -> Refused | Repeats | Waits:
        """What the gates and the first look around make of a fact that was masked."""
        if fact.sensitive and self.ledger.covering(fact.subject, fact.predicate, now) is None:
            return Refused("consent")
        if fact.confidence < VERSIONS[self.in_force].floor:
            return Refused("confidence")
        rejected = frozenset(
            proposal.proposal_id
            for proposal in self.proposals.values()
            if proposal.is_remembered(now) and repeats_rejected(fact, proposal.fact)
        )
        if rejected:
            return Refused("rejection", rejected)
        against, same = self._around(fact, fact.tier, now)
        same = [m for m in same if (m.fact.correction or not fact.correction) and stands_for(m, fact, fact.tier)]
        return Repeats(same[0].memory_id) if same else Waits(tuple(memory.memory_id for memory in against))

    def approval(
        self,
        proposal: Proposal,
        who: str,
        now: datetime,
        supersedes: Memory | None = None,
        beside: Memory | None = None,
    ) -> Barred | Repeats | Stopped | Promoted:
        """What comes of an approval, in the place of a memory or beside it."""
        fact, tier = proposal.fact, proposal.tier
        if proposal.strict and who in (fact.author, *proposal.editors):
            return Barred(SelfApproval)
        against, same = self._around(fact, tier, now)
        replaced = [memory for memory in against if takes_over(fact, tier, memory)]
        repeated = [m for m in same if (m.fact.correction or not fact.correction) and stands_for(m, fact, tier)]
        if fact.correction:
            replaced += [m for m in same if not m.fact.correction and covers(fact, tier, m)]
        target = self.memories.get(fact.corrects or "")
        for named in (supersedes, target if target is not None and target.stands(now) else None):
            if named is not None and named not in replaced:
                if not named.stands(now) or not covers(fact, tier, named):
                    return Barred(NotPromotable)
                if named.fact.correction and not fact.correction:
                    return Barred(NotPromotable)
                replaced.append(named)
        consent = self.ledger.covering(fact.subject, fact.predicate, now) if fact.sensitive else None
        if any(rank(m.fact.label) > rank(fact.label) for m in replaced) or (fact.sensitive and consent is None):
            return Barred(NotPromotable)
        repeated = [memory for memory in repeated if memory not in replaced]
        if repeated:
            return Repeats(repeated[0].memory_id)
        found = tuple(memory.memory_id for memory in against)
        if self.unresolved != "mark_both" and any(m is not beside and m not in replaced for m in against):
            return Stopped({"hold": "held", "block": "blocked"}[self.unresolved], found)
        return Promoted(tuple(replaced), found, consent)

    # What is then true

    def enter(
        self, proposal_id: str, fact: Fact, found: Repeats | Waits, now: datetime, editors: tuple[str, ...] = ()
    ) -> None:
        """It is in the queue, or set aside as a duplicate."""
        proposal = self.proposals[proposal_id] = Proposal(proposal_id, fact, fact.tier, editors, version=self.in_force)
        if isinstance(found, Repeats):
            proposal.status, proposal.repeats = "duplicate", found.memory_id
        else:
            self._dispute(proposal_id, found.against, self._step(now))

    def _dispute(self, proposal_id: str, against: tuple[str, ...], step: int) -> None:
        for memory_id in against:
            self.disputes.setdefault((memory_id, proposal_id), Dispute(step))

    def _end(self, outcome: str, step: int, *, memory_id: str | None = None, proposal_id: str | None = None) -> None:
        for sides, dispute in self.disputes.items():
            became = self.became(sides[1])
            touched = memory_id is not None and memory_id in (sides[0], became.memory_id if became else None)
            if dispute.outcome is None and (touched or sides[1] == proposal_id):
                dispute.outcome, dispute.ended = outcome, step

    def decide(self, proposal: Proposal, status: str, now: datetime) -> None:
        """It ends without becoming a memory: rejected, edited or blocked."""
        proposal.status = status
        proposal.rejected_at = now if status == "rejected" else None
        self._end(status, self._step(now), proposal_id=proposal.proposal_id)

    def apply(
        self,
        proposal: Proposal,
        found: Repeats | Stopped | Promoted,
        who: str,
        now: datetime,
        memory_id: str | None,
        others: Sequence[Proposal] = (),
    ) -> None:
        """What an approval came to, for the proposal and for the others that say the same."""
        step = self._step(now)
        if isinstance(found, Repeats):
            self._repeat([proposal, *others], found.memory_id, step)
            return
        self._dispute(proposal.proposal_id, found.against, step)
        if isinstance(found, Stopped):
            if found.status == "blocked":
                for one in (proposal, *others):
                    self.decide(one, "blocked", now)
            proposal.status = found.status
            return
        assert memory_id is not None
        self._repeat(others, memory_id, step)
        root = found.consent.root if found.consent is not None else None
        proposal.status = "promoted"
        self.memories[memory_id] = Memory(
            memory_id, proposal.proposal_id, proposal.fact, proposal.tier, who, proposal.editors, now, root, step
        )
        for old in found.replaced:
            self._withdraw(old, "corrected" if proposal.fact.correction else "superseded", step, memory_id)

    def _repeat(self, proposals: Sequence[Proposal], memory_id: str, step: int) -> None:
        for one in proposals:
            one.status, one.repeats = "duplicate", memory_id
            self._end("duplicate", step, proposal_id=one.proposal_id)

    def retract_memory(self, memory: Memory, reason: str, now: datetime, superseded_by: str | None = None) -> None:
        """It stands no longer, and with it ends what it was a side of."""
        self._withdraw(memory, reason, self._step(now), superseded_by)

    def _withdraw(self, memory: Memory, reason: str, step: int, superseded_by: str | None = None) -> None:
        memory.ended, memory.ended_in, memory.ended_at = reason, step, self.steps[step - 1]
        memory.superseded_by = superseded_by
        self._end(ENDS.get(reason, reason), step, memory_id=memory.memory_id)

    def coexist(self, sides: tuple[str, str], regions: tuple[str, str], now: datetime) -> None:
        """Both stand from now on, each for the runs that name its region."""
        step = self._step(now)
        self.disputes[sides].outcome, self.disputes[sides].ended = "coexist", step
        for memory, region in zip(self.sides(sides), regions, strict=True):
            assert memory is not None
            if memory.required is None:
                memory.required, memory.required_since = region, step

    def set_aside_for(self, memory: Memory) -> list[Proposal]:
        """The duplicates that come back with it, those that were not refused then."""
        return [p for p in self.proposals.values() if p.repeats == memory.memory_id and not p.returned]

    def sweep(self, now: datetime) -> tuple[int, int]:
        """Take away what rested on ended consents: how many chains, how many memories."""
        roots = self.ledger.ended(now)
        self.ledger.swept |= roots
        resting = [memory for memory in self.memories.values() if memory.root in roots]
        step = self._step(now)
        for memory in resting:
            if memory.ended is None:
                self._withdraw(memory, "consent_revoked", step)
            memory.tombstoned = True
        return len(roots), len(resting)
