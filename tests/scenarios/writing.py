"""Rules by which facts are said: proposed, stated in plain words, repeated, contradicted, corrected."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from muniment.errors import Conflict, NotFound
from muniment.model.proposal import Proposal
from tests.scenarios.facts import Fact, Memory
from tests.scenarios.oracle import Proposal as Rejected
from tests.scenarios.stage import Stage, anything, pick, tenants
from tests.scenarios.world import ABOUT, ENTITIES, MAIL, PLACES, PREDICATES, SENTENCES, VALUES, Place

places = st.sampled_from(PLACES)
# Some more than others: most stories need two facts on one key.
entities = st.sampled_from((*ENTITIES, ENTITIES[0], ENTITIES[0]))
predicates = st.sampled_from((*PREDICATES, "channel", "channel"))
values = st.sampled_from((*VALUES, *VALUES, MAIL))
sentences = st.sampled_from(tuple(SENTENCES))
labels = st.sampled_from(("INTERNAL", "INTERNAL", "PII"))
confidences = st.sampled_from((0.4, 0.6, 0.8, 0.8))
classes = st.sampled_from(("preference", "decision_outcome"))
# Who approves it in the same step, if anybody: most stories need what was said to be believed.
soon = st.sampled_from((None, None, "boris", "clara", "clara", "olga"))
# Seen just now by a clock that runs ahead, now, or yesterday.
ages = st.sampled_from((timedelta(minutes=-2), timedelta(0), timedelta(days=1)))


def rejected(self: Stage) -> list[tuple[int, Rejected]]:
    return [
        (tenant, proposal)
        for tenant, oracle in enumerate(self.oracle)
        for proposal in oracle.proposals.values()
        if proposal.rejected_at is not None
    ]


class Writing(Stage):
    """Whoever says something."""

    def propose_fact(self, tenant: int, fact: Fact, then: str | None = None) -> None:
        """Propose it as the agent."""
        outcome = self.fabric.propose(
            self.people[tenant].run(None), write_class=fact.write_class, entity=fact.entity, predicate=fact.predicate,
            value=fact.value, text=fact.text, confidence=fact.confidence, classification=fact.label,
            subject=fact.subject, observed_at=fact.observed_at, **fact.place.fields,
        )  # fmt: skip
        self.next_to_it(tenant, self.entered(tenant, fact, outcome), then)

    def next_to_it(self, tenant: int, queued: Proposal | None, then: str | None) -> None:
        """Have it decided by that reviewer at once, if any."""
        raise NotImplementedError

    def typed(
        self, place: Place, entity: str, predicate: str, value: Any, label: str, confidence: float = 0.6,
        write_class: str = "preference", age: timedelta = timedelta(0),
    ) -> Fact:  # fmt: skip
        """A fact on a key, as the agent has it."""
        return Fact(
            write_class=write_class, author="bot", by_operator=False, label=label, place=place, confidence=confidence,
            observed_at=self.clock.now - age, entity=entity, predicate=predicate, value=value, subject=entity,
        )  # fmt: skip

    @rule(
        tenant=tenants, place=places, entity=entities, predicate=predicates, value=values, label=labels,
        confidence=confidences, write_class=classes, age=ages, then=soon,
    )  # fmt: skip
    def propose(self, tenant: int, then: str | None, **given: Any) -> None:
        self.propose_fact(tenant, self.typed(**given), then)

    @rule(
        tenant=tenants, place=places, sentence=sentences, label=labels, by_operator=st.booleans(), about=st.sampled_from((None, *ENTITIES)),
        then=soon,
    )  # fmt: skip
    def state(
        self,
        tenant: int,
        place: Place,
        sentence: str,
        label: str,
        by_operator: bool,
        about: str | None,
        then: str | None,
    ) -> None:
        people, _ = self.on(tenant)
        fact = Fact(
            write_class="statement", author="olga" if by_operator else "bot", by_operator=by_operator, label=label,
            place=place, confidence=0.8 if by_operator else 0.6, observed_at=self.clock.now, text=sentence,
            subject=about,
        )  # fmt: skip
        self.fabric.capture(
            people.author if by_operator else people.run(None), kind="statement", text=sentence, classification=label,
            subject=fact.subject, observed_at=fact.observed_at, **place.fields,
        )  # fmt: skip
        done = self.fabric.consolidate(people.tenant_id)
        assert done.promoted == ()
        outcomes = [self.fabric.queue.get(people.reviewer, proposal_id) for proposal_id in done.proposals]
        (outcome,) = [*outcomes, *done.refusals]
        self.next_to_it(tenant, self.entered(tenant, fact, outcome), then)

    @precondition(lambda self: any(oracle.memories for oracle in self.oracle))
    @rule(
        which=anything, label=labels, confidence=confidences, write_class=classes, age=ages, then=soon,
        elsewhere=st.one_of(st.none(), places),
    )  # fmt: skip
    def oppose(
        self, which: int, label: str, confidence: float, write_class: str, age: timedelta, then: str | None,
        elsewhere: Place | None,
    ) -> None:  # fmt: skip
        """Say something else on what a memory speaks of."""
        tenant, memory = self._some(which, ended=False)
        fact = replace(
            memory.fact, author="bot", by_operator=False, label=label, confidence=confidence, corrects=None,
            place=elsewhere or memory.fact.place, observed_at=self.clock.now - age,
        )  # fmt: skip
        if fact.key is not None:
            value = pick([value for value in VALUES if value != fact.value], which)
            self.propose_fact(tenant, replace(fact, write_class=write_class, value=value), then)
        else:
            others = [text for text, about in SENTENCES.items() if about[0] == ABOUT[fact.text or ""][0]]
            self.propose_fact(tenant, replace(fact, write_class="statement", text=pick(others, which)), then)

    @precondition(lambda self: any(oracle.memories for oracle in self.oracle))
    @rule(which=anything)
    def repeat(self, which: int) -> None:
        """Say a memory once more: it is a duplicate as long as the memory is believed."""
        tenant, memory = self._some(which, ended=False)
        plain = "preference" if memory.fact.key is not None else "statement"
        again = replace(memory.fact, author="bot", by_operator=False, corrects=None, observed_at=self.clock.now)
        self.propose_fact(tenant, replace(again, write_class=plain))

    @precondition(rejected)
    @rule(
        which=anything, after=st.sampled_from((None, None, "lifted", 179, 180)), elsewhere=st.one_of(st.none(), places)
    )
    def insist(self, which: int, after: str | int | None, elsewhere: Place | None) -> None:
        """Say again what was rejected: at once, when the rejection is lifted, or when it is nearly or just forgotten."""
        tenant, proposal = pick(rejected(self), which)
        people, _ = self.on(tenant)
        if after == "lifted" and proposal.lifted:
            with pytest.raises(Conflict):
                self.fabric.queue.lift(people.reviewer, proposal.proposal_id)
        elif after == "lifted":
            assert self.fabric.queue.lift(people.reviewer, proposal.proposal_id).status == "rejected"
            proposal.lifted = True
        elif isinstance(after, int) and proposal.rejected_at is not None:
            self.until(proposal.rejected_at + timedelta(days=after))
        plain = "preference" if proposal.fact.key is not None else "statement"
        again = replace(proposal.fact, author="bot", by_operator=False, corrects=None, write_class=plain)
        self.propose_fact(tenant, replace(again, place=elsewhere or again.place, observed_at=self.clock.now))

    @precondition(lambda self: any(oracle.memories for oracle in self.oracle))
    @rule(which=anything, value=values, sentence=sentences, then=soon)
    def correct_memory(self, which: int, value: str, sentence: str, then: str | None) -> None:
        tenant, memory = self._some(which, ended=which % 5 == 0)
        people, _ = self.on(tenant)
        said = {"value": value} if memory.fact.key is not None else {"text": sentence}
        if memory.ended is not None:
            with pytest.raises(NotFound if memory.tombstoned else Conflict):
                self.fabric.correct(people.author, memory_id=memory.memory_id, **said)
            return
        outcome = self.fabric.correct(people.author, memory_id=memory.memory_id, observed_at=self.clock.now, **said)
        place = replace(
            memory.fact.place, session=None, workflow=None, region=memory.required or memory.fact.place.region
        )
        fact = replace(memory.fact, **said, place=place, confidence=0.8, corrects=memory.memory_id)
        self.next_to_it(tenant, self.entered(tenant, self._correction(fact), outcome), then)

    @rule(
        tenant=tenants, entity=entities, predicate=predicates, value=values, label=labels,
        user=st.sampled_from((None, "u1")), confidence=confidences, then=soon,
    )  # fmt: skip
    def correct_key(
        self, tenant: int, entity: str, predicate: str, value: str, label: str, user: str | None, confidence: float,
        then: str | None,
    ) -> None:  # fmt: skip
        people, _ = self.on(tenant)
        outcome = self.fabric.correct(
            people.author, entity=entity, predicate=predicate, value=value, classification=label, subject=entity,
            user_id=user, confidence=confidence, observed_at=self.clock.now,
        )  # fmt: skip
        fact = self._correction(self.typed(Place(user=user), entity, predicate, value, label, confidence))
        self.next_to_it(tenant, self.entered(tenant, fact, outcome), then)

    def _correction(self, fact: Fact) -> Fact:
        return replace(fact, write_class="correction", author="olga", by_operator=True, observed_at=self.clock.now)

    def _some(self, which: int, *, ended: bool) -> tuple[int, Memory]:
        """A memory, one that was not withdrawn if there is such."""
        everything = [(tenant, m) for tenant, oracle in enumerate(self.oracle) for m in oracle.memories.values()]
        chosen = [(tenant, memory) for tenant, memory in everything if (memory.ended is not None) is ended]
        return pick(chosen or everything, which)
