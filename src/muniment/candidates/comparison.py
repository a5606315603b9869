"""Comparing texts: the embedder and thresholds in use, and candidates with the vectors of their texts."""

from collections.abc import Sequence
from dataclasses import dataclass
from struct import pack

import numpy as np
from numpy.typing import NDArray

from muniment.contradictions.rules import Comparison
from muniment.database.storage import HalfVector
from muniment.language.embedding import Embedder, embedded
from muniment.language.instructions import visible_text
from muniment.model.candidate import Candidate

Vector = NDArray[np.float32]


@dataclass(frozen=True)
class EmbeddedCandidate:
    """A candidate with the vector of its text, by the embedder in use and by the next one.

    A vector is None for an evidence link and for text without a word that the embedder knows.
    """

    candidate: Candidate
    vector: Vector | None
    next_vector: Vector | None = None


@dataclass(frozen=True)
class TextComparer:
    """An embedder with the pack's thresholds for it, and the embedder that will replace it, if any (JOB-11)."""

    embedder: Embedder
    by: Comparison
    next_embedder: Embedder | None = None

    async def embed(self, candidates: Sequence[Candidate]) -> list[EmbeddedCandidate]:
        """Embed the texts of candidates, as a reader sees them."""
        texts = [visible_text(candidate.text) for candidate in candidates]
        vectors = await embedded(self.embedder, texts)
        nexts = await embedded(self.next_embedder, texts) if self.next_embedder is not None else [None] * len(texts)
        return [
            EmbeddedCandidate(one, _vector(one, vector), _vector(one, other))
            for one, vector, other in zip(candidates, vectors, nexts, strict=True)
        ]


def _vector(candidate: Candidate, vector: Vector | None) -> Vector | None:
    empty = vector is None or candidate.write_class == "evidence_link" or not vector.any()
    return None if empty else vector


def to_sql(vector: Vector) -> HalfVector:
    """Pack a vector in half precision, as the database sends and reads it."""
    return HalfVector(pack(">hh", len(vector), 0) + vector.astype(">f2").tobytes())


def from_sql(sent: bytes) -> Vector:
    """Unpack a half-precision vector: its length, two empty bytes, the numbers."""
    return np.frombuffer(sent, dtype=">f2", offset=4).astype(np.float32)


def unpacked(sent: bytes, count: int) -> NDArray[np.float64]:
    """Unpack many half-precision vectors that were sent one after the other."""
    if not count:
        return np.zeros((0, 0))
    # In double precision: sums then do not depend on the order of the rows.
    return np.frombuffer(sent, dtype=">f2").reshape(count, -1)[:, 2:].astype(np.float64)
