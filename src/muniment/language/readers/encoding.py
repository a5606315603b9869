"""Texts as the readers' graphs take them: tokens, their word vectors, and windows over long texts."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load as load_tensors
from tokenizers import Encoding, Tokenizer

from muniment.errors import ReadersUnavailable

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]
# Tokens that two neighbouring windows share.
_SHARED = 32
# Characters of a text that are looked at for each token it can have at most: no word piece is longer.
_LONGEST_TOKEN = 100
_SURROGATE = re.compile("[\ud800-\udfff]")


class Tokens(NamedTuple):
    """A window of a text, or of two: ids, types, and the characters of each token but the first and last (`spans`)."""

    ids: Sequence[int]
    types: Sequence[int]
    spans: Sequence[tuple[int, int]]


class WordTable:
    """The word vectors that all readers share: int8, with a scale for each row."""

    def __init__(self, content: bytes) -> None:
        try:
            found = load_tensors(content)
            rows, scales = found["rows"], found["scales"]
        except Exception as error:
            raise ReadersUnavailable(f"the readers' word table cannot be read: {type(error).__name__}") from error
        self._rows: NDArray[np.int8] = rows
        self._scales: Floats = scales.astype(np.float32)

    def vectors(self, ids: Sequence[int]) -> Floats:
        """Return the vectors of tokens, a row each."""
        return self._rows[ids].astype(np.float32) * self._scales[ids][:, None]


class TextEncoder:
    """Splits texts into the tokens of the readers' vocabulary."""

    def __init__(self, content: bytes) -> None:
        try:
            self._tokenizer = Tokenizer.from_buffer(content)
        except Exception as error:
            raise ReadersUnavailable(f"the readers' tokenizer cannot be read: {type(error).__name__}") from error
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()

    def pair(self, a: str, b: str, most: int) -> Tokens:
        """Return the tokens of two texts, `[CLS] a [SEP] b [SEP]`; of the longer one the end is left out."""
        cut = most * _LONGEST_TOKEN
        one, other = self._bare(a[:cut]).ids, self._bare(b[:cut]).ids
        room = most - 3
        first = min(len(one), max(room - room // 2, room - len(other)))
        second = min(len(other), room - first)
        start, stop = self._ends()
        ids = [start, *one[:first], stop, *other[:second], stop]
        return Tokens(ids, [0] * (first + 2) + [1] * (second + 1), ())

    def windows(self, text: str, most: int, *, casing: bool = False) -> Iterator[Tokens]:
        """Yield the windows of a text, each `[CLS] ... [SEP]`, that overlap; one window for a short text.

        With `casing` the type of a token says whether it has an upper-case letter.
        """
        whole = self._bare(text)
        start, stop = self._ends()
        room = most - 2
        step = room - min(_SHARED, room // 2)
        for first in range(0, max(1, len(whole.ids) - (room - step)), step):
            ids = whole.ids[first : first + room]
            spans = whole.offsets[first : first + room]
            types = [int(casing and _has_capital(text[low:high])) for low, high in spans]
            yield Tokens([start, *ids, stop], [0, *types, 0], spans)

    def _bare(self, text: str) -> Encoding:
        # A character for each, so that the spans stay those of the text.
        return self._tokenizer.encode(_SURROGATE.sub("\ufffd", text), add_special_tokens=False)

    def _ends(self) -> tuple[int, int]:
        start, stop = self._tokenizer.token_to_id("[CLS]"), self._tokenizer.token_to_id("[SEP]")
        if start is None or stop is None:
            raise ReadersUnavailable("the readers' tokenizer has no [CLS] or no [SEP]")
        return start, stop


def _has_capital(word: str) -> bool:
    return word != word.lower()
