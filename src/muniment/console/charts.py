"""Charts: figures as SVG, drawn without script; scales, columns, bars, intervals, curves.

Colours are classes of the style sheet, so that a chart is read in light and dark alike. Names are shortened to fit; the
whole of them is on hover, and in the table that every chart has beside it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10

from markupsafe import Markup

WIDTH = 420
SERIES = 4
_LABEL = 46
# What is counted is not smaller.
_LEAST = 1e-6
_LINE = 16
_BAR = 11
# About as wide as the name of a column is.
_DATE = 40


@dataclass(frozen=True)
class Scale:
    """From values to places along an axis; what lies beyond its ends is held at them."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Where that value is."""
        if self.high <= self.low:
            return self.start
        share = min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)
        return round(self.start + share * (self.end - self.start), 1)


@dataclass(frozen=True)
class Bars:
    """One row of bars: its name, and a value for each series; None where there is none."""

    name: str
    values: tuple[float | None, ...]


@dataclass(frozen=True)
class Interval:
    """A share with the ends of its interval; no share where nothing was measured yet."""

    name: str
    low: float
    share: float | None
    high: float


@dataclass(frozen=True)
class Point:
    """What was claimed, what came of it, and of how many."""

    claimed: float
    held: float
    count: int


def ticks(most: float, about: int = 4) -> list[float]:
    """Round numbers from 0 to at least `most`, about so many steps."""
    if not isfinite(most) or most < _LEAST:
        return [0.0, 1.0]
    raw = most / about
    size = 10 ** floor(log10(raw))
    step = next(times * size for times in (1, 2, 5, 10) if times * size >= raw * 0.999999)
    return [round(n * step, 10) for n in range(ceil(round(most / step, 9)) + 1)]


def shortened(name: str, most: int = _LABEL) -> str:
    """A name that fits."""
    return name if len(name) <= most else f"{name[: most - 1]}…"


def columns(names: Sequence[str], series: Sequence[Bars], *, about: str) -> Markup:
    """Counts over time, one column for each name, the series on top of each other."""
    left, top, bottom = 34, 10, 150
    totals = [sum(one.values[n] or 0 for one in series) for n in range(len(names))]
    marks = ticks(max(totals, default=0))
    up = Scale(0, marks[-1], bottom, top)
    parts = [_rule(left, WIDTH, up(mark), f"{mark:g}") for mark in marks]
    room = (WIDTH - left) / max(len(names), 1)
    wide = max(min(room * 0.7, 36), 1)
    every = max(ceil(len(names) / 7), 1)
    for n, name in enumerate(names):
        x, below = left + room * (n + 0.5), 0.0
        for number, one in enumerate(series):
            value = one.values[n] or 0
            if value:
                high, low = up(below + value), up(below)
                said = f"{name}, {one.name}: {value:g}"
                parts.append(_bar(x - wide / 2, high, wide, low - high, number, said))
                below += value
        if n % every == 0 and (n == 0 or x + _DATE / 2 < WIDTH):
            parts.append(_text(x, bottom + 16, shortened(name, 10), "middle"))
    return _svg(bottom + 24, about, parts)


def bars(
    rows: Sequence[Bars],
    *,
    about: str,
    tell: Callable[[float], str],
    most: float | None = None,
    mark: float | None = None,
) -> Markup:
    """Values side by side, each told at the end of its bar; `mark` is a line that they are held against."""
    largest = max((value for row in rows for value in row.values if value is not None), default=0.0)
    across = Scale(0, max(largest, mark or 0.0) if most is None else most, 0, WIDTH - 90)
    parts: list[Markup] = []
    y = 0.0
    for row in rows:
        if row.name:
            parts.append(_text(0, y + 11, row.name, "start", "name"))
            y += _LINE
        for number, value in enumerate(row.values):
            if value is None:
                continue
            wide = max(across(value), 1.0)
            parts.append(_bar(0, y, wide, _BAR, number, f"{row.name}: {tell(value)}"))
            parts.append(_text(wide + 5, y + 9.5, tell(value), "start", "value"))
            y += _BAR + 4
        y += 6
    if mark is not None:
        x = across(mark)
        parts.append(Markup('<line class="floor" x1="{0}" x2="{0}" y1="0" y2="{1}"/>').format(x, y - 6))
    return _svg(max(y - 4, _LINE), about, parts)


