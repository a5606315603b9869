"""Measures memory as a whole: conversations are captured, promoted, and recalled by questions about them."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from time import perf_counter
from typing import Any

from muniment.evaluation.conversations import Conversation, conversations
from muniment.evaluation.scoring import median_of
from muniment.evaluation.temporary_fabric import (
    EvaluationFabric,
    OnStep,
    evaluation_pack,
    ignore_progress,
    temporary_fabric,
)
from muniment.language.readers import Readers
from muniment.model.metrics import mean

RANKS = (5, 10, 20)
MOST = max(RANKS)
_CAPTURED_AT_ONCE = 1000
_FATES = ("turns", "promoted", "duplicates", "refused", "cut")


@dataclass(frozen=True)
class AskedQuestion:
    """An asked question: the turns that answer it, the turns that were found in order, and the milliseconds."""

    category: str
    evidence: frozenset[str]
    found: tuple[str, ...]
    ms: float

    def share_among(self, first: int) -> float:
        """Return the share of the evidence among the first results."""
        return len(self.evidence.intersection(self.found[:first])) / len(self.evidence)

    @property
    def reciprocal_rank(self) -> float:
        """One divided by the rank of the first evidence; 0 where none was found."""
        return next((1 / rank for rank, turn in enumerate(self.found, 1) if turn in self.evidence), 0.0)


@dataclass
class _Tally:
    """What became of the turns, and under which pack and embedder."""

    counts: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(_FATES, 0)))
    pack: str | None = None
    embedder: str | None = None
    asked: list[AskedQuestion] = field(default_factory=list[AskedQuestion])


def figures(records: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Capture, promote and recall the conversations of records in LoCoMo's or LongMemEval's format.

    `recall@k` is the mean share of a question's evidence among the first k, `hit@10` the share of questions with any
    of it there, `mrr` the mean of 1 / rank of the first; None where nothing was asked. Raises `InvalidInput` naming the
    record and the field that is wrong.
    """
    return measure(conversations(records))


def measure(
    talks: Sequence[Conversation], on_step: OnStep = ignore_progress, readers: Readers | None = None
) -> dict[str, Any]:
    """Do the same with conversations that were read before; `on_step` is called with the progress in words.

    With `readers` the trained readers read what is captured, as in a fabric that has them.
    """
    tally = _Tally()
    wanted = [conversation for conversation in talks if conversation.questions]
    if wanted:
        with temporary_fabric(evaluation_pack(MOST), readers=readers) as evaluation:
            for number, conversation in enumerate(wanted, 1):
                _ask_about(evaluation, conversation, f"user_{number}", tally, _prefixed(on_step, number, len(wanted)))
    categories: dict[str, list[AskedQuestion]] = {}
    for one in tally.asked:
        categories.setdefault(one.category, []).append(one)
    return {
        **_figures_of(tally.asked),
        "categories": {name: _figures_of(some) for name, some in sorted(categories.items())},
        "unanswerable": sum(conversation.unanswerable for conversation in talks),
        "without_evidence": sum(conversation.without_evidence for conversation in talks),
        **tally.counts,
        "pack": tally.pack,
        "embedder": tally.embedder,
    }


def _prefixed(on_step: OnStep, number: int, of: int) -> OnStep:
    return lambda words: on_step(f"conversation {number} of {of}, {words}")


def _ask_about(
    evaluation: EvaluationFabric, conversation: Conversation, user: str, tally: _Tally, on_step: OnStep
) -> None:
    turn_of = _capture_and_promote(evaluation, conversation, user, tally, on_step)
    run = evaluation.run(user)
    for number, question in enumerate(conversation.questions, 1):
        on_step(f"question {number} of {len(conversation.questions)}")
        started = perf_counter()
        answer = evaluation.fabric.recall(run, question.text, limit=MOST)
        ms = (perf_counter() - started) * 1000
        found = tuple(turn_of[record.provenance.capture_id] for record in answer.all_records)
        tally.asked.append(AskedQuestion(question.category, frozenset(question.evidence), found[:MOST], ms))
        tally.pack, tally.embedder = answer.pack, answer.embedder or tally.embedder


def _capture_and_promote(
    evaluation: EvaluationFabric, conversation: Conversation, user: str, tally: _Tally, on_step: OnStep
) -> dict[str, str]:
    """Capture and promote the turns; return the turn of each capture."""
    # Everything is promoted after the last turn, and the clock never goes back for a later conversation.
    evaluation.clock.now = max(
        evaluation.clock.now, max(turn.date for turn in conversation.turns) + timedelta(minutes=1)
    )
    turn_of: dict[str, str] = {}
    for first in range(0, len(conversation.turns), _CAPTURED_AT_ONCE):
        some = conversation.turns[first : first + _CAPTURED_AT_ONCE]
        on_step(f"{first} of {len(conversation.turns)} turns captured")
        captured = evaluation.capture(
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
    on_step(f"{len(conversation.turns)} turns captured")
    consolidation, outcomes = evaluation.promote(_promotion_steps(on_step, len(conversation.turns)))
    tally.counts.update(
        turns=len(conversation.turns),
        promoted=sum(one.status == "promoted" for one in outcomes),
        duplicates=sum(one.status == "duplicate" for one in outcomes),
        refused=len(consolidation.refusals),
        cut=sum(turn.cut for turn in conversation.turns),
    )
    return turn_of


def _promotion_steps(on_step: OnStep, of: int) -> Callable[[int], None]:
    return lambda done: on_step(f"{done} of {of} turns promoted")


def _figures_of(asked: Sequence[AskedQuestion]) -> dict[str, Any]:
    return {
        **{f"recall@{first}": mean(one.share_among(first) for one in asked) for first in RANKS},
        "hit@10": mean(one.share_among(10) > 0 for one in asked),
        "mrr": mean(one.reciprocal_rank for one in asked),
        "n": len(asked),
        "median_ms": median_of(one.ms for one in asked),
    }
