"""The entity graph: entities to begin with, and its layout in columns by distance, ordered to avoid crossing links."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from math import inf
from statistics import fmean

from muniment.model.browse import Edge, Graph, MemorySummary, Node
from muniment.model.ids import is_ceid

BOX_WIDTH, BOX_HEIGHT = 172, 42
ROW, GAP, EDGE = 60, 150, 10
# Characters that fit into a box, and on a line between two.
NAME_LETTERS, LABEL_LETTERS = 21, 16
# The width of a character in a label, at most.
_LETTER = 6.5
TONES = 4
# Entities that are offered to choose from.
ENTITIES_OFFERED = 30
# How far a line between two boxes of one column bends out.
_BEND = 64


@dataclass(frozen=True)
class Box:
    """An entity in the drawing; `tone` is the colour of its namespace."""

    node: Node
    x: float
    y: float
    namespace: str
    name: str
    tone: int

    @property
    def middle(self) -> float:
        """The height at which lines meet it."""
        return self.y + BOX_HEIGHT / 2


@dataclass(frozen=True)
class Line:
    """The memories that link one entity to another, drawn as one arrow."""

    edges: tuple[Edge, ...]
    path: str
    x: float
    y: float
    label: str

    @property
    def label_width(self) -> float:
        """The width of the label, which is centred on `x`."""
        return len(self.label) * _LETTER


@dataclass(frozen=True)
class Drawing:
    """Boxes and lines with their positions."""

    width: float
    height: float
    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class OfferedEntity:
    """An entity to choose, with its share of the latest memories, and those that link it to another."""

    name: str
    memories: int
    links: int
    latest: datetime


def offered_entities(memories: Sequence[MemorySummary]) -> list[OfferedEntity]:
    """The entities of the latest memories: those with links first, then those with most memories."""
    about: dict[str, list[MemorySummary]] = {}
    for one in memories:
        if one.entity is not None:
            about.setdefault(one.entity, []).append(one)
    found = [
        OfferedEntity(
            name,
            len(all_of),
            sum(isinstance(one.value, str) and is_ceid(one.value) for one in all_of),
            max(one.promoted_at for one in all_of),
        )
        for name, all_of in about.items()
    ]
    return sorted(found, key=lambda one: (-one.links, -one.memories, one.name))[:ENTITIES_OFFERED]


def draw(graph: Graph) -> Drawing:
    """Lay out a graph, always in the same way; links to entities outside it are left out."""
    columns = _columns(graph)
    rows = max((len(column) for column in columns), default=0)
    height = max(rows, 1) * ROW + 2 * EDGE
    namespaces = sorted({_namespace(node.entity) for node in graph.nodes})
    boxes: dict[str, Box] = {}
    for place, column in enumerate(columns):
        top = (height - len(column) * ROW) / 2 + (ROW - BOX_HEIGHT) / 2
        for row, node in enumerate(column):
            namespace = _namespace(node.entity)
            boxes[node.entity] = Box(
                node=node,
                x=EDGE + place * (BOX_WIDTH + GAP),
                y=top + row * ROW,
                namespace=shorten(namespace, NAME_LETTERS),
                name=shorten(node.entity.partition(":")[2], NAME_LETTERS),
                tone=namespaces.index(namespace) % TONES + 1,
            )
    links: dict[tuple[str, str], list[Edge]] = defaultdict(list)
    for edge in graph.edges:
        if edge.entity in boxes and edge.links_to in boxes:
            links[edge.entity, edge.links_to].append(edge)
    lines = tuple(
        _line(boxes[one], boxes[other], tuple(edges), (other, one) in links) for (one, other), edges in links.items()
    )
    beside = any(boxes[one].x == boxes[other].x for one, other in links)
    width = 2 * EDGE + max(len(columns), 1) * (BOX_WIDTH + GAP) - GAP + (GAP if beside else 0)
    return Drawing(width, height, tuple(boxes.values()), lines)


def shorten(text: str, most: int) -> str:
    """Shorten a name in the middle: ids often differ only at the end."""
    if len(text) <= most:
        return text
    end = most // 3
    return f"{text[: most - end - 1]}…{text[-end:]}"


def _namespace(entity: str) -> str:
    return entity.partition(":")[0]


def _columns(graph: Graph) -> list[list[Node]]:
    """The nodes by distance; within a column, each is near its neighbours in the column before."""
    neighbours: dict[str, set[str]] = defaultdict(set)
    for edge in graph.edges:
        neighbours[edge.entity].add(edge.links_to)
        neighbours[edge.links_to].add(edge.entity)
    columns: list[list[Node]] = []
    places: dict[str, int] = {}

    def by_neighbours(node: Node) -> tuple[float, str]:
        known = [places[one] for one in neighbours[node.entity] if one in places]
        return (fmean(known) if known else inf, node.entity)

    for distance in sorted({node.distance for node in graph.nodes}):
        column = sorted((node for node in graph.nodes if node.distance == distance), key=by_neighbours)
        columns.append(column)
        places.update({node.entity: row for row, node in enumerate(column)})
    return columns


def _line(one: Box, other: Box, edges: tuple[Edge, ...], both_ways: bool) -> Line:
    # Two lines between the same boxes run side by side.
    shift = (-7 if one.node.entity < other.node.entity else 7) if both_ways else 0
    others = len(edges) - 1
    more = f" +{others}" if others else ""
    label = shorten(edges[0].predicate or "links to", LABEL_LETTERS - len(more)) + more
    if one.x == other.x:
        return _within_column(one, other, edges, label, shift)
    right = one.x < other.x
    begin = (one.x + BOX_WIDTH if right else one.x, one.middle + shift)
    end = (other.x if right else other.x + BOX_WIDTH, other.middle + shift)
    reach = abs(end[0] - begin[0]) / 2 * (1 if right else -1)
    # The label is nearer to the outer box, where lines are farther apart.
    along = 0.62 if right else 0.38
    rise = 3 * along**2 - 2 * along**3
    bent = (begin[0] + reach, begin[1], end[0] - reach, end[1])
    x = _bezier(begin[0], bent[0], bent[2], end[0], along)
    y = begin[1] + (end[1] - begin[1]) * rise
    return Line(edges, _curve(begin, bent, end), round(x, 1), round(y + 4, 1), label)


def _within_column(one: Box, other: Box, edges: tuple[Edge, ...], label: str, shift: float) -> Line:
    side = one.x + BOX_WIDTH
    first, last = (one.middle + shift, other.middle + shift) if one is not other else (one.middle - 9, one.middle + 9)
    out = side + _BEND
    path = _curve((side, first), (out, first, out, last), (side, last))
    return Line(edges, path, round(side + 0.75 * _BEND + 8, 1), round((first + last) / 2 + 4, 1), label)


def _bezier(a: float, b: float, c: float, d: float, t: float) -> float:
    u = 1 - t
    return u**3 * a + 3 * u**2 * t * b + 3 * u * t**2 * c + t**3 * d


def _curve(begin: tuple[float, float], bent: tuple[float, float, float, float], end: tuple[float, float]) -> str:
    a, b, c, d = bent
    return f"M{begin[0]:.1f},{begin[1]:.1f} C{a:.1f},{b:.1f} {c:.1f},{d:.1f} {end[0]:.1f},{end[1]:.1f}"
