"""Steps that ask about the past: recalls by a query and as of a time, explanations, replays."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest

from muniment import Recall, RunContext
from muniment.errors import HistoryCollected, NotFound
from muniment.model.explanation import Explanation
from muniment.testing import People
from tests.scenarios.facts import Memory, PointInTime
from tests.scenarios.oracle import OF_TIME, Tenant
from tests.scenarios.packing import Packing
from tests.scenarios.scoring import POLICY, in_order, priority, scores
from tests.scenarios.stage import pick
from tests.scenarios.world import ENTITIES, FRESH, HORIZON, Seat

MICROSECOND = timedelta(microseconds=1)
NARROWINGS: tuple[tuple[dict[str, Any], Callable[[Memory], bool]], ...] = (
    ({"tiers": ["semantic"]}, lambda memory: memory.tier == "semantic"),
    ({"classes": ["preference", "correction"]}, lambda memory: memory.fact.write_class in ("preference", "correction")),
    ({"entities": [ENTITIES[0]]}, lambda memory: memory.fact.entity == ENTITIES[0]),
)


def run_at(people: People, seat: Seat, labels: frozenset[str]) -> RunContext:
    return people.run(
        seat.user, session_id=seat.session, workflow_id=seat.workflow, intent_id=seat.intent,
        qualifiers={"region": seat.region} if seat.region is not None else {}, classification_allowed=labels,
    )  # fmt: skip


def ids_of(answer: Recall) -> tuple[str, ...]:
    return tuple(record.id for record in answer.all_records)


@dataclass(frozen=True)
class Looked:
    """A recall that was made: who looked, at which moment, what there was to see, and what of it was shown."""

    tenant: int
    recall_id: str
    seat: Seat
    labels: frozenset[str]
    then: PointInTime
    seen: frozenset[str]
    shown: tuple[str, ...]
    cleared: frozenset[str]

    @property
    def cut(self) -> bool:
        return len(self.shown) < len(self.seen)


class Asking(Packing):
    """Questions, each with the answer that the oracle gives."""

    looked: list[Looked]

    def open(self, unresolved: str) -> None:
        super().open(unresolved)
        self.looked = []

    # Recalls

    def shows(
        self, tenant: int, seat: Seat, labels: frozenset[str], as_of: datetime | None = None, query: str | None = None
    ) -> Recall:
        """A recall gives what the oracle shows: plain, of low confidence, in conflict, in order, all of it, nothing else."""
        oracle, then = self.oracle[tenant], self.oracle[tenant].moment(as_of or self.clock.now)
        shown = oracle.visible(seat, labels, self.clock.now, then)
        answer = self.fabric.recall(run_at(self.people[tenant], seat, labels), query, as_of=as_of)
        self._remember(tenant, seat, labels, then, answer)
        conflicts = oracle.conflicts(shown, then)
        apart = {memory_id for conflict in conflicts for memory_id in conflict}
        assert {frozenset(record.id for record in conflict.records) for conflict in answer.conflicts} == conflicts
        plain = {memory_id for memory_id, memory in shown.items() if memory_id not in apart and not memory.low}
        assert {record.id for record in answer.records} == plain
        assert {record.id for record in answer.low_confidence} == shown.keys() - apart - plain
        assert len(answer.all_records) == len(shown)
        assert (answer.omitted, answer.degraded, answer.as_of) == (0, (), as_of)
        for record in answer.all_records:
            memory = shown[record.id]
            assert (record.value, record.classification) == (memory.fact.value, memory.fact.label)
            assert record.text == memory.fact.words
            region = memory.required_in(then.step)
            assert record.scope.required == ({"region": region} if region is not None else {})
            assert record.provenance.approver == memory.approver
            assert not (memory.strict and memory.approver in (memory.fact.author, *memory.editors))
        self._in_order(answer, shown, seat, then, query)
        return answer

    def _remember(self, tenant: int, seat: Seat, labels: frozenset[str], then: PointInTime, answer: Recall) -> None:
        cleared = self.oracle[tenant].cleared(then.step)
        seen = frozenset(self.oracle[tenant].visible(seat, labels, self.clock.now, then))
        self.looked.append(Looked(tenant, answer.recall_id, seat, labels, then, seen, ids_of(answer), cleared))

    def _in_order(
        self, answer: Recall, shown: dict[str, Memory], seat: Seat, then: PointInTime, query: str | None
    ) -> None:
        if query is None:
            order = in_order(shown.values(), priority)
        else:
            total = {record.id: record.score["total"] for record in answer.all_records}
            order = in_order(shown.values(), lambda memory: total[memory.memory_id])
            expected = scores(query, seat, list(shown.values()), then)
            for record in answer.all_records:
                given = dict(record.score)
                assert given.pop("total") == pytest.approx(sum(given.values()), abs=1e-6)
                assert 0 <= given.pop("vector") <= POLICY.weights.vector
                assert given == pytest.approx(expected[record.id], abs=2e-6), (query, record.text)
            best = [max(total[record.id] for record in conflict.records) for conflict in answer.conflicts]
            assert best == sorted(best, reverse=True)
        for records in (answer.records, answer.low_confidence):
            given = [record.id for record in records]
            assert given == [memory_id for memory_id in order if memory_id in given]

    def finds(self, tenant: int, seat: Seat, labels: frozenset[str], query: str) -> None:
        """By a query the same is found as without; asked for less, less of the same."""
        answer = self.shows(tenant, seat, labels, query=query)
        run = run_at(self.people[tenant], seat, labels)
        if self.looks % 4 == 3:
            compiled = self.fabric.compile(run, query, token_budget=100_000)
            assert sorted(compiled.memory_ids) == sorted(ids_of(answer))
        elif self.looks % 2:
            self._narrowed(tenant, run, query, answer)
        else:
            self._limited(tenant, run, query, answer)

    def _limited(self, tenant: int, run: RunContext, query: str, answer: Recall) -> None:
        """The same comes first, and the rest is counted."""
        again = self.fabric.recall(run, query, limit=2)
        then = self.oracle[tenant].moment(self.clock.now)
        self._remember(tenant, Seat.of(run), run.classification_allowed, then, again)
        assert again.records == answer.records[:2]
        assert (again.low_confidence, again.conflicts) == (answer.low_confidence[:2], answer.conflicts[:2])
        assert again.omitted == len(answer.all_records) - len(again.all_records)

    def _narrowed(self, tenant: int, run: RunContext, query: str, answer: Recall) -> None:
        """Of the plain ones those that fit, of the conflicts those where a side does."""
        narrowing, fits = pick(NARROWINGS, self.looks // 4)
        less = self.fabric.recall(run, query, **narrowing)
        wanted = {memory.memory_id for memory in self.oracle[tenant].memories.values() if fits(memory)}
        for part in ("records", "low_confidence"):
            fitting = {record.id for record in getattr(answer, part)} & wanted
            assert {record.id for record in getattr(less, part)} == fitting
        sides = [{record.id for record in conflict.records} for conflict in answer.conflicts]
        found = [{record.id for record in conflict.records} for conflict in less.conflicts]
        assert sorted(map(sorted, found)) == sorted(sorted(members) for members in sides if members & wanted)

    def shows_past(
        self, tenant: int, seat: Seat, labels: frozenset[str], as_of: datetime, query: str | None = None
    ) -> None:
        """A recall as of then gives what the oracle shows of then; beyond the horizon there is nothing to ask."""
        if as_of >= self.clock.now - HORIZON:
            self.shows(tenant, seat, labels, as_of, query)
            return
        with pytest.raises(HistoryCollected):
            self.fabric.recall(run_at(self.people[tenant], seat, labels), as_of=as_of)

    def changes(self, tenant: int) -> list[datetime]:
        """The times by which something had been done, or just not yet, the latest first."""
        return self._past({self.began, *self.oracle[tenant].steps})

    def turns(self, tenant: int) -> list[datetime]:
        """The times at which something expired or went stale, by itself, or just not yet."""
        memories = self.oracle[tenant].memories.values()
        expired = {memory.expires_at for memory in memories if memory.expires_at is not None}
        stale = {memory.promoted_at + FRESH[memory.tier] + MICROSECOND for memory in memories if memory.tier in FRESH}
        return self._past(expired | stale)

    def _past(self, moments: set[datetime]) -> list[datetime]:
        around = {moment for turn in moments for moment in (turn, turn - MICROSECOND)}
        return sorted((moment for moment in around if moment <= self.clock.now), reverse=True)

    # Explanations

    def explains(
        self, tenant: int, memory: Memory, seat: Seat, labels: frozenset[str], as_of: datetime | None, by_run: bool
    ) -> None:
        """Why a memory is visible to a run or hidden from it: all of it to an auditor, to the run what it may know."""
        people, oracle = self.people[tenant], self.oracle[tenant]
        then = oracle.moment(as_of or self.clock.now)
        verdicts = oracle.verdicts(memory, seat, labels, then, self.clock.now)
        run = run_at(people, seat, labels)
        if not by_run and self.looks % 5 == 0:
            # Of nobody in particular: what asks nothing of a run.
            of_nobody = ("consent", "content", "promoted", "retracted", "expired", "session_end", "validity")
            run, verdicts = None, {name: verdicts[name] for name in of_nobody}

        def asked() -> Explanation:
            if by_run and run is not None:
                return self.fabric.explain(run, memory_id=memory.memory_id, as_of=as_of)
            by = people.auditor if self.looks % 2 else people.reviewer
            return self.fabric.explain(by, memory_id=memory.memory_id, as_of=as_of, run=run)

        if then.at < self.clock.now - HORIZON:
            with pytest.raises(HistoryCollected):
                asked()
            return
        if (found := self._told(asked, verdicts, by_run)) is None:
            return
        _agrees(found, verdicts, memory)
        assert (found.at, found.recall_id, found.returned) == (then.at, None, None)
        result = not by_run or self._may_know(oracle, memory.superseded_by, seat, labels, then)
        assert found.superseded_by == (memory.superseded_by if result else None)

    def explains_a_recall(self, memory: Memory, looked: Looked, by_run: bool) -> None:
        """The same of a recall that was made; and whether it showed the memory."""
        people, oracle = self.people[looked.tenant], self.oracle[looked.tenant]
        if looked.then.at < self.clock.now - HORIZON:
            return
        # A run that may see less today is told less of what it once saw.
        labels = frozenset({"INTERNAL"}) if by_run and self.looks % 4 == 0 else looked.labels
        verdicts = oracle.verdicts(memory, looked.seat, looked.labels & labels, looked.then, self.clock.now)
        by = run_at(people, looked.seat, labels) if by_run else people.auditor

        def asked() -> Explanation:
            return self.fabric.explain(by, memory_id=memory.memory_id, recall_id=looked.recall_id)

        if (found := self._told(asked, verdicts, by_run)) is None:
            return
        _agrees(found, verdicts, memory)
        assert (found.at, found.recall_id) == (looked.then.at, looked.recall_id)
        assert found.returned is (memory.memory_id in looked.shown)
        assert found.missed == ("cut" if looked.cut and found.visible and not found.returned else None)
        stranger = pick((people.run("u9"), self.people[1 - looked.tenant].auditor), self.looks)
        with pytest.raises(NotFound):
            self.fabric.explain(stranger, memory_id=memory.memory_id, recall_id=looked.recall_id)

    def _told(self, asked: Callable[[], Explanation], verdicts: dict[str, bool], by_run: bool) -> Explanation | None:
        """The explanation; None for a run from which more than time hides the memory, as if there were none."""
        if by_run and not all(passed for name, passed in verdicts.items() if name not in OF_TIME):
            with pytest.raises(NotFound):
                asked()
            return None
        return asked()

    def _may_know(
        self, oracle: Tenant, memory_id: str | None, seat: Seat, labels: frozenset[str], then: PointInTime
    ) -> bool:
        if memory_id is None:
            return True
        verdicts = oracle.verdicts(oracle.memories[memory_id], seat, labels, then, self.clock.now)
        return all(passed for name, passed in verdicts.items() if name not in OF_TIME)

    # Replays

    def replays(self, looked: Looked) -> None:
        """A recall run again as of then is the same, but for what consent or erasure took from the past too."""
        oracle, people = self.oracle[looked.tenant], self.people[looked.tenant]
        if looked.then.at < self.clock.now - HORIZON:
            return
        now = oracle.visible(looked.seat, looked.labels, self.clock.now, looked.then).keys()
        again = self.fabric.replay(people.auditor, looked.recall_id)
        assert (again.then, again.at, again.reasons) == (looked.shown, looked.then.at, ())
        if now == looked.seen:
            assert again.same and again.now == again.then and again.differences == ()
            return
        why = {one.memory_id: one.why for one in again.differences}
        for memory_id in set(looked.shown) - now:
            memory = oracle.memories[memory_id]
            verdicts = oracle.verdicts(memory, looked.seat, looked.labels, looked.then, self.clock.now)
            hidden = "consent" if not verdicts["consent"] else "clearance"
            assert why[memory_id] == ("erased" if memory.tombstoned else hidden)
        if not looked.cut:
            assert not again.same and set(again.now) == now
            for memory_id in now - set(looked.shown):
                # Under the pack that was in force when it was asked, less of the past was shown.
                withheld = oracle.memories[memory_id].fact.label not in looked.cleared
                assert why[memory_id] == "consent" or (withheld and why[memory_id] == "moved")

    def some_looked(self, tenant: int, which: int) -> Looked:
        """A recall that was made in that tenant."""
        return pick([looked for looked in self.looked if looked.tenant == tenant], which)


def _agrees(found: Explanation, verdicts: dict[str, bool], memory: Memory) -> None:
    """The same filters failed, and what became of the memory is told as it was."""
    assert set(found.hidden_by) == {name for name, passed in verdicts.items() if not passed}
    assert {one.name for one in found.filters} == verdicts.keys()
    assert found.visibility == _in_a_word(verdicts)
    assert (found.promoted_at, found.expires_at) == (memory.promoted_at, memory.expires_at)
    assert (found.retracted_at, found.retraction_reason) == (memory.ended_at, memory.ended)
    assert (found.tombstoned_at is not None) is memory.tombstoned


def _in_a_word(verdicts: dict[str, bool]) -> Any:
    if all(verdicts.values()):
        return "visible"
    words = {
        "content": "tombstoned", "promoted": "not_yet_promoted", "retracted": "retracted", "expired": "expired",
    }  # fmt: skip
    return next((word for name, word in words.items() if not verdicts[name]), "hidden")
