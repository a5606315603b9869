"""A clock that tests set."""

from datetime import UTC, datetime, timedelta

START = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)


class FakeClock:
    """A clock for `Fabric.open(clock=...)`; its time changes only when a test moves it, in either direction."""

    def __init__(self, now: datetime = START) -> None:
        self.now = now

    def __call__(self) -> datetime:
        """Return its time."""
        return self.now

    def advance(self, **by: float) -> datetime:
        """Move it by `timedelta` arguments: `clock.advance(days=31)`."""
        self.now += timedelta(**by)
        return self.now
