"""A clock that moves when told."""

from datetime import UTC, datetime, timedelta

START = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)


class FakeClock:
    """Give it to `Fabric.open(clock=...)`; it stands still until it is moved, in either direction."""

    def __init__(self, now: datetime = START) -> None:
        self.now = now

    def __call__(self) -> datetime:
        """The time it shows."""
        return self.now

    def advance(self, **by: float) -> datetime:
        """Move it by `timedelta` arguments: `clock.advance(days=31)`."""
        self.now += timedelta(**by)
        return self.now
