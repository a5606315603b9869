"""Measures recall of the past: facts that changed are promoted in order, then recalled as of a date and now."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from time import perf_counter
from typing import Any, cast

from muniment.errors import NotPromotable
from muniment.evaluation.records import invalid_record, required
from muniment.evaluation.scoring import median_of
from muniment.evaluation.temporary_fabric import (
    EvaluationFabric,
    OnStep,
    evaluation_pack,
    ignore_progress,
    temporary_fabric,
)
from muniment.language.readers import Readers
from muniment.model.candidate import Refusal
from muniment.model.metrics import mean
from muniment.model.recall import Recall

PREDICATE = "answer"

_DATE = re.compile(r"(\d{4})(?:-(\d\d))?(?:-(\d\d))?")
# Ids count milliseconds from 1970 on; a pack's replay horizon ends after 36,500 days.
_FIRST_DAY = datetime(1971, 1, 1, tzinfo=UTC)
_LONGEST = timedelta(days=36_400)
_STEP_EVERY = 20


@dataclass(frozen=True)
class Fact:
    """An answer that was true from a date on, and its spellings in lower case."""

    answer: str
    spellings: frozenset[str]
    since: datetime


@dataclass(frozen=True)
class DatedQuestion:
    """A question whose answer changed: its answers, oldest first, and the dates it is asked about."""

    question: str
    timeline: tuple[Fact, ...]
    dates: tuple[datetime, ...]
    agree: bool

    def at(self, date: datetime) -> Fact | None:
        """Return the answer at a date; None before the first."""
        return next((fact for fact in reversed(self.timeline) if fact.since <= date), None)


@dataclass(frozen=True)
class Answered:
    """Whether a recall was right: narrowed to the entity of the question, and by the question alone."""

    then: bool
    agree: bool
    right: bool
    by_question: bool
    ms: float


def figures(records: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Promote the timeline of every `{"question", "timeline", "as_of"}` record, then ask about each date and now.

    `then` and `now` are the shares of right answers. Raises `InvalidInput` naming the record and the field.
    """
    return measure(dated_questions(records))


def dated_questions(records: Iterable[Mapping[str, Any]]) -> list[DatedQuestion]:
    """Read the questions of records; raises `InvalidInput` naming the record and the field."""
    return [_dated_question(record) for record in records]


def measure(
    questions: Sequence[DatedQuestion], on_step: OnStep = ignore_progress, readers: Readers | None = None
) -> dict[str, Any]:
    """Do the same with questions that were read before; `on_step` is called with the progress in words.

    With `readers` the trained readers read what is proposed, as in a fabric that has them.
    """
    answered: list[Answered] = []
    promoted = 0
    if questions:
        questions = _fit_dates(questions)
        every = [one.since for question in questions for one in question.timeline]
        every += [date for question in questions for date in question.dates]
        with temporary_fabric(evaluation_pack(8), min(every), readers) as evaluation:
            promoted = _promote(evaluation, questions, on_step)
            evaluation.clock.now = max(every) + timedelta(days=1)
            for number, question in enumerate(questions, 1):
                on_step(f"question {number} of {len(questions)}")
                answered += _ask(evaluation, question, f"question:{number}")
    return {
        **_figures_of(answered),
        "agree": _figures_of([one for one in answered if one.agree]),
        "facts": sum(len(question.timeline) for question in questions),
        "promoted": promoted,
        "median_ms": median_of(one.ms for one in answered if one.then),
        "median_ms_now": median_of(one.ms for one in answered if not one.then),
    }


def _promote(evaluation: EvaluationFabric, questions: Sequence[DatedQuestion], on_step: OnStep) -> int:
    """Promote all facts in the order of their dates, each superseding the one before; return how many."""
    facts = [
        (fact.since, number, index, fact.answer)
        for number, question in enumerate(questions, 1)
        for index, fact in enumerate(question.timeline)
    ]
    live: dict[int, str] = {}
    promoted = 0
    for done, (since, number, _, answer) in enumerate(sorted(facts)):
        if done % _STEP_EVERY == 0:
            on_step(f"{done} of {len(facts)} facts promoted")
        evaluation.clock.now = since
        proposed = evaluation.fabric.propose(
            evaluation.author,
            write_class="preference",
            entity=f"question:{number}",
            predicate=PREDICATE,
            value=answer,
            text=f"{questions[number - 1].question}: {answer}",
            classification="INTERNAL",
            observed_at=since,
        )
        if isinstance(proposed, Refusal):
            continue
        try:
            approved = evaluation.fabric.queue.approve(
                evaluation.reviewer, proposed.proposal_id, note="an answer of the set", supersedes=live.get(number)
            )
        except NotPromotable:
            continue
        if approved.memory_id is not None:
            live[number] = approved.memory_id
            promoted += 1
    return promoted


