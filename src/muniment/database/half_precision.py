"""Dot products of one vector with many that are in half precision, by a compiled kernel where one is installed.

A kernel's result is used only to leave out memories that cannot be among the best; the ranking itself is computed in
double precision. `ERROR` bounds how far a kernel's result may be from the exact one, so that answers do not depend on
which kernel is used.
"""

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

Halves = NDArray[np.float16]
Kernel = Callable[[Halves, NDArray[np.float64]], NDArray[np.float64]]

# The greatest error of a dot product with a vector of length one, as a share of the other vector's length. Rounding the
# query to half precision accounts for at most 0.0005 of it.
ERROR = 0.002
# Rows that are converted to double precision at a time: 1 MiB for 256 dimensions. With four times as many each takes
# four times as much processor time, because the product is then divided among threads.
CHUNK = 512


def exact_dots(vectors: Halves, query: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute the dot products in double precision."""
    products = np.empty(len(vectors))
    for first in range(0, len(vectors), CHUNK):
        products[first : first + CHUNK] = vectors[first : first + CHUNK].astype(np.float64) @ query
    return products


def vector_lengths(vectors: Halves) -> NDArray[np.float64]:
    """Compute the length of each vector in double precision."""
    lengths = np.empty(len(vectors))
    for first in range(0, len(vectors), CHUNK):
        lengths[first : first + CHUNK] = np.linalg.norm(vectors[first : first + CHUNK].astype(np.float64), axis=1)
    return lengths


@cache
def fast_dots() -> Kernel:
    """Return the compiled kernel if it is installed and exact enough on this processor, else `exact_dots`."""
    try:
        from numkong import cdist
    except ImportError:
        return exact_dots

    def compiled(vectors: Halves, query: NDArray[np.float64]) -> NDArray[np.float64]:
        if not len(vectors):
            return np.zeros(0)
        products = cdist(query.astype(np.float16)[np.newaxis], vectors, metric="dot")
        return np.asarray(products, dtype=np.float64).reshape(-1)

    return compiled if _is_exact_enough(compiled) else exact_dots


def _is_exact_enough(kernel: Kernel) -> bool:
    """Whether a kernel stays within half of the error bound on vectors of several lengths and directions."""
    numbers = np.random.default_rng(1)
    vectors = numbers.standard_normal((512, 256))
    vectors[256:] = np.abs(vectors[256:])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    halves, query = vectors.astype(np.float16), vectors[-1]
    return bool(np.abs(kernel(halves, query) - exact_dots(halves, query)).max() < ERROR / 2)
