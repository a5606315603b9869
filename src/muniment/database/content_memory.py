"""Arrays for vectors and words, which are content (ERA-1): kept out of core dumps and swap, overwritten when freed.

Where the system does not allow one of these, the arrays are used without it.
"""

import ctypes
import mmap
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

# Linux's MADV_WIPEONFORK, which Python does not name: a forked process finds zeros in the pages.
_WIPE_ON_FORK = 18
_ADVICE = (mmap.MADV_DONTDUMP, _WIPE_ON_FORK) if hasattr(mmap, "MADV_DONTDUMP") else ()
_system = ctypes.CDLL(None) if hasattr(mmap, "MAP_ANONYMOUS") else None


class _Pages(mmap.mmap):
    """Anonymous pages that are overwritten when the last array in them is gone."""

    def __del__(self) -> None:
        ctypes.memset(self.address, 0, len(self))

    @property
    def address(self) -> int:
        """Where the first page begins."""
        return ctypes.addressof(ctypes.c_char.from_buffer(self))


def content_array(shape: tuple[int, ...], kind: DTypeLike) -> NDArray[Any]:
    """Return an array of zeros that content may be written to."""
    size = int(np.prod(shape)) * np.dtype(kind).itemsize
    if not size or _system is None:
        return np.zeros(shape, dtype=kind)
    try:
        pages = _Pages(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError:  # The process has as many mappings as the system allows.
        return np.zeros(shape, dtype=kind)
    for advice in _ADVICE:
        with suppress(OSError):
            pages.madvise(advice)
    # This is refused beyond RLIMIT_MEMLOCK. Unmapping unlocks the pages.
    _system.mlock(ctypes.c_void_p(pages.address), ctypes.c_size_t(size))
    return np.frombuffer(pages, dtype=kind, count=size // np.dtype(kind).itemsize).reshape(shape)


def content_rows(array: NDArray[Any], rows: NDArray[np.intp]) -> NDArray[Any]:
    """Return a copy of those rows of an array, itself a content array."""
    copied = content_array((len(rows), *array.shape[1:]), array.dtype)
    copy_rows(array, rows, copied)
    return copied


def copy_rows(array: NDArray[Any], rows: NDArray[np.intp], to: NDArray[Any]) -> None:
    """Copy rows of an array to another one, without a copy on the heap in between."""
    if len(rows):
        # In its default mode numpy would make such a copy.
        np.take(array, rows, axis=0, out=to, mode="clip")
