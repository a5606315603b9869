"""The time slider: the positions of changes between the first change and now."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from muniment.errors import InvalidInput
from muniment.model.browse import Turn

WIDTH, HALF = 1000, 30
# The height of the tallest bar.
_FULL = 26


@dataclass(frozen=True)
class Tick:
    """A change on the slider; its bars are as high as many memories began and ended then."""

    turn: Turn
    value: str
    x: float
    up: float
    down: float


@dataclass(frozen=True)
class Slider:
    """A range in seconds since 1970, the time shown, and the nearest changes before and after it."""

    first: str
    last: str
    value: str
    x: float
    ticks: tuple[Tick, ...]
    earlier: datetime | None
    later: datetime | None


def slider(turns: Sequence[Turn], at: datetime, now: datetime) -> Slider | None:
    """Lay out the slider at a time; None where nothing has ever changed."""
    known = sorted((turn for turn in turns if turn.at <= now), key=lambda turn: turn.at)
    if not known:
        return None
    first, last = known[0].at.timestamp(), now.timestamp()
    length = last - first or 1.0
    most = max(max(turn.began, turn.ended) for turn in known) or 1

    def position(moment: datetime) -> float:
        return round(min(max((moment.timestamp() - first) / length, 0.0), 1.0) * WIDTH, 1)

    ticks = tuple(
        Tick(
            turn=turn,
            value=seconds(turn.at),
            x=position(turn.at),
            up=round(turn.began / most * _FULL, 1),
            down=round(turn.ended / most * _FULL, 1),
        )
        for turn in known
    )
    return Slider(
        first=seconds(known[0].at),
        last=seconds(now),
        value=seconds(min(max(at, known[0].at), now)),
        x=position(at),
        ticks=ticks,
        earlier=max((turn.at for turn in known if turn.at < at), default=None),
        later=min((turn.at for turn in known if turn.at > at), default=None),
    )


def seconds(at: datetime) -> str:
    """A time as the value of a range input: seconds since 1970, to the microsecond."""
    return f"{at.timestamp():.6f}".rstrip("0").rstrip(".")


def time_from_seconds(value: str) -> datetime | None:
    """The time of such a value; None if it is empty; raises `InvalidInput`."""
    try:
        return datetime.fromtimestamp(round(float(value), 6), UTC) if value else None
    except (ValueError, OverflowError, OSError):
        raise InvalidInput("expected seconds since 1970", field="slide") from None
