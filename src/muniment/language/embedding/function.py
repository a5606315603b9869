"""An embedder from any function, and the checks that the vectors of every such embedder must pass."""

import re
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from inspect import iscoroutinefunction
from pathlib import PurePath

import numpy as np
from numpy.typing import ArrayLike, NDArray

from muniment.errors import EmbedderUnavailable, InvalidInput
from muniment.language.embedding.static import Vectors, without_surrogates

MOST_DIMENSIONS = 4000
TITLE = r"[A-Za-z0-9._:/-]{1,100}"
VERSION = r"[A-Za-z0-9._-]{1,40}"

Function = Callable[[list[str]], ArrayLike]


class NamedEmbedder:
    """An embedder with a name and dimensions."""

    def __init__(self, name: str, dimensions: int) -> None:
        self._name = name
        self._dimensions = dimensions

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._name!r}, dimensions={self._dimensions})"

    @property
    def name(self) -> str:
        """Name and version; vectors of different names are never compared."""
        return self._name

    @property
    def dimensions(self) -> int:
        """The length of every vector."""
        return self._dimensions


class CheckedEmbedder(NamedEmbedder, ABC):
    """An embedder whose every answer is checked and brought to unit length."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one row of unit length per text; the zero vector for a blank text, which is not passed on.

        Raises `EmbedderUnavailable` when embedding fails or gives anything but a finite row for each text.
        """
        return embed_by(self._encode, texts, name=self._name, dimensions=self._dimensions)

    @abstractmethod
    def _encode(self, texts: list[str]) -> ArrayLike:
        """Return one row of numbers for each text."""


class FunctionEmbedder(CheckedEmbedder):
    """Embeds texts with a function; several threads may call it at once."""

    def __init__(self, function: Function, *, name: str, dimensions: int) -> None:
        """`function` takes a list of texts and returns one row of numbers for each.

        Raises `InvalidInput` for a name that is not `<name>@<version>`, or dimensions not from 1 to 4000.
        """
        if not callable(function) or iscoroutinefunction(function):
            raise InvalidInput("expected a function that is called with a list of texts, not async", field="function")
        super().__init__(check_name(name), check_dimensions(dimensions))
        self._function = function

    def _encode(self, texts: list[str]) -> ArrayLike:
        return self._function(texts)


def embed_by(function: Function, texts: Sequence[str], *, name: str, dimensions: int) -> Vectors:
    """Return the function's vectors, checked and of unit length; zeros for blank texts."""
    vectors = np.zeros((len(texts), dimensions), dtype=np.float32)
    rows = [row for row, text in enumerate(texts) if text.strip()]
    if not rows:
        return vectors
    try:
        answer = function([without_surrogates(texts[row]) for row in rows])
    except EmbedderUnavailable:
        raise
    except Exception as error:
        # Not the error's message, which may quote a text: its class and where it was raised.
        raise EmbedderUnavailable(f"the embedder {name} raised {type(error).__name__}{_place(error)}") from None
    vectors[rows] = _unit_rows(answer, (len(rows), dimensions), name)
    return vectors


def check_name(name: str, *, field: str = "name") -> str:
    """Return the name if it is `<name>@<version>`; raises `InvalidInput` otherwise."""
    if not isinstance(name, str) or not re.fullmatch(f"{TITLE}@{VERSION}", name):
        raise InvalidInput(
            "expected <name>@<version>: up to 100 letters, digits and ._:/- before the @, up to 40 letters, digits "
            "and ._- after it",
            field=field,
        )
    return name


def check_dimensions(dimensions: int, *, field: str = "dimensions") -> int:
    """Return the number if vectors of that length can be stored; raises `InvalidInput` otherwise."""
    if not isinstance(dimensions, int) or isinstance(dimensions, bool) or not 1 <= dimensions <= MOST_DIMENSIONS:
        raise InvalidInput(f"expected a whole number from 1 to {MOST_DIMENSIONS}", field=field)
    return dimensions


def _place(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return f" at {PurePath(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""


def _unit_rows(answer: ArrayLike, expected: tuple[int, int], name: str) -> Vectors:
    try:
        given = np.asarray(answer)
    except Exception:
        given = np.empty(0, dtype=np.object_)
    if given.dtype.kind not in "fiu":
        raise EmbedderUnavailable(f"the embedder {name} gave something else than rows of numbers, all of one length")
    if given.shape != expected:
        raise EmbedderUnavailable(f"the embedder {name} gave vectors of shape {given.shape}, expected {expected}")
    with np.errstate(over="ignore"):
        rows = given.astype(np.float64)
    if not np.isfinite(rows).all():
        raise EmbedderUnavailable(f"the embedder {name} gave a number that is not finite")
    # Divided by the largest number first: the squares of very large and very small ones would be lost.
    rows /= _or_one(np.abs(rows).max(axis=1, keepdims=True))
    rows /= _or_one(np.linalg.norm(rows, axis=1, keepdims=True))
    return rows.astype(np.float32)


def _or_one(lengths: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(lengths == 0, 1, lengths)
