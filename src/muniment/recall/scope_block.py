"""Memories of one user as columns in memory: what filters compare, what ranking weighs, vectors and words.

A block is filled once. Afterwards memories can only be taken out of it, which overwrites their vectors and words.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic_core import from_json

from muniment.database.content_memory import content_array, content_rows, copy_rows
from muniment.database.half_precision import Halves, vector_lengths
from muniment.database.packed_words import ENTRY
from muniment.database.storage import Row
from muniment.database.vectors import halves_from_sql, numbers_from_sql

FIELD, RECORD = "\x1f", "\x1e"
Rows = NDArray[np.intp]


@dataclass(frozen=True)
class Profile:
    """What the filters compare of a memory, apart from times; many memories share one.

    The predicate is empty where no consent decides.
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
    def parse(cls, written: str) -> "Profile":
        """Read a profile as the statement writes it; raises ValueError for another number of fields."""
        *names, qualifiers = written.split(FIELD)
        tier, write_class, classification, session_id, workflow_id, intent_id, predicate, consent_root = names
        said: dict[str, str] = from_json(qualifiers) if qualifiers else {}
        return cls(tier, write_class, classification, session_id, workflow_id, intent_id, predicate, consent_root, said)


@dataclass(frozen=True)
class Codes:
    """A column of texts: the distinct ones, and for each row the position of its own."""

    values: list[str]
    rows: NDArray[np.int32]

    @classmethod
    def of(cls, texts: Iterable[str]) -> "Codes":
        """Number the distinct texts."""
        known: dict[str, int] = {}
        rows = np.array([known.setdefault(text, len(known)) for text in texts], dtype=np.int32)
        return cls(list(known), rows)

    def of_row(self, row: int) -> str:
        """Return the text of a row."""
        return self.values[int(self.rows[row])]

    @classmethod
    def join(cls, parts: Sequence[tuple["Codes", Rows]]) -> "Codes":
        """Number the distinct texts of those rows of several columns."""
        known: dict[str, int] = {}
        joined = [np.zeros(0, dtype=np.int32)]
        for codes, rows in parts:
            table = np.array([known.setdefault(text, len(known)) for text in codes.values], dtype=np.int32)
            joined.append(table[codes.rows[rows]])
        return cls(list(known), np.concatenate(joined))


@dataclass(frozen=True)
class Words:
    """Which rows have which words: sorted by word, with how often each occurs; and how many words a row has."""

    terms: NDArray[np.int64]
    rows: NDArray[np.int32]
    times: NDArray[np.int16]
    lengths: NDArray[np.int16]

    @classmethod
    def of(
        cls, terms: NDArray[np.int64], rows: NDArray[np.int32], times: NDArray[np.int16], lengths: NDArray[np.int16]
    ) -> "Words":
        """Sort the words."""
        order = np.argsort(terms)
        return cls(content_rows(terms, order), rows[order], times[order], lengths)

    def without(self, rows: Sequence[int]) -> "Words":
        """Return the words of all other rows."""
        kept = np.flatnonzero(~np.isin(self.rows, rows))
        return Words(content_rows(self.terms, kept), self.rows[kept], self.times[kept], self.lengths)

    def find(self, terms: Sequence[int]) -> list[tuple[NDArray[np.int32], NDArray[np.int16]]]:
        """Return, for each word, the rows that have it, and how often each has it."""
        wanted = np.array(terms, dtype=np.int64)
        first = np.searchsorted(self.terms, wanted).tolist()
        last = np.searchsorted(self.terms, wanted, side="right").tolist()
        return [(self.rows[one:end], self.times[one:end]) for one, end in zip(first, last, strict=True)]


