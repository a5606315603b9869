"""Runs one reader's graph with onnxruntime on the CPU, one text at a time."""

from importlib import import_module
from typing import Any

import numpy as np

from muniment.errors import ReadersUnavailable
from muniment.language.readers.encoding import Floats, Integers, Tokens, WordTable
from muniment.language.readers.weights import RUNTIME

_ERRORS_ONLY = 3


class Graph:
    """A loaded graph; threads may share it.

    INVARIANT: one text a run, without padding. The graphs are quantised by the largest activation of a run, so that a
    text in a batch would score differently by what else is in it (by up to 0.012).
    """

    def __init__(self, name: str, content: bytes, words: WordTable) -> None:
        self.name = name
        self._words = words
        try:
            # Imported by name, as it is an extra.
            runtime: Any = import_module(RUNTIME)
            options = runtime.SessionOptions()
            # Several texts are read at once on threads; a run uses one, so that the sums have one order.
            options.intra_op_num_threads = options.inter_op_num_threads = 1
            options.enable_cpu_mem_arena = False
            options.log_severity_level = _ERRORS_ONLY
            self._session: Any = runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        except Exception as error:
            raise ReadersUnavailable(f"the reader {name} cannot be loaded: {type(error).__name__}") from error

    def run(self, tokens: Tokens, *outputs: str) -> list[Floats]:
        """Return the named outputs for one text, without the batch's dimension."""
        types: Integers = np.asarray([tokens.types], dtype=np.int64)
        given = {"words": self._words.vectors(tokens.ids)[None], "mask": np.ones_like(types), "types": types}
        try:
            found: list[Floats] = self._session.run(list(outputs), given)
        except Exception as error:
            raise ReadersUnavailable(f"the reader {self.name} failed: {type(error).__name__}") from error
        return [one[0] for one in found]
