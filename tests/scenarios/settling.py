"""Rules by which open contradictions are settled, in each of the ways there are."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from muniment.errors import Conflict, InvalidInput
from tests.scenarios.facts import Memory, rank
from tests.scenarios.oracle import Barred, Promoted
from tests.scenarios.reviewing import Reviewing, reviewers
from tests.scenarios.stage import Stage, anything, failing, pick

keeps = st.sampled_from((None, "existing", "incoming"))


def open_ones(self: Stage) -> list[tuple[int, tuple[str, str]]]:
    return [
        (tenant, dispute)
        for tenant, oracle in enumerate(self.oracle)
        for dispute in oracle.disputes
        if oracle.is_open(dispute, self.clock.now)
    ]


class Settling(Reviewing):
    """Whoever settles what cannot both hold."""

    @precondition(open_ones)
    @rule(which=anything, who=reviewers, way=st.sampled_from(("supersede", "retract", "block")), keep=keeps)
    def resolve(self, which: int, who: str, way: str, keep: str | None) -> None:
        tenant, dispute = pick(open_ones(self), which)
        if self.regated(tenant, self.oracle[tenant].proposals[dispute[1]]):
            return
        settle = self._asking(tenant, dispute, who, way, **({"keep": keep} if way != "block" else {}))
        if way == "supersede" and keep != "existing" and self.oracle[tenant].became(dispute[1]) is None:
            self._approve(tenant, dispute, who, settle)
        else:
            self._withdraw(tenant, dispute, way, keep, settle)
        if self.oracle[tenant].disputes[dispute].outcome is not None:
            with pytest.raises(Conflict):
                settle()

    @precondition(open_ones)
    @rule(which=anything, who=reviewers, here=st.sampled_from(("de", "us")))
    def coexist(self, which: int, who: str, here: str) -> None:
        tenant, dispute = pick(open_ones(self), which)
        if self.regated(tenant, self.oracle[tenant].proposals[dispute[1]]):
            return
        regions = {"existing": here, "incoming": "us" if here == "de" else "de"}
        sides = {side: {"region": region} for side, region in regions.items()}
        self._coexist(tenant, dispute, who, self._asking(tenant, dispute, who, "coexist", **sides), regions)

    def _asking(self, tenant: int, dispute: tuple[str, str], who: str, way: Any, **asked: Any) -> Callable[[], Any]:
        """The call that settles it so, not made yet."""
        people, _ = self.on(tenant)
        all_ = self.fabric.contradictions.list(people.reviewer, closed=True, limit=1000)
        (found,) = [one for one in all_ if (one.existing, one.proposal_id) == dispute]
        by = self.reviewer(tenant, who)
        return lambda: self.fabric.contradictions.resolve(by, found.contradiction_id, way, **asked)

    def _approve(self, tenant: int, dispute: tuple[str, str], who: str, settle: Any) -> None:
        """The incoming, a proposal yet, is approved in the place of the existing."""
        _, oracle = self.on(tenant)
        existing, proposal = oracle.memories[dispute[0]], oracle.proposals[dispute[1]]
        expected = oracle.approval(proposal, who, self.clock.now, existing)
        settled, error = failing(settle)
        if isinstance(expected, Promoted):
            assert error is None, error
            oracle.apply(proposal, expected, who, self.clock.now, settled.incoming)
        else:
            assert error is (expected.error if isinstance(expected, Barred) else Conflict), (error, expected)

    def _withdraw(self, tenant: int, dispute: tuple[str, str], way: str, keep: str | None, settle: Any) -> None:
        """One side goes: the proposal is blocked, or a memory found wrong, or superseded by the other."""
        _, oracle = self.on(tenant)
        existing, incoming = oracle.sides(dispute)
        if incoming is None and (way == "block" or keep == "existing"):
            assert settle().outcome == "blocked"
            oracle.decide(oracle.proposals[dispute[1]], "blocked", self.clock.now)
        elif way == "block":
            with pytest.raises(Conflict):
                settle()
        elif way == "retract":
            assert settle().outcome == "retracted"
            self.withdrawn(tenant, incoming if keep == "existing" and incoming is not None else existing, "wrong")
        else:
            assert incoming is not None
            kept, gone = (existing, incoming) if keep == "existing" else (incoming, existing)
            _, error = failing(settle)
            seen = kept in oracle.believed(self.clock.now)
            assert error is (None if seen and _may_replace(kept, gone) else Conflict), (error, kept, gone)
            if error is None:
                oracle.retract_memory(gone, "superseded", self.clock.now, kept.memory_id)

    def _coexist(self, tenant: int, dispute: tuple[str, str], who: str, settle: Any, regions: dict[str, str]) -> None:
        """Both stand from now on, each for the runs that name its region."""
        _, oracle = self.on(tenant)
        existing, incoming = oracle.sides(dispute)
        proposal, now = oracle.proposals[dispute[1]], self.clock.now
        expected = oracle.approval(proposal, who, now, beside=existing) if incoming is None else None
        settled, error = failing(settle)
        if existing.fact.correction != proposal.fact.correction:
            assert error is Conflict, error
            return
        elsewhere = (
            existing.required not in (None, regions["existing"])
            or existing.fact.place.region not in (None, regions["existing"])
            or (incoming is not None and incoming.required not in (None, regions["incoming"]))
            or proposal.fact.place.region not in (None, regions["incoming"])
        )
        if elsewhere:
            assert error is InvalidInput, error
            return
        if isinstance(expected, Barred):
            assert error is expected.error, (error, expected)
            return
        if expected is not None and not isinstance(expected, Promoted):
            assert error is Conflict, (error, expected)
            return
        if expected is not None and existing in expected.replaced:
            # It was to stand beside what it takes the place of, as a correction or by its class's rule.
            assert error is Conflict, error
            return
        assert error is None, error
        if expected is not None:
            oracle.apply(proposal, expected, who, now, settled.incoming)
        oracle.coexist(dispute, (regions["existing"], regions["incoming"]), now)


def _may_replace(kept: Memory, gone: Memory) -> bool:
    if gone.fact.correction and not kept.fact.correction:
        return False
    return rank(gone.fact.label) <= rank(kept.fact.label) and gone.seats <= kept.seats
