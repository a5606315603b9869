"""Candidates of one batch beside each other: which of them meet, and which pairs the judge reads (CTR-2, PRO-7).

What policy promotes in one transaction is compared as if it had come one by one: each candidate with those before it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from muniment.contradictions.rules import Comparison, may_conflict
from muniment.language.assertion import may_state
from muniment.language.instructions import visible_text
from muniment.model.candidate import Candidate
from muniment.model.fields import Tier
from muniment.pack import Pack

# Earlier candidates that are looked at for one, the nearest first; some of them cannot conflict with it.
MOST_LOOKED_AT = 64
# Rows of a block: a batch of any size is compared in little memory.
BLOCK = 64


@dataclass(frozen=True)
class BatchMember:
    """A candidate of a batch with its tier.

    `read` are the similarities of the memories that the judge has read for it. `alone`: it is checked by itself after
    the others are promoted, so none of them is read beside it now.
    """

    candidate: Candidate
    tier: Tier
    read: tuple[float, ...] = ()
    alone: bool = False


class BatchPair(NamedTuple):
    """Two candidates of a batch by their index, and how similar they are."""

    later: int
    earlier: int
    similarity: float


# The similarities of some candidates, from the index of the first of them on, to all up to the last of them.
Block = tuple[int, NDArray[np.float32]]


def near_within(members: Sequence[BatchMember], blocks: Iterable[Block], least: float) -> list[bool]:
    """Whether each candidate is on the key of an earlier one, or as near to it as neighbours are."""
    keys: set[tuple[str | None, str | None]] = set()
    near: list[bool] = []
    for first, similar in blocks:
        above = similar >= least
        for row in range(len(similar)):
            candidate = members[first + row].candidate
            key = (candidate.entity, candidate.predicate)
            near.append(bool(above[row, : first + row].any()) or (candidate.on_key and key in keys))
            keys.add(key)
    return near


def pairs_within(
    members: Sequence[BatchMember], blocks: Iterable[Block], reach: float, pack: Pack, by: Comparison
) -> list[BatchPair]:
    """Return the pairs of a batch that the trained judge reads, down to the similarity `reach`.

    Questions and greetings are left out first. Of the memories that were read for a candidate and of the earlier
    candidates together, the pack's number is read, the nearest first: no more than if the batch had come one by one,
    however many similar texts it holds.
    """
    states = np.array([not one.alone and may_state(visible_text(one.candidate.text)) for one in members], dtype=bool)
    pairs: list[BatchPair] = []
    for first, similar in blocks:
        for row in range(len(similar)):
            later = first + row
            if states[later]:
                earlier = np.flatnonzero(states[:later] & (similar[row, :later] >= reach))
                nearest = earlier[np.argsort(-similar[row, earlier], kind="stable")][:MOST_LOOKED_AT]
                pairs += _pairs_of(members, later, [(int(one), float(similar[row, one])) for one in nearest], pack, by)
    return pairs


def _pairs_of(
    members: Sequence[BatchMember], later: int, nearest: Sequence[tuple[int, float]], pack: Pack, by: Comparison
) -> list[BatchPair]:
    most = pack.memory_layer.contradiction.judge.pairs
    one = members[later]
    found: list[BatchPair] = []
    for earlier, similarity in nearest:
        if len(found) + sum(known >= similarity for known in one.read) >= most:
            break
        other = members[earlier]
        if may_conflict(one.candidate, one.tier, other.candidate, other.tier, similarity, by):
            found.append(BatchPair(later, earlier, similarity))
    return found