def _ask(evaluation: EvaluationFabric, question: DatedQuestion, entity: str) -> list[Answered]:
    found: list[Answered] = []
    for date in (*question.dates, None):
        right = question.at(date) if date is not None else question.timeline[-1]
        assert right is not None
        started = perf_counter()
        narrowed = evaluation.fabric.recall(evaluation.run(), question.question, entities=[entity], as_of=date)
        ms = (perf_counter() - started) * 1000
        free = evaluation.fabric.recall(evaluation.run(), question.question, as_of=date)
        found.append(
            Answered(
                then=date is not None,
                agree=question.agree,
                right=_says(narrowed, entity, right) == [True],
                by_question=_says(free, entity, right)[:1] == [True],
                ms=ms,
            )
        )
    return found


def _says(answer: Recall, entity: str, right: Fact) -> list[bool]:
    """Say for every record in order whether it has the key of the question and the right answer."""
    return [
        (one.entity, one.predicate) == (entity, PREDICATE) and str(one.value).casefold() in right.spellings
        for one in answer.all_records
    ]


def _figures_of(answered: Sequence[Answered]) -> dict[str, Any]:
    then, now = [one for one in answered if one.then], [one for one in answered if not one.then]
    return {
        "then": mean(one.right for one in then),
        "now": mean(one.right for one in now),
        "n_then": len(then),
        "n_now": len(now),
        "by_question": {
            "then": mean(one.by_question for one in then),
            "now": mean(one.by_question for one in now),
        },
    }


def _dated_question(record: Mapping[str, Any]) -> DatedQuestion:
    text = required(record, "question", str)
    if not text.strip():
        raise invalid_record(record, "question", "must not be empty")
    timeline = tuple(_fact(record, one) for one in _objects(record, "timeline"))
    if not timeline:
        raise invalid_record(record, "timeline", "expected at least one answer")
    if any(later.since <= earlier.since for earlier, later in pairwise(timeline)):
        raise invalid_record(record, "timeline", "expected the oldest first, each from a later date")
    dates: list[datetime] = []
    question = DatedQuestion(text, timeline, (), record.get("agree") is not False)
    for one in _objects(record, "as_of"):
        date, answer = _date(record, one.get("date"), "as_of"), one.get("answer")
        then = question.at(date)
        if then is None or not isinstance(answer, str) or answer.casefold() not in then.spellings:
            raise invalid_record(record, "as_of", "expected the answer that the timeline has at its date")
        dates.append(date)
    return replace(question, dates=tuple(dates))


def _fact(record: Mapping[str, Any], item: Mapping[str, Any]) -> Fact:
    answer, others = item.get("answer"), cast("list[Any]", item.get("answers", []))
    if not isinstance(answer, str) or not answer.strip() or not isinstance(others, list):
        raise invalid_record(record, "timeline", "expected answer as a text, and answers as a list of its spellings")
    spellings = frozenset(str(one).casefold() for one in (answer, *others))
    return Fact(answer, spellings, _date(record, item.get("from"), "timeline"))


def _objects(record: Mapping[str, Any], field: str) -> list[Mapping[str, Any]]:
    found = cast("list[Any]", required(record, field, list))
    if not all(isinstance(one, dict) for one in found):
        raise invalid_record(record, field, "expected a list of objects")
    return found


def _date(record: Mapping[str, Any], text: Any, field: str) -> datetime:
    try:
        found = _DATE.fullmatch(text)
        if found is not None:
            return datetime(int(found[1]), int(found[2] or 1), int(found[3] or 1), tzinfo=UTC)
    except (TypeError, ValueError):
        pass
    raise invalid_record(record, field, "expected dates as YYYY, YYYY-MM or YYYY-MM-DD")


def _fit_dates(questions: Sequence[DatedQuestion]) -> list[DatedQuestion]:
    """Return the questions with all dates within the range of a fabric.

    All dates are moved alike so that none is before 1971, and scaled if they span more than the longest replay
    horizon. Their order stays the same.
    """
    every = [date for one in questions for date in (*one.dates, *(fact.since for fact in one.timeline))]
    first, span = min(every), max(every) - min(every)
    begin, scale = max(first, _FIRST_DAY), min(1.0, _LONGEST / span) if span else 1.0

    def moved(date: datetime) -> datetime:
        return begin + (date - first) * scale

    return [
        replace(
            one,
            timeline=tuple(replace(fact, since=moved(fact.since)) for fact in one.timeline),
            dates=tuple(moved(date) for date in one.dates),
        )
        for one in questions
    ]
