"""The hashes of the audit chain, and how changed events are reported, without a database."""

from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.audit.rules import (
    LEAF_BYTES,
    Batch,
    Mismatches,
    Sealable,
    batch_hash,
    check_batch,
    check_link,
    compare,
    event_hash,
    explain,
    leaves_of,
    root_of,
    unpack_leaves,
)

TENANT = b"acme"
NOON = 1_767_600_000_000_000


def event(seq: int, n: int = 0, **changes: object) -> Sealable:
    fields: dict[str, Any] = {"id": f"evt_{seq}_{n}", "type": "memory.captured", "at": NOON + seq, "actor": "bot"}
    fields |= {"body": b"{}", "rows": None, **changes}
    said = (fields["id"], fields["type"], fields["at"], fields["actor"], fields["body"], fields["rows"])
    return (seq, n, *said)


def batch_of(events: list[Sealable], number: int = 1, after: "Batch | None" = None) -> Batch:
    leaves = leaves_of(TENANT, events)
    last, prev, end = (events[-1][0], events[-1][1]), after and after.hash, after and after.last
    hash_ = batch_hash(TENANT, number, prev, end, last, len(events), root_of(leaves))
    return Batch(number, prev, end, events[0][0], last, len(events), leaves, root_of(leaves), hash_, b"")


def plain_tree(hashes: list[bytes]) -> bytes:
    """The definition of RFC 6962, word for word."""
    if len(hashes) == 1:
        return hashes[0]
    split = 1
    while split * 2 < len(hashes):
        split *= 2
    return sha256(b"\x01" + plain_tree(hashes[:split]) + plain_tree(hashes[split:])).digest()


@pytest.mark.rule("AUD-2")
@given(st.integers(1, 40))
def test_the_root_is_that_of_the_plain_definition(count: int) -> None:
    leaves = leaves_of(TENANT, [event(seq) for seq in range(1, count + 1)])
    assert len(leaves) == count * LEAF_BYTES
    assert root_of(leaves) == plain_tree([hash_ for _, hash_ in unpack_leaves(leaves)])


@pytest.mark.rule("AUD-2")
@given(st.data())
def test_two_events_have_one_hash_only_if_they_are_the_same(data: st.DataObject) -> None:
    texts, few = st.sampled_from(["", "a", "aa", "ab", "b"]), st.integers(-1, 1)
    events = st.tuples(few, few, texts, texts, few, texts, texts.map(str.encode), st.none() | texts.map(str.encode))
    one, other = data.draw(st.tuples(texts, events)), data.draw(st.tuples(texts, events))
    same = event_hash(one[0].encode(), one[1]) == event_hash(other[0].encode(), other[1])
    assert same == (one == other)


@pytest.mark.rule("AUD-2")
def test_a_node_passes_for_no_leaf() -> None:
    pair = leaves_of(TENANT, [event(1), event(2)])
    left, right = (hash_ for _, hash_ in unpack_leaves(pair))
    assert root_of(pair) not in (sha256(left + right).digest(), sha256(b"\x00" + left + right).digest())


HISTORY = [event(1), event(2), event(2, 1), event(4), event(5)]
MOMENTS = {one[0]: one[4] for one in HISTORY}


def moved(one: Sealable, to: Sealable, *, with_time: bool) -> Sealable:
    return (to[0], to[1], one[2], one[3], to[4] if with_time else one[4], one[5], one[6], one[7])


