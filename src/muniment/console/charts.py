"""Charts as SVG, drawn without script: columns, bars, intervals and calibration curves.

Colours are classes of the style sheet, so that charts work in light and dark mode. Names are shortened to fit; the full
name is shown on hover, and in the table beside every chart.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10

from markupsafe import Markup

WIDTH = 420
SERIES = 4
_LABEL = 46
# Below this a scale is empty.
_LEAST = 1e-6
_LINE = 16
_BAR = 11
# The width of a column's name.
_DATE = 40


@dataclass(frozen=True)
class Scale:
    """Maps values to positions along an axis; values beyond its ends are put at them."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """The position of a value."""
        if self.high <= self.low:
            return self.start
        share = min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)
        return round(self.start + share * (self.end - self.start), 1)


@dataclass(frozen=True)
class Bars:
    """A row of bars: its name, and a value for each series, None where there is none."""

    name: str
    values: tuple[float | None, ...]


@dataclass(frozen=True)
class Interval:
    """A share with its interval; None where nothing was measured yet."""

    name: str
    low: float
    share: float | None
    high: float


@dataclass(frozen=True)
class Point:
    """A claimed confidence, the share that was approved, and the number of verdicts."""

    claimed: float
    approved: float
    count: int


def ticks(most: float, about: int = 4) -> list[float]:
    """Round numbers from 0 to at least `most`, in about so many steps."""
    if not isfinite(most) or most < _LEAST:
        return [0.0, 1.0]
    raw = most / about
    size = 10 ** floor(log10(raw))
    step = next(times * size for times in (1, 2, 5, 10) if times * size >= raw * 0.999999)
    return [round(n * step, 10) for n in range(ceil(round(most / step, 9)) + 1)]


def shorten(name: str, most: int = _LABEL) -> str:
    """Cut a name to fit."""
    return name if len(name) <= most else f"{name[: most - 1]}…"


def columns(names: Sequence[str], series: Sequence[Bars], *, about: str) -> Markup:
    """Counts over time: one column for each name, with the series stacked."""
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
                hover = f"{name}, {one.name}: {value:g}"
                parts.append(_bar(x - wide / 2, high, wide, low - high, number, hover))
                below += value
        if n % every == 0 and (n == 0 or x + _DATE / 2 < WIDTH):
            parts.append(_text(x, bottom + 16, shorten(name, 10), "middle"))
    return _svg(bottom + 24, about, parts)


def bars(
    rows: Sequence[Bars],
    *,
    about: str,
    unit: Callable[[float], str],
    most: float | None = None,
    mark: float | None = None,
) -> Markup:
    """Horizontal bars with their values; `unit` formats a value, `mark` draws a line to compare them with."""
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
            parts.append(_bar(0, y, wide, _BAR, number, f"{row.name}: {unit(value)}"))
            parts.append(_text(wide + 5, y + 9.5, unit(value), "start", "value"))
            y += _BAR + 4
        y += 6
    if mark is not None:
        x = across(mark)
        parts.append(_line("floor", x, x, 0, y - 6))
    return _svg(max(y - 4, _LINE), about, parts)


def intervals(rows: Sequence[Interval], *, about: str, floor_at: float | None = None) -> Markup:
    """Shares with their intervals, and the floor below which none should fall."""
    least = min([row.low for row in rows] + ([floor_at] if floor_at is not None else []), default=0.0)
    low = max(floor(least * 10 - 0.5) / 10, 0.0)
    across = Scale(low, 1, 6, WIDTH - 14)
    height = len(rows) * 44 + 8
    parts: list[Markup] = []
    for mark in (low, (low + 1) / 2, 1):
        parts.append(_line("rule", across(mark), across(mark), 0, height - 4))
        anchor = "start" if mark == low else "end" if mark == 1 else "middle"
        parts.append(_text(across(mark), height + 12, f"{mark * 100:g} %", anchor))
    for n, row in enumerate(rows):
        y = n * 44 + 28
        interval = f"{row.low:.1%} to {row.high:.1%}"
        hover = "no samples yet" if row.share is None else f"{row.share:.1%}, interval {interval}"
        left, right = across(row.low), across(row.high)
        parts.append(_text(6, y - 14, row.name, "start", "name"))
        shapes = [_line("s1 whisker", left, right, y, y)]
        shapes += [_line("s1 whisker", x, x, y - 5, y + 5) for x in (left, right)]
        if row.share is not None:
            shapes.append(Markup('<circle class="s1" cx="{}" cy="{}" r="4.5"/>').format(across(row.share), y))
        parts.append(Markup("<g><title>{}: {}</title>{}</g>").format(row.name, hover, Markup("").join(shapes)))
    if floor_at is not None:
        parts.append(_line("floor", across(floor_at), across(floor_at), 0, height - 4))
    return _svg(height + 18, about, parts)


def reliability(points: Sequence[Point], *, about: str) -> Markup:
    """Claimed confidence against the share approved; on the dashed line both are equal."""
    left, top, bottom, right = 40, 8, 200, 232
    along, up = Scale(0, 1, left, right), Scale(0, 1, bottom, top)
    parts = [_rule(left, right, up(mark), f"{mark * 100:g} %") for mark in (0.0, 0.5, 1.0)]
    parts += [
        _text(along(mark), bottom + 16, f"{mark * 100:g} %", anchor)
        for mark, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end"))
    ]
    parts.append(_line("ideal", along(0), along(1), up(0), up(1)))
    notes = ("vertical: approved", "horizontal: claimed", "dashed: equal")
    parts += [_text(right + 14, top + 10 + 16 * n, note, "start") for n, note in enumerate(notes)]
    if points:
        places = " ".join(f"{along(point.claimed)},{up(point.approved)}" for point in points)
        parts.append(Markup('<polyline class="s1 line" points="{}"/>').format(places))
    most = max((point.count for point in points), default=0)
    for point in points:
        size = round(3 + 5 * (point.count / most) ** 0.5, 1) if most else 3
        hover = f"claimed {point.claimed:.0%}, approved {point.approved:.0%}, {point.count} verdicts"
        dot = Markup('<circle class="s1 dot" cx="{}" cy="{}" r="{}"><title>{}</title></circle>')
        parts.append(dot.format(along(point.claimed), up(point.approved), size, hover))
    return _svg(bottom + 24, about, parts)


def _svg(height: float, about: str, parts: Sequence[Markup]) -> Markup:
    return Markup('<svg class="chart" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(
        WIDTH, round(height), about, Markup("").join(parts)
    )


def _line(kind: str, x1: float, x2: float, y1: float, y2: float) -> Markup:
    return Markup('<line class="{}" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(kind, x1, x2, y1, y2)


def _rule(x1: float, x2: float, y: float, text: str) -> Markup:
    return _line("rule", x1, x2, y, y) + _text(x1 - 5, y + 4, text, "end")


def _bar(x: float, y: float, wide: float, high: float, number: int, hover: str) -> Markup:
    return Markup('<rect class="s{} bar" x="{}" y="{}" width="{}" height="{}" rx="2"><title>{}</title></rect>').format(
        number % SERIES + 1, round(x, 1), round(y, 1), round(wide, 1), round(max(high, 0.5), 1), hover
    )


def _text(x: float, y: float, text: str, anchor: str, kind: str = "") -> Markup:
    short = shorten(text)
    whole = Markup("<title>{}</title>").format(text) if short != text else Markup("")
    return Markup('<text x="{}" y="{}" text-anchor="{}" class="{}">{}{}</text>').format(
        round(x, 1), round(y, 1), anchor, kind, whole, short
    )