def intervals(rows: Sequence[Interval], *, about: str, floor_at: float | None = None) -> Markup:
    """Shares with their intervals, and the floor below which none should fall."""
    least = min([row.low for row in rows] + ([floor_at] if floor_at is not None else []), default=0.0)
    low = max(floor(least * 10 - 0.5) / 10, 0.0)
    across = Scale(low, 1, 6, WIDTH - 14)
    height = len(rows) * 44 + 8
    parts: list[Markup] = []
    for mark in (low, (low + 1) / 2, 1):
        parts.append(Markup('<line class="rule" x1="{0}" x2="{0}" y1="0" y2="{1}"/>').format(across(mark), height - 4))
        anchor = "start" if mark == low else "end" if mark == 1 else "middle"
        parts.append(_text(across(mark), height + 12, f"{mark * 100:g} %", anchor))
    for n, row in enumerate(rows):
        y = n * 44 + 28
        said = "nothing measured" if row.share is None else f"{row.share:.1%}, between {row.low:.1%} and {row.high:.1%}"
        ends = across(row.low), across(row.high)
        parts.append(_text(6, y - 14, row.name, "start", "name"))
        parts.append(
            Markup(
                '<g><title>{}: {}</title><line class="s1 whisker" x1="{}" x2="{}" y1="{}" y2="{}"/>'
                '<line class="s1 whisker" x1="{}" x2="{}" y1="{}" y2="{}"/>'
                '<line class="s1 whisker" x1="{}" x2="{}" y1="{}" y2="{}"/>{}</g>'
            ).format(
                *(row.name, said),
                *(ends[0], ends[1], y, y),
                *(ends[0], ends[0], y - 5, y + 5),
                *(ends[1], ends[1], y - 5, y + 5),
                Markup("")
                if row.share is None
                else Markup('<circle class="s1" cx="{}" cy="{}" r="4.5"/>').format(across(row.share), y),
            )
        )
    if floor_at is not None:
        x = across(floor_at)
        parts.append(Markup('<line class="floor" x1="{0}" x2="{0}" y1="0" y2="{1}"/>').format(x, height - 4))
    return _svg(height + 18, about, parts)


def reliability(points: Sequence[Point], *, about: str) -> Markup:
    """What was claimed against what held; on the dashed line a claim is as good as its word."""
    left, top, bottom, right = 40, 8, 200, 232
    along, up = Scale(0, 1, left, right), Scale(0, 1, bottom, top)
    parts = [_rule(left, right, up(mark), f"{mark * 100:g} %") for mark in (0.0, 0.5, 1.0)]
    parts += [
        _text(along(mark), bottom + 16, f"{mark * 100:g} %", anchor)
        for mark, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end"))
    ]
    parts.append(
        Markup('<line class="ideal" x1="{}" y1="{}" x2="{}" y2="{}"/>').format(along(0), up(0), along(1), up(1))
    )
    parts.append(_text(right + 14, top + 10, "up: approved", "start"))
    parts.append(_text(right + 14, top + 26, "along: claimed", "start"))
    parts.append(_text(right + 14, top + 42, "dashed: as claimed", "start"))
    if points:
        places = " ".join(f"{along(point.claimed)},{up(point.held)}" for point in points)
        parts.append(Markup('<polyline class="s1 line" points="{}"/>').format(places))
    most = max((point.count for point in points), default=0)
    for point in points:
        size = round(3 + 5 * (point.count / most) ** 0.5, 1) if most else 3
        said = f"claimed {point.claimed:.0%}, held {point.held:.0%}, of {point.count}"
        parts.append(
            Markup('<circle class="s1 dot" cx="{}" cy="{}" r="{}"><title>{}</title></circle>').format(
                along(point.claimed), up(point.held), size, said
            )
        )
    return _svg(bottom + 24, about, parts)


def _svg(height: float, about: str, parts: Sequence[Markup]) -> Markup:
    return Markup('<svg class="chart" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(
        WIDTH, round(height), about, Markup("").join(parts)
    )


def _rule(x1: float, x2: float, y: float, told: str) -> Markup:
    line = Markup('<line class="rule" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(x1, x2, y, y)
    return line + _text(x1 - 5, y + 4, told, "end")


def _bar(x: float, y: float, wide: float, high: float, number: int, said: str) -> Markup:
    return Markup('<rect class="s{} bar" x="{}" y="{}" width="{}" height="{}" rx="2"><title>{}</title></rect>').format(
        number % SERIES + 1, round(x, 1), round(y, 1), round(wide, 1), round(max(high, 0.5), 1), said
    )


def _text(x: float, y: float, told: str, anchor: str, kind: str = "") -> Markup:
    short = shortened(told)
    whole = Markup("<title>{}</title>").format(told) if short != told else Markup("")
    return Markup('<text x="{}" y="{}" text-anchor="{}" class="{}">{}{}</text>').format(
        round(x, 1), round(y, 1), anchor, kind, whole, short
    )
