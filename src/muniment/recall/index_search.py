"""Search in the index in memory, with the same filters and the same ranking as the statements.

Its result is not yet the answer: the statement that records the recall checks each of the chosen memories again.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muniment.database.half_precision import ERROR, exact_dots, fast_dots
from muniment.pack import Pack
from muniment.recall import rules
from muniment.recall.rules import Numbers, Seen, View, closeness
from muniment.recall.scope_block import Block, Profile, Rows
from muniment.recall.scope_part import ConsentRecord, Part
from muniment.recall.search import Found, ParsedQuery, Request, answer

# The greatest difference between a score and its estimate, apart from the error of the vector: scores are rounded.
_ROUNDING = 1e-5
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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
        size = sum(len(selection.rows) for selection in selections)
        if size > self.request.most_seen:
            return None
        rarities = self._rarities(selections, size)
        vector = self.query.weighted_vector(rarities)
        query_vector = vector.astype(np.float64) if vector is not None and self.query.embedder is not None else None
        conflicts = self._conflicts(selections)
        words, in_conflict = self._word_shares(selections, rarities), {memory_id for _, memory_id in conflicts}
        best = self._best(selections, words, query_vector, in_conflict)
        found = answer(self.request.limit, self.pack, best.seen, best.ranking, conflicts, best.totals)
        return self.query.note_embedder(found, vector)

    # ---- filters ----

    def _select(self, part: Part) -> Iterable["_Selection"]:
        """Apply all filters to the blocks of a part; a block without visible rows is left out."""
        allowed = _ConsentCheck(part.consents, self.view.sensitive, self.at)
        now = _microseconds(self.at)
        fresh_since: dict[str, int] = {
            tier: _microseconds(since) if since is not None else np.iinfo(np.int64).min
            for tier, since in self.view.fresh_since.items()
        }
        hidden = [memory_id for memory_id, needed in part.required if not _has_qualifiers(self.view.qualifiers, needed)]
        for block in part.blocks:
            profiles = block.distinct_profiles
            passes = np.array([self._passes(profile, part.user_id, allowed) for profile in profiles], dtype=np.bool_)
            mask = block.live & (block.expires_at > now)
            if not passes.all():
                mask &= passes[block.profiles.codes]
            if any(self.view.fresh_since.values()):
                earliest = np.array([fresh_since[profile.tier] for profile in profiles], dtype=np.int64)
                mask &= block.promoted_at >= earliest[block.profiles.codes]
            for memory_id in hidden:
                if (row := block.places.get(memory_id)) is not None:
                    mask[row] = False
            rows = np.flatnonzero(mask)
            if len(rows):
                yield _Selection(part, block, mask, rows, self._wanted(block, rows), block.words.find(self.query.terms))

    def _passes(self, profile: Profile, user_id: str, allowed: "_ConsentCheck") -> bool:
        """Whether memories of this profile pass the filters that do not depend on their times."""
        view = self.view
        return bool(
            profile.classification in view.labels
            and profile.intent_id in view.intents
            and (profile.tier != "working" or profile.session_id == view.session_id)
            and (profile.tier != "episodic" or user_id or profile.workflow_id in ("", view.workflow_id))
            and all(view.qualifiers.get(name, value) == value for name, value in profile.qualifiers.items())
            and allowed(profile)
        )

    def _wanted(self, block: Block, rows: Rows) -> NDArray[np.bool_]:
        """Return which of the visible rows have the tiers, classes and entities that the request is narrowed to."""
        view, entities = self.view, self.request.entities
        by_profile = [
            profile.tier in view.tiers and profile.write_class in view.classes for profile in block.distinct_profiles
        ]
        wanted = np.array(by_profile, dtype=np.bool_)[block.profiles.codes[rows]]
        if entities is not None:
            by_entity = np.array([entity in entities for entity in block.entities.values], dtype=np.bool_)
            wanted &= by_entity[block.entities.codes[rows]]
        return wanted

    # ---- words ----

    def _rarities(self, selections: Sequence["_Selection"], size: int) -> list[float]:
        """Return the rarity of each word of the query among the visible memories."""
        counts = [0] * len(self.query.terms)
        for selection in selections:
            for place, (rows, _) in enumerate(selection.postings):
                if len(rows):
                    counts[place] += int(np.count_nonzero(selection.visible[rows]))
        return [rules.rarity(size, count) for count in counts]

    def _word_shares(self, selections: Sequence["_Selection"], rarities: Sequence[float]) -> list[Numbers]:
        """Return, for each selection, the share of the query's words in each visible row (`rules.words_shared`)."""
        most = sum(rarities) * rules.MOST_FREQUENCY
        shares: list[Numbers] = []
        for selection in selections:
            shared = np.zeros(len(selection.block))
            for (rows, times), weight in zip(selection.postings, rarities, strict=True):
                if len(rows):
                    shared[rows] += weight * rules.frequency(times, selection.block.words.lengths[rows])
            shares.append(np.minimum(shared[selection.rows] / most, 1.0) if most else np.zeros(len(selection.rows)))
        return shares

    # ---- ranking ----

    def _conflicts(self, selections: Sequence["_Selection"]) -> list[tuple[str, str]]:
        """Return each open contradiction of two visible memories, once with each of the two."""

        def is_visible(memory_id: str) -> bool:
            return any(selection.place_of(memory_id) is not None for selection in selections)

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
        in_conflict: set[str],
    ) -> "_Best":
        """Rank, in double precision, the memories that may be among the best, with those in conflicts and on keys."""
        masks, totals = self._rows_to_rank(selections, words, query_vector, in_conflict)
        keyed = _add_keyed(selections, masks)
        chosen = [selection.narrowed(mask) for selection, mask in zip(selections, masks, strict=True)]
        seen = self._seen(chosen, keyed)
        ranking = rules.rank(
            seen,
            vector=_concatenate([_exact_similarity(selection, query_vector) for selection in chosen]),
            words=_concatenate([shares[mask] for shares, mask in zip(words, masks, strict=True)]),
            entity=self._entity_nearness(chosen),
            policy=self.pack.memory_layer.recall_policy,
            at=self.at,
        )
        return _Best(seen, ranking, totals)

    def _rows_to_rank(
        self,
        selections: Sequence["_Selection"],
        words: Sequence[Numbers],
        query_vector: Numbers | None,
        in_conflict: set[str],
    ) -> tuple[list[NDArray[np.bool_]], tuple[int, int]]:
        """Return masks of the visible rows to be ranked, and the numbers of plain and of low-confidence memories.

        Ranked are the memories in conflicts and, of the plain and of the others, all whose estimated score is within
        the error bound of the last one that the limit lets through.
        """
        limit, policy = self.request.limit, self.pack.memory_layer.recall_policy
        weights: dict[str, float] = policy.weights.model_dump()
        estimates = [
            self._estimate(selection, shares, query_vector, weights)
            for selection, shares in zip(selections, words, strict=True)
        ]
        error = _ROUNDING
        if query_vector is not None:
            error += 2 * weights["vector"] * ERROR * float(np.linalg.norm(query_vector))
        masks = [selection.mask_of(in_conflict) for selection in selections]
        without_conflict = [selection.wanted & ~mask for selection, mask in zip(selections, masks, strict=True)]
        totals: list[int] = []
        for low in (False, True):
            groups = [
                np.flatnonzero(wanted & ((selection.block.confidence[selection.rows] < policy.confidence) == low))
                for wanted, selection in zip(without_conflict, selections, strict=True)
            ]
            totals.append(sum(len(group) for group in groups))
            lowest = _last_of_best(limit, [scores[group] for scores, group in zip(estimates, groups, strict=True)])
            for mask, scores, group in zip(masks, estimates, groups, strict=True):
                mask[group[scores[group] >= lowest - error]] = True
        return masks, (totals[0], totals[1])

    def _estimate(
        self, selection: "_Selection", words: Numbers, query_vector: Numbers | None, weights: Mapping[str, float]
    ) -> Numbers:
        """Estimate the scores of the visible rows: exact apart from the vector, which is compared in half precision."""
        block, rows = selection.block, selection.rows
        cosines = np.zeros(len(rows))
        if query_vector is not None:
            lengths = block.norms[rows]
            cosines = fast_dots()(block.vectors, query_vector)[rows] / np.where(lengths > 0, lengths, 1)
        policy = self.pack.memory_layer.recall_policy
        total = weights["vector"] * np.clip(cosines, 0.0, 1.0)
        total += weights["words"] * words
        total += weights["priority"] * block.priority[rows]
        total += weights["recency"] * rules.recency(selection.promoted_at, self.at, policy.recency_half_life)
        total += weights["confidence"] * block.confidence[rows]
        total += weights["intent"] * rules.intent_nearness(self._intent_places(selection))
        total += weights["entity"] * self._entity_nearness([selection])
        return total

    def _intent_places(self, selection: "_Selection") -> NDArray[np.int16]:
        """Return the position of each visible row's intent among those that the run sees, from 1 on."""
        intents = {name: place for place, name in enumerate(self.view.intents, 1)}
        places = np.array(
            [intents.get(profile.intent_id, 0) for profile in selection.block.distinct_profiles], dtype=np.int16
        )
        return places[selection.block.profiles.codes[selection.rows]]

    def _entity_nearness(self, selections: Sequence["_Selection"]) -> Numbers:
        """Return how near each visible row is to the requested entities; 1 if it belongs to the run's decision key."""
        nearness = dict(closeness(self.request.entities, self.query.query))
        columns: list[Numbers] = []
        for selection in selections:
            column = np.zeros(len(selection.rows))
            if nearness:
                by_entity = np.array([nearness.get(entity, 0.0) for entity in selection.block.entities.values])
                column = by_entity[selection.block.entities.codes[selection.rows]]
            for memory_id in self.of_decision:
                if (place := selection.place_of(memory_id)) is not None:
                    column[place] = 1.0
            columns.append(column)
        return _concatenate(columns)

    def _seen(
        self, selections: Sequence["_Selection"], keyed: Mapping[tuple[str, str], Sequence[tuple[str, bool]]]
    ) -> Seen:
        return Seen(
            ids=[selection.block.ids[row] for selection in selections for row in selection.rows],
            priority=_concatenate([selection.block.priority[selection.rows] for selection in selections]),
            confidence=_concatenate([selection.block.confidence[selection.rows] for selection in selections]),
            born_seq=_concatenate([selection.block.born_seq[selection.rows] for selection in selections], np.int64),
            promoted_at=_concatenate([selection.promoted_at for selection in selections]),
            intent=_concatenate([self._intent_places(selection) for selection in selections], np.int16),
            about=np.zeros(sum(len(selection.rows) for selection in selections), dtype=np.int16),
            wanted=_concatenate([selection.wanted for selection in selections], np.bool_),
            working=frozenset(memory_id for selection in selections for memory_id in selection.working),
            keyed=keyed,
        )


