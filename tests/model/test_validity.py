"""When a fact holds in the world, in words."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from muniment.model.validity import validity_text

JUNE = datetime(2026, 6, 1, tzinfo=UTC)


@pytest.mark.rule("REC-14")
@pytest.mark.parametrize(
    ("begin", "end", "words"),
    [
        (None, None, None),
        (None, JUNE, "until June 2026"),
        (JUNE, None, "from June 2026"),
        (datetime(2019, 1, 1, tzinfo=UTC), JUNE, "from 2019 until June 2026"),
        (None, JUNE - timedelta(microseconds=1), "until 31 May 2026"),
        (None, datetime(2026, 6, 15, tzinfo=UTC), "until 15 June 2026"),
        (None, datetime(2026, 6, 15, 14, 30, tzinfo=UTC), "until 15 June 2026 14:30 UTC"),
        (None, datetime(2026, 6, 1, 2, tzinfo=timezone(timedelta(hours=2))), "until June 2026"),
    ],
)
def test_a_time_is_named_as_exactly_as_it_is(begin: datetime | None, end: datetime | None, words: str | None) -> None:
    assert validity_text(begin, end) == words
