"""The report beside peers: a table in Markdown, and a picture drawn by hand as SVG that needs no library and no font."""

from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from bench.meter import Cost

OURS = "Muniment"
NOTHING = "-"
# What was stored how: the card and the report say it, so that a reader can have the same.
STORED = (
    "LoCoMo's turns; CPU time of the program and PostgreSQL together, median of five runs, every question different; pale: wall time.",
    "Muniment runs with bench/pack.yaml: each turn is captured as a statement, passes all gates, and is promoted by policy, since people",
    "approved what its source said before; texts count as alike only when all but the same. The rest is the built-in pack. Every recall",
    "passes all filters and is recorded. The others: one write, one search, their own defaults. No language model anywhere.",
)

_WIDTH, _EDGE = 1000, 32
_NAMES = 184  # what the names of the contestants take, left of the bars
_ROW, _BAR = 34, 14
_LABEL = 88  # what the values take, right of their bar


@dataclass(frozen=True)
class Row:
    """A contestant: how many memories a search could see, and what it cost; with an `error` it has no figures."""

    name: str
    version: str = ""
    scope: str = ""
    add: Cost | None = None
    batch: Cost | None = None
    search: Cost | None = None
    search_p95_ms: float | None = None
    recall_at_10: float | None = None
    memory_mb: float | None = None
    disk_kb: float | None = None
    log_kb: float | None = None
    error: str | None = None


@dataclass(frozen=True)
class Growth:
    """Our own warm recall at a number of memories, of which a run sees only its scope."""

    memories: int
    tenants: int
    scope: int
    warm: Cost


@dataclass(frozen=True)
class ScopeGrowth:
    """Our own recall in one tenant: the first of a process, warm, and with a writer beside it."""

    memories: int
    scope: int
    cold: Cost
    warm: Cost
    written: Cost
    written_a_second: float


@dataclass(frozen=True)
class _Panel:
    """A column of bars: what it shows, and the two values of a row of which the second is drawn pale."""

    title: str
    note: str
    values: Sequence[tuple[float | None, float | None]]
    decimals: int

    def top(self) -> float:
        return max((value for pair in self.values for value in pair if value is not None), default=1.0) or 1.0


def table(rows: Sequence[Row]) -> str:
    """The rows in Markdown; an error stands where the figures would."""
    lines = [
        "| | version | in scope | one add | one of a batch | one search | 95th percentile | evidence recall@10 | memory | disk a memory"
        " | PostgreSQL's log a memory |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for row in rows:
        name = f"**{row.name}**" if row.name == OURS else _cell(row.name)
        if row.error is not None:
            figures = [f"not measured: {_cell(row.error)}", *[""] * 8]
        else:
            figures = [
                row.scope or NOTHING,
                _cost(row.add),
                _cost(row.batch),
                _cost(row.search),
                _said(row.search_p95_ms, 2, " ms wall"),
                _said(row.recall_at_10, 2),
                _said(row.memory_mb, 0, " MB"),
                _said(row.disk_kb, 1, " KB"),
                _said(row.log_kb, 1, " KB"),
            ]
        lines.append(f"| {' | '.join([name, _cell(row.version) or NOTHING, *figures])} |")
    return "\n".join(lines)


def growth_table(growth: Sequence[Growth]) -> str:
    """Our growth by tenants in Markdown."""
    lines = ["| memories | tenants | in scope | recall, warm |", "|--:|--:|--:|--:|"]
    lines += [f"| {one.memories:,} | {one.tenants:,} | {one.scope:,} | {_cost(one.warm)} |" for one in growth]
    return "\n".join(lines)


def scope_table(growth: Sequence[ScopeGrowth]) -> str:
    """Our growth in one tenant in Markdown."""
    lines = [
        "| memories in the tenant | in scope | recall, cold | warm | warm, with a writer beside |",
        "|--:|--:|--:|--:|--:|",
    ]
    lines += [
        f"| {one.memories:,} | {one.scope:,} | {_cost(one.cold)} | {_cost(one.warm)} | {_cost(one.written)}"
        f" ({one.written_a_second:.0f} promoted a second) |"
        for one in growth
    ]
    return "\n".join(lines)


def draw(
    rows: Sequence[Row],
    growth: Sequence[Growth] = (),
    *,
    title: str = "The same turns, the same questions, the same embedder",
    stored: Sequence[str] = STORED,
) -> str:
    """A card of four columns of bars, a line for each contestant, and below it our growth if there is any."""
    caption = [*stored, f"A search sees one conversation: {rows[0].scope} turns."]
    body: list[str] = [
        _text(_EDGE, 46, title, "title"),
        *(_text(_EDGE, 68 + 17 * n, line, "soft") for n, line in enumerate(caption)),
    ]
    top = 100 + 17 * len(caption)
    body += _columns(rows, top)
    end = top + 24 + len(rows) * _ROW
    if growth:
        body.append(_line(_EDGE, end + 10, _WIDTH - _EDGE, end + 10, "rule"))
        body += _grown(growth, end + 44)
        end += 44 + 172
    height = end + 24
    spoken = "; ".join(_spoken(row) for row in rows)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}"'
            f' role="img" aria-label="{escape(f"{title}. {spoken}", {chr(34): "&quot;"})}">',
            f"<style>{_STYLE}</style>",
            f'<rect class="card" x="0.5" y="0.5" width="{_WIDTH - 1}" height="{height - 1}" rx="12"/>',
            *body,
            "</svg>",
            "",
        ]
    )