@pytest.mark.rule("AUD-2")
@pytest.mark.parametrize(
    ("name", "found", "expected"),
    [
        ("as it was", HISTORY, []),
        ("changed body", [*HISTORY[:3], event(4, body=b"{ }"), HISTORY[4]], [("changed", 4, 0)]),
        ("changed rows", [*HISTORY[:3], event(4, rows=b"rows"), HISTORY[4]], [("changed", 4, 0)]),
        ("changed time", [*HISTORY[:3], event(4, at=NOON), HISTORY[4]], [("changed", 4, 0)]),
        ("changed actor", [event(1, actor="eve"), *HISTORY[1:]], [("changed", 1, 0)]),
        ("removed", [*HISTORY[:2], *HISTORY[3:]], [("removed", 2, 1)]),
        ("the last removed", HISTORY[:4], [("removed", 5, 0)]),
        ("all removed", [], [("removed", s, n) for s, n in ((1, 0), (2, 0), (2, 1), (4, 0), (5, 0))]),
        ("inserted", [*HISTORY[:3], event(3), *HISTORY[3:]], [("inserted", 3, 0)]),
        (
            "swapped",
            [
                HISTORY[0],
                moved(HISTORY[3], HISTORY[1], with_time=True),
                HISTORY[2],
                moved(HISTORY[1], HISTORY[3], with_time=True),
                HISTORY[4],
            ],
            [("reordered", 2, 0), ("reordered", 4, 0)],
        ),
        (
            "swapped with their times",
            [
                moved(HISTORY[4], HISTORY[0], with_time=False),
                *HISTORY[1:4],
                moved(HISTORY[0], HISTORY[4], with_time=False),
            ],
            [("reordered", 1, 0), ("reordered", 5, 0)],
        ),
        (
            "moved to a free place",
            [*HISTORY[:3], moved(HISTORY[3], event(3), with_time=True), HISTORY[4]],
            [("reordered", 3, 0)],
        ),
        (
            "moved over another",
            [*HISTORY[:3], moved(HISTORY[4], HISTORY[3], with_time=True)],
            [("removed", 4, 0), ("reordered", 4, 0)],
        ),
        (
            "several at once",
            [event(1, body=b"x"), HISTORY[1], event(3), HISTORY[3], HISTORY[4]],
            [("changed", 1, 0), ("removed", 2, 1), ("inserted", 3, 0)],
        ),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_what_is_not_as_it_was_sealed_is_reported_with_its_place(
    name: str, found: list[Sealable], expected: list[tuple[str, int, int]]
) -> None:
    mismatches = Mismatches()
    compare(TENANT, batch_of(HISTORY), found, mismatches)
    breaks = explain(TENANT, mismatches, MOMENTS)
    assert sorted((one.kind, one.seq, one.n) for one in breaks) == sorted(expected), name
    assert all(one.batch == 1 for one in breaks)
    ids = {(one[0], one[1]): one[2] for one in found}
    # A break of a row names both of its numbers.
    assert all(one.event_id == ids[one.seq, one.n] for one in breaks if one.kind != "removed")  # type: ignore[index]


@pytest.mark.rule("AUD-2")
def test_an_event_moved_into_another_batch_is_reported_as_moved() -> None:
    first = batch_of(HISTORY)
    later = [event(6), event(7)]
    second = batch_of(later, 2, first)
    mismatches = Mismatches()
    compare(TENANT, first, [*HISTORY[:4], moved(later[0], HISTORY[4], with_time=True)], mismatches)
    compare(TENANT, second, [moved(HISTORY[4], later[0], with_time=True), later[1]], mismatches)
    breaks = explain(TENANT, mismatches, MOMENTS | {6: later[0][4]})
    assert [(one.kind, one.batch, one.seq, one.why) for one in breaks] == [
        ("reordered", 1, 5, "it was sealed as 6.0"),
        ("reordered", 2, 6, "it was sealed as 5.0"),
    ]


FIRST = batch_of(HISTORY)
SECOND = batch_of([event(6)], 2, FIRST)
THIRD = batch_of([event(7)], 3, SECOND)


@pytest.mark.rule("AUD-2")
@pytest.mark.parametrize(
    ("batch", "previous", "expected"),
    [
        (FIRST, None, []),
        (SECOND, FIRST, []),
        (THIRD, SECOND, []),
        (SECOND, None, [("batch_missing", 1)]),
        (THIRD, None, [("batch_missing", 1), ("batch_missing", 2)]),
        (THIRD, FIRST, [("batch_missing", 2)]),
        (replace(FIRST, prev_hash=bytes(32)), None, [("chain_broken", 1)]),
        (SECOND, replace(FIRST, hash=bytes(32)), [("chain_broken", 2)]),
        (replace(SECOND, prev_hash=None, after=None), FIRST, [("chain_broken", 2)]),
        (replace(SECOND, after=(4, 0)), FIRST, [("chain_broken", 2)]),
    ],
)
def test_a_batch_continues_the_one_before_it(
    batch: Batch, previous: Batch | None, expected: list[tuple[str, int]]
) -> None:
    assert [(one.kind, one.batch) for one in check_link(batch, previous)] == expected


@pytest.mark.rule("AUD-2")
@pytest.mark.parametrize(
    "changes",
    [
        {"leaves": leaves_of(TENANT, [event(9)])},
        {"root": bytes(32)},
        {"hash": bytes(32)},
        {"number": 3},
        {"prev_hash": bytes(32)},
        {"after": (4, 0)},
        {"last": (7, 0)},
        {"events": 2},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_nothing_of_a_batch_can_be_changed(changes: dict[str, object]) -> None:
    assert check_batch(TENANT, SECOND, True) == []
    (found,) = check_batch(TENANT, replace(SECOND, **changes), True)  # type: ignore[arg-type]
    assert found.kind == "batch_forged"
    (found,) = check_batch(b"other", SECOND, True)
    assert found.kind == "batch_forged"


@pytest.mark.rule("AUD-2")
def test_a_batch_without_the_keys_seal_is_forged() -> None:
    (found,) = check_batch(TENANT, SECOND, False)
    assert (found.kind, found.batch, found.why) == (
        "batch_forged",
        2,
        "its seal was not made with this tenant's key",
    )
