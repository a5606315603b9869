"""Rules of the recall stage: what a run may see and why, conflicts, and ranking."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muniment.errors import InvalidInput, UnknownLabel
from muniment.model.context import RunContext
from muniment.model.explanation import FilterName, FilterVerdict, Visibility
from muniment.model.fields import Tier, WriteClass
from muniment.pack import Pack
from muniment.pack.combined import narrow_recall_policy
from muniment.pack.memory_layer import RecallPolicy

# ---- visibility: a run's context and its pack as the values that every recall filters by (REC-1) ----

TIERS: tuple[Tier, ...] = ("working", "episodic", "semantic", "durable")
CLASSES: tuple[WriteClass, ...] = ("evidence_link", "preference", "decision_outcome", "correction", "statement")


@dataclass(frozen=True)
class View:
    """What a run may see: the values of every filter; '' stands for "none" as it does in the tables."""

    users: list[str]
    session_id: str
    workflow_id: str
    intents: list[str]
    labels: list[str]
    sensitive: list[str]
    tiers: list[str]
    classes: list[str]
    qualifiers: dict[str, str]
    fresh_since: dict[Tier, datetime | None]
    # When what is seen has to hold in the world (REC-14); None for recalls recorded before there was such a time.
    valid_at: datetime | None = None


# For filters that do not depend on a run.
NO_VIEW = View([], "", "", [], [], [], [], [], {}, dict.fromkeys(TIERS))


def intents_seen_by(intent: str | None) -> list[str]:
    """Return all intent scopes that a run of this intent sees, unscoped ('') first."""
    if intent is None:
        return [""]
    words = intent.split(".")
    return ["", intent, *(".".join(words[:n]) + ".*" for n in range(len(words) - 1, 0, -1))]


def users_seen_by(run: RunContext) -> list[str]:
    """Return the users whose memories a run sees: its own, and '' for the tenant's."""
    return ["", run.user_id] if run.user_id is not None else [""]


def view_of(
    run: RunContext,
    pack: Pack,
    at: datetime,
    *,
    tiers: Collection[Tier] | None = None,
    classes: Collection[WriteClass] | None = None,
    now: Pack | None = None,
    limits: Sequence[Pack] = (),
    recorded: bool = False,
    valid_at: datetime | None = None,
) -> View:
    """Return the run's view at a time; raises `InvalidInput` for a role or label that its pack does not declare.

    Only what the pack and all of `limits` allow is seen (PAC-4). For a past time `now` is the pack of today: what it
    withholds is withheld for the past too (REC-7), and what it declares may be asked for, although the pack of then
    did not know it. A `recorded` run is not refused for a role or label that is no longer declared; it sees nothing
    by it. What is seen has to hold in the world at `valid_at`, by default at that time.
    """
    today = now or pack
    others = [one for one in (*limits, today) if one is not pack]
    if run.role not in today.roles and not recorded:
        raise InvalidInput(f"the pack {today.ref} declares no role {run.role}", field="role")
    for label in sorted(run.classification_allowed):
        if not today.has_label(label) and not recorded:
            raise UnknownLabel(f"the pack {today.ref} declares no label {label}", field="classification_allowed")
    every = (pack, *others)
    windows = narrow_recall_policy(pack, others).memory_layer.recall_policy.freshness
    allowed = (set(one.labels_for(run.role)) if run.role in one.roles else set[str]() for one in every)
    return View(
        users=users_seen_by(run),
        session_id=run.session_id or "",
        workflow_id=run.workflow_id or "",
        intents=intents_seen_by(run.intent_id),
        labels=sorted(run.classification_allowed.intersection(*allowed)),
        sensitive=sorted({label for one in every for label in one.sensitive_labels}),
        tiers=[tier for tier in TIERS if tiers is None or tier in tiers],
        classes=[name for name in CLASSES if classes is None or name in classes],
        qualifiers=run.qualifiers,
        fresh_since={tier: at - window if (window := windows.get(tier)) is not None else None for tier in TIERS},
        valid_at=valid_at or at,
    )


# ---- explanations: the verdict of every filter, and which of them a caller may know (REC-10) ----