def _columns(rows: Sequence[Row], top: float) -> list[str]:
    panels = (
        _Panel("One search, ms", "less is better", [_pair(row.search) for row in rows], 1),
        _Panel("One add, ms", "one a call, found afterwards", [_pair(row.add) for row in rows], 1),
        _Panel("One add, ms", "in batches", [_pair(row.batch) for row in rows], 1),
        _Panel("Evidence recall@10", "more is better", [(row.recall_at_10, None) for row in rows], 2),
    )
    drawn: list[str] = []
    width = (_WIDTH - 2 * _EDGE - _NAMES) / len(panels)
    for number, panel in enumerate(panels):
        left = _EDGE + _NAMES + number * width
        drawn += [_text(left, top, panel.title, "head"), _text(left, top + 16, panel.note, "note")]
        longest = width - _LABEL
        for line, (row, values) in enumerate(zip(rows, panel.values, strict=True)):
            if row.error is None:
                middle = top + 24 + line * _ROW + _ROW / 2
                drawn += _bar(left, middle, values, longest / panel.top(), panel.decimals, _tone(row))
    for line, row in enumerate(rows):
        middle = top + 24 + line * _ROW + _ROW / 2
        drawn.append(_text(_EDGE, middle + 4, row.name, "name ours" if row.name == OURS else "name"))
        if row.error is not None:
            drawn.append(_text(_EDGE + _NAMES, middle + 4, _shortened(f"not measured: {row.error}", 96), "note"))
    return drawn


def _bar(
    left: float, middle: float, values: tuple[float | None, float | None], scale: float, decimals: int, tone: str
) -> list[str]:
    first, second = values
    if first is None:
        return [_text(left, middle + 4, NOTHING, "note")]
    drawn: list[str] = []
    # The longer of the two lies underneath.
    bars = [(first, tone)] + ([(second, f"{tone} pale")] if second is not None else [])
    for value, look in sorted(bars, reverse=True):
        drawn.append(_rect(left, middle - _BAR / 2, max(value * scale, 2), _BAR, look))
    after = left + max(value for value, _ in bars) * scale + 8
    more = "" if second is None else f'<tspan class="note" dx="5">{_said(second, decimals)}</tspan>'
    drawn.append(_text(after, middle + 4, _said(first, decimals), "value", more=more))
    return drawn


