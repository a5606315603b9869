"""The tagger: which characters of a text are a person, an address, a number, or tell of a special category (RED-2)."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from muniment.language.readers.encoding import Floats, TextEncoder, Tokens
from muniment.language.readers.graph import Graph
from muniment.language.readers.weights import ReaderFile

OUTSIDE = "O"
# How the label of a special category ends, by whether it is said of the speaker.
SELF, OTHER = "self", "other"
# The graph's outputs, one for each layer of labels.
OUTPUTS = ("tags", "special")
# Characters between two tokens of one span: a space and a sign at most.
_GAP = 2


class Tag(NamedTuple):
    """A span of a text with its label, and the mean probability of the label over its tokens.

    The label of a special category ends in `:self` or `:other`, by whether it is said of the speaker.
    """

    start: int
    end: int
    label: str
    score: float


class _Layer(NamedTuple):
    """Labels of which a token has one, an output of the graph: their names without B- and I-."""

    names: tuple[str, ...]
    begins: tuple[bool, ...]


class TaggerReader:
    """Reads one text, a long one in windows; each token is tagged in the window in which it is furthest inside.

    The labels of the manifest are one layer or two, each an output that begins with `O`. The second has the special
    categories, whose words may hold a name: `HEALTH-self` and `HEALTH-other` say of whom.
    """

    def __init__(self, file: ReaderFile, graph: Graph, encoder: TextEncoder) -> None:
        self.file = file
        self._graph, self._encoder = graph, encoder
        starts = [index for index, label in enumerate(file.labels) if label == OUTSIDE]
        ends = [*starts[1:], len(file.labels)]
        self._layers = [_layer(file.labels[first:last]) for first, last in zip(starts, ends, strict=True)]
        self._outputs = OUTPUTS[: len(self._layers)]

    def read(self, text: str) -> tuple[Tag, ...]:
        """Return the tags of a text, in order, whatever their scores."""
        scores: _Scores = {}
        for window in self._encoder.windows(text, self.file.max_tokens, casing=True):
            _keep(window, self._graph.run(window, *self._outputs), scores)
        spans = sorted(scores)
        tags = [
            _whole_words(tag, text)
            for number, layer in enumerate(self._layers)
            for tag in _spans(layer, spans, [scores[span][1][number] for span in spans])
        ]
        return tuple(sorted(tags))


# By the characters of a token: how far inside its window it is, and its row of each output.
_Scores = dict[tuple[int, int], tuple[int, list[Floats]]]


def _keep(window: Tokens, found: list[Floats], scores: _Scores) -> None:
    """Keep the rows of a window's tokens, unless another window has them further inside."""
    last = len(window.spans) - 1
    for index, span in enumerate(window.spans):
        inside = min(index, last - index)
        if span[0] < span[1] and (span not in scores or scores[span][0] < inside):
            scores[span] = (inside, [output[index + 1] for output in found])


def _layer(labels: Sequence[str]) -> _Layer:
    names = tuple(_name(label) for label in labels)
    return _Layer(names, tuple(label.startswith("B-") for label in labels))


def _name(label: str) -> str:
    if label == OUTSIDE:
        return ""
    return label[2:] if label.startswith(("B-", "I-")) else label.replace("-", ":")


def _spans(layer: _Layer, spans: Sequence[tuple[int, int]], rows: Sequence[Floats]) -> list[Tag]:
    """Join neighbouring tokens of one label to spans.

    The probability of a label is that of its B- and I- together, that of a category of whomever it is said.
    """
    kinds = [name.partition(":")[0] for name in layer.names]
    tags: list[Tag] = []
    scores: list[list[float]] = []
    for (start, end), row in zip(spans, rows, strict=True):
        best = int(np.argmax(row))
        name = layer.names[best]
        if not name:
            continue
        score = float(sum(row[index] for index, kind in enumerate(kinds) if kind == kinds[best]))
        if tags and _goes_on(tags[-1], start, name, begins=layer.begins[best]):
            tags[-1] = tags[-1]._replace(end=end)
            scores[-1].append(score)
        else:
            tags.append(Tag(start, end, name, score))
            scores.append([score])
    return [tag._replace(score=sum(some) / len(some)) for tag, some in zip(tags, scores, strict=True)]


def _goes_on(before: Tag, start: int, label: str, *, begins: bool) -> bool:
    """Whether a token is part of the span before it: within a word always, else where it does not begin one."""
    gap = start - before.end
    return before.label == label and (gap == 0 or (gap <= _GAP and not begins))


def _whole_words(tag: Tag, text: str) -> Tag:
    """Return the tag from the start of its first word to the end of its last: tokens may be parts of words."""
    start, end = tag.start, tag.end
    while start > 0 and text[start].isalnum() and text[start - 1].isalnum():
        start -= 1
    while end < len(text) and text[end - 1].isalnum() and text[end].isalnum():
        end += 1
    return tag._replace(start=start, end=end)
