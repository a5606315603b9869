"""Measures how the extractor of messages finds stated preferences and their updates, and nothing else."""

import asyncio
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any, Literal, cast

from muniment.candidates.extractors import Extracted
from muniment.candidates.extractors.messages import MessageExtractor
from muniment.errors import InvalidInput
from muniment.evaluation.records import Record, invalid_record, read_records, required
from muniment.language.data_files import word_set
from muniment.language.words import words_of
from muniment.model.capture import Capture, Content
from muniment.model.metrics import share_of

Half = Literal["odd_lines", "even_lines"]
_HALVES: tuple[Half, Half] = ("odd_lines", "even_lines")
_AT = datetime(2024, 1, 15, 12, tzinfo=UTC)
# The share of a preference's words that the facts must hold.
_COVERAGE = 0.5
# How many words after a "not" are denied.
_NEGATION_REACH = 4

# Words that express an attitude, not its object. Only their order is read: no rule of the extractor judges itself.
_AGAINST = word_set("""
    dislike dislikes hate hates detest despise loathe avoid avoids avoiding aversion averse refuse refuses never
    distaste not no cannot can't don't doesn't won't isn't aren't objection fear phobia bias allergy allergic
    uncomfortable unsettling nor
""")
_FOR = word_set("""
    prefer prefers like likes love loves enjoy enjoys only exclusively follow follows favor preference
""")
_PLAIN = word_set("""
    strongly strong strict strictly fan interest interested into find have has user usually due concerns really
    tend absolutely completely any all also more most much very want use uses using rather instead stand severe
    extreme extremely intense need must try one too
""")
_TURNS = word_set("""
    without away instead rather not no don't doesn't isn't aren't avoid avoids
""")
_WORD = re.compile(r"[A-Za-z][A-Za-z'-]*")


class _Scores:
    """The counts of one half of the data: of each set, of the questions, and of each kind of update."""

    def __init__(self) -> None:
        self.sets: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.questions = Counter[str]()
        self.updates: dict[str, dict[str, int]] = {}


class _TimedExtractor:
    """The extractor with the seconds it took."""

    def __init__(self) -> None:
        self.seconds, self.texts = 0.0, 0
        self._extractor = MessageExtractor(said=False)

    def facts(self, text: str) -> list[Extracted]:
        """Return the facts of one message."""
        capture = spoken(text)
        started = perf_counter()
        found = asyncio.run(self._extractor.extract(capture, NoAnswers()))
        self.seconds += perf_counter() - started
        self.texts += 1
        return list(found)


def read_data(data: Path) -> list[Record]:
    """Return the records of a file, or of all files in a folder in the order of their names; raises `InvalidInput`."""
    if not data.is_dir():
        return read_records(data)
    files = sorted(path for path in data.iterdir() if path.name.endswith((".jsonl", ".jsonl.gz")))
    if not files:
        raise InvalidInput(f"{data.name}: holds no .jsonl file", field="data")
    return [record for path in files for record in read_records(path)]


