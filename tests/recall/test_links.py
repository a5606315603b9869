"""The entity graph: what links two entities, which of them a query names, and how far a step reaches."""

from collections import defaultdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.promotion.rules import linked_entity
from muniment.recall.entities import MOST_REACHED, closeness, entities_in, follow_links

CUSTOMER = "customer:c1"


@pytest.mark.rule("REC-6")
@pytest.mark.parametrize(
    ("value", "link"),
    [
        ("order:o_1", "order:o_1"),
        ("account_x:A.b-c", "account_x:A.b-c"),
        ("order:" + "x" * 128, "order:" + "x" * 128),
        (CUSTOMER, None),
        ("email", None),
        ("see order:o_1", None),
        ("order:o_1\n", None),
        ("Order:o_1", None),
        ("1order:o", None),
        ("order:", None),
        (":o_1", None),
        ("order:" + "x" * 129, None),
        ("http://example.com", None),
        (["order:o_1"], None),
        ({"order": "order:o_1"}, None),
        (17, None),
        (None, None),
        (True, None),
    ],
)
def test_a_fact_ties_its_entity_to_another_that_is_its_whole_value(value: Any, link: str | None) -> None:
    assert linked_entity(CUSTOMER, value) == link


def test_a_fact_about_no_entity_ties_nothing() -> None:
    assert linked_entity(None, "order:o_1") is None


@pytest.mark.rule("REC-2")
@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("what of customer:c1?", ["customer:c1"]),
        ("customer:c1, order:o.1 and customer:c1.", ["customer:c1", "order:o.1"]),
        ("(customer:c1)", ["customer:c1"]),
        ("nothing at 10:30 in here", []),
        ("http://example.com/path", []),
        ("xcustomer:c1", ["xcustomer:c1"]),
        ("Xcustomer:c1", []),
        ("a.customer:c1", []),
        ("", []),
    ],
)
def test_the_entities_that_a_query_names_are_each_found_once(query: str, named: list[str]) -> None:
    assert entities_in(query) == named


@given(query=st.text("ab:._-1 ,\u00e9?", max_size=60))
def test_any_query_can_be_read_for_names(query: str) -> None:
    found = entities_in(query)
    assert len(found) == len(set(found))
    assert all(name in query for name in found)


def test_the_nearer_an_entity_is_to_those_asked_for_the_closer_it_counts() -> None:
    reached = {"a:1": 0, "a:2": 1, "a:3": 2}
    assert dict(closeness(reached, "")) == {"a:1": 1.0, "a:2": 0.5, "a:3": 0.25}
    assert dict(closeness(reached, "about a:3 and b:1")) == {"a:1": 1.0, "a:2": 0.5, "a:3": 1.0, "b:1": 1.0}
    assert closeness(None, "nothing named") == []


# --- steps


def walked(ties: list[tuple[str, str]], start: str, hops: int) -> dict[str, int]:
    reached, around = {start: 0}, {start}
    for distance in range(1, hops + 1):
        around = follow_links(around, reached, ties, distance)
    return reached


@pytest.mark.rule("REC-6")
def test_a_step_goes_along_a_tie_in_either_direction() -> None:
    ties = [("a:1", "a:2"), ("a:3", "a:1"), ("a:3", "a:4"), ("a:5", "a:6")]
    assert walked(ties, "a:1", 1) == {"a:1": 0, "a:2": 1, "a:3": 1}
    assert walked(ties, "a:1", 2) == {"a:1": 0, "a:2": 1, "a:3": 1, "a:4": 2}
    assert walked([], "a:1", 2) == {"a:1": 0}


@pytest.mark.rule("REC-6")
def test_a_ring_ends_where_it_began() -> None:
    ties = [("a:1", "a:2"), ("a:2", "a:3"), ("a:3", "a:1"), ("a:1", "a:1")]
    assert walked(ties, "a:1", 2) == {"a:1": 0, "a:2": 1, "a:3": 1}
    reached = {"a:1": 0}
    assert follow_links(follow_links({"a:1"}, reached, ties, 1), reached, ties, 2) == set()


@pytest.mark.rule("REC-6")
def test_a_hub_is_cut_in_the_order_of_what_ties_it() -> None:
    ties = [("a:hub", f"a:{n}") for n in range(300)]
    reached = walked(ties, "a:hub", 1)
    assert list(reached) == ["a:hub", *(f"a:{n}" for n in range(MOST_REACHED))]


ENTITIES = st.integers(0, 9).map("a:{}".format)


@given(ties=st.lists(st.tuples(ENTITIES, ENTITIES), max_size=30), start=ENTITIES, hops=st.integers(0, 2))
def test_what_is_reached_is_all_within_that_many_steps_at_its_true_distance(
    ties: list[tuple[str, str]], start: str, hops: int
) -> None:
    beside: dict[str, set[str]] = defaultdict(set)
    for one, other in ties:
        beside[one].add(other)
        beside[other].add(one)
    expected, edge = {start: 0}, {start}
    for distance in range(1, hops + 1):
        edge = {name for here in edge for name in beside[here]} - expected.keys()
        expected |= dict.fromkeys(edge, distance)
    assert walked(ties, start, hops) == expected
