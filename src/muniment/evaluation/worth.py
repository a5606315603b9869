"""Measures which sentences of users are taken to be worth knowing later, on chats in LongMemEval's format."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from time import perf_counter
from typing import Any, NamedTuple, cast

from muniment.evaluation.records import Record, objects_of, required
from muniment.evaluation.scoring import figures_by_set
from muniment.language.messages import Sentence, sentences_of, statements_of
from muniment.language.readers import Readers
from muniment.language.readers.guard import WORTH
from muniment.language.readers.readers import GUARD
from muniment.model.metrics import mean, share_of


class ReadTurn(NamedTuple):
    """A turn of a user: whether it bears an answer, and whether each of its sentences is kept."""

    answers: bool
    kept: tuple[bool, ...]


def figures(records: Iterable[Mapping[str, Any]], readers: Readers | None = None) -> dict[str, Any]:
    """Read the user's turns of every `{"question_id", "question_type", "haystack_sessions"}` record.

    `recall` is the share of the turns marked `has_answer` of which at least one sentence is kept, `kept` the share of
    all sentences; None where undefined. The rules keep a sentence from which they extract a fact. With `readers` a
    sentence is also kept where the trained guard scores it at least at its threshold. Figures are over all and by
    `question_type`. Raises `InvalidInput` naming the record and the field that is wrong.
    """
    sets: dict[str, list[ReadTurn]] = {}
    seconds = 0.0
    for record in records:
        required(record, "question_id", str)
        some = sets.setdefault(required(record, "question_type", str), [])
        for turn in user_turns(record):
            started = perf_counter()
            kept = tuple(_is_kept(one, readers) for one in sentences_of(required(turn, "content", str)))
            seconds += perf_counter() - started
            some.append(ReadTurn(turn.get("has_answer") is True, kept))
    return figures_by_set(sets, _figures_of, seconds)


def user_turns(record: Mapping[str, Any]) -> Iterator[Record]:
    """Yield the turns of the user in the chats of a record; raises `InvalidInput`."""
    for number, chat in enumerate(cast("list[Any]", required(record, "haystack_sessions", list))):
        for turn in objects_of(record, chat, f"haystack_sessions.{number}"):
            if required(turn, "role", str) == "user":
                yield turn


def _is_kept(sentence: Sentence, readers: Readers | None) -> bool:
    if statements_of(sentence):
        return True
    if readers is None:
        return False
    return readers.load().guard.read(sentence.as_read).worth >= readers.file(GUARD).thresholds[WORTH]


def _figures_of(turns: Sequence[ReadTurn]) -> dict[str, Any]:
    answering = [turn for turn in turns if turn.answers]
    sentences = sum(len(turn.kept) for turn in turns)
    return {
        "n": len(turns),
        "answering": len(answering),
        "recall": mean(any(turn.kept) for turn in answering),
        "sentences": sentences,
        "kept": share_of(sum(sum(turn.kept) for turn in turns), sentences),
    }
