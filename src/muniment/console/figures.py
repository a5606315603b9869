"""Figures: the metrics of a tenant as charts, each with its data as a table."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from markupsafe import Markup

from muniment.console import advice, charts
from muniment.console.charts import Bars, Interval, Point
from muniment.console.rendering import duration, label, number, percent, time
from muniment.model.metrics import CalibrationCurve, Metrics, Spread
from muniment.model.zones import UTC_NAME

# The busiest people have a colour each, all others share one.
NAMED = charts.SERIES - 1
MOST_ROWS = 12


@dataclass(frozen=True)
class Figure:
    """A chart with its title, legend and table; `empty` is shown where there is no data, `advice` says what to do."""

    name: str
    title: str
    chart: Markup | None
    empty: str
    legend: tuple[str, ...] = ()
    heads: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    note: Markup | str = ""
    advice: str = ""


# A bar chart's row: its name, a value for each series, and the cells of the table after the name.
Row = tuple[str, Sequence[float | None], Sequence[str]]


def figures(
    found: Metrics, floor: float | None, counted_at: datetime | None = None, zone: str = UTC_NAME
) -> list[Figure]:
    """The charts of a period, in the order of the page; auto-promotion stops below `floor`.

    What is stored was counted at `counted_at`, by default with all else. Days are those of `zone`.
    """
    counted_at = counted_at or found.at
    first = (queue_age, contradictions, adoption)
    others = (hits, tokens, promotions, refusals)
    shown = [
        overdue(found),
        throughput(found, zone),
        *(make(found) for make in first),
        accuracy(found, floor),
        personal_data(found),
    ]
    shown += [budgets(found, counted_at), stored(found, counted_at), *(make(found) for make in others)]
    said = {
        "overdue": advice.overdue(found),
        "throughput": advice.throughput(found),
        "queue-age": advice.queue_age(found),
        "contradictions": advice.contradictions(found),
        "hits": advice.hits(found),
        "promotions": advice.promotions(found),
        "accuracy": advice.accuracy(found, floor),
        "refusals": advice.refusals(found),
        "tokens": advice.tokens(found),
    }
    told = [replace(one, advice=said.get(one.name, "")) for one in shown]
    return told + [replace(calibration(one), advice=advice.calibration(one)) for one in found.calibrations[:MOST_ROWS]]


def overdue(found: Metrics) -> Figure:
    """What is overdue, by whom it is assigned to (MET-7)."""
    counts = [(one.owner or "nobody", one.past_due) for one in found.queue.by_owner]
    return _counts("overdue", "Overdue by owner", counts, "Nothing is overdue.", "Assigned to")


def throughput(found: Metrics, zone: str = UTC_NAME) -> Figure:
    """Proposals that people decided, by days of a zone (MET-7)."""
    first, last = (at.astimezone(ZoneInfo(zone)).date() for at in (found.since, found.until))
    days = [first + timedelta(days=n) for n in range((last - first).days + 1)]
    decided: dict[str, dict[object, int]] = {}
    for one in found.queue.by_operator:
        decided.setdefault(one.operator, {})[one.day] = one.decided
    busiest = sorted(decided, key=lambda name: (-sum(decided[name].values()), name))
    named, others = busiest[:NAMED], busiest[NAMED:]
    series = [Bars(name, tuple(float(decided[name].get(day, 0)) for day in days)) for name in named]
    if others:
        rest = tuple(float(sum(decided[name].get(day, 0) for name in others)) for day in days)
        series.append(Bars(f"{len(others)} others", rest))
    about = f"Decisions per day: {number(found.queue.decided)} in total by {found.queue.operators} people"
    return Figure(
        "throughput",
        "Decisions per day",
        charts.columns([f"{day:%d %b}" for day in days], series, about=about) if series else None,
        "No proposal was decided in this period.",
        tuple(charts.shorten(one.name, 30) for one in series),
        (f"Day ({zone})", "Reviewer", "Decisions"),
        tuple((f"{one.day}", one.operator, number(one.decided)) for one in found.queue.by_operator),
    )


def queue_age(found: Metrics) -> Figure:
    """How long proposals have waited, by class (MET-7)."""
    rows: list[Row] = []
    for one in found.queue.by_class:
        if one.waiting.count:
            times = (one.waiting.median, one.waiting.longest)
            cells = (number(one.waiting.count), *map(duration, times), number(one.past_due))
            rows.append((label(one.write_class), times, cells))
    heads, legend = ("Class", "Waiting", "Median", "Longest", "Overdue"), ("median", "longest")
    return _bars("queue-age", "Time in the queue", rows, duration, "No proposal is waiting.", heads, legend)


def contradictions(found: Metrics) -> Figure:
    """How long resolved contradictions were open, and how long the open ones have been (MET-5)."""
    both = (("resolved", found.contradictions.resolved), ("open", found.contradictions.open))
    rows = [(name, _values(one), (number(one.count), *map(duration, _values(one)))) for name, one in both if one.count]
    heads, legend = ("", "Count", "Median", "90th percentile", "Longest"), ("median", "90th percentile", "longest")
    outcomes = ", ".join(f"{label(one.name)} {one.count}" for one in found.contradictions.outcomes)
    note, empty = f"Outcomes: {outcomes}." if outcomes else "", "There were no contradictions."
    return _bars("contradictions", "How long contradictions are open", rows, duration, empty, heads, legend, note)


def adoption(found: Metrics) -> Figure:
    """How many corrections changed a later decision (MET-6)."""
    one = found.adoption
    counts = [("corrections", one.corrections), ("measured", one.measured), ("adopted", one.adopted)]
    note = f"{percent(one.share)} of those measured." if one.share is not None else "None can be measured yet."
    return _counts("adoption", "Corrections adopted", counts if one.corrections else [], "No corrections.", note=note)


def accuracy(found: Metrics, floor: float | None) -> Figure:
    """How often people confirmed what policy promoted on its own, with the interval (MET-8)."""
    rows = [
        Interval(f"{label(one.write_class)}{', suspended' if one.suspended else ''}", one.low, one.accuracy, one.high)
        for one in found.auto
    ]
    table = tuple(
        (
            label(one.write_class),
            number(one.promoted),
            number(one.confirmed + one.refuted),
            percent(one.accuracy) or "none yet",
            f"{percent(one.low)} to {percent(one.high)}",
            number(one.waiting),
            "suspended" if one.suspended else "running",
        )
        for one in found.auto
    )
    note = "95 % Wilson interval of the reviewed samples."
    if floor is not None:
        note += f" The dashed line is the floor of {percent(floor)}: a class whose interval reaches below it, with"
        note += " enough samples, is suspended."
    about = "Share of sampled promotions that reviewers confirmed"
    return Figure(
        "accuracy",
        "Auto-promotion accuracy",
        charts.intervals(rows, about=about, floor_at=floor) if rows else None,
        "Nothing was promoted automatically.",
        heads=("Class", "Promoted", "Samples", "Accuracy", "Interval (95 %)", "To review", "State"),
        rows=table,
        note=note if rows else "",
    )


def personal_data(found: Metrics) -> Figure:
    """Personal data that should not be in memory (MET-4)."""
    pii = found.pii
    kinds = [(f"unmasked {label(one.name)}", one.count) for one in pii.unmasked_kinds]
    counts = [(name, count) for name, count in (("without consent", pii.without_consent), *kinds) if count]
    waiting = f"{number(pii.waiting)} promotions have not been scanned yet. " if pii.waiting else ""
    note = waiting + (f"{number(pii.unreadable)} could not be decrypted." if pii.unreadable else "")
    return _counts("personal-data", "Personal data violations", counts, "None: the target is met.", "Kind", note)


def budgets(found: Metrics, counted_at: datetime) -> Figure:
    """How full the pack's budgets are (MET-10)."""
    rows: list[Row] = []
    for one in found.budgets:
        most = number(one.most_records) or "no limit", number(one.most_bytes) or "no limit"
        rows.append((_tier_and_class(one), (one.share,), (number(one.records), most[0], number(one.bytes), most[1])))
    heads = ("Budget", "Records", "Limit", "Bytes", "Limit")
    above = Markup("Above the dashed line, new memories wait in the queue. ")
    note = above + counted_text(counted_at) if rows else ""
    full = max([1.0, *(one.share for one in found.budgets)])
    empty = "The pack sets no budgets."
    return _bars("budgets", "Budgets", rows, percent, empty, heads, note=note, most=full, mark=1.0)


