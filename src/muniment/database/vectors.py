"""Vectors in half precision, as the database sends and reads them."""

from struct import pack as pack_bytes

import numpy as np
from numpy.typing import NDArray

from muniment.database.storage import HalfVector

Vector = NDArray[np.float32]


def to_sql(vector: Vector) -> HalfVector:
    """Pack a vector in half precision, as the database sends and reads it."""
    return HalfVector(pack_bytes(">hh", len(vector), 0) + vector.astype(">f2").tobytes())


def from_sql(sent: bytes) -> Vector:
    """Unpack a half-precision vector: its length, two empty bytes, the numbers."""
    return np.frombuffer(sent, dtype=">f2", offset=4).astype(np.float32)


def unpacked(sent: bytes, count: int) -> NDArray[np.float64]:
    """Unpack many half-precision vectors that were sent one after the other."""
    if not count:
        return np.zeros((0, 0))
    # In double precision: sums then do not depend on the order of the rows.
    return np.frombuffer(sent, dtype=">f2").reshape(count, -1)[:, 2:].astype(np.float64)
