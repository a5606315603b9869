"""Search in the index in memory, with the same filters and the same ranking as the statements.

Its result is not yet the answer: the statement that records the recall checks each of the chosen memories again.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from muniment.consent.rules import covers_predicate
from muniment.database.half_precision import ERROR, exact_dots, fast_dots
from muniment.pack import Pack
from muniment.recall import rules
from muniment.recall.entities import UNDER, closeness, is_pattern, lies_under
from muniment.recall.rules import Numbers, Postings, Seen, View
from muniment.recall.scope_block import Block, Profile, Rows
from muniment.recall.scope_part import ConsentRecord, Part
from muniment.recall.search import Found, ParsedQuery, Request, answer

# The greatest difference between a score and its estimate, apart from the error of the vector: scores are rounded.
_ROUNDING = 1e-5
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# One entry for each row of a block.
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class IndexSearch:
    """One query over the parts of a run's scope, as of a time."""

    parts: Sequence[Part]
    view: View
    request: Request
    pack: Pack
    query: ParsedQuery
    at: datetime
    # The memories that belong to the run's own decision.
    of_decision: Sequence[str] = ()

    def find(self) -> Found | None:
        """Return the memories found, the best first; None if more are visible than are ranked exactly."""
        selections = [selection for part in self.parts for selection in self._select(part)]
        size = sum(selection.size for selection in selections)
        if size > self.request.most_seen:
            return None
        rarities = self._rarities(selections, size)
        vector = self.query.weighted_vector(rarities)
        query_vector = vector.astype(np.float64) if vector is not None and self.query.embedder is not None else None
        conflicts = self._conflicts(selections)
        words = [rules.words_shared(one.postings, len(one.block), rarities) for one in selections]
        best = self._best(selections, words, query_vector, {memory_id for _, memory_id in conflicts})
        compared = best.with_meaning if self.query.may_leave_out(vector) else None
        found = answer(self.request, self.pack, best.seen, best.ranking, conflicts, best.total, compared=compared)
        return self.query.note_embedder(found, vector)

    # ---- filters ----

    def _select(self, part: Part) -> Iterator["_Selection"]:
        """Apply all filters to the blocks of a part; a block without visible rows is left out."""
        allowed = _ConsentCheck(part.consents, self.view.sensitive, self.at)
        now = _microseconds(self.at)
        hidden = [memory_id for memory_id, needed in part.required if not _has_qualifiers(self.view.qualifiers, needed)]
        for block in part.blocks:
            passes = [self._passes(profile, part, allowed) for profile in block.distinct_profiles]
            visible = block.live & (block.expires_at > now)
            if not all(passes):
                visible &= _of_rows(block, passes, np.bool_)
            if self.view.valid_at is not None and block.has_times:
                valid_at = _microseconds(self.view.valid_at)
                visible &= (block.valid_from <= valid_at) & (block.valid_until > valid_at)
            if any(self.view.fresh_since.values()):
                visible &= block.promoted_at >= _of_rows(block, self._fresh_since(block), np.int64)
            for memory_id in hidden:
                if (row := block.places.get(memory_id)) is not None:
                    visible[row] = False
            size = int(np.count_nonzero(visible))
            if size:
                postings = block.words.find(self.query.terms)
                yield _Selection(block, visible, size, self._wanted(block, visible), postings)

    def _passes(self, profile: Profile, part: Part, allowed: "_ConsentCheck") -> bool:
        """Whether memories of this profile pass the filters that do not depend on their times (fragment `visible`)."""
        view = self.view
        return bool(
            profile.classification in view.labels
            and profile.intent_id in view.intents
            and (profile.tier != "working" or profile.session_id == view.session_id)
            and (profile.tier != "working" or profile.session_id not in part.ended_sessions)
            and (profile.tier != "episodic" or part.user_id or profile.workflow_id in ("", view.workflow_id))
            and all(view.qualifiers.get(name, value) == value for name, value in profile.qualifiers.items())
            and allowed(profile)
        )

    def _fresh_since(self, block: Block) -> list[int]:
        """Return, for each profile, the earliest promotion that is fresh enough."""
        earliest: dict[str, int] = {
            tier: _microseconds(since) if since is not None else np.iinfo(np.int64).min
            for tier, since in self.view.fresh_since.items()
        }
        return [earliest[profile.tier] for profile in block.distinct_profiles]

    def _wanted(self, block: Block, visible: Mask) -> Mask:
        """Return which of the visible rows have the tiers, classes and entities that the request is narrowed to."""
        view, entities = self.view, self.request.entities
        by_profile = [
            profile.tier in view.tiers and profile.write_class in view.classes for profile in block.distinct_profiles
        ]
        wanted = visible if all(by_profile) else visible & _of_rows(block, by_profile, np.bool_)
        if entities is None:
            return wanted
        by_entity = np.array(
            [entity in entities or lies_under(entity, self._patterns) for entity in block.entities.values],
            dtype=np.bool_,
        )
        return wanted & by_entity[block.entities.codes]

    def _rarities(self, selections: Sequence["_Selection"], size: int) -> list[float]:
        """Return the rarity of each word of the query among the visible memories."""
        counts = np.zeros(len(self.query.terms), dtype=np.intp)
        for selection in selections:
            postings = selection.postings
            counts += np.bincount(postings.terms[selection.visible[postings.places]], minlength=len(counts))
        return [rules.rarity(size, count) for count in counts.tolist()]

    # ---- ranking ----

    def _conflicts(self, selections: Sequence["_Selection"]) -> list[tuple[str, str]]:
        """Return each open contradiction of two visible memories, once with each of the two."""

        def is_visible(memory_id: str) -> bool:
            return any(selection.row_of(memory_id) is not None for selection in selections)

        conflicts = sorted({conflict for part in self.parts for conflict in part.conflicts})
        return [
            (conflict.contradiction_id, side)
            for conflict in conflicts
            if is_visible(conflict.existing) and is_visible(conflict.incoming)
            for side in (conflict.existing, conflict.incoming)
        ]

    def _best(
        self,
        selections: Sequence["_Selection"],
        words: Sequence[Numbers],
        query_vector: Numbers | None,
        in_conflict: Collection[str],
    ) -> "_Best":
        """Rank, in double precision, the memories that may be among the best, with those in conflicts and on keys."""
        masks, total = self._rows_to_rank(selections, words, query_vector, in_conflict)
        keyed = _add_keyed(selections, masks)
        chosen = [(one, np.flatnonzero(mask)) for one, mask in zip(selections, masks, strict=True)]
        seen = self._seen(chosen, keyed)
        ranking = rules.rank(
            seen,
            vector=_joined([_exact_similarity(one.block, rows, query_vector) for one, rows in chosen]),
            words=_joined([shares[rows] for (_, rows), shares in zip(chosen, words, strict=True)]),
            entity=_joined([self._entity_nearness(one.block, rows) for one, rows in chosen]),
            policy=self.pack.memory_layer.recall_policy,
            at=self.at,
        )
        with_meaning = _joined([one.block.with_meaning[rows] for one, rows in chosen], np.bool_)
        return _Best(seen, ranking, total, with_meaning)

    def _rows_to_rank(
        self,
        selections: Sequence["_Selection"],
        words: Sequence[Numbers],
        query_vector: Numbers | None,
        in_conflict: Collection[str],
    ) -> tuple[list[Mask], int]:
        """Return masks of the rows to be ranked, and the number of memories outside of conflicts that are asked for.

        Ranked are the memories in conflicts and, of the plain and of the others, all whose estimated score is within
        the error bound of the last one that the limit lets through, of those that are surely relevant enough (REC-13).
        What is surely not relevant enough is not ranked.
        """
        policy = self.pack.memory_layer.recall_policy
        estimates = [
            self._estimate(one.block, shares, query_vector) for one, shares in zip(selections, words, strict=True)
        ]
        floor = self.request.floor_under(self.pack) if self.query.may_leave_out(query_vector) else 0.0
        error = _ROUNDING
        if query_vector is not None:
            error += 2 * policy.weights.vector * ERROR * float(np.sqrt(query_vector @ query_vector))
        masks = [selection.mask_of(in_conflict) for selection in selections]
        wanted = [
            np.flatnonzero(one.wanted & ~mask if in_conflict else one.wanted)
            for one, mask in zip(selections, masks, strict=True)
        ]
        low = [one.block.confidence[rows] < policy.confidence for one, rows in zip(selections, wanted, strict=True)]
        some_low = any(below.any() for below in low)
        for is_low in (False, True):
            if some_low:
                groups = [rows[below if is_low else ~below] for rows, below in zip(wanted, low, strict=True)]
            else:
                groups = [rows[:0] for rows in wanted] if is_low else wanted
            if any(len(group) for group in groups):
                sure = [
                    one.total[group[one.relevance[group] >= floor + error]] if floor else one.total[group]
                    for one, group in zip(estimates, groups, strict=True)
                ]
                lowest = _last_of_best(self.request.limit, sure) - error
                for mask, one, group in zip(masks, estimates, groups, strict=True):
                    chosen = one.total[group] >= lowest
                    if floor:
                        chosen &= one.relevance[group] >= floor - error
                    mask[group[chosen]] = True
        return masks, sum([len(rows) for rows in wanted])

    def _estimate(self, block: Block, words: Numbers, query_vector: Numbers | None) -> "_Estimate":
        """Estimate the scores of all rows: exact apart from the vector, which is compared in half precision."""
        policy = self.pack.memory_layer.recall_policy
        weights = policy.weights
        relevance = weights.words * words
        if query_vector is not None:
            cosines = fast_dots()(block.vectors, query_vector)
            cosines /= block.norms
            np.maximum(cosines, 0.0, out=cosines)
            np.minimum(cosines, 1.0, out=cosines)
            cosines *= weights.vector
            relevance += cosines
        if self._nearness or self.of_decision:
            relevance += weights.entity * self._entity_nearness(block, np.arange(len(block)))
        total = block.unqueried_scores(policy, self.at)
        total += relevance
        if len(self.view.intents) > 1:
            total += weights.intent * rules.intent_nearness(self._intent_places(block))[block.profiles.codes]
        # What has no vector is not left out.
        return _Estimate(total, np.where(block.with_meaning, relevance, np.inf))

    def _intent_places(self, block: Block) -> NDArray[np.int16]:
        """Return the position of each profile's intent among those that the run sees, from 1 on."""
        intents = {name: place for place, name in enumerate(self.view.intents, 1)}
        return np.array([intents.get(profile.intent_id, 0) for profile in block.distinct_profiles], dtype=np.int16)

    @cached_property
    def _patterns(self) -> list[str]:
        """The requested entities that stand for all under them."""
        return [one for one in self.request.entities or () if is_pattern(one)]

    @cached_property
    def _nearness(self) -> Mapping[str, float]:
        """How near each of the requested entities is."""
        return dict(closeness(self.request.entities, self.query.query, self.pack.identity))

    def _entity_nearness(self, block: Block, rows: Rows) -> Numbers:
        """Return how near rows are to the requested entities; 1 if a row belongs to the run's decision key."""
        column = np.zeros(len(rows))
        if self._nearness:
            near, under = self._nearness, self._nearness.get(UNDER, 0.0)
            by_entity = np.array(
                [
                    near.get(entity, under if lies_under(entity, self._patterns) else 0.0)
                    for entity in block.entities.values
                ]
            )
            column = by_entity[block.entities.codes[rows]]
        for memory_id in self.of_decision:
            if (row := block.places.get(memory_id)) is not None:
                column[rows == row] = 1.0
        return column

    def _seen(
        self,
        chosen: Sequence[tuple["_Selection", Rows]],
        keyed: Mapping[tuple[str, str], Sequence[tuple[str, bool]]],
    ) -> Seen:
        blocks = [(selection.block, rows) for selection, rows in chosen]
        ids = [memory_id for block, rows in blocks for memory_id in _ids(block, rows)]
        return Seen(
            ids=ids,
            priority=_joined([block.priority[rows] for block, rows in blocks]),
            confidence=_joined([block.confidence[rows] for block, rows in blocks]),
            born_seq=_joined([block.born_seq[rows] for block, rows in blocks], np.int64),
            promoted_at=_joined([block.promoted_seconds[rows] for block, rows in blocks]),
            intent=_joined(
                [self._intent_places(block)[block.profiles.codes[rows]] for block, rows in blocks], np.int16
            ),
            about=np.zeros(len(ids), dtype=np.int16),
            wanted=_joined([selection.wanted[rows] for selection, rows in chosen], np.bool_),
            working=frozenset(memory_id for block, rows in blocks for memory_id in _working(block, rows)),
            keyed=keyed,
        )


