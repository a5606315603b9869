"""Search in the index of a scope: the same filters and the same ranking as the statements have, on columns in memory.

What is found here is only proposed: before it is answered, one statement checks each of the chosen memories again.
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

# The greatest difference between a score and the unrounded sum of its parts, apart from the vector's error.
_ROUNDING = 1e-5
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class IndexSearch:
    """One query over the parts of a run's scope, at a time."""

    parts: Sequence[Part]
    view: View
    request: Request
    pack: Pack
    query: ParsedQuery
    at: datetime
    # The memories that belong to the run's own decision.
    of_decision: Sequence[str] = ()

    def find(self) -> Found | None:
        """Return the answer, the best first; None if more is visible than is searched exactly."""
        picks = [pick for part in self.parts for pick in self._picks(part)]
        size = sum(len(pick.rows) for pick in picks)
        if size > self.request.most_seen:
            return None
        rarities = self._rarities(picks, size)
        vector = self.query.weighted_vector(rarities)
        aim = vector.astype(np.float64) if vector is not None and self.query.embedder is not None else None
        conflicts = self._conflicts(picks)
        best = self._best(picks, self._words(picks, rarities), aim, {one for _, one in conflicts})
        found = answer(self.request.limit, self.pack, best.seen, best.ranking, conflicts, best.totals)
        return self.query.note_embedder(found, vector)

    # ---- filters ----

    def _picks(self, part: Part) -> Iterable["_Pick"]:
        allowed = _ConsentCheck(part.consents, self.view.sensitive, self.at)
        now = _microseconds(self.at)
        fresh_since: dict[str, int] = {
            tier: _microseconds(since) if since is not None else np.iinfo(np.int64).min
            for tier, since in self.view.fresh_since.items()
        }
        hidden = [memory_id for memory_id, said in part.required if not _says(self.view.qualifiers, said)]
        for block in part.blocks:
            profiles = block.distinct
            passes = np.array([self._passes(one, part.user_id, allowed) for one in profiles], dtype=np.bool_)
            mask = block.live & (block.expires_at > now)
            if not passes.all():
                mask &= passes[block.profiles.rows]
            if any(self.view.fresh_since.values()):
                earliest = np.array([fresh_since[one.tier] for one in profiles], dtype=np.int64)
                mask &= block.promoted_at >= earliest[block.profiles.rows]
            for memory_id in hidden:
                if (row := block.places.get(memory_id)) is not None:
                    mask[row] = False
            rows = np.flatnonzero(mask)
            if len(rows):
                yield _Pick(part, block, mask, rows, self._wanted(block, rows), block.words.find(self.query.terms))

    def _passes(self, profile: Profile, user_id: str, allowed: "_ConsentCheck") -> bool:
        """Whether memories of this profile pass the filters that do not depend on their times."""
        view = self.view
        return bool(
            profile.classification in view.labels
            and profile.intent_id in view.intents
            and (profile.tier != "working" or profile.session_id == view.session_id)
            and (profile.tier != "episodic" or user_id or profile.workflow_id in ("", view.workflow_id))
            and all(view.qualifiers.get(name, said) == said for name, said in profile.qualifiers.items())
            and allowed(profile)
        )

    def _wanted(self, block: Block, rows: Rows) -> NDArray[np.bool_]:
        view, entities = self.view, self.request.entities
        by_profile = [one.tier in view.tiers and one.write_class in view.classes for one in block.distinct]
        wanted = np.array(by_profile, dtype=np.bool_)[block.profiles.rows[rows]]
        if entities is not None:
            among = np.array([entity in entities for entity in block.entities.values], dtype=np.bool_)
            wanted &= among[block.entities.rows[rows]]
        return wanted

    # ---- words ----

    def _rarities(self, picks: Sequence["_Pick"], size: int) -> list[float]:
        """Return the rarity of each word of the query among what is visible."""
        count = [0] * len(self.query.terms)
        for pick in picks:
            for place, (rows, _) in enumerate(pick.postings):
                if len(rows):
                    count[place] += int(np.count_nonzero(pick.mask[rows]))
        return [rules.rarity(size, found) for found in count]

    def _words(self, picks: Sequence["_Pick"], rarities: Sequence[float]) -> list[Numbers]:
        """Return, for the visible rows of each block, their share of the query's words."""
        most = sum(rarities) * rules.MOST_FREQUENCY
        shares: list[Numbers] = []
        for pick in picks:
            shared = np.zeros(len(pick.block))
            for (rows, times), weight in zip(pick.postings, rarities, strict=True):
                if len(rows):
                    shared[rows] += weight * rules.frequency(times, pick.block.words.lengths[rows])
            shares.append(np.minimum(shared[pick.rows] / most, 1.0) if most else np.zeros(len(pick.rows)))
        return shares

    # ---- ranking ----

    def _conflicts(self, picks: Sequence["_Pick"]) -> list[tuple[str, str]]:
        """Return the sides of the open contradictions both of whose sides are visible."""

        def is_visible(memory_id: str) -> bool:
            return any((row := pick.block.places.get(memory_id)) is not None and pick.mask[row] for pick in picks)

        open_ = {one for part in self.parts for one in part.conflicts}
        both = [one for one in sorted(open_) if is_visible(one[1]) and is_visible(one[2])]
        return [(one[0], side) for one in both for side in one[1:]]

    def _best(
        self, picks: Sequence["_Pick"], words: Sequence[Numbers], aim: Numbers | None, in_conflict: set[str]
    ) -> "_Best":
        """Rank, in double precision, all that may be among the first, and whatever they are ranked with."""
        limit, policy = self.request.limit, self.pack.memory_layer.recall_policy
        weights: dict[str, float] = policy.weights.model_dump()
        scores = [self._estimate(pick, shared, aim, weights) for pick, shared in zip(picks, words, strict=True)]
        error = _ROUNDING
        if aim is not None:
            error += 2 * weights["vector"] * ERROR * float(np.linalg.norm(aim))
        kept = [np.zeros(len(pick.rows), dtype=np.bool_) for pick in picks]
        for keep, pick in zip(kept, picks, strict=True):
            for memory_id in in_conflict:
                if (row := pick.block.places.get(memory_id)) is not None and pick.mask[row]:
                    keep[np.searchsorted(pick.rows, row)] = True
        outside = [pick.wanted & ~keep for pick, keep in zip(picks, kept, strict=True)]
        totals: list[int] = []
        for low in (False, True):
            groups = [
                np.flatnonzero(one & ((pick.block.confidence[pick.rows] < policy.confidence) == low))
                for one, pick in zip(outside, picks, strict=True)
            ]
            totals.append(sum(len(group) for group in groups))
            least = _least_of(limit, [score[group] for score, group in zip(scores, groups, strict=True)])
            for keep, score, group in zip(kept, scores, groups, strict=True):
                keep[group[score[group] >= least - error]] = True
        keyed = _keyed(picks, kept)
        chosen = [pick.narrowed(keep) for pick, keep in zip(picks, kept, strict=True)]
        seen = self._seen(chosen, keyed)
        ranking = rules.rank(
            seen,
            vector=_joined([_exact_similarity(one, aim) for one in chosen]),
            words=_joined([shared[keep] for shared, keep in zip(words, kept, strict=True)]),
            entity=self._entity(chosen),
            policy=policy,
            at=self.at,
        )
        return _Best(seen, ranking, (totals[0], totals[1]))

    def _estimate(self, pick: "_Pick", words: Numbers, aim: Numbers | None, weights: Mapping[str, float]) -> Numbers:
        """Estimate the scores of the visible rows of a block: exact but for the vectors' half precision."""
        block, rows = pick.block, pick.rows
        near = np.zeros(len(rows))
        if aim is not None:
            near = fast_dots()(block.vectors, aim)[rows] / np.where(block.norms[rows] > 0, block.norms[rows], 1)
        policy = self.pack.memory_layer.recall_policy
        total = weights["vector"] * np.clip(near, 0.0, 1.0)
        total += weights["words"] * words
        total += weights["priority"] * block.priority[rows]
        total += weights["recency"] * rules.recency(pick.promoted_at, self.at, policy.recency_half_life)
        total += weights["confidence"] * block.confidence[rows]
        total += weights["intent"] * rules.intent_nearness(self._intent(pick))
        total += weights["entity"] * self._entity([pick])
        return total

    def _intent(self, pick: "_Pick") -> NDArray[np.int16]:
        """Return each row's position among the intents that the run sees, from 1 on."""
        seen = {name: place for place, name in enumerate(self.view.intents, 1)}
        places = np.array([seen.get(one.intent_id, 0) for one in pick.block.distinct], dtype=np.int16)
        return places[pick.block.profiles.rows[pick.rows]]

    def _entity(self, picks: Sequence["_Pick"]) -> Numbers:
        """Return how near each row is to the requested entities, or to the run's own decision."""
        near = dict(closeness(self.request.entities, self.query.query))
        found: list[Numbers] = []
        for pick in picks:
            rows = np.zeros(len(pick.rows))
            if near:
                about = np.array([near.get(entity, 0.0) for entity in pick.block.entities.values])
                rows = about[pick.block.entities.rows[pick.rows]]
            for memory_id in self.of_decision:
                if (row := pick.block.places.get(memory_id)) is not None:
                    rows[pick.rows == row] = 1.0
            found.append(rows)
        return _joined(found)

    def _seen(self, picks: Sequence["_Pick"], keyed: Mapping[tuple[str, str], Sequence[tuple[str, bool]]]) -> Seen:
        return Seen(
            ids=[pick.block.ids[row] for pick in picks for row in pick.rows],
            priority=_joined([pick.block.priority[pick.rows] for pick in picks]),
            confidence=_joined([pick.block.confidence[pick.rows] for pick in picks]),
            born_seq=_joined([pick.block.born_seq[pick.rows] for pick in picks], np.int64),
            promoted_at=_joined([pick.promoted_at for pick in picks]),
            intent=_joined([self._intent(pick) for pick in picks], np.int16),
            about=np.zeros(sum(len(pick.rows) for pick in picks), dtype=np.int16),
            wanted=_joined([pick.wanted for pick in picks], np.bool_),
            working=frozenset(memory_id for pick in picks for memory_id in pick.working),
            keyed=keyed,
        )