@dataclass(frozen=True)
class _Selection:
    """The visible rows of a block, in ascending order, and which of them the request is narrowed to (`wanted`).

    `visible` has an entry for each row of the block; `wanted` one for each of `rows`.
    """

    part: Part
    block: Block
    visible: NDArray[np.bool_]
    rows: Rows
    wanted: NDArray[np.bool_]
    # For each word of the query the rows of the block that have it, and how often.
    postings: Sequence[tuple[NDArray[np.int32], NDArray[np.int16]]]

    def narrowed(self, mask: NDArray[np.bool_]) -> "_Selection":
        """Return the selection of those of its rows; `visible` stays."""
        return replace(self, rows=self.rows[mask], wanted=self.wanted[mask])

    def place_of(self, memory_id: str) -> int | None:
        """Return the position of a memory in `rows`; None if it is not among them."""
        row = self.block.places.get(memory_id)
        if row is None:
            return None
        place = int(np.searchsorted(self.rows, row))
        return place if place < len(self.rows) and self.rows[place] == row else None

    def mask_of(self, memory_ids: Iterable[str]) -> NDArray[np.bool_]:
        """Return a mask of `rows` for those memories that are among them."""
        mask = np.zeros(len(self.rows), dtype=np.bool_)
        mask[[place for one in memory_ids if (place := self.place_of(one)) is not None]] = True
        return mask

    @property
    def promoted_at(self) -> Numbers:
        """Seconds since 1970."""
        return self.block.promoted_at[self.rows] / 1e6

    @property
    def working(self) -> list[str]:
        if not len(self.block.working_codes):
            return []
        among = np.isin(self.block.profiles.codes[self.rows], self.block.working_codes)
        return [self.block.ids[row] for row in self.rows[among]]