@dataclass(frozen=True)
class _Selection:
    """The rows of a block that are visible, how many they are, and which of them the request is narrowed to."""

    block: Block
    visible: Mask
    size: int
    wanted: Mask
    # Where the words of the query occur; `places` are rows of the block.
    postings: Postings

    def row_of(self, memory_id: str) -> int | None:
        """Return the row of a memory; None if it is not visible."""
        row = self.block.places.get(memory_id)
        return row if row is not None and self.visible[row] else None

    def mask_of(self, memory_ids: Collection[str]) -> Mask:
        """Return a mask of those memories that are visible."""
        mask = np.zeros(len(self.block), dtype=np.bool_)
        if memory_ids:
            mask[[row for one in memory_ids if (row := self.row_of(one)) is not None]] = True
        return mask


@dataclass(frozen=True)
class _Best:
    """The memories that were ranked, their ranking, and how many were asked for outside of conflicts."""

    seen: Seen
    ranking: rules.Ranking
    total: int
    # Which of them have a vector that says something.
    with_meaning: Mask


class _Estimate(NamedTuple):
    """The estimated scores of the rows of a block, and how near each is to the query."""

    total: Numbers
    relevance: Numbers


class _ConsentCheck:
    """Whether consent allows the memories of a profile to be seen at a time (fragment `visible`, in Python)."""

    def __init__(
        self, consents: Mapping[str, Sequence[ConsentRecord]], sensitive: Sequence[str], now: datetime
    ) -> None:
        self._consents, self._sensitive, self._now = consents, sensitive, now

    def __call__(self, profile: Profile) -> bool:
        if not profile.consent_root:
            return profile.write_class == "evidence_link" or profile.classification not in self._sensitive
        chain = self._consents.get(profile.consent_root, ())
        if any(record.action == "revoke" for record in chain):
            return False
        # A consent holds until its renewal begins.
        renewed = {record.supersedes for record in chain if record.valid_from <= self._now}
        return any(
            record.action == "grant"
            and record.valid_from <= self._now
            and (record.valid_until is None or record.valid_until > self._now)
            and covers_predicate(record.predicates, profile.predicate or None)
            and profile.classification in record.labels
            and record.consent_id not in renewed
            for record in chain
        )


