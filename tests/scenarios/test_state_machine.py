"""A machine drives the whole fabric, tenants, users and a clock, and compares it with the oracle after every step."""

from collections.abc import Callable
from datetime import timedelta
from itertools import count
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from muniment import Fabric, Refusal, RunContext, Submission, load_pack
from muniment.errors import AlreadyDecided, ConsentChanged, NotPromotable, SelfApproval
from muniment.model.proposal import Proposal
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.scenarios.oracle import INTENTS, SESSIONS, USERS, WORKFLOWS, Agreed, Believed, Tenant, at_odds, covers, meet
from tests.security.catalogue import APPEND_ONLY

PACK = load_pack("pack_meta: {id: state.machine, version: 1.0.0}\nmemory_layer: {recall_policy: {max_recalls: 1000}}\n")
ENTITIES = ("customer:e1", "customer:e2")
WATCHED = sorted(APPEND_ONLY - {"tenants", "pack_labels", "packs", "tenant_keys"})
HASHES = " UNION ALL ".join(
    f"SELECT '{table}' AS name, md5(t::text) AS hash FROM {table} t WHERE tenant_id = ANY (%(tenants)s)"
    for table in WATCHED
)
numbers = count(1)

tenants = st.integers(0, 1)
users = st.sampled_from(USERS)
sessions = st.sampled_from(SESSIONS)
workflows = st.sampled_from(WORKFLOWS)
intents = st.sampled_from(INTENTS)
labels = st.sampled_from(["INTERNAL", "PII"])
values = st.sampled_from(["a", "b", "c"])
anything = st.integers(0, 10_000)


