"""Figures: what the metrics of a tenant look like as charts, each beside the table that it was drawn from."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, timedelta

from markupsafe import Markup

from muniment.console import charts
from muniment.console.charts import Bars, Interval, Point
from muniment.console.rendering import label, lasting, number, percent
from muniment.model.metrics import CalibrationCurve, Metrics, Spread

# A colour for each of the busiest, and one for all others.
NAMED = charts.SERIES - 1
ROWS = 12


@dataclass(frozen=True)
class Figure:
    """A chart with its name, what its colours mean, and the same as a table; no chart where there is nothing."""

    name: str
    title: str
    chart: Markup | None
    empty: str
    legend: tuple[str, ...] = ()
    heads: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    note: str = ""


def figures(found: Metrics, floor: float | None) -> list[Figure]:
    """The charts of a window, in the order of the page; `floor` is where auto-promotion stops."""
    return [
        throughput(found),
        queue_age(found),
        contradictions(found),
        adoption(found),
        accuracy(found, floor),
        personal_data(found),
        budgets(found),
        stored(found),
        hits(found),
        tokens(found),
        promotions(found),
        refusals(found),
        *(calibration(curve) for curve in found.calibrations[:ROWS]),
    ]


def throughput(found: Metrics) -> Figure:
    """Proposals that people decided, day by day (MET-7)."""
    first, last = found.since.astimezone(UTC).date(), found.until.astimezone(UTC).date()
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
    about = f"Decisions for each day: {number(found.queue.decided)} in all by {found.queue.operators} people"
    chart = charts.columns([f"{day:%d %b}" for day in days], series, about=about) if series else None
    rows = tuple((f"{one.day}", one.operator, number(one.decided)) for one in found.queue.by_operator)
    return Figure(
        "throughput",
        "Decisions a day",
        chart,
        "Nobody decided a proposal in this window.",
        tuple(charts.shortened(one.name, 30) for one in series),
        ("Day (UTC)", "Who", "Decided"),
        rows,
    )


def queue_age(found: Metrics) -> Figure:
    """How long proposals have waited, by class (MET-7)."""
    classes = [one for one in found.queue.by_class if one.waiting.count]
    waiting = [(label(one.write_class), one.waiting, one.past_due) for one in classes]
    rows = [Bars(f"{name} ({one.count})", (one.median, one.longest)) for name, one, _ in waiting]
    table = tuple(
        (name, number(one.count), lasting(one.median), lasting(one.longest), number(late))
        for name, one, late in waiting
    )
    return Figure(
        "queue-age",
        "How long proposals wait",
        _bars(rows, f"Age of {found.queue.waiting.count} proposals that wait, by class", lasting),
        "Nothing waits in the queue.",
        ("median", "longest"),
        ("Class", "Waiting", "Median", "Longest", "Past due"),
        table,
    )


def contradictions(found: Metrics) -> Figure:
    """How long contradictions took, and how long the open ones have been (MET-5)."""
    both = (("ended", found.contradictions.resolved), ("open", found.contradictions.open))
    rows = [Bars(f"{name} ({spread.count})", _values(spread)) for name, spread in both if spread.count]
    outcomes = ", ".join(f"{label(one.name)} {one.count}" for one in found.contradictions.outcomes)
    return Figure(
        "contradictions",
        "Contradictions",
        _bars(rows, "How long contradictions took, and how long the open ones have been", lasting),
        "There were none, and none is open.",
        ("median", "90 % within", "longest"),
        ("", "How many", "Median", "90 % within", "Longest"),
        tuple((name, number(spread.count), *map(lasting, _values(spread))) for name, spread in both),
        f"How they ended: {outcomes}." if outcomes else "",
    )


def adoption(found: Metrics) -> Figure:
    """After how many corrections a decision differed (MET-6)."""
    one = found.adoption
    counted = (("corrections", one.corrections), ("measured", one.measured), ("adopted", one.adopted))
    rows = [Bars(name, (float(count),)) for name, count in counted]
    told = f"{one.adopted} of {one.measured} measured corrections changed a decision"
    return Figure(
        "adoption",
        "Corrections adopted",
        _bars(rows, told, number) if one.corrections else None,
        "There were no corrections.",
        heads=("", "How many"),
        rows=tuple((name, number(count)) for name, count in counted),
        note=f"{percent(one.share)} of those measured." if one.share is not None else "None can be measured yet.",
    )


def accuracy(found: Metrics, floor: float | None) -> Figure:
    """How right policy was where it promoted alone, with the interval (MET-8)."""
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
    held = f" Dashed is the floor of {percent(floor)}: with enough samples, a class that reaches below it stops."
    return Figure(
        "accuracy",
        "Auto-promotion accuracy",
        charts.intervals(rows, about="Share of sampled promotions that people confirmed", floor_at=floor)
        if rows
        else None,
        "Nothing was promoted without a person.",
        heads=("Class", "Promoted", "Samples", "Accuracy", "Interval (95 %)", "To look at", "State"),
        rows=table,
        note=f"Wilson interval at 95 %, by samples.{held if floor is not None else ''}" if rows else "",
    )


def personal_data(found: Metrics) -> Figure:
    """Personal data that got into memory though it should not have (MET-4)."""
    pii = found.pii
    kinds = [(f"unmasked {label(one.name)}", one.count) for one in pii.unmasked_kinds]
    counted = [("without consent", pii.without_consent), *kinds]
    rows = [Bars(name, (float(count),)) for name, count in counted if count]
    waiting = f"{number(pii.waiting)} promotions were not scanned yet. " if pii.waiting else ""
    unreadable = f"{number(pii.unreadable)} did not open." if pii.unreadable else ""
    return Figure(
        "personal-data",
        "Personal data violations",
        _bars(rows, f"{pii.violations} memories with personal data that should not be there", number),
        "None: the target is met.",
        heads=("What", "Memories"),
        rows=tuple((name, number(count)) for name, count in counted),
        note=waiting + unreadable,
    )


def budgets(found: Metrics) -> Figure:
    """How full the pack's budgets are (MET-10)."""
    named = [(_place(one.tier, one.write_class), one) for one in found.budgets]
    rows = [Bars(name, (one.share,)) for name, one in named[:ROWS]]
    full = max((one.share for one in found.budgets), default=0.0)
    return Figure(
        "budgets",
        "Budgets",
        _bars(rows, "How full each budget is", percent, most=max(full, 1.0), mark=1.0),
        "The pack sets no budgets.",
        heads=("Budget", "Records", "of", "Bytes", "of"),
        rows=tuple(
            (
                name,
                number(one.records),
                number(one.most_records) or "any",
                number(one.bytes),
                number(one.most_bytes) or "any",
            )
            for name, one in named
        ),
        note="At the dashed line new promotions wait in the queue." if rows else "",
    )


