"""Figures for the past: facts that changed, promoted in their order, then asked about as of a date and now."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from statistics import fmean, median
from time import perf_counter
from typing import Any, cast

from muniment.errors import NotPromotable
from muniment.evaluation.reading import taken, wrong
from muniment.evaluation.throwaway import OnStep, Stage, evaluation_pack, nobody_watches, throwaway
from muniment.model.candidate import Refusal
from muniment.model.recall import Recall

PREDICATE = "answer"

_DATE = re.compile(r"(\d{4})(?:-(\d\d))?(?:-(\d\d))?")
# Ids count milliseconds from 1970 on; a pack's replay horizon ends after 36,500 days.
_FIRST_DAY = datetime(1971, 1, 1, tzinfo=UTC)
_LONGEST = timedelta(days=36_400)
_EVERY = 20


@dataclass(frozen=True)
class Fact:
    """What was true from a date on; `spellings` are the ways to write it, in lower case."""

    answer: str
    spellings: frozenset[str]
    since: datetime


@dataclass(frozen=True)
class Dated:
    """A question whose answer changed: the answers, oldest first, and the dates it is asked about."""

    question: str
    timeline: tuple[Fact, ...]
    dates: tuple[datetime, ...]
    agree: bool

    def at(self, date: datetime) -> Fact | None:
        """What was true then."""
        return next((fact for fact in reversed(self.timeline) if fact.since <= date), None)


@dataclass(frozen=True)
class Answered:
    """Whether an answer was right, by the question's own entity and by its words alone, and how long they took."""

    then: bool
    agree: bool
    right: bool
    by_question: bool
    ms: float


