"""Senses: what texts are compared with, and where the text of a candidate lies."""

from collections.abc import Sequence
from dataclasses import dataclass
from struct import pack

import numpy as np
from numpy.typing import NDArray

from muniment.contradictions.rules import Comparison
from muniment.database.storage import HalfVector
from muniment.language.embedding import Embedder, embedded
from muniment.language.instructions import as_seen
from muniment.model.candidate import Candidate

Vector = NDArray[np.float32]


@dataclass(frozen=True)
class EmbeddedCandidate:
    """A candidate with the place of its text; `vector` is None for what says nothing an embedder knows.

    `coming` is its place by the embedder that is to come, where there is one.
    """

    candidate: Candidate
    vector: Vector | None
    coming: Vector | None = None


@dataclass(frozen=True)
class TextComparer:
    """An embedder, and the pack's measure for it; `coming` is the one that is to take its place (JOB-11)."""

    embedder: Embedder
    by: Comparison
    coming: Embedder | None = None

    async def probes(self, candidates: Sequence[Candidate]) -> list[EmbeddedCandidate]:
        """Where each candidate's text lies, as it is seen; an evidence link has none."""
        texts = [as_seen(candidate.text) for candidate in candidates]
        vectors = await embedded(self.embedder, texts)
        coming = await embedded(self.coming, texts) if self.coming is not None else [None] * len(texts)
        return [
            EmbeddedCandidate(one, _place(one, vector), _place(one, other))
            for one, vector, other in zip(candidates, vectors, coming, strict=True)
        ]


def _place(candidate: Candidate, vector: Vector | None) -> Vector | None:
    says_nothing = vector is None or candidate.write_class == "evidence_link" or not vector.any()
    return None if says_nothing else vector


def to_sql(vector: Vector) -> HalfVector:
    """A vector as the database reads it, in half precision: just as it sends one."""
    return HalfVector(pack(">hh", len(vector), 0) + vector.astype(">f2").tobytes())


def from_sql(sent: bytes) -> Vector:
    """A half-precision vector as the database sends it: its length, two bytes of nothing, the numbers."""
    return np.frombuffer(sent, dtype=">f2", offset=4).astype(np.float32)


def unpacked(sent: bytes, count: int) -> NDArray[np.float64]:
    """Many of them, sent one after the other."""
    if not count:
        return np.zeros((0, 0))
    # In double precision: sums then do not hang on the order in which the rows came.
    return np.frombuffer(sent, dtype=">f2").reshape(count, -1)[:, 2:].astype(np.float64)
