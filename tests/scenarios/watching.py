"""What is looked at after every step: what runs recall, what is open, what stands in the database."""

from itertools import combinations

from hypothesis.stateful import invariant

from muniment import Recall, RunContext
from muniment.testing import People
from tests.scenarios.consenting import Consenting
from tests.scenarios.facts import relation
from tests.scenarios.laws import CONTENT, broken, written
from tests.scenarios.world import SEATS, Seat

ALL_LABELS = frozenset({"PUBLIC", "INTERNAL", "CONFIDENTIAL", "PII", "RESTRICTED"})
# Runs that between them look into most corners; one more looks into another corner each time.
WATCHED: tuple[tuple[Seat, frozenset[str]], ...] = (
    (Seat("u1", "s1", "w1", "support.refund", None), ALL_LABELS),
    (Seat("u1", "s1", "w1", "support.refund", "de"), ALL_LABELS),
    (Seat("u2", "s2", None, "sales.offer", "us"), ALL_LABELS),
    (Seat("u1", "s1", "w1", None, None), frozenset({"INTERNAL"})),
)


def run_at(people: People, seat: Seat, labels: frozenset[str]) -> RunContext:
    return people.run(
        seat.user, session_id=seat.session, workflow_id=seat.workflow, intent_id=seat.intent,
        qualifiers={"region": seat.region} if seat.region is not None else {}, classification_allowed=labels,
    )  # fmt: skip


class Watching(Consenting):
    """Everybody who looks."""

    def _compare(self, tenant: int, seat: Seat, labels: frozenset[str]) -> None:
        """A recall gives what the oracle shows: plain, of low confidence, in conflict, nothing else, all of it."""
        oracle = self.oracle[tenant]
        shown = oracle.visible(seat, labels, self.clock.now)
        conflicts = oracle.conflicts(shown)
        apart = {memory_id for conflict in conflicts for memory_id in conflict}
        answer = self.fabric.recall(run_at(self.people[tenant], seat, labels))
        assert {frozenset(record.id for record in conflict.records) for conflict in answer.conflicts} == conflicts
        plain = {memory_id for memory_id, memory in shown.items() if memory_id not in apart and not memory.low}
        assert {record.id for record in answer.records} == plain
        assert {record.id for record in answer.low_confidence} == shown.keys() - apart - plain
        assert len(answer.all_records) == len(shown)
        assert (answer.omitted, answer.degraded) == (0, ())
        for record in answer.all_records:
            memory = shown[record.id]
            assert (record.value, record.classification) == (memory.fact.value, memory.fact.label)
            assert memory.fact.text is None or record.text == memory.fact.text
            assert record.scope.required == ({"region": memory.required} if memory.required else {})
            assert record.provenance.approver == memory.approver
            assert not (memory.strict and memory.approver in (memory.fact.author, *memory.editors))
        _corrections_first(answer)
        agreeing = [memory.fact for memory_id, memory in shown.items() if memory_id not in apart]
        assert all(relation(one, other) != "contradicts" for one, other in combinations(agreeing, 2))

    @invariant()
    def all_is_as_it_must_be(self) -> None:
        for tenant in sorted(self.touched):
            self.looks += 1
            anywhere = SEATS[self.looks * 101 % len(SEATS)]
            for seat, labels in (*WATCHED, (anywhere, frozenset({"PII"}) if self.looks % 5 == 0 else ALL_LABELS)):
                self._compare(tenant, seat, labels)
            self._what_is_open_and_how_it_ended_is_known(tenant)
        self.touched.clear()
        assert broken(self.superuser, [people.tenant_id for people in self.people]) == []
        self._nothing_written_ever_changed()

    def _what_is_open_and_how_it_ended_is_known(self, tenant: int) -> None:
        people, oracle = self.people[tenant], self.oracle[tenant]
        found = self.fabric.contradictions.list(people.reviewer, closed=True, limit=1000)
        told = {(one.existing, one.proposal_id): (one.open, one.outcome) for one in found}
        assert told == {
            dispute: (oracle.is_open(dispute, self.clock.now), outcome) for dispute, outcome in oracle.disputes.items()
        }
        for one in found:
            became = oracle.became(one.proposal_id)
            assert one.incoming == (became.memory_id if became is not None else None)

    def _nothing_written_ever_changed(self) -> None:
        rows = written(self.superuser, [people.tenant_id for people in self.people])
        gone = self.written - rows
        buried = {
            memory.memory_id for oracle in self.oracle for memory in oracle.memories.values() if memory.tombstoned
        }
        assert all(table in CONTENT and memory_id in buried for table, memory_id, _ in gone), gone
        self.written = rows


def _corrections_first(answer: Recall) -> None:
    """On its key nothing comes before a correction."""
    passed: set[tuple[str | None, str | None]] = set()
    for record in answer.records:
        key = (record.entity, record.predicate)
        assert record.write_class != "correction" or None in key or key not in passed
        if record.write_class != "correction":
            passed.add(key)