@dataclass(frozen=True)
class _Best:
    """The memories that were ranked, their ranking, and the numbers of plain and low-confidence memories in all."""

    seen: Seen
    ranking: rules.Ranking
    totals: tuple[int, int]


class _ConsentCheck:
    """Whether consent allows the memories of a profile to be seen at a time: the condition `visible` in Python."""

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
            and ("*" in record.predicates or profile.predicate in record.predicates)
            and profile.classification in record.labels
            and record.consent_id not in renewed
            for record in chain
        )


def _add_keyed(
    selections: Sequence[_Selection], masks: Sequence[NDArray[np.bool_]]
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
        for place in np.flatnonzero(by_entity[block.entities.codes[selection.rows]]).tolist():
            row = int(selection.rows[place])
            if (key := _key_of(block, row)) in keys:
                mask[place] = True
                is_correction = bool(block.profiles.codes[row] in block.correction_codes)
                keyed.setdefault(key, []).append((block.ids[row], is_correction))
    return keyed


def _correction_keys(selection: _Selection) -> set[tuple[str, str]]:
    block, rows = selection.block, selection.rows
    if not len(block.correction_codes):
        return set()
    return {_key_of(block, int(row)) for row in rows[np.isin(block.profiles.codes[rows], block.correction_codes)]}


def _key_of(block: Block, row: int) -> tuple[str, str]:
    return block.entities.of_row(row), block.predicates.of_row(row)


def _exact_similarity(selection: _Selection, query_vector: Numbers | None) -> Numbers:
    if query_vector is None or not len(selection.rows):
        return np.zeros(len(selection.rows))
    norms = selection.block.norms[selection.rows]
    return exact_dots(selection.block.vectors[selection.rows], query_vector) / np.where(norms > 0, norms, 1)


def _last_of_best(limit: int, scores: Sequence[Numbers]) -> float:
    """Return the lowest of the `limit` highest scores; minus infinity if there are no more than `limit`."""
    together = _concatenate(scores)
    if len(together) <= limit:
        return -np.inf
    return float(np.partition(together, len(together) - limit)[len(together) - limit])


def _concatenate(columns: Sequence[Any], kind: Any = np.float64) -> Any:
    return np.concatenate([np.zeros(0, dtype=kind), *columns])


def _has_qualifiers(qualifiers: Mapping[str, str], required: Mapping[str, str]) -> bool:
    """Whether a run has all of those qualifiers."""
    return all(qualifiers.get(name) == value for name, value in required.items())


def _microseconds(at: datetime) -> int:
    return (at - _EPOCH) // timedelta(microseconds=1)
