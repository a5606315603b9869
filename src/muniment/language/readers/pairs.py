"""The judge of pairs: whether two texts contradict one another, or say the same (CTR-2, REV-7)."""

from typing import NamedTuple

from muniment.language.readers.encoding import TextEncoder
from muniment.language.readers.graph import Graph
from muniment.language.readers.weights import ReaderFile

CONTRADICTS, ENTAILS, SAME, RELATED = "contradicts", "entails", "same", "related"
# From this probability of a contradiction or an entailment on, the pair is also read in the other order.
_WORTH_REVERSING = 0.1


class PairScores(NamedTuple):
    """The probabilities that two texts contradict one another, and that they say the same."""

    contradicts: float
    same: float


class PairGraph:
    """A graph that reads two texts in one order."""

    def __init__(self, file: ReaderFile, graph: Graph, encoder: TextEncoder) -> None:
        self.file = file
        self._graph, self._encoder = graph, encoder
        self._contradicts, self._entails = (file.labels.index(label) for label in (CONTRADICTS, ENTAILS))

    def scores(self, a: str, b: str) -> tuple[float, float]:
        """Return the probabilities that `b` contradicts `a`, and that it follows from it."""
        (scores,) = self._graph.run(self._encoder.pair(a, b, self.file.max_tokens), "scores")
        return float(scores[self._contradicts]), float(scores[self._entails])


class PairReader:
    """Reads two texts together; the order of the texts does not matter.

    A small graph, the prefilter, reads a pair first: most texts have nothing to do with one another, and a third of the
    work is enough to see that. The judge reads the others.
    """

    def __init__(self, judge: PairGraph, prefilter: PairGraph) -> None:
        self._judge, self._prefilter = judge, prefilter
        self._related = prefilter.file.thresholds[RELATED]

    def read(self, a: str, b: str) -> PairScores:
        """Return the scores of a pair. They say the same as far as each entails the other."""
        # In a fixed order, so that the scores do not depend on which text came first.
        one, other = sorted((a, b))
        if self.related(one, other) < self._related:
            return PairScores(0.0, 0.0)
        contradicts, entails = self._judge.scores(one, other)
        if max(contradicts, entails) < _WORTH_REVERSING:
            return PairScores(contradicts, 0.0)
        back = self._judge.scores(other, one)
        return PairScores((contradicts + back[0]) / 2, min(entails, back[1]))

    def related(self, a: str, b: str) -> float:
        """Return the prefilter's probability that either text contradicts the other or follows from it."""
        return sum(self._prefilter.scores(*sorted((a, b))))
