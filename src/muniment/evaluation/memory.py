"""Figures for memory as a whole: conversations captured, promoted, and recalled by questions about them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from statistics import fmean, median
from time import perf_counter
from typing import Any

from muniment.evaluation.conversations import Conversation, conversations
from muniment.evaluation.throwaway import OnStep, Stage, evaluation_pack, nobody_watches, throwaway

AMONG = (5, 10, 20)
MOST = max(AMONG)
_CAPTURED_AT_ONCE = 1000


@dataclass(frozen=True)
class Asked:
    """A question that was asked: the turns that answer it, those found in their order, and how long it took."""

    category: str
    evidence: frozenset[str]
    found: tuple[str, ...]
    ms: float

    def share_among(self, first: int) -> float:
        """The share of the evidence among the first found."""
        return len(self.evidence.intersection(self.found[:first])) / len(self.evidence)

    @property
    def reciprocal_rank(self) -> float:
        """One divided by the place of the first evidence; 0 where none was found."""
        return next((1 / place for place, turn in enumerate(self.found, 1) if turn in self.evidence), 0.0)


@dataclass
class _Tally:
    """What became of the turns, and who ranked them."""

    turns: int = 0
    promoted: int = 0
    duplicates: int = 0
    refused: int = 0
    cut: int = 0
    pack: str | None = None
    embedder: str | None = None
    asked: list[Asked] = field(default_factory=list[Asked])


def figures(records: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Capture, promote and recall the conversations of records in LoCoMo's or LongMemEval's format.

    `recall@k` is the mean share of a question's evidence among the first k, `hit@10` the share of questions with any
    of it there, `mrr` the mean of 1 / place of the first; None where nothing was asked. Raises InvalidInput at a wrong
    record, naming it and the field.
    """
    return measure(conversations(records))


def measure(talks: Sequence[Conversation], on_step: OnStep = nobody_watches) -> dict[str, Any]:
    """The same of conversations that were read before; told in words how far it is."""
    tally = _Tally()
    wanted = [talk for talk in talks if talk.questions]
    if wanted:
        with throwaway(evaluation_pack(MOST)) as stage:
            for number, talk in enumerate(wanted, 1):
                _ask_about(stage, talk, f"user_{number}", tally, _numbered(on_step, number, len(wanted)))
    categories: dict[str, list[Asked]] = {}
    for one in tally.asked:
        categories.setdefault(one.category, []).append(one)
    return {
        **_of(tally.asked),
        "categories": {name: _of(some) for name, some in sorted(categories.items())},
        "unanswerable": sum(talk.unanswerable for talk in talks),
        "without_evidence": sum(talk.without_evidence for talk in talks),
        "turns": tally.turns,
        "promoted": tally.promoted,
        "duplicates": tally.duplicates,
        "refused": tally.refused,
        "cut": tally.cut,
        "pack": tally.pack,
        "embedder": tally.embedder,
    }


def _numbered(on_step: OnStep, number: int, of: int) -> OnStep:
    return lambda words: on_step(f"conversation {number} of {of}, {words}")


def _ask_about(stage: Stage, talk: Conversation, user: str, tally: _Tally, on_step: OnStep) -> None:
    turn_of = _remembered(stage, talk, user, tally, on_step)
    run = stage.run(user)
    for number, question in enumerate(talk.questions, 1):
        on_step(f"question {number} of {len(talk.questions)}")
        started = perf_counter()
        answer = stage.fabric.recall(run, question.text, limit=MOST)
        ms = (perf_counter() - started) * 1000
        found = tuple(turn_of[record.provenance.capture_id] for record in answer.all_records)
        tally.asked.append(Asked(question.category, frozenset(question.evidence), found[:MOST], ms))
        tally.pack, tally.embedder = answer.pack, answer.embedder or tally.embedder


def _remembered(stage: Stage, talk: Conversation, user: str, tally: _Tally, on_step: OnStep) -> dict[str, str]:
    """Capture and promote what was said; gives the turn of each capture."""
    # All is promoted after the last word. No conversation is asked about with a clock behind another's.
    stage.clock.now = max(stage.clock.now, max(turn.date for turn in talk.turns) + timedelta(minutes=1))
    turn_of: dict[str, str] = {}
    for first in range(0, len(talk.turns), _CAPTURED_AT_ONCE):
        some = talk.turns[first : first + _CAPTURED_AT_ONCE]
        on_step(f"{first} of {len(talk.turns)} turns captured")
        captured = stage.capture(
            [
                {
                    "kind": "message",
                    "text": turn.text,
                    "classification": "INTERNAL",
                    "observed_at": turn.date,
                    "user_id": user,
                }
                for turn in some
            ]
        )
        turn_of |= dict(zip(captured, (turn.id for turn in some), strict=True))
    on_step(f"{len(talk.turns)} turns captured")
    consolidation, outcomes = stage.promote(_counted(on_step, len(talk.turns)))
    tally.turns += len(talk.turns)
    tally.promoted += sum(one.status == "promoted" for one in outcomes)
    tally.duplicates += sum(one.status == "duplicate" for one in outcomes)
    tally.refused += len(consolidation.refusals)
    tally.cut += sum(turn.cut for turn in talk.turns)
    return turn_of


def _counted(on_step: OnStep, of: int) -> Callable[[int], None]:
    return lambda done: on_step(f"{done} of {of} turns promoted")


def _of(asked: Sequence[Asked]) -> dict[str, Any]:
    return {
        **{f"recall@{first}": _mean(one.share_among(first) for one in asked) for first in AMONG},
        "hit@10": _mean(one.share_among(10) > 0 for one in asked),
        "mrr": _mean(one.reciprocal_rank for one in asked),
        "n": len(asked),
        "median_ms": median(one.ms for one in asked) if asked else None,
    }


def _mean(values: Iterable[float]) -> float | None:
    given = list(values)
    return fmean(given) if given else None
