"""The graph as a drawing, the slider and what addresses say: pure, the same each time."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from muniment.console.graph import BOX_HEIGHT, BOX_WIDTH, LABEL_LETTERS, NAME_LETTERS, Drawing, draw, shorten
from muniment.console.slider import seconds, slider, time_from_seconds
from muniment.console.urls import console_url, format_time, parse_time, time_input_value
from muniment.errors import InvalidInput
from muniment.model.browse import Edge, Graph, Node, Turn
from muniment.model.ids import made_at, make_id

NOON = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)


def node(entity: str, distance: int) -> Node:
    return Node(entity=entity, distance=distance, memories=1)


def edge(entity: str, links_to: str, predicate: str | None = "knows", n: int = 0) -> Edge:
    return Edge(memory_id=f"pm_{entity}{links_to}{n}", entity=entity, predicate=predicate, links_to=links_to)


def boxes(drawing: Drawing) -> dict[str, tuple[float, float]]:
    return {box.node.entity: (box.x, box.y) for box in drawing.boxes}


def test_entities_are_placed_in_columns_by_their_distance_and_never_overlap() -> None:
    far = [node(f"c:{n}", 2) for n in range(40)]
    graph = Graph(
        nodes=(node("a:0", 0), node("b:0", 1), node("b:1", 1), *far),
        edges=(edge("a:0", "b:0"), edge("b:1", "a:0"), *(edge("b:0", one.entity) for one in far)),
    )
    drawing = draw(graph)
    places = boxes(drawing)
    assert len({places["a:0"][0], places["b:0"][0], places["c:0"][0]}) == 3
    assert places["a:0"][0] < places["b:1"][0] < places["c:39"][0]
    found = sorted(places.values())
    for (x, y), (next_x, next_y) in pairwise(found):
        assert next_x >= x + BOX_WIDTH or next_y >= y + BOX_HEIGHT
    assert all(0 <= x <= drawing.width - BOX_WIDTH and 0 <= y <= drawing.height - BOX_HEIGHT for x, y in found)


def test_the_same_graph_gives_the_same_drawing_in_whatever_order_it_comes() -> None:
    nodes = [node("a:0", 0), node("b:0", 1), node("b:1", 1)]
    edges = (edge("a:0", "b:0"), edge("a:0", "b:1"))
    one, other = draw(Graph(nodes=tuple(nodes), edges=edges)), draw(Graph(nodes=tuple(nodes[::-1]), edges=edges))
    assert boxes(one) == boxes(other)
    assert [line.path for line in one.lines] == [line.path for line in other.lines]


def test_an_entity_is_placed_near_those_it_is_linked_to() -> None:
    graph = Graph(
        nodes=(node("a:0", 0), node("b:1", 1), node("b:2", 1), node("c:x", 2), node("c:y", 2)),
        edges=(edge("a:0", "b:1"), edge("a:0", "b:2"), edge("b:1", "c:y"), edge("b:2", "c:x")),
    )
    places = boxes(draw(graph))
    assert places["c:y"][1] == places["b:1"][1] < places["c:x"][1] == places["b:2"][1]


def test_memories_that_say_the_same_way_are_one_line_and_the_two_ways_are_two() -> None:
    ties = (edge("a:0", "b:0", "knows"), edge("a:0", "b:0", "likes", 1), edge("b:0", "a:0", None))
    there, back = draw(Graph(nodes=(node("a:0", 0), node("b:0", 1)), edges=ties)).lines
    assert (there.label, len(there.edges), back.label) == ("knows +1", 2, "links to")
    assert there.path != back.path
    assert there.y != back.y


def test_a_tie_within_a_column_and_one_to_itself_stay_in_the_drawing() -> None:
    ties = (edge("a:0", "a:0"), edge("a:0", "b:0"), edge("a:0", "b:1"), edge("b:0", "b:1"), edge("b:0", "x:gone"))
    drawing = draw(Graph(nodes=(node("a:0", 0), node("b:0", 1), node("b:1", 1)), edges=ties))
    assert len(drawing.lines) == 4
    assert all(0 < line.x < drawing.width and 0 < line.y < drawing.height for line in drawing.lines)


def test_names_are_cut_in_their_middle() -> None:
    long = "customer:" + "a" * 100 + "_1001"
    drawing = draw(Graph(nodes=(node(long, 0), node("b:0", 1)), edges=(edge(long, "b:0", "p" * 128),)))
    name, label = drawing.boxes[0].name, drawing.lines[0].label
    assert (len(name), name[-5:], len(label)) == (NAME_LETTERS, "_1001", LABEL_LETTERS)
    assert shorten("short", 5) == "short"


def test_nothing_is_a_drawing_too() -> None:
    assert draw(Graph(nodes=())).boxes == ()


def turn(hours: float, began: int = 1, ended: int = 0) -> Turn:
    return Turn(at=NOON + timedelta(hours=hours), began=began, ended=ended)


def test_the_slider_goes_from_the_first_change_to_now_and_knows_the_changes_beside() -> None:
    turns = [turn(0), turn(1, 4, 2), turn(5, 0, 1)]
    found = slider(turns, turns[1].at, NOON + timedelta(hours=10))
    assert found is not None
    assert [tick.x for tick in found.ticks] == [0, 100, 500]
    assert (found.x, found.earlier, found.later) == (100, turns[0].at, turns[2].at)
    assert found.ticks[1].up == 2 * found.ticks[1].down > 0
    assert [time_from_seconds(tick.value) for tick in found.ticks] == [turn.at for turn in turns]


@pytest.mark.parametrize("hours", [-5, 0, 3, 50])
def test_a_moment_outside_is_at_an_end_of_the_slider(hours: float) -> None:
    found = slider([turn(0), turn(5)], NOON + timedelta(hours=hours), NOON + timedelta(hours=10))
    assert found is not None
    assert float(found.first) <= float(found.value) <= float(found.last)
    assert 0 <= found.x <= 1000


def test_where_nothing_changed_there_is_no_slider() -> None:
    assert slider([], NOON, NOON) is None
    assert slider([turn(1)], NOON, NOON) is None
    only = slider([turn(0)], NOON, NOON)
    assert only is not None
    assert only.ticks[0].x == 0


@pytest.mark.parametrize("micros", [0, 1, 123456, 999999])
def test_no_part_of_a_second_is_lost_on_the_slider(micros: int) -> None:
    at = NOON.replace(microsecond=micros)
    assert time_from_seconds(seconds(at)) == at


@pytest.mark.parametrize("wrong", ["x", "nan", "inf", "1e30", "-1e30"])
def test_a_slider_sends_nothing_else(wrong: str) -> None:
    with pytest.raises(InvalidInput, match="expected seconds since 1970"):
        time_from_seconds(wrong)


def test_an_address_leaves_out_what_is_empty_and_escapes_the_rest() -> None:
    assert console_url("memory") == "/console/memory"
    assert (
        console_url("memory", entity="a:b&c=<d>", user_id="", tier=None) == "/console/memory?entity=a%3Ab%26c%3D%3Cd%3E"
    )
    assert console_url("memory", at=NOON) == "/console/memory?at=2026-01-05T12%3A00%3A00Z"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("2026-01-05T12:00", NOON),
        ("2026-01-05T12:00:00Z", NOON),
        ("2026-01-05T14:00:00+02:00", NOON),
        (format_time(NOON.replace(microsecond=7)), NOON.replace(microsecond=7)),
        ("", None),
    ],
)
def test_a_moment_is_read_in_its_zone_else_in_utc(written: str, meant: datetime | None) -> None:
    assert parse_time(written, "at") == meant


@pytest.mark.parametrize("wrong", ["yesterday", "0001-01-01T00:00+14:00", "2026-13-01T00:00", "٢٠٢٦"])
def test_an_invalid_time_is_reported_and_not_shown(wrong: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        parse_time(wrong, "at")
    assert raised.value.field == "at"
    assert time_input_value(wrong) == ""


def test_a_field_for_a_moment_is_rounded_up_so_that_what_began_has_begun() -> None:
    assert time_input_value("2026-01-05T12:00:00Z") == "2026-01-05T12:00:00"
    assert time_input_value("2026-01-05T12:00:00.123001Z") == "2026-01-05T12:00:00.124"
    assert time_input_value("2026-01-05T12:00:00.999999Z") == "2026-01-05T12:00:01"
    assert time_input_value("9999-12-31T23:59:59.999999Z") == ""


def test_an_id_says_when_it_was_made() -> None:
    at = NOON.replace(microsecond=123000)
    assert made_at(make_id("rcl", at)) == at
    assert made_at("rcl_nothing") is None
    assert made_at("rcl_" + "f" * 28) is None
