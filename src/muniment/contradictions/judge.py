"""The trained judge of pairs: it reads candidates beside memories, and those of one batch beside each other (CTR-2).

It reads on threads; which pairs it reads is chosen on one too, so that no other call waits for it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from anyio.to_thread import run_sync
from numpy.typing import NDArray

from muniment.candidates.rules import tier_for
from muniment.contradictions.batch_rules import BLOCK, BatchMember, Block, near_within, pairs_within
from muniment.contradictions.rules import (
    NEAR_THRESHOLD,
    Neighbour,
    PairsToRead,
    judged_relation,
    pairs_to_read,
    trusts_judge,
)
from muniment.contradictions.store import ROUNDING, EmbeddedCandidate, TextComparer
from muniment.database.vectors import inner_products
from muniment.language.instructions import visible_text
from muniment.model.candidate import Candidate
from muniment.model.fields import Tier
from muniment.pack import Pack

# ---- beside memories ----


async def judge_neighbours(
    candidates: Sequence[Candidate],
    around: Sequence[Sequence[Neighbour]],
    comparer: TextComparer,
    pack: Pack,
    *,
    tier: Tier | None = None,
) -> list[list[Neighbour]]:
    """Let the trained judge read the neighbours of candidates; what is below the threshold and not read is left out.

    `tier` is theirs, if it is not the one that the pack derives. Without readers the neighbours are returned as they
    are. Raises `ReadersUnavailable`.
    """
    if comparer.readers is None:
        return [list(near) for near in around]

    def choose() -> list[PairsToRead]:
        return [
            pairs_to_read(one, tier or tier_for(one, pack), near, pack, comparer.by)
            for one, near in zip(candidates, around, strict=True)
        ]

    chosen = await run_sync(choose) if any(around) else [PairsToRead([], [])] * len(candidates)
    pairs = [
        (visible_text(candidate.text), visible_text(one.memory.text))
        for candidate, some in zip(candidates, chosen, strict=True)
        for one in some.read
    ]
    scores = iter(await comparer.readers.read_pairs(pairs))
    judged: list[list[Neighbour]] = []
    for near, some in zip(around, chosen, strict=True):
        by_id = {one.memory.memory_id: replace(one, scores=next(scores)) for one in some.read}
        by_id |= {one.memory.memory_id: replace(one, unread=True) for one in some.unread}
        kept = [one for one in near if one.memory.memory_id in by_id or is_near(one, comparer)]
        judged.append([by_id.get(one.memory.memory_id, one) for one in kept])
    return judged


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
    or repeat each other, or cannot say so for sure. Raises `ReadersUnavailable`.
    """
    nowhere = np.zeros(comparer.embedder.dimensions, dtype=np.float32)
    vectors = np.stack([one.vector if one.vector is not None else nowhere for one in embedded])
    met = near_within(members, _blocks(vectors), comparer.by.thresholds.similarity - ROUNDING)
    if comparer.readers is None:
        return met
    members = [replace(one, alone=one.alone or near) for one, near in zip(members, met, strict=True)]
    reach = comparer.reach - ROUNDING
    pairs = await run_sync(lambda: pairs_within(members, _blocks(vectors), reach, pack, comparer.by))
    texts = [visible_text(one.candidate.text) for one in members]
    scores = await comparer.readers.read_pairs([(texts[one.later], texts[one.earlier]) for one in pairs])
    for pair, found in zip(pairs, scores, strict=True):
        a, b = texts[pair.later], texts[pair.earlier]
        said = judged_relation(a, b, pair.similarity, found, comparer.by, trusted=trusts_judge(pack))
        if said.verdict != "different" or NEAR_THRESHOLD in said.reasons:
            met[pair.later] = True
    return met


def _blocks(vectors: NDArray[np.float32]) -> Iterator[Block]:
    for first in range(0, len(vectors), BLOCK):
        yield first, inner_products(vectors[first : first + BLOCK], vectors[: first + BLOCK])
