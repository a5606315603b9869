"""Rules by which proposals are decided: approved, edited, overridden, rejected, lifted; and memories withdrawn."""

from dataclasses import replace
from typing import Any, Literal

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from muniment import Refusal
from muniment.errors import AlreadyDecided, Conflict, NotPromotable
from muniment.model.proposal import Proposal as Queued
from tests.scenarios.facts import Memory
from tests.scenarios.oracle import Barred, Promoted, Proposal, Refused, Repeats, Stopped
from tests.scenarios.stage import Stage, anything, failing, pick
from tests.scenarios.world import REVIEWERS
from tests.scenarios.writing import Writing, sentences, values

EDITS_LIMIT = 8

reviewers = st.sampled_from(REVIEWERS)
tiers = st.sampled_from(("working", "episodic", "semantic", "durable"))


def waiting(self: Stage) -> list[tuple[int, Proposal]]:
    return [(tenant, proposal) for tenant, oracle in enumerate(self.oracle) for proposal in oracle.waiting()]


class Reviewing(Writing):
    """Whoever decides."""

    def next_to_it(self, tenant: int, queued: Queued | None, then: str | None) -> None:
        if queued is not None and then is not None and queued.status == "pending":
            self.decide(tenant, self.oracle[tenant].proposals[queued.proposal_id], then, None)

    def regated(self, tenant: int, proposal: Proposal) -> bool:
        """Whether an open proposal was withdrawn because the pack in force no longer lets it through (PAC-9).

        One that was made under another version passes the gates again with whatever verdict falls on it.
        """
        people, oracle = self.on(tenant)
        if not proposal.waits or proposal.version == oracle.in_force:
            return False
        if not isinstance(oracle.admission(proposal.fact, self.clock.now), Refused):
            return False
        assert self.fabric.queue.assign(people.reviewer, proposal.proposal_id).status == "withdrawn"
        oracle.decide(proposal, "withdrawn", self.clock.now)
        return True

    @precondition(waiting)
    @rule(which=anything, who=reviewers, victim=st.one_of(st.none(), anything), tier=st.one_of(st.none(), tiers))
    def approve(self, which: int, who: str, victim: int | None, tier: Any) -> None:
        tenant, proposal = pick(waiting(self), which)
        people, oracle = self.on(tenant)
        if self.regated(tenant, proposal):
            return
        if tier is not None and (tier != "working" or proposal.fact.place.session is not None):
            assert self.fabric.queue.override(people.reviewer, proposal.proposal_id, tier=tier).tier_target == tier
            proposal.tier, proposal.overridden = tier, True
        memories = list(oracle.memories.values())
        self.decide(tenant, proposal, who, pick(memories, victim) if victim is not None and memories else None)

    def decide(self, tenant: int, proposal: Proposal, who: str, old: Memory | None) -> None:
        """Approve, and compare what came of it: of those that say the same one is promoted, and the others end."""
        _, oracle = self.on(tenant)
        chosen, *further = oracle.to_promote(proposal, who)
        if chosen is not proposal and self.regated(tenant, chosen):
            return
        expected = oracle.approval(chosen, who, self.clock.now, old)
        for one in further:
            if not isinstance(expected, Barred) or expected.error is not NotPromotable:
                break
            if one.version == oracle.in_force:
                other = oracle.approval(one, who, self.clock.now, old)
                if not isinstance(other, Barred):
                    chosen, expected = one, other
        others = [one for one in oracle.item(proposal) if one is not chosen]
        supersedes = old.memory_id if old is not None else None
        after, error = failing(
            lambda: self.fabric.queue.approve(self.reviewer(tenant, who), proposal.proposal_id, supersedes=supersedes)
        )
        if isinstance(expected, Barred):
            assert error is expected.error, (error, expected)
            return
        assert error is None, (error, expected)
        match expected:
            case Repeats(memory_id):
                assert (after.status, after.duplicate_check) == ("duplicate", memory_id)
            case Stopped(status):
                assert after.status == (status if chosen is proposal or status == "blocked" else proposal.status)
            case Promoted():
                assert after.status == ("promoted" if chosen is proposal else "duplicate")
        memory_id = after.memory_id if chosen is proposal else after.duplicate_check
        oracle.apply(chosen, expected, who, self.clock.now, memory_id, others)

    @precondition(waiting)
    @rule(which=anything, who=reviewers, value=values, sentence=sentences, raised=st.booleans())
    def edit(self, which: int, who: str, value: str, sentence: str, raised: bool) -> None:
        tenant, proposal = pick(waiting(self), which)
        _, oracle = self.on(tenant)
        if self.regated(tenant, proposal):
            return
        if len(proposal.editors) >= EDITS_LIMIT:
            return
        changes: dict[str, Any] = {"value": value} if proposal.fact.key is not None else {"text": sentence}
        label = "PII" if raised else proposal.fact.label
        outcome = self.fabric.queue.edit(
            self.reviewer(tenant, who), proposal.proposal_id, **changes, classification=label
        )
        self.entered(tenant, replace(proposal.fact, **changes, label=label), outcome, (*proposal.editors, who))
        if not isinstance(outcome, Refusal):
            oracle.decide(proposal, "edited", self.clock.now)

    @precondition(waiting)
    @rule(which=anything)
    def reject(self, which: int) -> None:
        tenant, proposal = pick(waiting(self), which)
        people, oracle = self.on(tenant)
        if self.regated(tenant, proposal):
            return
        assert self.fabric.queue.reject(people.reviewer, proposal.proposal_id, reason="no").status == "rejected"
        for one in oracle.item(proposal):
            oracle.decide(one, "rejected", self.clock.now)
            if one is not proposal:
                one.rejected_at = None  # Remembered once, by the one that was rejected.
        with pytest.raises(AlreadyDecided):
            self.fabric.queue.approve(people.second_reviewer, proposal.proposal_id)

    @precondition(lambda self: any(oracle.memories for oracle in self.oracle))
    @rule(which=anything, reason=st.sampled_from(("wrong", "deprecated")))
    def retract(self, which: int, reason: Literal["wrong", "deprecated"]) -> None:
        tenant, memory = self._some(which, ended=False)
        people, _ = self.on(tenant)
        if memory.ended is not None:
            with pytest.raises(Conflict):
                self.fabric.retract(people.reviewer, memory.memory_id, reason=reason)
        else:
            self.fabric.retract(people.reviewer, memory.memory_id, reason=reason)
            self.withdrawn(tenant, memory, reason)
