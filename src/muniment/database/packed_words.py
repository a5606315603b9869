"""The words of a memory packed in one value: the keyed hash of each distinct word, sorted, and how often it occurs."""

from collections.abc import Mapping, Sequence
from itertools import chain
from struct import pack as pack_bytes
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# INVARIANT: the schema accepts only whole entries, and statements look for a hash at the start of an entry only.
ENTRY = np.dtype([("term", ">i8"), ("times", ">i2")])


class Occurrences(NamedTuple):
    """Where words of a query occur: the position of the word in the query, that of the packed value, and how often."""

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
    """Find words in packed values, one after the other; `sizes` has the number of distinct words in each value."""
    entries = np.frombuffer(packed, dtype=ENTRY)
    wanted = np.array(terms, dtype=np.int64)
    hashes = entries["term"].astype(np.int64)
    found = np.flatnonzero(np.isin(hashes, wanted))
    order = np.argsort(wanted)
    return Occurrences(
        terms=order[np.searchsorted(wanted, hashes[found], sorter=order)],
        places=np.searchsorted(np.cumsum(sizes), found, side="right"),
        times=entries["times"][found].astype(np.int16),
    )