@dataclass
class Block:
    """Memories as columns, in one order; `live` is False for those that were taken out."""

    ids: list[str]
    places: Mapping[str, int]
    entities: Codes
    predicates: Codes
    profiles: Codes
    priority: NDArray[np.float64]
    confidence: NDArray[np.float64]
    born_seq: NDArray[np.int64]
    promoted_at: NDArray[np.int64]
    expires_at: NDArray[np.int64]
    vectors: Halves
    # The length of each vector; 0 for a memory without one.
    norms: NDArray[np.float64]
    words: Words
    live: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def distinct(self) -> list[Profile]:
        """The distinct profiles, by their codes."""
        return [Profile.parse(written) for written in self.profiles.values]

    @cached_property
    def corrections(self) -> Rows:
        """The codes of the profiles of corrections."""
        return np.flatnonzero([one.write_class == "correction" for one in self.distinct])

    @cached_property
    def working(self) -> Rows:
        """The codes of the profiles of the working tier."""
        return np.flatnonzero([one.tier == "working" for one in self.distinct])

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        numbers = (self.priority, self.confidence, self.born_seq, self.promoted_at, self.expires_at, self.norms)
        codes = (self.entities.rows, self.predicates.rows, self.profiles.rows, self.live, self.vectors)
        words = (self.words.terms, self.words.rows, self.words.times, self.words.lengths)
        return sum(one.nbytes for one in (*numbers, *codes, *words)) + 200 * len(self.ids) + 4096

    def remove(self, memory_ids: Iterable[str]) -> None:
        """Take memories out, and overwrite what was made of their content (ERA-1)."""
        rows = [row for one in memory_ids if (row := self.places.get(one)) is not None and self.live[row]]
        if rows:
            self.live[rows] = False
            self.vectors[rows] = 0
            self.norms[rows] = 0
            old, self.words = self.words, self.words.without(rows)
            old.terms[:] = 0

    def clear(self) -> None:
        """Overwrite all that was made of content."""
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
        entities=Codes.of((row["entities"] or "").split(FIELD) if ids else ()),
        predicates=Codes.of((row["predicates"] or "").split(FIELD) if ids else ()),
        profiles=Codes.of(_texts(row["profiles"], RECORD)),
        priority=numbers_from_sql(row["priority"], ">f8"),
        confidence=numbers_from_sql(row["confidence"], ">f8"),
        born_seq=numbers_from_sql(row["born_seq"], ">i8"),
        promoted_at=numbers_from_sql(row["promoted_at"], ">i8"),
        expires_at=numbers_from_sql(row["expires_at"], ">i8"),
        vectors=vectors,
        norms=norms,
        words=_words(row, places),
        live=np.ones(len(ids), dtype=np.bool_),
    )
    if not len(ids) == len(places) == len(block.profiles.rows) == len(block.predicates.rows) == len(block.expires_at):
        raise ValueError("the columns of the index have different lengths")
    return block


def join_blocks(blocks: Sequence[Block]) -> Block:
    """Make one block of several, without the memories that were taken out."""
    parts = [(block, np.flatnonzero(block.live)) for block in blocks]

    def column(name: str) -> Any:
        return np.concatenate([getattr(block, name)[rows] for block, rows in parts])

    ids = [block.ids[row] for block, rows in parts for row in rows]
    return Block(
        ids=ids,
        places={memory_id: place for place, memory_id in enumerate(ids)},
        entities=Codes.join([(block.entities, rows) for block, rows in parts]),
        predicates=Codes.join([(block.predicates, rows) for block, rows in parts]),
        profiles=Codes.join([(block.profiles, rows) for block, rows in parts]),
        vectors=_join_vectors(parts),
        words=_join_words(parts),
        live=np.ones(len(ids), dtype=np.bool_),
        **{name: column(name) for name in _NUMBERS},
    )


_NUMBERS = ("priority", "confidence", "born_seq", "promoted_at", "expires_at", "norms")


def _join_vectors(parts: Sequence[tuple[Block, Rows]]) -> Halves:
    dimensions = max(block.vectors.shape[1] for block, _ in parts)
    joined = content_array((sum(len(rows) for _, rows in parts), dimensions), np.float16)
    first = 0
    for block, rows in parts:
        copy_rows(block.vectors, rows, joined[first : first + len(rows)])
        first += len(rows)
    return joined


def _join_words(parts: Sequence[tuple[Block, Rows]]) -> Words:
    """Join the words of those rows, which are numbered one part after the other."""
    first = 0
    joined: list[tuple[Any, ...]] = []
    for block, rows in parts:
        # The new row of each old one; -1 if it is gone.
        moved = np.full(len(block), -1, dtype=np.int32)
        moved[rows] = np.arange(first, first + len(rows), dtype=np.int32)
        first += len(rows)
        words, to = block.words, moved[block.words.rows]
        joined.append((words.terms[to >= 0], to[to >= 0], words.times[to >= 0], words.lengths[rows]))
    return Words.of(*(np.concatenate(column) for column in zip(*joined, strict=True)))


def _texts(joined: str | None, separator: str) -> list[str]:
    return joined.split(separator) if joined else []


def _vectors(row: Row, places: Mapping[str, int], dimensions: int) -> tuple[Halves, NDArray[np.float64]]:
    """Unpack the vectors, each at the row of its memory, with their lengths."""
    vectors = content_array((len(places), dimensions), np.float16)
    norms = np.zeros(len(places))
    owners = _texts(row["with_vector"], FIELD)
    if owners:
        rows = np.array([places[memory_id] for memory_id in owners])
        vectors[rows] = halves_from_sql(row["vectors"], len(owners))
        norms[rows] = vector_lengths(vectors)[rows]
    return vectors, norms


def _words(row: Row, places: Mapping[str, int]) -> Words:
    """Unpack the words, and sort them."""
    owners = np.array([places[memory_id] for memory_id in _texts(row["with_words"], FIELD)], dtype=np.int32)
    packed = np.frombuffer(row["terms"] or b"", dtype=ENTRY)
    counts = numbers_from_sql(row["sizes"], ">i4")
    lengths = np.zeros(len(places), dtype=np.int16)
    lengths[owners] = numbers_from_sql(row["words"], ">i2")
    native = packed["term"].astype(np.int64), packed["times"].astype(np.int16)
    return Words.of(native[0], np.repeat(owners, counts), native[1], lengths)