def stored(found: Metrics) -> Figure:
    """Live memories by tier and class (MET-10)."""
    ordered = sorted(found.storage, key=lambda one: -one.records)
    rows = [Bars(_place(one.tier, one.write_class), (float(one.records),)) for one in ordered[:ROWS]]
    return Figure(
        "storage",
        "Live memories",
        _bars(rows, "Live memories by tier and class", number),
        "Nothing is remembered yet.",
        heads=("Tier and class", "Records", "Bytes"),
        rows=tuple((_place(one.tier, one.write_class), number(one.records), number(one.bytes)) for one in ordered),
    )


def hits(found: Metrics) -> Figure:
    """How often memory was of use, by workflow (MET-2)."""
    ordered = sorted(found.hits, key=lambda one: -one.recalls)
    named = [(one.workflow_id or "no workflow", one) for one in ordered]
    rows = [Bars(f"{name} ({number(one.recalls)})", (one.found_rate, one.hit_rate)) for name, one in named[:ROWS]]
    return Figure(
        "hits",
        "Recalls that found something",
        _bars(rows, "Share of recalls with any record, and with one that was cited, by workflow", percent, most=1.0),
        "There were no recalls.",
        ("with any record", "with one that was cited"),
        ("Workflow", "Recalls", "With any", "Cited"),
        tuple((name, number(one.recalls), percent(one.found_rate), percent(one.hit_rate)) for name, one in named),
    )