class Machine(RuleBasedStateMachine):
    """Two tenants, three users, four people and an agent."""

    make: ClassVar[Callable[[FakeClock], tuple[Fabric, Callable[[], Any]]]]

    @initialize()
    def begin(self) -> None:
        self.clock = FakeClock()
        self.fabric, self.connect = type(self).make(self.clock)
        self.people = [People(f"machine_{next(numbers)}_{n}") for n in range(2)]
        self.oracle = [Tenant(), Tenant()]
        self.waiting: list[tuple[int, str]] = []
        self.rows: set[tuple[str, str]] = set()
        for people in self.people:
            fabric = self.fabric
            fabric.capture(people.run(None), kind="message", text="hello", classification="INTERNAL")

    def teardown(self) -> None:
        if hasattr(self, "fabric"):
            self.fabric.close()

    def _queued(
        self, tenant: int, outcome: Proposal | Submission | Refusal, subject: str | None, label: str
    ) -> Proposal | None:
        if isinstance(outcome, Submission):
            outcome = self.fabric.queue.get(self.people[tenant].reviewer, outcome.proposal_id)
        consented = label != "PII" or (subject is not None and self.oracle[tenant].consented(subject, self.clock.now))
        assert isinstance(outcome, Proposal) == consented, outcome
        if isinstance(outcome, Proposal) and outcome.status == "pending":
            self.waiting.append((tenant, outcome.proposal_id))
        return outcome if isinstance(outcome, Proposal) else None

    @rule(
        tenant=tenants, user=users, session=sessions, workflow=workflows, entity=st.sampled_from(ENTITIES), value=values,
        label=labels, write_class=st.sampled_from(["preference", "decision_outcome"]), predicate=st.sampled_from(["p", "q"]),
    )  # fmt: skip
    def propose(
        self, tenant: int, user: str | None, session: str | None, workflow: str | None, entity: str, value: str,
        label: str, write_class: Any, predicate: str,
    ) -> None:  # fmt: skip
        run = self.people[tenant].run(user, session_id=session, workflow_id=workflow)
        outcome = self.fabric.propose(
            run, write_class=write_class, entity=entity, predicate=predicate, value=value, confidence=0.7,
            classification=label, subject=entity,
        )  # fmt: skip
        self._queued(tenant, outcome, entity, label)

    @rule(
        tenant=tenants, user=users, session=sessions, workflow=workflows, intent=intents, label=labels,
        by_operator=st.booleans(), named=st.booleans(),
    )  # fmt: skip
    def state(
        self, tenant: int, user: str | None, session: str | None, workflow: str | None, intent: str | None, label: str,
        by_operator: bool, named: bool,
    ) -> None:  # fmt: skip
        people, subject = self.people[tenant], ENTITIES[0] if named else None
        run = people.run(user, session_id=session, workflow_id=workflow, intent_id=intent)
        where = {"user_id": user, "session_id": session, "workflow_id": workflow, "intent_id": intent}
        self.fabric.capture(
            people.author if by_operator else run,
            kind="statement", text=f"statement {next(numbers)}", classification=label, subject=subject,
            **(where if by_operator else {}),
        )  # fmt: skip
        done = self.fabric.consolidate(people.tenant_id)
        outcomes = [self.fabric.queue.get(people.reviewer, proposal_id) for proposal_id in done.proposals]
        (outcome,) = [*outcomes, *done.refusals]
        self._queued(tenant, outcome, subject, label)

    @rule(
        tenant=tenants,
        user=users,
        entity=st.sampled_from(ENTITIES),
        value=values,
        predicate=st.sampled_from(["p", "q"]),
    )
    def correct(self, tenant: int, user: str | None, entity: str, value: str, predicate: str) -> None:
        outcome = self.fabric.propose(
            self.people[tenant].author, write_class="correction", entity=entity, predicate=predicate, value=value,
            confidence=0.9, classification="INTERNAL", user_id=user,
        )  # fmt: skip
        self._queued(tenant, outcome, None, "INTERNAL")

    @rule(
        tenant=tenants, user=users, session=sessions, workflow=workflows, intent=intents, entity=st.sampled_from(ENTITIES),
        value=values, label=labels, predicate=st.sampled_from(["p", "q", "r"]),
        tier=st.sampled_from(["working", "episodic", "semantic", "durable"]), days=st.sampled_from([1, 1, 40, None]),
    )  # fmt: skip
    def believe(
        self, tenant: int, user: str | None, session: str | None, workflow: str | None, intent: str | None, entity: str,
        value: str, label: str, predicate: str, tier: Any, days: int | None,
    ) -> None:  # fmt: skip
        """The whole way in one step, so that there is always something to be seen, expire or be withdrawn."""
        people = self.people[tenant]
        if label == "PII" and not self.oracle[tenant].consented(entity, self.clock.now):
            self.grant(tenant, entity, days)
        run = people.run(user, session_id=session, workflow_id=workflow, intent_id=intent)
        outcome = self.fabric.propose(
            run, write_class="preference", entity=entity, predicate=predicate, value=value, confidence=0.7,
            classification=label, subject=entity,
        )  # fmt: skip
        queued = self._queued(tenant, outcome, entity, label)
        assert queued is not None
        if queued.status == "duplicate":
            return
        if tier != "working" or session is not None:
            self.fabric.queue.override(people.reviewer, queued.proposal_id, tier=tier)
        self._approve(tenant, queued.proposal_id, people.second_reviewer.id, None)

    @precondition(lambda self: self.waiting)
    @rule(which=anything, who=st.sampled_from(["boris", "clara", "olga"]), supersede=st.booleans(), victim=anything)
    def approve(self, which: int, who: str, supersede: bool, victim: int) -> None:
        tenant, proposal_id = self.waiting[which % len(self.waiting)]
        standing = [m for m in self.oracle[tenant].standing(self.clock.now) if m.write_class != "correction"]
        old = standing[victim % len(standing)] if supersede and standing else None
        self._approve(tenant, proposal_id, who, old)

    def _approve(self, tenant: int, proposal_id: str, who: str, old: Believed | None) -> None:
        people, oracle, now = self.people[tenant], self.oracle[tenant], self.clock.now
        reviewer = people.person(who, "reviewer")
        before = self.fabric.queue.get(people.reviewer, proposal_id)
        candidate = before.candidate
        editors = {v.by for v in self._line(people, before) if v.action == "edit"}
        strict = (
            before.tier_derived == "durable" or before.tier_target == "durable" or candidate.classification == "PII"
        )
        try:
            after = self.fabric.queue.approve(
                reviewer, proposal_id, supersedes=old.memory_id if old is not None else None
            )
        except SelfApproval:
            assert strict and reviewer.id in {candidate.author, *editors}
            return
        except NotPromotable:
            new = self._believed(before, "?", reviewer.id, editors, None)
            replaced = [m for m in oracle.standing(now) if m is old or self._corrects(new, m)]
            unconsented = candidate.classification == "PII" and not oracle.consented(candidate.subject or "", now)
            lowered = candidate.classification == "INTERNAL" and any(m.label == "PII" for m in replaced)
            assert unconsented or lowered or (old is not None and not covers(new, old))
            return
        assert not (strict and reviewer.id in {candidate.author, *editors})
        self.waiting.remove((tenant, proposal_id))
        if after.status == "duplicate":
            twin = oracle.memories[after.duplicate_check or ""]
            assert twin in oracle.standing(now) and twin.value == candidate.value
            return
        assert after.status == "promoted" and after.memory_id is not None
        stored = self.fabric.get(people.auditor, after.memory_id)
        new = self._believed(before, after.memory_id, reviewer.id, editors, stored.consent_id)
        if new.label == "PII":
            assert stored.consent_id is not None and oracle.consents[stored.consent_id].live(now)
        for other in oracle.standing(now):
            if other is old or self._corrects(new, other):
                other.retracted = True
        oracle.memories[new.memory_id] = new

    def _believed(
        self, before: Proposal, memory_id: str, approver: str, editors: set[str], consent_id: str | None
    ) -> Believed:
        candidate, scope = before.candidate, before.candidate.scope
        return Believed(
            memory_id=memory_id, user=scope.user_id, session=scope.session_id, workflow=scope.workflow_id,
            intent=scope.intent_id, tier=before.tier_target, label=candidate.classification,
            write_class=candidate.write_class, key=(candidate.entity, candidate.predicate), value=candidate.value,
            author=candidate.author, editors=tuple(editors), approver=approver, promoted_at=self.clock.now,
            consent_id=consent_id,
        )  # fmt: skip

    def _corrects(self, new: Believed, other: Believed) -> bool:
        """Whether a correction takes the place of the other: on its key, seen by no run that would not see it."""
        return new.write_class == "correction" and new.key == other.key and covers(new, other)

    def _line(self, people: People, proposal: Proposal) -> list[Any]:
        """All verdicts of a proposal and of those it is an edit of."""
        verdicts = list(proposal.verdicts)
        while proposal.edit_of is not None:
            proposal = self.fabric.queue.get(people.reviewer, proposal.edit_of)
            verdicts += proposal.verdicts
        return verdicts

    @precondition(lambda self: self.waiting)
    @rule(which=anything, value=values)
    def edit(self, which: int, value: str) -> None:
        tenant, proposal_id = self.waiting[which % len(self.waiting)]
        people = self.people[tenant]
        before = self.fabric.queue.get(people.reviewer, proposal_id)
        changes = {"value": value} if before.candidate.on_key else {"text": f"edited {next(numbers)}"}
        outcome = self.fabric.queue.edit(people.reviewer, proposal_id, **changes)
        if isinstance(outcome, Proposal):
            self.waiting.remove((tenant, proposal_id))
            assert self.fabric.queue.get(people.reviewer, proposal_id).status == "edited"
        self._queued(tenant, outcome, before.candidate.subject, before.candidate.classification)

    @precondition(lambda self: self.waiting)
    @rule(which=anything)
    def reject(self, which: int) -> None:
        tenant, proposal_id = self.waiting.pop(which % len(self.waiting))
        people = self.people[tenant]
        assert self.fabric.queue.reject(people.reviewer, proposal_id, reason="no").status == "rejected"
        with pytest.raises(AlreadyDecided):
            self.fabric.queue.approve(people.second_reviewer, proposal_id)

    @precondition(lambda self: self.waiting)
    @rule(which=anything, tier=st.sampled_from(["episodic", "semantic", "durable"]))
    def override(self, which: int, tier: Any) -> None:
        tenant, proposal_id = self.waiting[which % len(self.waiting)]
        assert self.fabric.queue.override(self.people[tenant].reviewer, proposal_id, tier=tier).tier_target == tier

    @rule(tenant=tenants, which=anything)
    def retract(self, tenant: int, which: int) -> None:
        live = [memory for memory in self.oracle[tenant].memories.values() if not memory.retracted]
        if live:
            memory = live[which % len(live)]
            self.fabric.retract(self.people[tenant].reviewer, memory.memory_id, reason="wrong")
            memory.retracted = True

    @rule(tenant=tenants, subject=st.sampled_from(ENTITIES), days=st.sampled_from([None, 1, 40]))
    def grant(self, tenant: int, subject: str, days: int | None) -> None:
        until = self.clock.now + timedelta(days=days) if days is not None else None
        granted = self.fabric.consent.grant(
            self.people[tenant].officer, subject=subject, purpose="support", predicates_allowed=["*"],
            data_classifications_allowed=["PII"], basis="opt_in", valid_until=until,
        )  # fmt: skip
        self.oracle[tenant].consents[granted.consent_id] = Agreed(subject, until)

    @rule(tenant=tenants, which=anything)
    def revoke(self, tenant: int, which: int) -> None:
        consents = self.oracle[tenant].consents
        if consents:
            consent_id = list(consents)[which % len(consents)]
            if consents[consent_id].revoked:
                with pytest.raises(ConsentChanged):
                    self.fabric.consent.revoke(self.people[tenant].officer, consent_id)
            else:
                self.fabric.consent.revoke(self.people[tenant].officer, consent_id)
                consents[consent_id].revoked = True

    @rule(by=st.sampled_from([{"minutes": 1}, {"minutes": 61}, {"days": 1}, {"days": 31}, {"days": 366}]))
    def wait(self, by: dict[str, float]) -> None:
        self.clock.advance(**by)

    @rule(
        tenant=tenants, user=users, session=sessions, workflow=workflows, intent=intents,
        allowed=st.sampled_from([{"INTERNAL"}, {"PII"}, {"INTERNAL", "PII"}]),
    )  # fmt: skip
    def recall(
        self, tenant: int, user: str | None, session: str | None, workflow: str | None, intent: str | None, allowed: set[str]
    ) -> None:  # fmt: skip
        self._compare(
            tenant,
            self.people[tenant].run(
                user, session_id=session, workflow_id=workflow, intent_id=intent, classification_allowed=allowed
            ),
        )

    def _compare(self, tenant: int, run: RunContext) -> None:
        expected = {memory.memory_id: memory for memory in self.oracle[tenant].visible(run, self.clock.now)}
        answer = self.fabric.recall(run)
        conflicting = [record for conflict in answer.conflicts for record in conflict.records]
        returned = [*answer.records, *answer.low_confidence, *conflicting]
        assert sorted(record.id for record in returned) == sorted(expected)
        assert answer.omitted == 0
        in_conflict = {
            one.memory_id
            for one in expected.values()
            for other in expected.values()
            if one is not other and at_odds(one, other) and meet(one, other)
        }
        assert {record.id for record in conflicting} == in_conflict
        for record in returned:
            memory = expected[record.id]
            assert record.provenance.approver == memory.approver
            if memory.strict:
                assert memory.approver not in {memory.author, *memory.editors}

    @invariant()
    def every_user_recalls_what_the_oracle_says(self) -> None:
        for tenant, people in enumerate(self.people) if hasattr(self, "people") else ():
            for user in USERS:
                self._compare(tenant, people.run(user, session_id="s1", workflow_id="w1", intent_id="support.refund"))
            self._compare(tenant, people.run("u1", session_id="s2", classification_allowed={"INTERNAL"}))

    @invariant()
    def nothing_written_ever_changed(self) -> None:
        if hasattr(self, "people"):
            with self.connect() as owner:
                tenants_ = {"tenants": [people.tenant_id for people in self.people]}
                rows = {(str(name), str(hash_)) for name, hash_ in owner.execute(HASHES, tenants_).fetchall()}
            gone = self.rows - rows
            assert not gone, gone
            self.rows = rows


@pytest.mark.rule(
    "REC-1", "ISO-1", "ISO-4", "REV-4", "PRO-3", "PRO-4", "PRO-5", "CON-2", "CON-3", "CTR-1", "REC-4", "TIR-2", "CAP-1"
)
def test_whatever_is_done_recall_shows_what_was_promoted_and_may_be_seen_and_nothing_else(
    server: TestServer, database: str
) -> None:
    def make(clock: FakeClock) -> tuple[Fabric, Callable[[], Any]]:
        fabric = Fabric.open(server.url(database), pack=PACK, clock=clock, master_keys=MASTER_KEYS)
        return fabric, lambda: server.connect(database)

    Machine.make = staticmethod(make)
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=16,
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            # Each step is a dozen transactions: a failing story is told as found, not shrunk for minutes.
            phases=(Phase.explicit, Phase.reuse, Phase.generate),
            print_blob=True,
        ),
    )
