"""Vectors in half precision and columns of numbers, as the database sends and reads them."""

from collections.abc import Sequence
from struct import pack as pack_bytes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muniment.database.half_precision import CHUNK, Halves
from muniment.database.storage import HalfVector

Vector = NDArray[np.float32]


def to_sql(vector: Vector) -> HalfVector:
    """Pack a vector in half precision, as the database sends and reads it."""
    return HalfVector(pack_bytes(">hh", len(vector), 0) + vector.astype(">f2").tobytes())


def many_from_sql(sent: Sequence[bytes]) -> NDArray[np.float32]:
    """Unpack vectors of one length into single precision."""
    return halves_from_sql(b"".join(sent), len(sent)).astype(np.float32)


def halves_from_sql(sent: bytes, count: int) -> Halves:
    """Return a view of `count` vectors of one length that were sent one after the other; at least one.

    Each is sent as its number of dimensions, two empty bytes, and its numbers, with the high byte first.
    """
    return np.frombuffer(sent, dtype=">f2").reshape(count, -1)[:, 2:]


def numbers_from_sql(sent: bytes | None, kind: str) -> NDArray[Any]:
    """Unpack a column of numbers of a numpy type, such as `>f8`, into this machine's byte order."""
    return np.frombuffer(sent or b"", dtype=kind).astype(np.dtype(kind).newbyteorder("="))


def similarities(sent: bytes, count: int, vector: Vector) -> NDArray[np.float64]:
    """Return the cosine of each of `count` vectors, sent one after the other, with a vector of length 1.

    Computed in double precision, so that it does not matter whether the statements or the index in memory are ranked
    from.
    """
    cosines = np.zeros(count)
    if not count:
        return cosines
    rows = halves_from_sql(sent, count)
    for first in range(0, count, CHUNK):
        chunk = rows[first : first + CHUNK].astype(np.float64)
        lengths = np.linalg.norm(chunk, axis=1)
        cosines[first : first + CHUNK] = chunk @ vector.astype(np.float64) / np.where(lengths > 0, lengths, 1)
    return cosines


# Rows of a block: the product of two blocks of 256 dimensions is small enough that BLAS uses one thread.
_BLOCK = 32


def inner_products(rows: NDArray[np.float32], others: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the inner product of each row with each of the others.

    The product is computed in blocks: BLAS would divide a large one between threads, which then spin while they wait
    for the next one, and that costs more processor time than the product.
    """
    first, second = _blocks(rows), _blocks(others)
    products = np.matmul(first[:, np.newaxis], second.transpose(0, 2, 1)[np.newaxis])
    return products.transpose(0, 2, 1, 3).reshape(len(first) * _BLOCK, -1)[: len(rows), : len(others)]


def _blocks(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    padded = np.zeros((-(-len(rows) // _BLOCK), _BLOCK, rows.shape[1]), dtype=np.float32)
    padded.reshape(-1, rows.shape[1])[: len(rows)] = rows
    return padded