def _add_keyed(
    selections: Sequence[_Selection], masks: Sequence[Mask]
) -> Mapping[tuple[str, str], Sequence[tuple[str, bool]]]:
    """Add the memories on the keys of corrections to the rows to be ranked.

    Returns them by key, each with whether it is a correction itself.
    """
    keys = {key for selection in selections for key in _correction_keys(selection) if all(key)}
    keyed: dict[tuple[str, str], list[tuple[str, bool]]] = {}
    if not keys:
        return keyed
    entities = {entity for entity, _ in keys}
    for selection, mask in zip(selections, masks, strict=True):
        block = selection.block
        by_entity = np.array([entity in entities for entity in block.entities.values], dtype=np.bool_)
        for row in np.flatnonzero(selection.visible & by_entity[block.entities.codes]).tolist():
            if (key := _key_of(block, row)) in keys:
                mask[row] = True
                is_correction = bool(block.profiles.codes[row] in block.correction_codes)
                keyed.setdefault(key, []).append((block.ids[row], is_correction))
    return keyed


def _correction_keys(selection: _Selection) -> set[tuple[str, str]]:
    block = selection.block
    if not len(block.correction_codes):
        return set()
    corrections = selection.visible & np.isin(block.profiles.codes, block.correction_codes)
    return {_key_of(block, row) for row in np.flatnonzero(corrections).tolist()}


