"""What every part of the state machine needs: two tenants, their people, a clock, and the oracle."""

from collections.abc import Callable, Sequence
from datetime import datetime
from itertools import count
from typing import Any, ClassVar, TypeVar

import psycopg
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine

from muniment import Fabric, Refusal, Submission
from muniment.model.context import Principal
from muniment.model.proposal import Proposal
from muniment.testing import FakeClock, People
from tests.scenarios.facts import Fact, Memory
from tests.scenarios.oracle import BRINGS_BACK, Refused, Repeats, Tenant

Connection = psycopg.Connection[tuple[object, ...]]
_T = TypeVar("_T")
_numbers = count(1)

# Most of it happens in one tenant; what happens in the other must not show there.
tenants = st.sampled_from((0, 0, 0, 1))
anything = st.integers(0, 10_000)


def pick(some: Sequence[_T], which: int) -> _T:
    return some[which % len(some)]


class Stage(RuleBasedStateMachine):
    """Two tenants with the same cast: an author of corrections, reviewers, a privacy officer, an agent."""

    make: ClassVar[Callable[[str, FakeClock], Fabric]]
    superuser: ClassVar[Connection]

    def open(self, unresolved: str) -> None:
        """Raise the curtain, under the pack that says so of what nobody resolved."""
        self.clock = FakeClock()
        self.began = self.clock.now
        self.fabric = type(self).make(unresolved, self.clock)
        self.people = [People(f"machine_{next(_numbers)}_{n}") for n in range(2)]
        self.oracle = [Tenant(unresolved), Tenant(unresolved)]
        self.written: set[tuple[str, str, str]] = set()
        self.touched, self.looks = {0, 1}, 0
        for people in self.people:
            self.fabric.capture(people.run(None), kind="message", text="hello", classification="INTERNAL")

    def teardown(self) -> None:
        if hasattr(self, "fabric"):
            try:
                for people in self.people:
                    # Whatever was done, every row is what the log says (AUD-4).
                    assert self.fabric.verify(people.auditor).breaks == ()
            finally:
                self.fabric.close()

    def on(self, tenant: int) -> tuple[People, Tenant]:
        """Who and what a step is about."""
        self.touched.add(tenant)
        return self.people[tenant], self.oracle[tenant]

    def until(self, moment: datetime) -> None:
        """Let time pass up to a moment, if it lies ahead."""
        self.clock.now = max(self.clock.now, moment)
        self.touched = {0, 1}

    def reviewer(self, tenant: int, name: str) -> Principal:
        return self.people[tenant].person(name, "reviewer")

    def entered(
        self, tenant: int, fact: Fact, outcome: Proposal | Submission | Refusal, editors: tuple[str, ...] = ()
    ) -> Proposal | None:
        """Compare what became of a fact on its way into the queue with what the oracle says, and note it there."""
        people, oracle = self.on(tenant)
        fact = fact.masked()
        expected = oracle.admission(fact, self.clock.now)
        if isinstance(outcome, Refusal):
            assert isinstance(expected, Refused), (outcome, expected)
            assert outcome.gate == expected.gate
            remembered = outcome.gate == "rejection"
            assert outcome.rejection in expected.because if remembered else outcome.rejection is None
            return None
        assert not isinstance(expected, Refused), (outcome, expected)
        if isinstance(outcome, Submission):
            assert outcome.status == "pending"
            outcome = self.fabric.queue.get(people.reviewer, outcome.proposal_id)
        candidate = outcome.candidate
        assert (candidate.value, candidate.classification) == (fact.value, fact.label)
        assert fact.text is None or candidate.text == fact.text
        assert outcome.tier_derived == outcome.tier_target == fact.tier
        if isinstance(expected, Repeats):
            assert (outcome.status, outcome.duplicate_check) == ("duplicate", expected.memory_id)
        else:
            assert outcome.status == "pending", outcome
            assert outcome.contradiction_check.contradicted == expected.against
        oracle.enter(outcome.proposal_id, fact, expected, self.clock.now, editors)
        return outcome

    def withdrawn(self, tenant: int, memory: Memory, reason: str) -> None:
        """Note that a memory was found wanting, and look for the duplicates that come back for it."""
        people, oracle = self.on(tenant)
        oracle.retract_memory(memory, reason, self.clock.now)
        if reason not in BRINGS_BACK or not (aside := oracle.set_aside_for(memory)):
            return
        queue = self.fabric.queue.list(people.reviewer, closed=True, limit=1000)
        back = {proposal.reopens: proposal for proposal in queue if proposal.reopens is not None}
        for proposal in aside:
            proposal.returned = True
            if (again := back.get(proposal.proposal_id)) is not None:
                assert "returned" in again.human_reasons and not again.auto_promote_eligible
                self.entered(tenant, proposal.fact, again, proposal.editors)
            else:
                assert isinstance(oracle.admission(proposal.fact, self.clock.now), Refused)


def failing(call: Callable[[], Any]) -> tuple[Any, type[Exception] | None]:
    """What a call gave, or the kind of error it raised."""
    try:
        return call(), None
    except Exception as error:
        return None, type(error)
