"""The error for a clock that is further ahead of the database's own than the owner of the database allows (AUD-5)."""

from datetime import datetime, timedelta

from muniment.database.server_liveness import Row
from muniment.errors import ClockAhead


def clock_ahead(now: datetime, state: Row) -> ClockAhead:
    """Return the error that says which clock is ahead: this program's, at `now`, or the tenant's, of that state."""
    assert state["bound"] is not None, "a clock without a bound cannot be ahead of it"
    real, bound = state["database_now"], state["bound"]
    if now > real + bound:
        ahead = _whole_seconds(now - real)
        return ClockAhead(f"this program's clock is {ahead} ahead of the database's: set it right")
    ahead = _whole_seconds(state["at"] - real)
    return ClockAhead(
        f"the tenant's clock is {ahead} ahead of the database's, since a program with a wrong clock wrote to it: "
        "an admin resets it with muniment work reset-clock"
    )


def _whole_seconds(distance: timedelta) -> timedelta:
    return timedelta(seconds=round(distance.total_seconds()))