# For each filter the column of the statement `recall.filters` that says whether a memory passed, and the values of the
# memory that decided, each with its column.
_FILTERS: dict[FilterName, tuple[str, dict[str, str]]] = {
    "user": ("by_user", {"user_id": "user_id", "tier": "tier"}),
    "session": ("by_session", {"session_id": "session_id", "tier": "tier"}),
    "session_end": ("session_open", {"session_id": "session_id", "tier": "tier", "ended_at": "session_ended_at"}),
    "workflow": ("by_workflow", {"workflow_id": "workflow_id", "tier": "tier"}),
    "intent": ("by_intent", {"intent_id": "intent_id", "tier": "tier"}),
    "classification": ("by_label", {"classification": "classification"}),
    "qualifiers": ("by_qualifiers", {"qualifiers": "qualifiers", "required": "required"}),
    "consent": ("consent_allows", {"consent_root": "consent_root", "classification": "classification"}),
    "content": ("has_content", {"tombstoned_at": "tombstoned_at"}),
    "promoted": ("is_promoted", {"promoted_at": "promoted_at", "seq": "born_seq"}),
    "retracted": ("not_retracted", {"retracted_at": "retracted_at", "seq": "dead_seq", "reason": "reason"}),
    "expired": ("not_expired", {"expires_at": "ends_at"}),
    "freshness": ("is_fresh", {"promoted_at": "promoted_at", "tier": "tier"}),
    "validity": ("holds", {"valid_from": "valid_from", "valid_until": "valid_until"}),
}
# What is shown for an empty column, where that is not None.
_EMPTY: dict[str, Any] = {"qualifiers": {}, "required": []}
# Filters that depend on time. A run that passes all others may know the rest: it saw the memory, or could have.
_PASSING: frozenset[FilterName] = frozenset({"promoted", "retracted", "expired", "session_end", "validity"})
_BY_TIME: frozenset[FilterName] = frozenset({*_PASSING, "freshness"})
# Filters that can be applied without a run.
_WITHOUT_RUN: frozenset[FilterName] = frozenset({*_PASSING, "content", "consent"})
# The first of these that fails names the visibility.
_VISIBILITIES: tuple[tuple[FilterName, Visibility], ...] = (
    ("content", "tombstoned"),
    ("promoted", "not_yet_promoted"),
    ("retracted", "retracted"),
    ("expired", "expired"),
    ("session_end", "expired"),
    ("validity", "not_valid"),
)


def filter_verdicts(
    row: Mapping[str, Any], view: View | None, at: datetime, valid_at: datetime | None = None
) -> tuple[FilterVerdict, ...]:
    """Return every filter's verdict on a memory with its inputs; without a view only those that need no run.

    `valid_at` is when it has to hold in the world, where no view says it.
    """
    inputs = _run_inputs(view or replace(NO_VIEW, valid_at=valid_at), row, at)
    if view is None:
        inputs["consent"] = {}
    return tuple(
        FilterVerdict(
            name=name,
            passed=row[passed],
            memory={shown: row[column] or _EMPTY.get(shown) for shown, column in columns.items()},
            asked=inputs[name],
        )
        for name, (passed, columns) in _FILTERS.items()
        if view is not None or name in _WITHOUT_RUN
    )


def visibility_of(found: tuple[FilterVerdict, ...]) -> Visibility:
    """Sum up the verdicts of all filters in one word."""
    failed = {one.name for one in found if not one.passed}
    if not failed:
        return "visible"
    for name, word in _VISIBILITIES:
        if name in failed:
            return word
    return "hidden"


def may_be_told(found: tuple[FilterVerdict, ...]) -> bool:
    """Whether a run may know that there is such a memory: nothing but time hides it."""
    return all(one.passed or one.name in _BY_TIME for one in found)


def _run_inputs(view: View, row: Mapping[str, Any], at: datetime) -> dict[FilterName, dict[str, Any]]:
    return {
        "user": {"users": [user or None for user in view.users]},
        "session": {"session_id": view.session_id or None},
        "session_end": {"at": at},
        "workflow": {"workflow_id": view.workflow_id or None},
        "intent": {"intents": [intent or None for intent in view.intents]},
        "classification": {"labels": view.labels},
        "qualifiers": {"qualifiers": view.qualifiers},
        "consent": {"sensitive": view.sensitive},
        "content": {},
        "promoted": {"at": at},
        "retracted": {"at": at},
        "expired": {"at": at},
        "freshness": {"since": view.fresh_since[row["tier"]]},
        "validity": {"valid_at": view.valid_at},
    }


