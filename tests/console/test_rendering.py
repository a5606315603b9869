"""Figures as pages spell them."""

import pytest

from muniment.console.rendering import duration


@pytest.mark.parametrize(
    ("seconds", "result"),
    [(None, ""), (0, "0 s"), (59, "59 s"), (60, "1 min"), (57 * 60, "57 min"), (3594, "1 h"), (5400, "1.5 h"),
     (86_399, "1 d"), (10 * 86_400, "10 d")],
)  # fmt: skip
def test_a_duration_is_shown_in_its_largest_unit(seconds: float | None, result: str) -> None:
    assert duration(seconds) == result
