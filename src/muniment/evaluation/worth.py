"""Measures which sentences of users are taken to be worth knowing later, on chats in LongMemEval's format."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple, cast

from muniment.candidates.extractors import Extracted
from muniment.candidates.extractors.messages import MessageExtractor
from muniment.evaluation.extraction import NoAnswers, spoken
from muniment.evaluation.records import Record, objects_of, required
from muniment.evaluation.scoring import figures_by_set
from muniment.language.messages import sentences_of
from muniment.language.messages.worth import RULES_FLOOR, Worth, kept_by_guard
from muniment.language.readers import Readers
from muniment.language.readers.guard import WORTH
from muniment.language.readers.readers import GUARD
from muniment.model.metrics import mean


class ReadSentence(NamedTuple):
    """How many facts the extractor makes of a sentence, and its worth; without readers the rules' counts twice.

    `worth` is None where the sentence is kept in any case: a typed rule reads it, or the user asks to remember it.
    """

    facts: int
    worth: Worth | None


class ReadTurn(NamedTuple):
    """A turn of a user: whether it bears an answer, its sentences, and the seconds that they took."""

    answers: bool
    sentences: tuple[ReadSentence, ...]
    seconds: float

    def proposals(self, threshold: float, *, best: bool) -> list[int]:
        """Return how many proposals each sentence gives; see `kept_by_guard`, here without a margin."""
        kept = iter(kept_by_guard([one.worth for one in self.sentences if one.facts], threshold, 0.0, best=best))
        return [one.facts if one.facts and next(kept) == "kept" else 0 for one in self.sentences]


def figures(records: Iterable[Mapping[str, Any]], readers: Readers | None = None) -> dict[str, Any]:
    """Read the user's turns of every `{"question_id", "question_type", "haystack_sessions"}` record.

    `recall` is the share of the turns marked `has_answer` that give a proposal, `proposals_per_turn` how many proposals
    a turn gives, `kept` the share of all sentences that give one; None where undefined. A sentence gives a proposal if
    a typed rule reads it, or if it is a statement of enough worth: with `readers` by the trained guard and its
    threshold, else by the rules and theirs. Figures are over all and by `question_type`.
    Raises `InvalidInput` naming the record and the field that is wrong.
    """
    sets: dict[str, list[ReadTurn]] = {}
    for record in records:
        required(record, "question_id", str)
        sets.setdefault(required(record, "question_type", str), []).extend(read_turns(record, readers))
    seconds = sum(turn.seconds for some in sets.values() for turn in some)
    threshold = readers.file(GUARD).thresholds[WORTH] if readers is not None else RULES_FLOOR
    return figures_by_set(sets, partial(worth_figures, threshold=threshold, best=readers is not None), seconds)


def read_turns(record: Mapping[str, Any], readers: Readers | None) -> Iterator[ReadTurn]:
    """Yield the turns of the user in the chats of a record, read; raises `InvalidInput`."""
    for turn in _user_turns(record):
        started = perf_counter()
        sentences = tuple(_read(required(turn, "content", str), readers))
        yield ReadTurn(turn.get("has_answer") is True, sentences, perf_counter() - started)


def _user_turns(record: Mapping[str, Any]) -> Iterator[Record]:
    for number, chat in enumerate(cast("list[Any]", required(record, "haystack_sessions", list))):
        for turn in objects_of(record, chat, f"haystack_sessions.{number}"):
            if required(turn, "role", str) == "user":
                yield turn


_EXTRACTOR = MessageExtractor()


def _read(text: str, readers: Readers | None) -> Iterator[ReadSentence]:
    """Yield what the extractor makes of each sentence of a turn."""
    found: dict[str, list[Extracted]] = {}
    for one in asyncio.run(_EXTRACTOR.extract(spoken(text), NoAnswers())):
        found.setdefault(one.fact.text or "", []).append(one)
    for said in {one.start: one.said for one in sentences_of(text)}.values():
        # What is asked to be remembered is the end of its sentence.
        facts = [one for part in list(found) if part in said for one in found.pop(part)]
        judged = [one.worth for one in facts if one.worth is not None]
        if len(judged) < len(facts):
            yield ReadSentence(len(facts), None)
            continue
        read, by_rules = judged[0] if judged else ("", 0.0)
        scored = readers is not None and bool(judged)
        by_guard = readers.load().guard.read(read).worth if scored and readers else by_rules
        yield ReadSentence(len(facts), Worth(by_rules, by_guard))


def worth_figures(turns: Sequence[ReadTurn], threshold: float, *, best: bool = False) -> dict[str, Any]:
    """Return the figures of turns where the guard counts from a threshold; `best` as in `kept_by_guard`."""
    proposals = [turn.proposals(threshold, best=best) for turn in turns]
    return {
        "n": len(turns),
        "answering": sum(turn.answers for turn in turns),
        "recall": mean(any(some) for turn, some in zip(turns, proposals, strict=True) if turn.answers),
        "proposals_per_turn": mean(map(sum, proposals)),
        "sentences": sum(map(len, proposals)),
        "kept": mean(one > 0 for some in proposals for one in some),
    }