def _grown(growth: Sequence[Growth], top: float) -> list[str]:
    """Upright bars from the few to the many, each with how many times the first it is."""
    drawn = [
        _text(_EDGE, top, f"{OURS}'s recall as it grows, ms", "head"),
        _text(_EDGE, top + 16, "CPU; pale: wall time", "note"),
    ]
    floor, tallest = top + 146, 82
    highest = max(max(one.warm.cpu_ms, one.warm.wall_ms) for one in growth) or 1.0
    left, step = _EDGE + _NAMES, (_WIDTH - 2 * _EDGE - _NAMES) / len(growth)
    for number, one in enumerate(growth):
        middle = left + (number + 0.5) * step
        for value, look in ((one.warm.wall_ms, "mark pale"), (one.warm.cpu_ms, "mark")):
            tall = max(value / highest * tallest, 2)
            drawn.append(_rect(middle - 28, floor - tall, 56, tall, look))
        over = max(one.warm.cpu_ms, one.warm.wall_ms) / highest * tallest
        times = one.warm.cpu_ms / growth[0].warm.cpu_ms
        label = f"{one.warm.cpu_ms:.2f}" + (f" ({times:.2f} times)" if number else "")
        drawn.append(_text(middle, floor - over - 8, label, "value", "middle"))
        drawn.append(_text(middle, floor + 18, f"{one.memories:,} memories, {one.scope:,} in scope", "name", "middle"))
    drawn.append(_line(left, floor, _WIDTH - _EDGE, floor, "rule"))
    return drawn


def _pair(cost: Cost | None) -> tuple[float | None, float | None]:
    return (None, None) if cost is None else (cost.cpu_ms, cost.wall_ms)


def _cost(cost: Cost | None) -> str:
    return NOTHING if cost is None else str(cost)


def _said(value: float | None, decimals: int, unit: str = "") -> str:
    return NOTHING if value is None else f"{value:,.{decimals}f}{unit}"


def _spoken(row: Row) -> str:
    if row.error is not None:
        return f"{row.name}: not measured"
    return (
        f"{row.name}: search {_said(_pair(row.search)[0], 1)} ms, one add {_said(_pair(row.add)[0], 1)} ms,"
        f" recall {_said(row.recall_at_10, 2)}"
    )


def _tone(row: Row) -> str:
    return "mark" if row.name == OURS else "other"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _shortened(text: str, letters: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= letters else f"{text[: letters - 1]}…"


def _text(x: float, y: float, text: str, look: str, anchor: str = "start", more: str = "") -> str:
    return f'<text class="{look}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}{more}</text>'


def _rect(x: float, y: float, width: float, height: float, look: str) -> str:
    return f'<rect class="{look}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="2"/>'


def _line(x1: float, y1: float, x2: float, y2: float, look: str) -> str:
    return f'<line class="{look}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


# The card brings its own ground: it can be read on a light page and a dark one, whatever the viewer knows of themes.
_STYLE = """
text { font-family: -apple-system, "Segoe UI", "Helvetica Neue", Arial, sans-serif; font-size: 12px; fill: #1f2937; }
.card { fill: #ffffff; stroke: #d8dee6; }
.title { font-size: 19px; font-weight: 600; }
.head { font-size: 13px; font-weight: 600; }
.name { font-size: 13px; }
.ours { font-weight: 700; }
.value { font-weight: 600; }
.soft, .note { fill: #667085; }
.note { font-size: 11px; font-weight: 400; }
.mark { fill: #0f766e; }
.other { fill: #8b97a7; }
.pale { fill-opacity: 0.3; }
.rule { stroke: #e4e8ee; stroke-width: 1; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6e9ef; }
  .card { fill: #14181f; stroke: #2b3340; }
  .soft, .note { fill: #98a2b3; }
  .mark { fill: #2dd4bf; }
  .other { fill: #7d8897; }
  .rule { stroke: #2b3340; }
}
"""
