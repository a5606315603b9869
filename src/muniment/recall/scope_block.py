"""Memories of one user as columns in memory: what the filters compare, what ranking weighs, vectors and words.

A block is filled once. Afterwards memories can only be removed from it, which overwrites their vectors and words.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic_core import from_json

from muniment.database.content_memory import content_array, content_rows, copy_rows
from muniment.database.half_precision import Halves, vector_lengths
from muniment.database.packed_words import ENTRY
from muniment.database.storage import Row
from muniment.database.vectors import halves_from_sql, numbers_from_sql
from muniment.pack.memory_layer import RecallPolicy
from muniment.recall.rules import Postings, recency

# The separators of the fragment `index_columns`: between texts and the fields of a profile, and between profiles.
FIELD, RECORD = "\x1f", "\x1e"
# Row numbers of a block.
Rows = NDArray[np.intp]
_NO_ROWS, _NO_TIMES = np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int16)


@dataclass(frozen=True)
class Profile:
    """The fields of a memory that filters compare, apart from times; many memories have the same profile.

    The predicate is empty for a memory that needs no consent.
    """

    tier: str
    write_class: str
    classification: str
    session_id: str
    workflow_id: str
    intent_id: str
    predicate: str
    consent_root: str
    qualifiers: Mapping[str, str]

    @classmethod
    def parse(cls, text: str) -> "Profile":
        """Parse a profile as the statement writes it; raises ValueError for another number of fields."""
        tier, write_class, label, session_id, workflow_id, intent_id, predicate, root, json = text.split(FIELD)
        qualifiers: dict[str, str] = from_json(json) if json else {}
        return cls(tier, write_class, label, session_id, workflow_id, intent_id, predicate, root, qualifiers)


@dataclass(frozen=True)
class TextColumn:
    """A column of texts: the distinct texts, and for each row the position of its text among them (its code)."""

    values: list[str]
    codes: NDArray[np.int32]

    @classmethod
    def of(cls, texts: Iterable[str]) -> "TextColumn":
        """Make a column of a text for each row."""
        known: dict[str, int] = {}
        codes = np.array([known.setdefault(text, len(known)) for text in texts], dtype=np.int32)
        return cls(list(known), codes)

    def of_row(self, row: int) -> str:
        """Return the text of a row."""
        return self.values[int(self.codes[row])]

    @classmethod
    def join(cls, parts: Sequence[tuple["TextColumn", Rows]]) -> "TextColumn":
        """Make one column of those rows of several."""
        known: dict[str, int] = {}
        joined = [np.zeros(0, dtype=np.int32)]
        for column, rows in parts:
            new_codes = np.array([known.setdefault(text, len(known)) for text in column.values], dtype=np.int32)
            joined.append(new_codes[column.codes[rows]])
        return cls(list(known), np.concatenate(joined))


@dataclass(frozen=True)
class WordIndex:
    """Which rows have which words: an entry for each word of each row, sorted by word.

    An entry is the word's hash (`terms`), the row and how often the row has it (`times`). `lengths` has for each row
    how many words its text has.
    """

    terms: NDArray[np.int64]
    rows: NDArray[np.int32]
    times: NDArray[np.int16]
    lengths: NDArray[np.int16]

    @classmethod
    def of(
        cls, terms: NDArray[np.int64], rows: NDArray[np.int32], times: NDArray[np.int16], lengths: NDArray[np.int16]
    ) -> "WordIndex":
        """Sort the entries by word; fast for entries that are a few sorted runs."""
        order = np.argsort(terms, kind="stable")
        return cls(content_rows(terms, order), rows[order], times[order], lengths)

    def without(self, rows: Sequence[int]) -> "WordIndex":
        """Return the index without the entries of those rows."""
        others = np.flatnonzero(~np.isin(self.rows, rows))
        return WordIndex(content_rows(self.terms, others), self.rows[others], self.times[others], self.lengths)

    def find(self, terms: Sequence[int]) -> Postings:
        """Return the rows that have those words, word after word; `places` are rows."""
        wanted = np.array(terms, dtype=np.int64)
        starts, ends = np.searchsorted(self.terms, wanted), np.searchsorted(self.terms, wanted, side="right")
        found = [slice(start, end) for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
        rows = np.concatenate([_NO_ROWS, *(self.rows[entries] for entries in found)]).astype(np.intp)
        times = np.concatenate([_NO_TIMES, *(self.times[entries] for entries in found)])
        return Postings(np.repeat(np.arange(len(terms)), ends - starts), rows, times, self.lengths[rows])


class _Unqueried(NamedTuple):
    """What `Block.unqueried_scores` keeps: for which weights and half-life, and the recency of rows at the newest."""

    asked: tuple[Any, ...]
    newest: float
    decay: NDArray[np.float64]
    constant: NDArray[np.float64]


@dataclass
class Block:
    """Memories as columns, a row for each; `live` is False for memories that were removed.

    Times are microseconds since 1970. `places` has the row of each memory id.
    """

    ids: list[str]
    places: Mapping[str, int]
    entities: TextColumn
    predicates: TextColumn
    profiles: TextColumn
    priority: NDArray[np.float64]
    confidence: NDArray[np.float64]
    born_seq: NDArray[np.int64]
    promoted_at: NDArray[np.int64]
    expires_at: NDArray[np.int64]
    # When it holds in the world; the least and the greatest number stand for open.
    valid_from: NDArray[np.int64]
    valid_until: NDArray[np.int64]
    vectors: Halves
    # The length of each vector; 1 for a memory without one, whose similarity is 0.
    norms: NDArray[np.float64]
    words: WordIndex
    live: NDArray[np.bool_]
    _unqueried: "_Unqueried | None" = None

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def distinct_profiles(self) -> list[Profile]:
        """The distinct profiles, in the order of their codes."""
        return [Profile.parse(text) for text in self.profiles.values]

    @cached_property
    def correction_codes(self) -> Rows:
        """The codes of the profiles of corrections."""
        return np.flatnonzero([profile.write_class == "correction" for profile in self.distinct_profiles])

    @cached_property
    def working_codes(self) -> Rows:
        """The codes of the profiles of the working tier."""
        return np.flatnonzero([profile.tier == "working" for profile in self.distinct_profiles])

    @cached_property
    def with_meaning(self) -> NDArray[np.bool_]:
        """Which memories have a vector that says something."""
        return np.any(self.vectors != 0, axis=1)

    @cached_property
    def has_times(self) -> bool:
        """Whether any memory says from when or until when it holds in the world."""
        open_ends = np.iinfo(np.int64)
        return bool((self.valid_from != open_ends.min).any() or (self.valid_until != open_ends.max).any())

    @cached_property
    def promoted_seconds(self) -> NDArray[np.float64]:
        """When each memory was promoted, in seconds since 1970."""
        return self.promoted_at / 1e6

    def unqueried_scores(self, policy: RecallPolicy, at: datetime) -> NDArray[np.float64]:
        """Return the part of each score that no query changes: priority, confidence and recency, weighted.

        It is kept under the same policy: with time, recency changes by the same factor in all rows. So it may differ
        from the exact sum in the last bits.
        """
        weights, half_life = policy.weights, policy.recency_half_life
        asked = weights.priority, weights.confidence, weights.recency, half_life
        if self._unqueried is None or self._unqueried.asked != asked:
            newest = float(self.promoted_seconds.max())
            decay = weights.recency * np.exp2((self.promoted_seconds - newest) / half_life.total_seconds())
            constant = weights.priority * self.priority + weights.confidence * self.confidence
            self._unqueried = _Unqueried(asked, newest, decay, constant)
        kept = self._unqueried
        since = at.timestamp() - kept.newest
        if since < 0:  # The clock went back: what is of the future counts as new.
            return kept.constant + weights.recency * recency(self.promoted_seconds, at, half_life)
        scores: NDArray[np.float64] = kept.decay * 2.0 ** (-since / half_life.total_seconds())
        scores += kept.constant
        return scores

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        numbers = [getattr(self, name) for name in _NUMBERS]
        codes = (self.entities.codes, self.predicates.codes, self.profiles.codes, self.live, self.vectors)
        words = (self.words.terms, self.words.rows, self.words.times, self.words.lengths)
        return sum(array.nbytes for array in (*numbers, *codes, *words)) + 224 * len(self.ids) + 10_240

    def remove(self, memory_ids: Iterable[str]) -> None:
        """Remove memories, and overwrite their vectors and words (ERA-1); ids that are not in the block are ignored."""
        rows = [row for id_ in memory_ids if (row := self.places.get(id_)) is not None and self.live[row]]
        if rows:
            self.live[rows] = False
            self.vectors[rows] = 0
            self.norms[rows] = 1
            old, self.words = self.words, self.words.without(rows)
            old.terms[:] = 0

    def clear(self) -> None:
        """Overwrite all vectors and words."""
        self.live[:] = False
        self.vectors[:] = 0
        self.words.terms[:] = 0


def read_block(row: Row, dimensions: int) -> Block:
    """Make a block of the columns that a statement sent; raises ValueError if they do not fit together."""
    ids = _texts(row["memory_ids"], FIELD)
    places = {memory_id: place for place, memory_id in enumerate(ids)}
    vectors, norms = _vectors(row, places, dimensions)
    block = Block(
        ids=ids,
        places=places,
        entities=TextColumn.of((row["entities"] or "").split(FIELD) if ids else ()),
        predicates=TextColumn.of((row["predicates"] or "").split(FIELD) if ids else ()),
        profiles=TextColumn.of(_texts(row["profiles"], RECORD)),
        priority=numbers_from_sql(row["priority"], ">f8"),
        confidence=numbers_from_sql(row["confidence"], ">f8"),
        born_seq=numbers_from_sql(row["born_seq"], ">i8"),
        promoted_at=numbers_from_sql(row["promoted_at"], ">i8"),
        expires_at=numbers_from_sql(row["expires_at"], ">i8"),
        valid_from=numbers_from_sql(row["valid_from"], ">i8"),
        valid_until=numbers_from_sql(row["valid_until"], ">i8"),
        vectors=vectors,
        norms=norms,
        words=_words(row, places),
        live=np.ones(len(ids), dtype=np.bool_),
    )
    if not len(ids) == len(places) == len(block.profiles.codes) == len(block.predicates.codes) == len(block.expires_at):
        raise ValueError("the columns of the index have different lengths")
    return block


def join_blocks(blocks: Sequence[Block]) -> Block:
    """Make one block of several, without the memories that were removed."""
    parts = [(block, np.flatnonzero(block.live)) for block in blocks]

    def column(name: str) -> Any:
        return np.concatenate([getattr(block, name)[rows] for block, rows in parts])

    ids = [block.ids[row] for block, rows in parts for row in rows]
    return Block(
        ids=ids,
        places={memory_id: place for place, memory_id in enumerate(ids)},
        entities=TextColumn.join([(block.entities, rows) for block, rows in parts]),
        predicates=TextColumn.join([(block.predicates, rows) for block, rows in parts]),
        profiles=TextColumn.join([(block.profiles, rows) for block, rows in parts]),
        vectors=_join_vectors(parts),
        words=_join_words(parts),
        live=np.ones(len(ids), dtype=np.bool_),
        **{name: column(name) for name in _NUMBERS},
    )


_NUMBERS = (
    *("priority", "confidence", "born_seq", "promoted_at", "expires_at"),
    *("valid_from", "valid_until", "norms"),
)


def _join_vectors(parts: Sequence[tuple[Block, Rows]]) -> Halves:
    dimensions = max(block.vectors.shape[1] for block, _ in parts)
    joined = content_array((sum(len(rows) for _, rows in parts), dimensions), np.float16)
    first = 0
    for block, rows in parts:
        copy_rows(block.vectors, rows, joined[first : first + len(rows)])
        first += len(rows)
    return joined


def _join_words(parts: Sequence[tuple[Block, Rows]]) -> WordIndex:
    """Join the words of those rows; the rows of the first part get the first numbers."""
    first = 0
    joined: list[tuple[Any, ...]] = []
    for block, rows in parts:
        # The new number of each old row; -1 if it was removed.
        new_rows = np.full(len(block), -1, dtype=np.int32)
        new_rows[rows] = np.arange(first, first + len(rows), dtype=np.int32)
        first += len(rows)
        words, row_of_entry = block.words, new_rows[block.words.rows]
        stays = row_of_entry >= 0
        joined.append((words.terms[stays], row_of_entry[stays], words.times[stays], words.lengths[rows]))
    return WordIndex.of(*(np.concatenate(column) for column in zip(*joined, strict=True)))


def _texts(joined: str | None, separator: str) -> list[str]:
    return joined.split(separator) if joined else []


def _vectors(row: Row, places: Mapping[str, int], dimensions: int) -> tuple[Halves, NDArray[np.float64]]:
    """Unpack the vectors, each to the row of its memory, and compute their lengths; zeros for a memory without one."""
    vectors = content_array((len(places), dimensions), np.float16)
    norms = np.ones(len(places))
    owners = _texts(row["with_vector"], FIELD)
    if owners:
        rows = np.array([places[memory_id] for memory_id in owners])
        vectors[rows] = halves_from_sql(row["vectors"], len(owners))
        lengths = vector_lengths(vectors)
        norms = np.where(lengths > 0, lengths, 1.0)
    return vectors, norms


def _words(row: Row, places: Mapping[str, int]) -> WordIndex:
    """Unpack the words of all memories."""
    owners = np.array([places[memory_id] for memory_id in _texts(row["with_words"], FIELD)], dtype=np.int32)
    packed = np.frombuffer(row["terms"] or b"", dtype=ENTRY)
    counts = numbers_from_sql(row["sizes"], ">i4")
    lengths = np.zeros(len(places), dtype=np.int16)
    lengths[owners] = numbers_from_sql(row["words"], ">i2")
    terms, times = packed["term"].astype(np.int64), packed["times"].astype(np.int16)
    return WordIndex.of(terms, np.repeat(owners, counts), times, lengths)
