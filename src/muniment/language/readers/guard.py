"""The guard: whether a text addresses the model, and whether it is worth knowing later (CAN-7)."""

from typing import NamedTuple

from muniment.language.readers.encoding import TextEncoder
from muniment.language.readers.graph import Graph
from muniment.language.readers.weights import ReaderFile

ATTACK, WORTH = "attack", "worth"


class GuardScores(NamedTuple):
    """The probabilities that a text addresses the model, and that it is worth knowing later."""

    attack: float
    worth: float


class GuardReader:
    """Reads one text, a long one in windows; the highest score of a window counts."""

    def __init__(self, file: ReaderFile, graph: Graph, encoder: TextEncoder) -> None:
        self.file = file
        self._graph, self._encoder = graph, encoder

    def read(self, text: str) -> GuardScores:
        """Return the scores of a text."""
        windows = self._encoder.windows(text, self.file.max_tokens)
        scores = [self._graph.run(window, ATTACK, WORTH) for window in windows]
        return GuardScores(*(max(float(one[index]) for one in scores) for index in (0, 1)))