@dataclass(frozen=True)
class _Pick:
    """The visible rows of a block, in order, and which of them the request is narrowed to."""

    part: Part
    block: Block
    mask: NDArray[np.bool_]
    rows: Rows
    wanted: NDArray[np.bool_]
    # For each word of the query the rows of the block that have it, and how often.
    postings: Sequence[tuple[NDArray[np.int32], NDArray[np.int16]]]

    def narrowed(self, keep: NDArray[np.bool_]) -> "_Pick":
        return replace(self, rows=self.rows[keep], wanted=self.wanted[keep])

    @property
    def promoted_at(self) -> Numbers:
        """Seconds since 1970."""
        return self.block.promoted_at[self.rows] / 1e6

    @property
    def working(self) -> list[str]:
        if not len(self.block.working):
            return []
        among = np.isin(self.block.profiles.rows[self.rows], self.block.working)
        return [self.block.ids[row] for row in self.rows[among]]


@dataclass(frozen=True)
class _Best:
    """What was ranked, and how many plain memories and of low confidence there are in all."""

    seen: Seen
    ranking: rules.Ranking
    totals: tuple[int, int]


class _ConsentCheck:
    """Whether consent allows the memories of a profile to be seen, at a time; each profile is checked once."""

    def __init__(
        self, consents: Mapping[str, Sequence[ConsentRecord]], sensitive: Sequence[str], now: datetime
    ) -> None:
        self._consents, self._sensitive, self._now = consents, sensitive, now

    def __call__(self, profile: Profile) -> bool:
        if not profile.consent_root:
            return profile.write_class == "evidence_link" or profile.classification not in self._sensitive
        chain = self._consents.get(profile.consent_root, ())
        if any(one.action == "revoke" for one in chain):
            return False
        # A consent holds until its renewal begins.
        replaced = {one.supersedes for one in chain if one.valid_from <= self._now}
        return any(
            one.action == "grant"
            and one.valid_from <= self._now
            and (one.valid_until is None or one.valid_until > self._now)
            and ("*" in one.predicates or profile.predicate in one.predicates)
            and profile.classification in one.labels
            and one.consent_id not in replaced
            for one in chain
        )


