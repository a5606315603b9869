"""The time slider: where the moments at which something changed lie between the first of them and now."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from muniment.model.browse import Turn

WIDTH, HALF = 1000, 30
# The room that the highest bar takes of its half.
_FULL = 26


@dataclass(frozen=True)
class Tick:
    """A moment on the slider, with bars as high as much began and ended at it."""

    turn: Turn
    value: str
    x: float
    up: float
    down: float


@dataclass(frozen=True)
class Slider:
    """A range of seconds since 1970, the moment that is shown, and the changes before and after it."""

    first: str
    last: str
    value: str
    x: float
    ticks: tuple[Tick, ...]
    earlier: datetime | None
    later: datetime | None


def slider(turns: Sequence[Turn], at: datetime, now: datetime) -> Slider | None:
    """The slider at a moment; None where nothing has ever changed."""
    known = sorted((turn for turn in turns if turn.at <= now), key=lambda turn: turn.at)
    if not known:
        return None
    first, last = known[0].at.timestamp(), now.timestamp()
    length = last - first or 1.0
    most = max(max(turn.began, turn.ended) for turn in known) or 1

    def place(moment: datetime) -> float:
        return round(min(max((moment.timestamp() - first) / length, 0.0), 1.0) * WIDTH, 1)

    ticks = tuple(
        Tick(
            turn=turn,
            value=seconds(turn.at),
            x=place(turn.at),
            up=round(turn.began / most * _FULL, 1),
            down=round(turn.ended / most * _FULL, 1),
        )
        for turn in known
    )
    return Slider(
        first=seconds(known[0].at),
        last=seconds(now),
        value=seconds(min(max(at, known[0].at), now)),
        x=place(at),
        ticks=ticks,
        earlier=max((turn.at for turn in known if turn.at < at), default=None),
        later=min((turn.at for turn in known if turn.at > at), default=None),
    )


def seconds(at: datetime) -> str:
    """A moment as the value of a range: seconds since 1970, none lost."""
    return f"{at.timestamp():.6f}".rstrip("0").rstrip(".")


def moment_at(value: str) -> datetime:
    """The moment that such a value stands for; raises `ValueError`."""
    try:
        return datetime.fromtimestamp(round(float(value), 6), UTC)
    except (OverflowError, OSError):
        raise ValueError("lies outside of the years that can be told") from None
