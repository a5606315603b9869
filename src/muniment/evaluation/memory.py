"""Measures memory as a whole: conversations are captured, promoted, and recalled by questions about them."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from time import perf_counter
from typing import Any, Literal, NamedTuple

from muniment.errors import InvalidInput
from muniment.evaluation.conversations import Conversation, Turn, conversations
from muniment.evaluation.scoring import median_of
from muniment.evaluation.temporary_fabric import (
    EvaluationFabric,
    OnStep,
    evaluation_pack,
    ignore_progress,
    message_pack,
    temporary_fabric,
)
from muniment.language.readers import Readers
from muniment.model.metrics import mean, share_of
from muniment.model.proposal import Proposal
from muniment.pack import PROFILES

RANKS = (5, 10, 20)
MOST = max(RANKS)
_CAPTURED_AT_ONCE = 1000
_FATES = ("turns", "promoted", "duplicates", "refused", "cut")
# The largest share of special-category evidence with which a conversation counts for the figures over all.
MOST_SPECIAL = 0.10

_DENIED = "refused: consent"
# The profile whose proposals are approved by hand; with another only what policy promotes counts.
BY_HAND = "strict"

# How turns are given to the fabric: each whole as a statement, or as a message through the extractor.
Form = Literal["statements", "messages"]


class Feed(NamedTuple):
    """How conversations are given to the fabric, and under which profile."""

    form: Form
    profile: str


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
    proposals: int = 0
    # What became of the turns that answer a question, each counted once.
    evidence: Counter[str] = field(default_factory=Counter[str])
    # By conversation: what was asked about it, and the share of the evidence that was refused for want of consent.
    talks: dict[str, tuple[list[AskedQuestion], float]] = field(
        default_factory=dict[str, tuple[list[AskedQuestion], float]]
    )


def figures(records: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Capture, promote and recall the conversations of records in LoCoMo's or LongMemEval's format.

    `recall@k` is the mean share of a question's evidence among the first k, `hit@10` the share of questions with any
    of it there, `mrr` the mean of 1 / rank of the first; None where nothing was asked. Raises `InvalidInput` naming the
    record and the field that is wrong.
    """
    return measure(conversations(records))


def measure(
    talks: Sequence[Conversation],
    on_step: OnStep = ignore_progress,
    readers: Readers | None = None,
    form: Form = "statements",
    profile: str = BY_HAND,
) -> dict[str, Any]:
    """Do the same with conversations that were read before; `on_step` is called with the progress in words.

    With `readers` the trained readers read what is captured, as in a fabric that has them. In the form `messages` the
    turns pass the extractor under the pack of `profile`, as the words of the run's own user. Everything proposed is
    approved under `strict`; under another profile only what its policy promotes counts. Conversations of whose evidence
    more than a tenth is of special categories, which nobody consented to, are then left out of the figures and reported
    as `special`. Raises `InvalidInput` for another profile than `strict` with statements, and for an unknown one.
    """
    if profile not in PROFILES:
        raise InvalidInput(f"expected one of {', '.join(PROFILES)}", field="profile")
    if form == "statements" and profile != BY_HAND:
        raise InvalidInput("a profile decides on messages; statements are all approved", field="profile")
    tally = _Tally()
    wanted = [conversation for conversation in talks if conversation.questions]
    pack = evaluation_pack(MOST) if form == "statements" else message_pack(MOST, profile)
    if wanted:
        with temporary_fabric(pack, readers=readers) as evaluation:
            for number, conversation in enumerate(wanted, 1):
                steps = _prefixed(on_step, number, len(wanted))
                _ask_about(evaluation, conversation, f"user_{number}", tally, steps, Feed(form, profile))
    apart: dict[str, Any] = {}
    if form == "messages":
        special = [asked for asked, share in tally.talks.values() if share > MOST_SPECIAL]
        tally.asked = [one for asked, share in tally.talks.values() if share <= MOST_SPECIAL for one in asked]
        apart = {
            "conversations": len(tally.talks) - len(special),
            "special": {"conversations": len(special), **_figures_of([one for asked in special for one in asked])},
            "proposals": tally.proposals,
            "proposals_per_turn": share_of(tally.proposals, tally.counts["turns"]),
            "evidence": dict(sorted(tally.evidence.items())),
            "profile": profile,
        }
    categories: dict[str, list[AskedQuestion]] = {}
    for one in tally.asked:
        categories.setdefault(one.category, []).append(one)
    return {
        **_figures_of(tally.asked),
        "categories": {name: _figures_of(some) for name, some in sorted(categories.items())},
        "unanswerable": sum(conversation.unanswerable for conversation in talks),
        "without_evidence": sum(conversation.without_evidence for conversation in talks),
        **tally.counts,
        **apart,
        "pack": tally.pack,
        "embedder": tally.embedder,
    }