def _keyed(
    picks: Sequence[_Pick], kept: Sequence[NDArray[np.bool_]]
) -> Mapping[tuple[str, str], Sequence[tuple[str, bool]]]:
    """Return the memories on the key of a correction, by key; all of them are kept for ranking."""
    keys: set[tuple[str, str]] = set()
    for pick in picks:
        if len(pick.block.corrections):
            for row in pick.rows[np.isin(pick.block.profiles.rows[pick.rows], pick.block.corrections)]:
                keys.add(_key_of(pick.block, int(row)))
    keys = {key for key in keys if all(key)}
    found: dict[tuple[str, str], list[tuple[str, bool]]] = {}
    if not keys:
        return found
    entities = {entity for entity, _ in keys}
    for pick, keep in zip(picks, kept, strict=True):
        block = pick.block
        among = np.array([entity in entities for entity in block.entities.values], dtype=np.bool_)
        for place in np.flatnonzero(among[block.entities.rows[pick.rows]]).tolist():
            row = int(pick.rows[place])
            if (key := _key_of(block, row)) in keys:
                keep[place] = True
                is_correction = bool(block.profiles.rows[row] in block.corrections)
                found.setdefault(key, []).append((block.ids[row], is_correction))
    return found


def _key_of(block: Block, row: int) -> tuple[str, str]:
    return block.entities.of_row(row), block.predicates.of_row(row)


def _exact_similarity(pick: _Pick, aim: Numbers | None) -> Numbers:
    if aim is None or not len(pick.rows):
        return np.zeros(len(pick.rows))
    norms = pick.block.norms[pick.rows]
    return exact_dots(pick.block.vectors[pick.rows], aim) / np.where(norms > 0, norms, 1)


def _least_of(limit: int, scores: Sequence[Numbers]) -> float:
    """Return the score of the last of the best `limit`; minus infinity if there are not more."""
    together = _joined(scores)
    if len(together) <= limit:
        return -np.inf
    return float(np.partition(together, len(together) - limit)[len(together) - limit])


def _joined(columns: Sequence[Any], kind: Any = np.float64) -> Any:
    return np.concatenate([np.zeros(0, dtype=kind), *columns])


def _says(qualifiers: Mapping[str, str], required: Mapping[str, str]) -> bool:
    """Whether a run has all of those qualifiers."""
    return all(qualifiers.get(name) == said for name, said in required.items())


def _microseconds(at: datetime) -> int:
    return (at - _EPOCH) // timedelta(microseconds=1)