def _key_of(block: Block, row: int) -> tuple[str, str]:
    return block.entities.of_row(row), block.predicates.of_row(row)


def _working(block: Block, rows: Rows) -> list[str]:
    """Return those of the rows that are of the working tier."""
    if not len(block.working_codes):
        return []
    return _ids(block, rows[np.isin(block.profiles.codes[rows], block.working_codes)])


def _ids(block: Block, rows: Rows) -> list[str]:
    numbers: list[int] = rows.tolist()
    return [block.ids[row] for row in numbers]


def _of_rows(block: Block, by_profile: Sequence[Any], kind: Any) -> Any:
    """Return the value of each row's profile."""
    return np.array(by_profile, dtype=kind)[block.profiles.codes]


def _exact_similarity(block: Block, rows: Rows, query_vector: Numbers | None) -> Numbers:
    if query_vector is None or not len(rows):
        return np.zeros(len(rows))
    return exact_dots(block.vectors[rows], query_vector) / block.norms[rows]


def _last_of_best(limit: int, scores: Sequence[Numbers]) -> float:
    """Return the lowest of the `limit` highest scores; minus infinity if there are no more than `limit`."""
    together = _joined(scores)
    if len(together) <= limit:
        return -np.inf
    return float(np.partition(together, len(together) - limit)[len(together) - limit])


def _joined(columns: Sequence[Any], kind: Any = np.float64) -> Any:
    if len(columns) == 1:
        return columns[0]
    return np.concatenate(columns) if columns else np.zeros(0, dtype=kind)


def _has_qualifiers(qualifiers: Mapping[str, str], required: Mapping[str, str]) -> bool:
    """Whether a run has all of those qualifiers."""
    return all(qualifiers.get(name) == value for name, value in required.items())


def _microseconds(at: datetime) -> int:
    return (at - _EPOCH) // timedelta(microseconds=1)