def _prefixed(on_step: OnStep, number: int, of: int) -> OnStep:
    return lambda words: on_step(f"conversation {number} of {of}, {words}")


def _ask_about(
    evaluation: EvaluationFabric, conversation: Conversation, user: str, tally: _Tally, on_step: OnStep, feed: Feed
) -> None:
    turn_of, refused = _capture_and_promote(evaluation, conversation, user, tally, on_step, feed)
    run = evaluation.run(user)
    before = len(tally.asked)
    for number, question in enumerate(conversation.questions, 1):
        on_step(f"question {number} of {len(conversation.questions)}")
        started = perf_counter()
        answer = evaluation.fabric.recall(run, question.text, limit=MOST)
        ms = (perf_counter() - started) * 1000
        found = tuple(turn_of[record.provenance.capture_id] for record in answer.all_records)
        tally.asked.append(AskedQuestion(question.category, frozenset(question.evidence), found[:MOST], ms))
        tally.pack, tally.embedder = answer.pack, answer.embedder or tally.embedder
    evidence = [turn for question in conversation.questions for turn in question.evidence]
    tally.talks[user] = (tally.asked[before:], sum(turn in refused for turn in evidence) / len(evidence))


def _capture_and_promote(
    evaluation: EvaluationFabric, conversation: Conversation, user: str, tally: _Tally, on_step: OnStep, feed: Feed
) -> tuple[dict[str, str], frozenset[str]]:
    """Capture and promote the turns; return the turn of each capture, and the turns refused for want of consent."""
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
                    **_content(turn, feed.form),
                    "classification": "INTERNAL",
                    "observed_at": turn.date,
                    "user_id": user,
                }
                for turn in some
            ]
        )
        turn_of |= dict(zip(captured, (turn.id for turn in some), strict=True))
    on_step(f"{len(conversation.turns)} turns captured")
    by_hand = feed.profile == BY_HAND
    steps = _promotion_steps(on_step, len(conversation.turns))
    consolidation, outcomes = evaluation.promote(steps, by_hand=by_hand)
    statuses = [one.status for one in outcomes]
    fates: dict[str, set[str]] = {}
    for one in consolidation.refusals:
        fates.setdefault(turn_of[one.capture_id], set()).add(f"refused: {one.gate}")
    if feed.form == "messages":
        proposals = evaluation.proposals(consolidation.proposals)
        statuses = [one.status for one in proposals]
        for one in proposals:
            fates.setdefault(turn_of[one.candidate.capture_id], set()).update(_fates_of(one))
    tally.counts.update(
        turns=len(conversation.turns),
        promoted=statuses.count("promoted"),
        duplicates=statuses.count("duplicate"),
        refused=len(consolidation.refusals),
        cut=sum(turn.cut for turn in conversation.turns),
    )
    tally.proposals += len(consolidation.proposals)
    evidence = {turn for question in conversation.questions for turn in question.evidence}
    tally.evidence.update(_fate_of_turn(fates.get(turn, set())) for turn in evidence)
    return turn_of, frozenset(turn for turn, some in fates.items() if _DENIED in some)


def _fates_of(proposal: Proposal) -> Iterable[str]:
    """Say what became of a proposal: its status, or why it waits for a person."""
    if proposal.status not in ("pending", "held"):
        return (proposal.status,)
    return [f"waits: {reason}" for reason in proposal.human_reasons] or ("waits",)


def _fate_of_turn(fates: Collection[str]) -> str:
    """Say what became of a turn: promoted if anything of it was, else why nothing was."""
    for good in ("promoted", "duplicate"):
        if good in fates:
            return good
    return ", ".join(sorted(fates)) or "not proposed"


def _content(turn: Turn, form: Form) -> dict[str, Any]:
    if form == "statements":
        return {"text": turn.text}
    return {"payload": turn.message(), "session_id": turn.session}


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