# ---- conflicts ----


def conflict_sets(sides: list[tuple[str, str]]) -> list[tuple[list[str], list[str]]]:
    """Join contradictions that share a side into one set, so that a set is always whole (REC-4)."""
    pairs: dict[str, list[str]] = {}
    for contradiction_id, memory_id in sides:
        pairs.setdefault(contradiction_id, []).append(memory_id)
    sets: list[tuple[set[str], set[str]]] = []
    for contradiction_id, members in sorted(pairs.items()):
        touching = [one for one in sets if one[1] & set(members)]
        ids = {contradiction_id}.union(*(one[0] for one in touching))
        joined = set(members).union(*(one[1] for one in touching))
        sets = [one for one in sets if one not in touching] + [(ids, joined)]
    return sorted((sorted(ids), sorted(members)) for ids, members in sets)


# ---- ranking: the order of memories in the answer to a query, from what the run sees only (REC-2, REC-9) ----

# A score is the sum of its parts, each between 0 and 1 and then weighted by the pack: nearness of meaning (vector),
# words shared (BM25 over what is visible, as a share of the most the query could reach), priority, recency, confidence,
# nearness of the intent, and whether it is about an entity that was asked for.

Numbers = NDArray[np.float64]

# BM25: how fast saying a word again stops counting, how much length counts, and what length counts as usual.
_SATURATION, _LENGTH, _USUAL = 0.9, 0.4, 12.0
# How much a word counts that stands beside a text, in the message that it was said in.
_BESIDE = 0.5
# The greatest value of `frequency`.
MOST_FREQUENCY = _SATURATION + 1
# Beyond these a word is as common, and a scope as large, as it can be.
MOST_SEEN, MOST_COMMON = 100_000, 1_000
_DIGITS = 6
PARTS = ("vector", "words", "priority", "recency", "confidence", "intent", "entity")


@dataclass(frozen=True)
class Seen:
    """The memories that a run may see, as columns in one order.

    `intent` is each one's position among the intents that the run sees, `about` its entity's among the requested ones
    (0: none). `keyed` are the memories on the key of a correction, by key, with whether they are one.
    """

    ids: list[str]
    priority: Numbers
    confidence: Numbers
    born_seq: NDArray[np.int64]
    promoted_at: Numbers
    intent: NDArray[np.int16]
    about: NDArray[np.int16]
    wanted: NDArray[np.bool_]
    working: frozenset[str]
    keyed: Mapping[tuple[str, str], Sequence[tuple[str, bool]]]

    @cached_property
    def places(self) -> dict[str, int]:
        """The index of each memory in the columns."""
        return {memory_id: index for index, memory_id in enumerate(self.ids)}


@dataclass(frozen=True)
class Postings:
    """Where the words of a query occur: positions of word and memory, how often, and how many words the memory has."""

    terms: NDArray[np.intp]
    places: NDArray[np.intp]
    times: NDArray[np.int16]
    words: NDArray[np.int16]


def rarity(seen: int, with_word: int) -> float:
    """Return the weight of a word: the rarer it is among the visible memories, the more."""
    seen, with_word = min(seen, MOST_SEEN), min(with_word, MOST_COMMON)
    return log(1 + (max(seen - with_word, 0) + 0.5) / (with_word + 0.5))


def rarities(terms: int, postings: Postings, seen: int) -> list[float]:
    """Return the rarity of each of the `terms` words of a query among the `seen` memories that are visible."""
    return [rarity(seen, count) for count in np.bincount(postings.terms, minlength=terms).tolist()]


def frequency(times: NDArray[np.int16], words: NDArray[np.int16]) -> Numbers:
    """Return the BM25 weight of a word that occurs `times` times in a text of so many `words`, before its rarity.

    A negative number is of a word that occurs so often beside the text, in its message: each time counts half.
    """
    often, length = times.astype(np.float64), words.astype(np.float64)
    often = np.where(often < 0, often * -_BESIDE, often)
    return often * MOST_FREQUENCY / (often + _SATURATION * (1 - _LENGTH + _LENGTH * length / _USUAL))


def words_shared(postings: Postings, seen: int, weights: Sequence[float]) -> Numbers:
    """Return the share of the query's words in each of `seen` memories: BM25, divided by the most it could reach."""
    most = sum(weights) * MOST_FREQUENCY
    if not most or not len(postings.terms):
        return np.zeros(seen)
    counted = np.array(weights)[postings.terms] * frequency(postings.times, postings.words)
    shared = np.bincount(postings.places, counted, minlength=seen)
    return np.minimum(shared / most, 1.0)