def stored(found: Metrics, counted_at: datetime) -> Figure:
    """Live memories by tier and class (MET-10)."""
    ordered = sorted(found.storage, key=lambda one: -one.records)
    rows = [(_tier_and_class(one), (one.records,), (number(one.records), number(one.bytes))) for one in ordered]
    heads = ("Tier and class", "Records", "Bytes")
    note = counted_text(counted_at)
    return _bars("storage", "Live memories", rows, number, "There are no memories yet.", heads, note=note)


def counted_text(at: datetime) -> Markup:
    """When it was counted what is stored: it may be a minute old."""
    return Markup("Counted {}.").format(time(at))


def hits(found: Metrics) -> Figure:
    """How often recalled memory was of use, by workflow (MET-2)."""
    rows: list[Row] = []
    for one in sorted(found.hits, key=lambda one: -one.recalls):
        rates = (one.found_rate, one.hit_rate)
        rows.append((one.workflow_id or "no workflow", rates, (number(one.recalls), *map(percent, rates))))
    heads, legend = ("Workflow", "Recalls", "With a record", "Cited"), ("returned a record", "a record was cited")
    title = "Recalls that found something"
    return _bars("hits", title, rows, percent, "There were no recalls.", heads, legend, most=1.0)


def tokens(found: Metrics) -> Figure:
    """The tokens of compiled memory against those of the raw captures (MET-3)."""
    one = found.tokens
    counts = [("compiled memory", one.compiled), ("the same captures, raw", one.captures)] if one.prompts else []
    skipped = f" {number(one.skipped)} were skipped." if one.skipped else ""
    note = f"Over {number(one.prompts)} prompts.{skipped}" if one.prompts else ""
    return _counts("tokens", "Tokens in prompts", counts, "No prompt was compiled.", note=note)


