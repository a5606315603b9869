"""A memory's words in one value: what is packed is found again, each word at the memory that has it."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from muniment.database.packed_words import find_words, pack_words

HASHES = st.integers(-(2**63), 2**63 - 1)
WORDS = st.dictionaries(HASHES | st.integers(-2, 2), st.integers(1, 255), max_size=8)


@given(memories=st.lists(WORDS, max_size=6), asked=st.lists(st.integers(-2, 2) | HASHES, unique=True, max_size=5))
def test_a_word_is_found_where_it_occurs_and_nowhere_else(memories: list[dict[int, int]], asked: list[int]) -> None:
    asked += [next(iter(words)) for words in memories if words and next(iter(words)) not in asked][:1]
    sizes = np.array([len(words) for words in memories], dtype=np.int32)
    found = find_words(b"".join(map(pack_words, memories)), sizes, asked)
    rows = set(zip(found.terms.tolist(), found.places.tolist(), found.times.tolist(), strict=True))
    assert len(rows) == len(found.terms)
    assert rows == {
        (asked.index(term), place, times)
        for place, words in enumerate(memories)
        for term, times in words.items()
        if term in asked
    }


def test_an_entry_is_the_hash_and_the_number_and_entries_are_sorted() -> None:
    packed = pack_words({5: 3, -1: 255, 2**63 - 1: 1})
    assert packed.hex() == "ffffffffffffffff00ff" + "00000000000000050003" + "7fffffffffffffff0001"
    assert pack_words({}) == b""