def tokens(found: Metrics) -> Figure:
    """What compiled memory takes against raw captures in its place (MET-3)."""
    one = found.tokens
    counted = (("compiled memory", one.compiled), ("captures instead", one.captures))
    rows = [Bars(name, (float(count),)) for name, count in counted] if one.prompts else []
    skipped = f" {number(one.skipped)} were skipped." if one.skipped else ""
    return Figure(
        "tokens",
        "Tokens in prompts",
        _bars(rows, "Tokens of compiled memory, and of captures in its place", number),
        "No prompt was compiled.",
        heads=("", "Tokens"),
        rows=tuple((name, number(count)) for name, count in counted),
        note=f"On {number(one.prompts)} prompts.{skipped}" if one.prompts else "",
    )


def promotions(found: Metrics) -> Figure:
    """What was promoted, by policy alone and by people."""
    counted: dict[str, list[int]] = {}
    for one in found.flow.promotions:
        counted.setdefault(label(one.write_class), [0, 0])[0 if one.auto else 1] += one.count
    ordered = sorted(counted.items(), key=lambda one: (-sum(one[1]), one[0]))
    rows = [Bars(name, (float(auto), float(person))) for name, (auto, person) in ordered[:ROWS]]
    return Figure(
        "promotions",
        "Promotions",
        _bars(rows, "Promotions by class, by policy alone and by people", number),
        "Nothing was promoted in this window.",
        ("by policy alone", "by a person"),
        ("Class", "By policy alone", "By a person"),
        tuple((name, number(auto), number(person)) for name, (auto, person) in ordered),
    )


def refusals(found: Metrics) -> Figure:
    """What the gates refused, and why."""
    ordered = sorted(found.flow.refusals, key=lambda one: -one.count)
    rows = [Bars(f"{label(one.gate)}: {label(one.reason)}", (float(one.count),)) for one in ordered[:ROWS]]
    return Figure(
        "refusals",
        "Refused at the gates",
        _bars(rows, "Refusals by gate and reason", number),
        "No candidate was refused.",
        heads=("Gate", "Reason", "How often"),
        rows=tuple((label(one.gate), label(one.reason), number(one.count)) for one in ordered),
    )


def calibration(curve: CalibrationCurve) -> Figure:
    """What a source claimed against what people approved (MET-10)."""
    points = [Point(one.raw, one.approved / one.verdicts, one.verdicts) for one in curve.points if one.verdicts]
    return Figure(
        "calibration",
        f"Calibration of {curve.source}",
        charts.reliability(points, about=f"Claimed confidence of {curve.source} against the share approved"),
        "",
        heads=("Claimed from", "Verdicts", "Approved", "Counts as"),
        rows=tuple(
            (percent(one.raw), number(one.verdicts), number(one.approved), percent(one.estimate))
            for one in curve.points
        ),
        note=f"{number(curve.approved)} of {number(curve.verdicts)} approved, counted on {curve.at:%d %b %Y}.",
    )


def _values(spread: Spread) -> tuple[float | None, ...]:
    return spread.median, spread.ninetieth, spread.longest


def _place(tier: str | None, write_class: str | None) -> str:
    parts = [label(part) for part in (tier, write_class) if part]
    return ", ".join(parts) or "everything"


def _bars(
    rows: Sequence[Bars],
    about: str,
    tell: Callable[[float], str],
    *,
    most: float | None = None,
    mark: float | None = None,
) -> Markup | None:
    return charts.bars(rows, about=about, tell=tell, most=most, mark=mark) if rows else None
