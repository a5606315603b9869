"""Senses: what texts are compared with, and where the text of a candidate lies."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from muniment.embedding import Embedder, Vectors, embedded
from muniment.model.candidate import Candidate
from muniment.policy.contradiction import Comparison
from muniment.policy.instructions import as_seen

Vector = NDArray[np.float32]


@dataclass(frozen=True)
class Probe:
    """A candidate with the place of its text; `vector` is None for what says nothing an embedder knows."""

    candidate: Candidate
    vector: Vector | None


@dataclass(frozen=True)
class Senses:
    """An embedder, and the pack's measure for it; `coming` is the one that is to take its place (JOB-11)."""

    embedder: Embedder
    by: Comparison
    coming: Embedder | None = None

    async def probes(self, candidates: Sequence[Candidate]) -> list[Probe]:
        """Where each candidate's text lies, as it is seen; an evidence link has none."""
        vectors = await embedded(self.embedder, [as_seen(candidate.text) for candidate in candidates])
        return [
            Probe(one, vector if one.write_class != "evidence_link" and vector.any() else None)
            for one, vector in zip(candidates, vectors, strict=True)
        ]


def to_sql(vector: Vector) -> str:
    """A vector as the database reads it, in half precision."""
    return f"[{','.join(map(repr, vector.astype(np.float16).astype(np.float64).tolist()))}]"


def from_sql(sent: bytes) -> Vector:
    """A half-precision vector as the database sends it: its length, two bytes of nothing, the numbers."""
    return np.frombuffer(sent, dtype=">f2", offset=4).astype(np.float32)


def unpacked(sent: bytes, count: int) -> Vectors:
    """Many of them, sent one after the other."""
    if not count:
        return np.zeros((0, 0), dtype=np.float32)
    return np.frombuffer(sent, dtype=">f2").reshape(count, -1)[:, 2:].astype(np.float32)
