"""The curve of a source: rising, never sure on few verdicts, the same whatever order they came in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.candidates.calibration import calibrated, calibration_curve, dump_points, load_points

outcomes = st.lists(st.tuples(st.floats(0, 1), st.booleans()), max_size=60)


@pytest.mark.rule("CAN-6")
@given(outcomes, st.floats(0, 1), st.floats(0, 1))
def test_more_confidence_never_counts_for_less(judged: list[tuple[float, bool]], one: float, other: float) -> None:
    points = calibration_curve(judged)
    low, high = sorted((one, other))
    assert 0 <= calibrated(low, points) <= calibrated(high, points) <= 1
    assert sum(point.verdicts for point in points) == len(judged)


@given(outcomes)
def test_it_is_kept_and_read_back_the_same_whatever_the_order(judged: list[tuple[float, bool]]) -> None:
    points = calibration_curve(judged)
    assert load_points(dump_points(points)) == points == calibration_curve(reversed(judged))


@pytest.mark.parametrize(
    ("judged", "raw", "worth"),
    [
        ([], 0.7, 0.7),
        ([(0.9, True)] * 8, 0.9, 0.9),
        ([(0.9, True)] * 38, 0.95, 39 / 40),
        ([(0.9, True)] * 38, 0.4, 0.4),
        ([(0.9, False)] * 8, 0.4, 0.1),
        ([(0.6, True)] * 8 + [(0.9, False)] * 8, 0.6, 0.5),
        ([(0.3, False)] * 8 + [(0.9, True)] * 8, 0.89, 0.1),
    ],
)
def test_a_claim_is_worth_what_such_claims_were(judged: list[tuple[float, bool]], raw: float, worth: float) -> None:
    assert calibrated(raw, calibration_curve(judged)) == pytest.approx(worth)
