"""The judge of pairs: it reads candidates beside memories, and those of one batch beside each other (CTR-2).

The trained judge reads on threads; which pairs are read is chosen on one too, so that no other call waits for it. Where
the pack names a language model instead, its answers are looked up here, and asked for elsewhere (`model_judge`). What a
model may not see or does not answer is read by the trained judge, if there is one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from anyio.to_thread import run_sync
from numpy.typing import NDArray

from muniment.contradictions.batch_rules import BLOCK, BatchMember, Block, near_within, pairs_within
from muniment.contradictions.model_judge import TextPair
from muniment.contradictions.rules import (
    NEAR_THRESHOLD,
    JudgeThresholds,
    Neighbour,
    PairsToRead,
    judged_relation,
    pairs_to_read,
    trusts_judge,
)
from muniment.contradictions.store import ROUNDING, EmbeddedCandidate, TextComparer
from muniment.database.vectors import inner_products
from muniment.language.instructions import visible_text
from muniment.language.readers import PairScores
from muniment.model.candidate import Candidate
from muniment.model.fields import Tier
from muniment.model.promoted import PromotedMemory
from muniment.pack import Pack

# ---- beside memories ----


async def judge_neighbours(
    candidates: Sequence[Candidate],
    around: Sequence[Sequence[Neighbour]],
    comparer: TextComparer,
    pack: Pack,
    tiers: Sequence[Tier],
) -> list[list[Neighbour]]:
    """Let the judge read the neighbours of candidates; what is below the threshold and not read is left out.

    `tiers` are theirs. Without a judge the neighbours are returned as they are. Raises `ReadersUnavailable`,
    `PairsUnread`.
    """
    if not comparer.has_judge:
        return [list(near) for near in around]

    def choose() -> list[PairsToRead]:
        return [
            pairs_to_read(one, tier, near, pack, comparer.by)
            for one, tier, near in zip(candidates, tiers, around, strict=True)
        ]

    chosen = await run_sync(choose) if any(around) else [PairsToRead([], [])] * len(candidates)
    pairs = [
        _pair(candidate, one.memory, comparer)
        for candidate, some in zip(candidates, chosen, strict=True)
        for one in some.read
    ]
    found = iter(await _read(pairs, comparer))
    judged: list[list[Neighbour]] = []
    for near, some in zip(around, chosen, strict=True):
        by_id = {one.memory.memory_id: _judged(one, next(found), comparer) for one in some.read}
        by_id |= {one.memory.memory_id: replace(one, unread=True) for one in some.unread}
        read = [by_id.get(one.memory.memory_id, one) for one in near]
        judged.append([one for one in read if one.scores is not None or one.unread or is_near(one, comparer)])
    return judged


class _Reading(NamedTuple):
    """What a judge says of a pair, and from where on that counts; `unread`: it should have been read and was not."""

    scores: PairScores | None
    thresholds: JudgeThresholds | None = None
    unread: bool = False


def _pair(one: Candidate, other: Candidate | PromotedMemory, comparer: TextComparer) -> TextPair:
    leaves = comparer.model is not None and comparer.model.may_leave(one.classification, other.classification)
    return TextPair(visible_text(one.text), visible_text(other.text), leaves)


async def _read(pairs: Sequence[TextPair], comparer: TextComparer) -> list[_Reading]:
    """Let the pack's judge read pairs, and the trained one what the model does not; raises `PairsUnread`."""
    model, readers = comparer.model, comparer.readers
    said = await run_sync(model.read, pairs) if model is not None and pairs else [None] * len(pairs)
    rest = [(pair.a, pair.b) for pair, scores in zip(pairs, said, strict=True) if scores is None]
    others = iter(await readers.read_pairs(rest)) if readers is not None else None
    found: list[_Reading] = []
    for pair, scores in zip(pairs, said, strict=True):
        if scores is not None and model is not None:
            found.append(_Reading(scores, model.thresholds))
        elif others is not None:
            found.append(_Reading(next(others)))
        else:
            found.append(_Reading(None, unread=pair.may_leave))
    return found


def _judged(one: Neighbour, said: _Reading, comparer: TextComparer) -> Neighbour:
    """Return a neighbour with what a judge said of it; where the model was silent, a person decides on a near one."""
    unread = said.unread and is_near(one, comparer)
    return replace(one, scores=said.scores, thresholds=said.thresholds, unread=unread)


def is_near(neighbour: Neighbour, comparer: TextComparer) -> bool:
    """Whether a neighbour is on the candidate's key, or at or above the threshold; others only the judge reads."""
    on_key = neighbour.similarity == 0.0
    return on_key or neighbour.similarity >= comparer.by.thresholds.similarity - ROUNDING


def similarities_read(neighbours: Sequence[Neighbour]) -> tuple[float, ...]:
    """Return how similar those neighbours are that the judge has read."""
    return tuple(one.similarity for one in neighbours if one.scores is not None)


# ---- within a batch ----


async def meets_earlier(
    embedded: Sequence[EmbeddedCandidate], members: Sequence[BatchMember], comparer: TextComparer, pack: Pack
) -> list[bool]:
    """Whether each candidate of a batch meets an earlier one, so that it has to be checked once that is promoted.

    It does if it is on its key, as near to it as neighbours are, or if the trained judge says that the two contradict
    or repeat each other, or cannot say so for sure. Raises `ReadersUnavailable`, `PairsUnread`.
    """
    nowhere = np.zeros(comparer.embedder.dimensions, dtype=np.float32)
    vectors = np.stack([one.vector if one.vector is not None else nowhere for one in embedded])
    met = near_within(members, _blocks(vectors), comparer.by.thresholds.similarity - ROUNDING)
    if not comparer.has_judge:
        return met
    members = [replace(one, alone=one.alone or near) for one, near in zip(members, met, strict=True)]
    reach = comparer.reach - ROUNDING
    pairs = await run_sync(lambda: pairs_within(members, _blocks(vectors), reach, pack, comparer.by))
    texts = [visible_text(one.candidate.text) for one in members]
    asked = [_pair(members[one.later].candidate, members[one.earlier].candidate, comparer) for one in pairs]
    for pair, found in zip(pairs, await _read(asked, comparer), strict=True):
        if found.scores is None:
            continue  # Near ones meet already.
        a, b = texts[pair.later], texts[pair.earlier]
        by = comparer.by if found.thresholds is None else replace(comparer.by, judge_thresholds=found.thresholds)
        said = judged_relation(a, b, pair.similarity, found.scores, by, trusted=trusts_judge(pack))
        if said.verdict != "different" or NEAR_THRESHOLD in said.reasons:
            met[pair.later] = True
    return met


def _blocks(vectors: NDArray[np.float32]) -> Iterator[Block]:
    for first in range(0, len(vectors), BLOCK):
        yield first, inner_products(vectors[first : first + BLOCK], vectors[: first + BLOCK])
