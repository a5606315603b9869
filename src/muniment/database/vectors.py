"""Vectors in half precision, as the database sends and reads them."""

from collections.abc import Sequence
from struct import pack as pack_bytes

import numpy as np
from numpy.typing import NDArray

from muniment.database.storage import HalfVector

Vector = NDArray[np.float32]


def to_sql(vector: Vector) -> HalfVector:
    """Pack a vector in half precision, as the database sends and reads it."""
    return HalfVector(pack_bytes(">hh", len(vector), 0) + vector.astype(">f2").tobytes())


def many_from_sql(sent: Sequence[bytes]) -> NDArray[np.float32]:
    """Unpack half-precision vectors of one length: each has its length, two empty bytes, and the numbers."""
    return np.frombuffer(b"".join(sent), dtype=">f2").reshape(len(sent), -1)[:, 2:].astype(np.float32)


def unpacked(sent: bytes, count: int) -> NDArray[np.float64]:
    """Unpack many half-precision vectors that were sent one after the other."""
    if not count:
        return np.zeros((0, 0))
    # In double precision: sums then do not depend on the order of the rows.
    return np.frombuffer(sent, dtype=">f2").reshape(count, -1)[:, 2:].astype(np.float64)


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
