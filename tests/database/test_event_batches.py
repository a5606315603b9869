"""What happened in a transaction as events: as few as can list its rows, and in the order in which it happened."""

import json
from collections.abc import Iterable, Sequence
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.database.event_batches import BODY_BYTES, Batch, Item, batched
from muniment.database.row_lists import AT_MOST, EventRow
from muniment.model.events import EventType


def rows(count: int) -> list[EventRow]:
    return [EventRow("captures", 1, f"cap_{n}", b"") for n in range(count)]


def item(name: str, actor: str = "boris", rows_before: int = 0, **data: Any) -> Item:
    return Item(cast("EventType", f"memory.{name}"), actor, data, rows_before)


def items_of(event: Batch) -> list[dict[str, Any]]:
    data = json.loads(event.body)
    return data.get("items", [data])


def listed(events: Iterable[Batch]) -> list[EventRow]:
    return [row for event in events for row in event.rows]


@pytest.mark.rule("AUD-1")
def test_what_one_actor_did_several_times_is_one_event_and_what_happened_once_has_its_data_alone() -> None:
    events = list(
        batched(
            [
                item("reviewed", proposal_id="mwp_1"),
                item("promoted", memory_id="pm_1", proposal_id="mwp_1"),
                item("correction", "anna", memory_id="pm_1"),
                item("reviewed", proposal_id="mwp_2"),
                item("promoted", memory_id="pm_2", proposal_id="mwp_2"),
                item("reviewed", "auto", proposal_id="mwp_3"),
            ],
            [],
        )
    )
    assert [(event.type, event.actor, json.loads(event.body)) for event in events] == [
        ("memory.reviewed", "boris", {"items": [{"proposal_id": "mwp_1"}, {"proposal_id": "mwp_2"}]}),
        (
            "memory.promoted",
            "boris",
            {
                "items": [
                    {"memory_id": "pm_1", "proposal_id": "mwp_1"},
                    {"memory_id": "pm_2", "proposal_id": "mwp_2"},
                ]
            },
        ),
        ("memory.correction", "anna", {"memory_id": "pm_1"}),
        ("memory.reviewed", "auto", {"proposal_id": "mwp_3"}),
    ]


@pytest.mark.rule("AUD-1")
def test_notes_are_joined_only_if_they_are_about_the_same() -> None:
    notes = [item("note", about="collected", memories=n) for n in range(2)] + [item("note", about="purged")]
    assert [len(items_of(event)) for event in batched(notes, [])] == [2, 1]


@pytest.mark.rule("AUD-1")
def test_a_memory_that_is_retracted_after_its_promotion_is_so_in_the_log_too() -> None:
    happened = [
        item("retracted", memory_id="pm_1", superseded_by="pm_2"),
        item("promoted", memory_id="pm_2"),
        item("retracted", memory_id="pm_2", superseded_by=None),
        item("promoted", memory_id="pm_3"),
    ]
    order = [(event.type, [one["memory_id"] for one in items_of(event)]) for event in batched(happened, [])]
    assert order == [
        ("memory.retracted", ["pm_1"]),
        ("memory.promoted", ["pm_2", "pm_3"]),
        ("memory.retracted", ["pm_2"]),
    ]


@pytest.mark.rule("AUD-1", "AUD-4")
@pytest.mark.parametrize(
    ("items", "written", "sizes", "counts"),
    [
        (500, 500, [500], [500]),
        (501, 501, [250, 251], [500, 1]),
        (500, 1000, [250, 250], [500, 500]),
        (500, 1001, [166, 167, 167], [500, 500, 1]),
        (600, 0, [300, 300], [0, 0]),
        # What a single item wrote is listed in notes too.
        (1, 1200, [1, 1, 1], [500, 500, 200]),
        (0, 1, [1], [1]),
    ],
)
def test_an_event_has_at_most_five_hundred_items_and_rows(
    items: int, written: int, sizes: list[int], counts: list[int]
) -> None:
    wrote = rows(written)
    happened = [item("promoted", rows_before=written * n // max(1, items), memory_id=f"pm_{n}") for n in range(items)]
    events = list(batched(happened, wrote))
    assert [len(items_of(event)) for event in events] == sizes
    assert [len(event.rows) for event in events] == counts
    assert listed(events) == wrote
    notes = [json.loads(event.body) for event in events if event.type == "memory.note"]
    assert notes == [{"about": "rows", "rows": count} for count in counts[len(counts) - len(notes) :]]


@pytest.mark.rule("AUD-1", "EVT-1")
def test_long_items_are_several_events_that_every_receiver_accepts() -> None:
    used = {"recalls": [f"rcl_{n:026d}" for n in range(100)]}
    happened = [item("retracted", memory_id=f"pm_{n}", **used) for n in range(100)]
    events = list(batched(happened, rows(100)))
    assert [one for event in events for one in items_of(event)] == [one.data for one in happened]
    assert len(events) == 6
    assert all(len(event.body) < BODY_BYTES + 100 for event in events)
    assert sum(len(event.rows) for event in events) == 100


NAMES = ("promoted", "retracted", "reviewed", "contradiction")
happenings = st.lists(
    st.tuples(st.sampled_from(NAMES), st.sampled_from("ab"), st.sampled_from("12345"), st.integers(0, 300)), max_size=40
)


@pytest.mark.rule("AUD-1", "AUD-4")
@given(happenings)
def test_nothing_is_lost_and_what_happened_to_each_thing_keeps_its_order(
    happened: Sequence[tuple[str, str, str, int]],
) -> None:
    written = 0
    items: list[Item] = []
    for number, (name, actor, thing, count) in enumerate(happened):
        written += count
        items.append(item(name, actor, written, memory_id=thing, number=number))
    wrote = rows(written + 7)
    events = list(batched(items, wrote))
    told = [(event, one) for event in events for one in items_of(event) if "number" in one]
    assert sorted(one["number"] for _, one in told) == list(range(len(items)))
    for thing in "12345":
        numbers = [one["number"] for _, one in told if one["memory_id"] == thing]
        assert numbers == sorted(numbers)
    for event, one in told:
        assert (event.type, event.actor) == items[one["number"]][:2]
    assert all(len(event.rows) <= AT_MOST for event in events)
    assert sorted(row.row_id for row in listed(events)) == sorted(row.row_id for row in wrote)
