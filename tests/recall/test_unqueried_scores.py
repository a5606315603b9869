"""The part of a block's scores that no query changes: kept, and right at any time."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from muniment.pack.memory_layer import RecallPolicy
from muniment.recall import rules
from muniment.recall.scope_block import Block, read_block
from tests.recall.blocks import sent

NEWEST = datetime(2026, 5, 8, 12, tzinfo=UTC)
POLICY = RecallPolicy()


def block() -> Block:
    made = read_block(sent(["mem_1", "mem_2", "mem_3"]), 4)
    newest = int(NEWEST.timestamp() * 1e6)
    made.promoted_at[:] = [newest - 90 * 86_400_000_000, newest - 3_600_000_000, newest]
    made.priority[:], made.confidence[:] = [0.2, 0.9, 0.5], [0.4, 0.6, 1.0]
    return made


def exactly(one: Block, policy: RecallPolicy, at: datetime) -> list[float]:
    weights = policy.weights
    total = weights.priority * one.priority + weights.confidence * one.confidence
    return (total + weights.recency * rules.recency(one.promoted_seconds, at, policy.recency_half_life)).tolist()


@pytest.mark.parametrize("later", [timedelta(0), timedelta(seconds=1), timedelta(days=400), timedelta(hours=-30)])
def test_they_are_the_weighted_sums_at_a_time_also_if_the_clock_went_back(later: timedelta) -> None:
    one = block()
    one.unqueried_scores(POLICY, NEWEST)
    found = one.unqueried_scores(POLICY, NEWEST + later)
    assert found.tolist() == pytest.approx(exactly(one, POLICY, NEWEST + later), abs=1e-12)


def test_they_follow_the_weights_and_the_half_life_of_the_policy() -> None:
    one = block()
    one.unqueried_scores(POLICY, NEWEST)
    weights = POLICY.weights.model_copy(update={"priority": 0.7, "recency": 0.3})
    other = POLICY.model_copy(update={"weights": weights, "recency_half_life": timedelta(hours=2)})
    assert one.unqueried_scores(other, NEWEST).tolist() == pytest.approx(exactly(one, other, NEWEST), abs=1e-12)


def test_what_a_search_adds_to_them_is_not_kept() -> None:
    one = block()
    first = one.unqueried_scores(POLICY, NEWEST)
    kept = first.copy()
    first += 1.0
    assert np.array_equal(one.unqueried_scores(POLICY, NEWEST), kept)
