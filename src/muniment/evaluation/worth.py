"""Measures which sentences of users are taken to be worth knowing later, on chats in LongMemEval's format."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple, cast

from muniment.evaluation.records import Record, objects_of, required
from muniment.evaluation.scoring import figures_by_set
from muniment.language.messages import Sentence, sentences_of, statements_of
from muniment.language.readers import Readers
from muniment.language.readers.guard import WORTH
from muniment.language.readers.readers import GUARD
from muniment.model.metrics import mean


class ReadSentence(NamedTuple):
    """Whether the rules extract a fact from a sentence, and how the trained guard scores its worth."""

    rules: bool
    worth: float | None

    def is_kept(self, threshold: float) -> bool:
        """Whether the rules extract a fact, or the guard's score is at least the threshold."""
        return self.rules or (self.worth is not None and self.worth >= threshold)


class ReadTurn(NamedTuple):
    """A turn of a user: whether it bears an answer, its sentences, and the seconds that they took."""

    answers: bool
    sentences: tuple[ReadSentence, ...]
    seconds: float


def figures(records: Iterable[Mapping[str, Any]], readers: Readers | None = None) -> dict[str, Any]:
    """Read the user's turns of every `{"question_id", "question_type", "haystack_sessions"}` record.

    `recall` is the share of the turns marked `has_answer` of which at least one sentence is kept, `kept` the share of
    all sentences; None where undefined. The rules keep a sentence from which they extract a fact. With `readers` a
    sentence is also kept where the trained guard scores it at least at its threshold. Figures are over all and by
    `question_type`. Raises `InvalidInput` naming the record and the field that is wrong.
    """
    sets: dict[str, list[ReadTurn]] = {}
    for record in records:
        required(record, "question_id", str)
        sets.setdefault(required(record, "question_type", str), []).extend(read_turns(record, readers))
    seconds = sum(turn.seconds for some in sets.values() for turn in some)
    threshold = readers.file(GUARD).thresholds[WORTH] if readers is not None else 1.0
    return figures_by_set(sets, partial(worth_figures, threshold=threshold), seconds)


def read_turns(record: Mapping[str, Any], readers: Readers | None) -> Iterator[ReadTurn]:
    """Yield the turns of the user in the chats of a record, read; raises `InvalidInput`."""
    for turn in _user_turns(record):
        started = perf_counter()
        sentences = tuple(_read(one, readers) for one in sentences_of(required(turn, "content", str)))
        yield ReadTurn(turn.get("has_answer") is True, sentences, perf_counter() - started)


def _user_turns(record: Mapping[str, Any]) -> Iterator[Record]:
    for number, chat in enumerate(cast("list[Any]", required(record, "haystack_sessions", list))):
        for turn in objects_of(record, chat, f"haystack_sessions.{number}"):
            if required(turn, "role", str) == "user":
                yield turn


def _read(sentence: Sentence, readers: Readers | None) -> ReadSentence:
    worth = readers.load().guard.read(sentence.as_read).worth if readers is not None else None
    return ReadSentence(bool(statements_of(sentence)), worth)


def worth_figures(turns: Sequence[ReadTurn], threshold: float) -> dict[str, Any]:
    """Return the figures of turns where the guard counts from a threshold."""
    answering = [turn for turn in turns if turn.answers]
    kept = [[one.is_kept(threshold) for one in turn.sentences] for turn in turns]
    return {
        "n": len(turns),
        "answering": len(answering),
        "recall": mean(any(one.is_kept(threshold) for one in turn.sentences) for turn in answering),
        "sentences": sum(map(len, kept)),
        "kept": mean(one for some in kept for one in some),
    }
