"""Columns of memories as the statements of the index send them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from muniment.database.packed_words import ENTRY
from muniment.recall.scope_block import FIELD, RECORD


def sent(ids: Sequence[str]) -> dict[str, Any]:
    """Memories of four dimensions with one word each: ten times the number in their id."""
    count = len(ids)
    vectors = np.zeros((count, 6), dtype=">f2")
    vectors[:, 2:] = 0.5
    terms = np.zeros(count, dtype=ENTRY)
    terms["term"] = [10 * int(memory_id.removeprefix("mem_")) for memory_id in ids]
    terms["times"] = 1
    numbers = {name: np.ones(count, dtype=">f8").tobytes() for name in ("priority", "confidence")}
    times = {name: np.ones(count, dtype=">i8").tobytes() for name in ("born_seq", "promoted_at", "expires_at")}
    ends = {"valid_from": np.iinfo(np.int64).min, "valid_until": np.iinfo(np.int64).max}
    times |= {name: np.full(count, end, dtype=">i8").tobytes() for name, end in ends.items()}
    joined = FIELD.join(ids)
    profile = FIELD.join(["semantic", "statement", "INTERNAL", *[""] * 6])
    return {
        "memory_ids": joined,
        "entities": FIELD.join([""] * count),
        "predicates": FIELD.join([""] * count),
        "profiles": RECORD.join([profile] * count),
        **numbers,
        **times,
        "with_vector": joined,
        "vectors": vectors.tobytes(),
        "with_words": joined,
        "terms": terms.tobytes(),
        "sizes": np.ones(count, dtype=">i4").tobytes(),
        "words": np.ones(count, dtype=">i2").tobytes(),
    }