def figures(records: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return recall and precision by set and by half of the data, and the figures of updates.

    Takes records with `preference`, `question` and `persona.turns` (a preference, a later question, and a conversation
    that mentions it), and records with `change`, `before` and `after` (`polarity`, `item`, `text`: an update).

    - `stated`: the preference itself. It is found when the facts hold at least half of its words, each on its side (for
      or against). A fact is right when more of the words of its key and value are on their side than not.
    - `told`: the user's turns of the conversation. Only words of the preference that occur in the turns count. A fact
      is right when it shares a word with the preference; others may be right as well, so precision is a lower bound.
    - `questions`: they state no preference; `left_alone` is the share of them without any fact.
    - `updates`: by change, how many sides were `found` with their polarity, how many pairs on both sides (`both`), and
      how many pairs have facts with one key and two values (`met`), so that they contradict each other.

    Halves are the odd and the even lines of each file. Raises `InvalidInput` at a record of another form.
    """
    timed = _TimedExtractor()
    whole, halves = _Scores(), {name: _Scores() for name in _HALVES}
    counts: dict[str, int] = {}
    n = 0
    for record in records:
        kind = "change" if "change" in record else "preference"
        half = halves[_HALVES[counts.get(kind, 0) % 2]]
        counts[kind] = counts.get(kind, 0) + 1
        n += 1
        if kind == "change":
            _score_update(record, timed, (whole, half))
        else:
            _score_preference(record, timed, (whole, half))
    return {
        "n": n,
        "all": _figures(whole),
        **{name: _figures(scores) for name, scores in halves.items()},
        "seconds_per_item": timed.seconds / timed.texts if timed.texts else None,
    }


def _figures(scores: _Scores) -> dict[str, Any]:
    found: dict[str, Any] = {name: _set_figures(counts) for name, counts in scores.sets.items()}
    if n := scores.questions["n"]:
        found["questions"] = {"n": n, "left_alone": scores.questions["left_alone"] / n}
    if scores.updates:
        found["updates"] = scores.updates
    return found


def _set_figures(counts: Counter[str]) -> dict[str, Any]:
    return {
        "n": counts["n"],
        "recall": share_of(counts["hits"], counts["n"]),
        "facts": counts["facts"],
        "precision": share_of(counts["right"], counts["facts"]),
    }


def _score_preference(record: Mapping[str, Any], timed: _TimedExtractor, scores: Sequence[_Scores]) -> None:
    preference, question = required(record, "preference", str), required(record, "question", str)
    sides = sides_of(preference)
    found = timed.facts(preference)
    hit = _is_found(sides, found)
    right = sum(_is_right(sides, fact) for fact in found)
    asked = timed.facts(question)
    turns = [text for turn in _turns(record) for text in [required(turn, "user", str)]]
    said = {word.term for text in turns for word in words_of(text)}
    reachable = {word: side for word, side in sides.items() if word in said}
    told = [fact for text in turns for fact in timed.facts(text)]
    for each in scores:
        each.sets["stated"].update(n=1, hits=hit, facts=len(found), right=right)
        each.questions.update(n=1, left_alone=not asked)
        if reachable:
            related = sum(bool(_covered(sides, fact)) for fact in told)
            each.sets["told"].update(n=1, hits=_is_found(reachable, told), facts=len(told), right=related)


def _score_update(record: Mapping[str, Any], timed: _TimedExtractor, scores: Sequence[_Scores]) -> None:
    change = required(record, "change", str)
    facts: list[list[Extracted]] = []
    for side in ("before", "after"):
        state = cast("Mapping[str, Any]", required(record, side, dict))
        polarity, item = required(state, "polarity", str), required(state, "item", str)
        if polarity not in ("like", "dislike"):
            raise invalid_record(record, side, "expected polarity like or dislike")
        words = {word.term: 1 if polarity == "like" else -1 for word in words_of(item)}
        found = timed.facts(required(state, "text", str))
        facts.append([fact for fact in found if _is_found(words, [fact])])
    before, after = facts
    keys: dict[str | None, Any] = {fact.fact.predicate: fact.fact.value for fact in before if fact.fact.predicate}
    met = any(keys.get(fact.fact.predicate, fact.fact.value) != fact.fact.value for fact in after)
    for each in scores:
        counted = each.updates.setdefault(change, dict.fromkeys(("n", "found", "both", "met"), 0))
        counted["n"] += 1
        counted["found"] += bool(before) + bool(after)
        counted["both"] += bool(before and after)
        counted["met"] += met


def _turns(record: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    persona = cast("Mapping[str, Any]", required(record, "persona", dict))
    for turn in cast("list[Any]", required(persona, "turns", list)):
        if not isinstance(turn, dict):
            raise invalid_record(record, "persona", "expected turns that are objects")
        yield cast("dict[str, Any]", turn)


def sides_of(text: str) -> dict[str, int]:
    """Return the words of a preference with their side: 1 for, -1 against, 0 where it is open."""
    side, sides = 0, dict[str, int]()
    denied = 0
    for written in _WORD.findall(text):
        low = written.lower()
        denied -= 1
        if low in _AGAINST:
            side, denied = -1, _NEGATION_REACH
        elif low in _FOR:
            # "not a fan", "do not really enjoy" are no liking.
            side = -1 if denied > 0 else 1
        elif low not in _PLAIN:
            for word in words_of(written):
                sides.setdefault(word.term, side)
    return sides


def _covered(sides: Mapping[str, int], fact: Extracted, *, by_key: bool = False) -> dict[str, bool]:
    """Return the words of the preference that the fact holds, and whether each is on its side there.

    Its text is a whole sentence, which may say more; `by_key` looks only at the words of its predicate and its value.
    """
    liked, disliked = _sides_of_fact(fact, by_key=by_key)
    covered: dict[str, bool] = {}
    for word, side in sides.items():
        if word in liked or word in disliked:
            covered[word] = side == 0 or (word in liked if side > 0 else word in disliked)
    return covered


def _sides_of_fact(fact: Extracted, *, by_key: bool) -> tuple[set[str], set[str]]:
    predicate, value, text = fact.fact.predicate or "", fact.fact.value, fact.fact.text or ""
    whole = {word.term for word in words_of(text)}
    if predicate and by_key:
        said = value if isinstance(value, str) else ""
        whole = whole & {word.term for word in words_of(f"{predicate.replace('_', ' ')} {said}")} or whole
    if "_or_" in predicate and isinstance(value, str):
        liked = {word.term for word in words_of(value)}
        return liked, whole - liked
    if value is False or predicate.startswith("allergic_to"):
        return set(), whole
    if predicate in ("", "diet"):
        return whole, whole
    # "prefers cars without sunroofs" is for cars and against sunroofs.
    first = next((place for place, word in enumerate(text.split()) if word.lower() in _TURNS), len(text))
    against = {word.term for word in words_of(" ".join(text.split()[first:]))}
    return whole - against, against


def _is_found(sides: Mapping[str, int], facts: Sequence[Extracted]) -> bool:
    if not sides:
        return False
    right = {word for fact in facts for word, is_right in _covered(sides, fact).items() if is_right}
    return len(right) / len(sides) >= _COVERAGE


def _is_right(sides: Mapping[str, int], fact: Extracted) -> bool:
    covered = _covered(sides, fact, by_key=True)
    return sum(covered.values()) * 2 > len(covered)


def spoken(text: str) -> Capture:
    """Return a message of one user with that text."""
    return Capture(
        capture_id="cap_0",
        tenant_id="evaluation",
        seq=1,
        author="evaluation",
        source="agent",
        kind="message",
        classification="INTERNAL",
        subject="user:1",
        observed_at=_AT,
        captured_at=_AT,
        pack="muniment.builtin@1.3.0",
        ontology_version="1.0.0",
        content=Content(text=text),
    )


class NoAnswers:
    """Answers for an extractor that asks no language model."""

    async def readers(self) -> None:
        """Return none."""

    async def get(self, extractor: str) -> bytes | None:
        """Return none."""
        return None

    async def put(self, extractor: str, answer: bytes) -> None:
        """Store nothing."""

    async def spend(self, extractor: str, most: int) -> bool:
        """Allow no call."""
        return False
