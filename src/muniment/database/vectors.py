"""Vectors in half precision, as the database sends and reads them."""

from collections.abc import Sequence
from struct import pack as pack_bytes

import numpy as np
from numpy.typing import NDArray

from muniment.database.storage import HalfVector

Vector = NDArray[np.float32]

# Vectors converted to double precision at a time: 1 MiB for 256 dimensions. Four times as many take four times as much
# processor time each, because the product is then divided among threads.
_AT_ONCE = 512


def to_sql(vector: Vector) -> HalfVector:
    """Pack a vector in half precision, as the database sends and reads it."""
    return HalfVector(pack_bytes(">hh", len(vector), 0) + vector.astype(">f2").tobytes())


def many_from_sql(sent: Sequence[bytes]) -> NDArray[np.float32]:
    """Unpack half-precision vectors of one length: each has its length, two empty bytes, and the numbers."""
    return np.frombuffer(b"".join(sent), dtype=">f2").reshape(len(sent), -1)[:, 2:].astype(np.float32)


def similarities(sent: bytes, count: int, vector: Vector) -> NDArray[np.float64]:
    """Compare many half-precision vectors, sent one after the other, with a vector of length 1: the cosine of each.

    In double precision, so that a sum does not depend on the path that computed it; a part at a time.
    """
    near = np.zeros(count)
    rows = np.frombuffer(sent, dtype=">f2").reshape(count, -1)[:, 2:] if count else np.zeros((0, len(vector)))
    for first in range(0, count, _AT_ONCE):
        some = rows[first : first + _AT_ONCE].astype(np.float64)
        lengths = np.linalg.norm(some, axis=1)
        near[first : first + _AT_ONCE] = some @ vector.astype(np.float64) / np.where(lengths > 0, lengths, 1)
    return near


# Rows of a block: the product of two blocks of 256 dimensions is small enough that BLAS uses one thread.
_BLOCK = 32


def inner_products(rows: NDArray[np.float32], others: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the inner product of each row with each of the others.

    In blocks, for BLAS would divide a large product between threads, which wait for the next one at full speed: that
    costs more processor time than the product.
    """
    first, second = _blocks(rows), _blocks(others)
    products = np.matmul(first[:, np.newaxis], second.transpose(0, 2, 1)[np.newaxis])
    return products.transpose(0, 2, 1, 3).reshape(len(first) * _BLOCK, -1)[: len(rows), : len(others)]


def _blocks(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    padded = np.zeros((-(-len(rows) // _BLOCK), _BLOCK, rows.shape[1]), dtype=np.float32)
    padded.reshape(-1, rows.shape[1])[: len(rows)] = rows
    return padded