def figures(records: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Promote the timeline of every `{"question", "timeline", "as_of"}` record, then ask about each date and now.

    `then` and `now` are the shares answered right. Raises InvalidInput at a wrong record, naming it and the field.
    """
    return measure(dated_questions(records))


def dated_questions(records: Iterable[Mapping[str, Any]]) -> list[Dated]:
    """The questions of a file; raises InvalidInput naming the record and the field."""
    return [_dated(record) for record in records]


def measure(questions: Sequence[Dated], on_step: OnStep = nobody_watches) -> dict[str, Any]:
    """The same of questions that were read before; told in words how far it is."""
    answered: list[Answered] = []
    promoted = 0
    if questions:
        questions = _moved(questions)
        every = [one.since for asked in questions for one in asked.timeline]
        every += [date for asked in questions for date in asked.dates]
        with throwaway(evaluation_pack(8), min(every)) as stage:
            promoted = _promoted(stage, questions, on_step)
            stage.clock.now = max(every) + timedelta(days=1)
            for number, asked in enumerate(questions, 1):
                on_step(f"question {number} of {len(questions)}")
                answered += _answered(stage, asked, f"question:{number}")
    return {
        **_of(answered),
        "agree": _of([one for one in answered if one.agree]),
        "facts": sum(len(asked.timeline) for asked in questions),
        "promoted": promoted,
        "median_ms": _median(one.ms for one in answered if one.then),
        "median_ms_now": _median(one.ms for one in answered if not one.then),
    }


def _promoted(stage: Stage, questions: Sequence[Dated], on_step: OnStep) -> int:
    """Promote all facts in the order of their dates, each superseding the one before it; gives how many."""
    facts = [
        (fact.since, number, place, fact.answer)
        for number, asked in enumerate(questions, 1)
        for place, fact in enumerate(asked.timeline)
    ]
    live: dict[int, str] = {}
    promoted = 0
    for done, (since, number, _, answer) in enumerate(sorted(facts)):
        if done % _EVERY == 0:
            on_step(f"{done} of {len(facts)} facts promoted")
        stage.clock.now = since
        proposed = stage.fabric.propose(
            stage.author,
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
            done_with = stage.fabric.queue.approve(stage.reviewer, proposed.proposal_id, supersedes=live.get(number))
        except NotPromotable:
            continue
        if done_with.memory_id is not None:
            live[number] = done_with.memory_id
            promoted += 1
    return promoted


def _answered(stage: Stage, asked: Dated, entity: str) -> list[Answered]:
    found: list[Answered] = []
    for date in (*asked.dates, None):
        right = asked.at(date) if date is not None else asked.timeline[-1]
        assert right is not None
        started = perf_counter()
        narrowed = stage.fabric.recall(stage.run(), asked.question, entities=[entity], as_of=date)
        ms = (perf_counter() - started) * 1000
        free = stage.fabric.recall(stage.run(), asked.question, as_of=date)
        found.append(
            Answered(
                then=date is not None,
                agree=asked.agree,
                right=_says(narrowed, entity, right) == [True],
                by_question=_says(free, entity, right)[:1] == [True],
                ms=ms,
            )
        )
    return found


def _says(answer: Recall, entity: str, right: Fact) -> list[bool]:
    """Of every record in order, whether it is on the key and says what is right."""
    return [
        (one.entity, one.predicate) == (entity, PREDICATE) and str(one.value).casefold() in right.spellings
        for one in answer.all_records
    ]


def _of(answered: Sequence[Answered]) -> dict[str, Any]:
    then, now = [one for one in answered if one.then], [one for one in answered if not one.then]
    return {
        "then": _share(one.right for one in then),
        "now": _share(one.right for one in now),
        "n_then": len(then),
        "n_now": len(now),
        "by_question": {
            "then": _share(one.by_question for one in then),
            "now": _share(one.by_question for one in now),
        },
    }


def _share(right: Iterable[bool]) -> float | None:
    given = list(right)
    return fmean(given) if given else None


def _median(times: Iterable[float]) -> float | None:
    given = list(times)
    return median(given) if given else None


# ---- reading ----


def _dated(record: Mapping[str, Any]) -> Dated:
    question = taken(record, "question", str)
    if not question.strip():
        raise wrong(record, "question", "must not be empty")
    timeline = tuple(_fact(record, one) for one in _objects(record, "timeline"))
    if not timeline:
        raise wrong(record, "timeline", "expected at least one answer")
    if any(later.since <= earlier.since for earlier, later in pairwise(timeline)):
        raise wrong(record, "timeline", "expected the oldest first, each from a later date")
    dates: list[datetime] = []
    asked = Dated(question, timeline, (), record.get("agree") is not False)
    for one in _objects(record, "as_of"):
        date, said = _date(record, one.get("date"), "as_of"), one.get("answer")
        then = asked.at(date)
        if then is None or not isinstance(said, str) or said.casefold() not in then.spellings:
            raise wrong(record, "as_of", "expected the answer that the timeline has at its date")
        dates.append(date)
    return replace(asked, dates=tuple(dates))


def _fact(record: Mapping[str, Any], said: Mapping[str, Any]) -> Fact:
    answer, others = said.get("answer"), cast("list[Any]", said.get("answers", []))
    if not isinstance(answer, str) or not answer.strip() or not isinstance(others, list):
        raise wrong(record, "timeline", "expected answer as a text, and answers as a list of its spellings")
    spellings = frozenset(str(one).casefold() for one in (answer, *others))
    return Fact(answer, spellings, _date(record, said.get("from"), "timeline"))


def _objects(record: Mapping[str, Any], field: str) -> list[Mapping[str, Any]]:
    found = cast("list[Any]", taken(record, field, list))
    if not all(isinstance(one, dict) for one in found):
        raise wrong(record, field, "expected a list of objects")
    return found


def _date(record: Mapping[str, Any], said: Any, field: str) -> datetime:
    try:
        found = _DATE.fullmatch(said)
        if found is not None:
            return datetime(int(found[1]), int(found[2] or 1), int(found[3] or 1), tzinfo=UTC)
    except (TypeError, ValueError):
        pass
    raise wrong(record, field, "expected dates as YYYY, YYYY-MM or YYYY-MM-DD")


def _moved(questions: Sequence[Dated]) -> list[Dated]:
    """The questions with every date within what a fabric can tell.

    One map for all: moved so that the first is not before 1971, drawn together if they lie further apart than a pack's
    replay horizon reaches. What is before, after or at the same time stays so.
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