def promotions(found: Metrics) -> Figure:
    """What was promoted automatically and by people."""
    counted: dict[str, list[int]] = {}
    for one in found.flow.promotions:
        counted.setdefault(label(one.write_class), [0, 0])[0 if one.auto else 1] += one.count
    ordered = sorted(counted.items(), key=lambda one: (-sum(one[1]), one[0]))
    rows = [(name, both, tuple(map(number, both))) for name, both in ordered]
    heads, legend = ("Class", "Automatic", "By a reviewer"), ("automatic", "by a reviewer")
    return _bars("promotions", "Promotions", rows, number, "Nothing was promoted in this period.", heads, legend)


def refusals(found: Metrics) -> Figure:
    """What the gates refused, and why."""
    ordered = sorted(found.flow.refusals, key=lambda one: -one.count)
    counts = [(f"{label(one.gate)}: {label(one.reason)}", one.count) for one in ordered]
    return _counts("refusals", "Refused at the gates", counts, "No candidate was refused.", "Gate and reason")


def calibration(curve: CalibrationCurve) -> Figure:
    """The confidence that a source claimed against the share that people approved (MET-10)."""
    points = [Point(one.raw, one.approved / one.verdicts, one.verdicts) for one in curve.points if one.verdicts]
    return Figure(
        "calibration",
        f"Calibration of {curve.source}",
        charts.reliability(points, about=f"Claimed confidence of {curve.source} against the share approved"),
        "",
        heads=("Raw confidence from", "Verdicts", "Approved", "Calibrated to"),
        rows=tuple(
            (percent(one.raw), number(one.verdicts), number(one.approved), percent(one.estimate))
            for one in curve.points
        ),
        note=Markup("{} of {} approved, as of {}.").format(
            number(curve.approved), number(curve.verdicts), time(curve.at)
        ),
    )


def _bars(
    name: str,
    title: str,
    rows: Sequence[Row],
    unit: Callable[[float], str],
    empty: str,
    heads: tuple[str, ...],
    legend: tuple[str, ...] = (),
    note: Markup | str = "",
    **scale: float,
) -> Figure:
    """A figure of bars; a long table is cut in the chart, never in the table."""
    bars = [Bars(one, tuple(values)) for one, values, _ in rows[:MOST_ROWS]]
    chart = charts.bars(bars, about=title, unit=unit, **scale) if bars else None
    return Figure(name, title, chart, empty, legend, heads, tuple((one, *cells) for one, _, cells in rows), note)


def _counts(
    name: str, title: str, counts: Sequence[tuple[str, int]], empty: str, head: str = "", note: str = ""
) -> Figure:
    """A figure of bars with one count each."""
    rows = [(one, (count,), (number(count),)) for one, count in counts]
    return _bars(name, title, rows, number, empty, (head, "Count"), note=note)


def _values(spread: Spread) -> tuple[float | None, ...]:
    return spread.median, spread.ninetieth, spread.longest


def _tier_and_class(one: Any) -> str:
    return ", ".join(label(part) for part in (one.tier, one.write_class) if part) or "everything"