@dataclass(frozen=True)
class Ranking:
    """The order of the wanted memories, the best first, and every score: its parts in the order of `PARTS`."""

    order: list[int]
    total: Numbers
    # A row for each part of the score, a column for each memory.
    parts: Numbers

    def total_of(self, seen: Seen, memory_id: str) -> float:
        """Return the score of a memory; 0 for one that was not ranked."""
        index = seen.places.get(memory_id)
        return float(self.total[index]) if index is not None else 0.0

    def scores(self, indexes: Sequence[int]) -> list[dict[str, float]]:
        """Return the weighted parts of the scores of those memories, each with its sum."""
        columns: list[list[float]] = self.parts[:, indexes].T.tolist()
        totals: list[float] = self.total[indexes].tolist()
        return [
            {**dict(zip(PARTS, parts, strict=True)), "total": total}
            for parts, total in zip(columns, totals, strict=True)
        ]


def rank(
    seen: Seen,
    *,
    vector: Numbers,
    words: Numbers,
    entity: Numbers,
    policy: RecallPolicy,
    at: datetime,
) -> Ranking:
    """Order by score, then newest first, then by id; a correction just before the best on its key."""
    raw = {
        "vector": np.minimum(np.maximum(vector, 0.0), 1.0),
        "words": words,
        "priority": seen.priority,
        "recency": recency(seen.promoted_at, at, policy.recency_half_life),
        "confidence": seen.confidence,
        "intent": intent_nearness(seen.intent),
        "entity": entity,
    }
    weighted = np.array([raw[name] for name in PARTS], dtype=np.float64)
    weighted *= np.array([[getattr(policy.weights, name)] for name in PARTS])
    parts = _rounded(weighted)
    total = _rounded(parts.sum(axis=0))
    return Ranking(_ordered(seen, total), total, parts)


# The parts of a score that say how near a memory is to the query (REC-13).
_RELEVANT = ("vector", "words", "entity")


def relevance(seen: Seen, parts: Numbers) -> Numbers:
    """Return how near memories are to the query, by the parts of their scores; a correction as the best on its key."""
    near = _rounded(parts[[PARTS.index(name) for name in _RELEVANT]].sum(axis=0))
    for members in seen.keyed.values():
        best = max(near[seen.places[name]] for name, _ in members)
        near[[seen.places[name] for name, is_correction in members if is_correction]] = best
    return near


def relevance_of(score: Mapping[str, float]) -> float:
    """Return how near a memory is to the query, from its score."""
    return round(sum(score[name] for name in _RELEVANT), _DIGITS)


def _ordered(seen: Seen, total: Numbers) -> list[int]:
    """Order the wanted memories: by score, newest first, by id; a correction just before the best on its key."""
    if not seen.ids:
        return []
    score, born, after = total.copy(), seen.born_seq.copy(), np.ones(len(seen.ids), dtype=np.int8)
    for members in seen.keyed.values():
        on_key = [index for name, _ in members if seen.wanted[index := seen.places[name]]]
        if on_key:
            best = min(on_key, key=lambda index: (-total[index], -seen.born_seq[index]))
            corrections = [index for name, is_one in members if is_one and (index := seen.places[name]) in on_key]
            score[corrections], born[corrections], after[corrections] = total[best], seen.born_seq[best], 0
    order = np.lexsort((np.array(seen.ids), after, -born, -score))
    return order[seen.wanted[order]].tolist()


def _rounded(numbers: Numbers) -> Numbers:
    """Round, so that the last bits of a sum, which differ between machines, decide nothing."""
    return np.round(numbers, _DIGITS)


def intent_nearness(places: NDArray[np.int16]) -> Numbers:
    """Return how near memories are to the run's intent, by the position of theirs among those that the run sees."""
    return np.where(places == 2, 1.0, np.where(places > 2, 0.5, 0.0))


def recency(promoted_at: Numbers, at: datetime, half_life: timedelta) -> Numbers:
    """Return how recent memories are: 1 now, half of it after each half-life."""
    return np.exp2(-np.maximum(at.timestamp() - promoted_at, 0.0) / half_life.total_seconds())
