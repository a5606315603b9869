"""The checks after every step: what runs recall and once saw, what is open, what is in the database."""

from itertools import combinations

from hypothesis.stateful import invariant

from tests.scenarios.asking import Asking
from tests.scenarios.facts import relation
from tests.scenarios.laws import CONTENT, broken, written
from tests.scenarios.scoring import QUERIES
from tests.scenarios.stage import pick
from tests.scenarios.world import HORIZON, SEATS, Seat

ALL_LABELS = frozenset({"PUBLIC", "INTERNAL", "CONFIDENTIAL", "PII", "RESTRICTED"})
# Runs that between them look into most corners; one more looks into another corner each time.
WATCHED: tuple[tuple[Seat, frozenset[str]], ...] = (
    (Seat("u1", "s1", "w1", "support.refund", None), ALL_LABELS),
    (Seat("u1", "s1", "w1", "support.refund", "de"), ALL_LABELS),
    (Seat("u2", "s2", None, "sales.offer", "us"), ALL_LABELS),
    (Seat("u1", "s1", "w1", None, None), frozenset({"INTERNAL"})),
)
CLEARANCES = (ALL_LABELS, frozenset({"INTERNAL"}), frozenset({"PII"}), ALL_LABELS, frozenset({"INTERNAL", "PII"}))


class Watching(Asking):
    """Everybody who looks."""

    @invariant()
    def look_and_go_on(self) -> None:
        self.all_is_as_it_must_be()
        # Some changes share their moment, others have one of their own.
        if self.looks % 3:
            self.clock.advance(seconds=1)

    def all_is_as_it_must_be(self) -> None:
        for tenant in sorted(self.touched):
            self.looks += 1
            anywhere = SEATS[self.looks * 101 % len(SEATS)], pick(CLEARANCES, self.looks)
            watched = (*WATCHED, anywhere)
            for place, (seat, labels) in enumerate(watched):
                if place == self.looks % len(watched):
                    self.finds(tenant, seat, labels, pick(QUERIES, self.looks))
                else:
                    self.shows(tenant, seat, labels)
                self._nothing_plain_contradicts_anything_plain(tenant, seat, labels)
            self._what_was_is_known(tenant, pick(WATCHED, self.looks), anywhere)
            self._what_is_open_and_how_it_ended_is_known(tenant)
        self.touched.clear()
        assert broken(self.superuser, [people.tenant_id for people in self.people]) == []
        self._nothing_written_ever_changed()

    def _what_was_is_known(
        self, tenant: int, watched: tuple[Seat, frozenset[str]], anywhere: tuple[Seat, frozenset[str]]
    ) -> None:
        """Each time some of the past is asked for, by some."""
        n, changes, memories = self.looks, self.changes(tenant), list(self.oracle[tenant].memories.values())
        turns = [turn for turn in self.turns(tenant) if n % 2 and turn >= self.clock.now - HORIZON]
        lately, once = pick(changes[:8], n * 5), pick(turns or changes, n * 7)
        self.shows_past(tenant, *watched, lately, pick((None, *QUERIES), n))
        self.shows_past(tenant, *pick((watched, anywhere), n), once)
        for memory in memories:
            self.explains(tenant, memory, *pick((watched, anywhere), n // 2), pick((None, lately, once), n), n % 4 < 2)
        looked = self.some_looked(tenant, n * 11)
        if n % 2:
            self.replays(looked)
        elif memories:
            self.explains_a_recall(pick(memories, n // 2), looked, by_run=n % 3 > 0)

    def _nothing_plain_contradicts_anything_plain(self, tenant: int, seat: Seat, labels: frozenset[str]) -> None:
        oracle, now = self.oracle[tenant], self.clock.now
        shown = oracle.visible(seat, labels, now)
        apart = {memory_id for conflict in oracle.conflicts(shown, oracle.moment(now)) for memory_id in conflict}
        agreeing = [memory.fact for memory_id, memory in shown.items() if memory_id not in apart]
        assert all(relation(one, other) != "contradicts" for one, other in combinations(agreeing, 2))

    def _what_is_open_and_how_it_ended_is_known(self, tenant: int) -> None:
        people, oracle = self.people[tenant], self.oracle[tenant]
        found = self.fabric.contradictions.list(people.reviewer, closed=True, limit=1000)
        result = {(one.existing, one.proposal_id): (one.open, one.outcome) for one in found}
        assert result == {
            sides: (oracle.is_open(sides, self.clock.now), dispute.outcome)
            for sides, dispute in oracle.disputes.items()
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
