"""The judge of pairs: whether two texts contradict one another, or say the same (CTR-2, REV-7)."""

from typing import NamedTuple

from muniment.language.readers.encoding import TextEncoder
from muniment.language.readers.graph import Graph
from muniment.language.readers.weights import ReaderFile

CONTRADICTS, ENTAILS, SAME = "contradicts", "entails", "same"
# From this probability of a contradiction or an entailment on, the pair is also read in the other order.
_WORTH_REVERSING = 0.1


class PairScores(NamedTuple):
    """The probabilities that two texts contradict one another, and that they say the same."""

    contradicts: float
    same: float


class PairReader:
    """Reads two texts together; the order of the texts does not matter."""

    def __init__(self, file: ReaderFile, graph: Graph, encoder: TextEncoder) -> None:
        self.file = file
        self._graph, self._encoder = graph, encoder
        self._contradicts, self._entails = (file.labels.index(label) for label in (CONTRADICTS, ENTAILS))

    def read(self, a: str, b: str) -> PairScores:
        """Return the scores of a pair. They say the same as far as each entails the other."""
        # In a fixed order, so that the scores do not depend on which text came first.
        one, other = sorted((a, b))
        contradicts, entails = self._scores(one, other)
        if max(contradicts, entails) < _WORTH_REVERSING:
            return PairScores(contradicts, 0.0)
        back = self._scores(other, one)
        return PairScores((contradicts + back[0]) / 2, min(entails, back[1]))

    def _scores(self, a: str, b: str) -> tuple[float, float]:
        (scores,) = self._graph.run(self._encoder.pair(a, b, self.file.max_tokens), "scores")
        return float(scores[self._contradicts]), float(scores[self._entails])
