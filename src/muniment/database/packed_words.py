"""The words of a memory as one value: for each of its words, sorted, the keyed hash and how often it occurs."""

from collections.abc import Mapping, Sequence
from itertools import chain
from struct import pack as pack_bytes
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# INVARIANT: the schema takes only whole entries, and statements find a hash only at the start of one.
ENTRY = np.dtype([("term", ">i8"), ("times", ">i2")])


class Occurrences(NamedTuple):
    """Where some words occur: which word and in which of the values, each by its position, and how often."""

    terms: NDArray[np.intp]
    places: NDArray[np.intp]
    times: NDArray[np.int16]


def pack_words(words: Mapping[int, int]) -> bytes:
    """Pack the hashes of a memory's words, each with how often it occurs."""
    return pack_bytes(">" + "qh" * len(words), *chain.from_iterable(sorted(words.items())))


def terms_in(packed: bytes) -> list[int]:
    """Return the hashes of a memory's words."""
    return np.frombuffer(packed, dtype=ENTRY)["term"].tolist()


def find_words(packed: bytes, sizes: NDArray[np.int32], terms: Sequence[int]) -> Occurrences:
    """Find some words in packed values that follow each other; `sizes` says how many words each value has."""
    entries = np.frombuffer(packed, dtype=ENTRY)
    known = np.array(terms, dtype=np.int64)
    hashes = entries["term"].astype(np.int64)
    found = np.flatnonzero(np.isin(hashes, known))
    order = np.argsort(known)
    return Occurrences(
        terms=order[np.searchsorted(known, hashes[found], sorter=order)],
        places=np.searchsorted(np.cumsum(sizes), found, side="right"),
        times=entries["times"][found].astype(np.int16),
    )
