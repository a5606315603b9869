"""Metrics: what memory does and how well, for people, for programs and for Prometheus."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Annotated

import typer

from muniment.cli.call import Call
from muniment.cli.command import command
from muniment.cli.inputs import parse_time
from muniment.cli.options import ASKER, flag
from muniment.cli.output import Screen, format_time, progress
from muniment.errors import InvalidInput
from muniment.model.metrics import Metrics, Spread

app = typer.Typer()

_Rows = Iterable[Sequence[object]]


@command(app, "metrics", options=ASKER, example="muniment metrics --since 7d")
def metrics(
    call: Call,
    since: Annotated[
        str | None, flag("--since", "TIME", "How far back, such as 7d, or a time in ISO 8601; by default 30d.")
    ] = None,
    until: Annotated[str | None, flag("--until", "TIME", "The end of the window, in ISO 8601; by default now.")] = None,
    prometheus: Annotated[bool, flag("--prometheus", "Write the text format of Prometheus.")] = False,
) -> None:
    """Show metrics of recall, review, contradictions, storage and personal data.

    They are counted over a window of time: numbers, names and ids, no content.
    """
    if prometheus and call.as_json:
        raise InvalidInput("give --prometheus or --json, not both", field="prometheus")
    end = parse_time(until, "until")
    start = _parse_since(since, end) if since is not None else None
    with call.open() as fabric, progress("counting", as_json=call.as_json):
        found = fabric.metrics(call.principal("auditor"), since=start, until=end)
    if prometheus:
        from muniment.metrics.prometheus import prometheus_text

        Screen().write(prometheus_text({found.tenant_id: found}))
        return
    call.show(found, lambda: _draw(Screen(), found))


def _parse_since(since: str, end: datetime | None) -> datetime | None:
    """Parse a time, or a duration before the end of the window; raises `InvalidInput`."""
    from muniment.pack.durations import parse_duration

    try:
        return (end or datetime.now(UTC)) - parse_duration(since)
    except ValueError:
        if not since[:1].isdecimal() or "-" not in since:
            raise InvalidInput("expected a duration such as 7d or 12h, or a time in ISO 8601", field="since") from None
        return parse_time(since, "since")


def _draw(screen: Screen, found: Metrics) -> None:
    screen.fields(
        [("window", f"{format_time(found.since)} to {format_time(found.until)}"), ("pack", found.pack)], indent=0
    )
    _draw_answers(screen, found)
    _draw_governance(screen, found)
    _draw_queue(screen, found)
    _draw_flow(screen, found)
    _draw_storage(screen, found)


def _draw_answers(screen: Screen, found: Metrics) -> None:
    golden, tokens, telling, recalls = found.golden, found.tokens, found.telling, found.recalls
    fields: list[tuple[str, object]] = []
    if golden is not None:
        fields += [
            ("golden queries", f"{golden.passed} of {golden.queries} passed, {format_time(golden.at)}"),
            ("golden precision", _share(golden.precision)),
            ("golden recall", _share(golden.recall)),
            ("regressions fixed", _of(golden.regression_passed, golden.regression, "queries")),
        ]
    fields += [
        ("recalls", recalls.recalls),
        ("median results", _number(recalls.median_results)),
        ("degraded", recalls.degraded or None),
        (
            "tokens",
            f"{tokens.compiled} compiled, {tokens.captures} with the captures instead" if tokens.prompts else None,
        ),
        ("tokens saved", _share(1 - tokens.ratio) if tokens.ratio is not None else None),
        ("repeated by users", _of(telling.repeated, telling.with_candidates, "messages")),
    ]
    _section(screen, "Recall", fields)
    rows = [
        (one.workflow_id or "none", one.recalls, _share(one.found_rate) or "-", _share(one.hit_rate) or "-")
        for one in found.hits
    ]
    _table(screen, ("workflow", "recalls", "with memory", "cited"), rows)


def _draw_governance(screen: Screen, found: Metrics) -> None:
    pii, contradictions, adoption, erasures = found.pii, found.contradictions, found.adoption, found.erasures
    ended = contradictions.resolved
    fields: list[tuple[str, object]] = [
        ("personal data", f"{pii.violations} violations" + (f", {pii.waiting} not scanned" if pii.waiting else "")),
        ("without consent", pii.without_consent or None),
        ("unmasked", pii.unmasked or None),
        ("unreadable", pii.unreadable or None),
        ("contradictions", f"{ended.count} resolved, {contradictions.open.count} open"),
        ("time to resolve", _spread(ended)),
        ("open since", _spread(contradictions.open)),
        ("adoption", _of(adoption.adopted, adoption.measured, "corrections changed a decision")),
        ("erasures", f"{erasures.erasures}, {erasures.purged.count} purged" if erasures.erasures else None),
        ("time to purge", _spread(erasures.purged)),
    ]
    _section(screen, "Governance", fields)
    _table(screen, ("memory with a violation",), [(memory_id,) for memory_id in pii.memory_ids])


def _draw_queue(screen: Screen, found: Metrics) -> None:
    queue = found.queue
    fields: list[tuple[str, object]] = [
        ("decided", queue.decided),
        ("in time", _of(queue.in_time, queue.decided, "")),
        ("waiting", queue.waiting.count),
        ("waiting since", _spread(queue.waiting)),
        ("past due", queue.past_due or None),
    ]
    _section(screen, "Queue", fields)
    rows = [(one.write_class, one.decided, one.waiting.count, one.past_due) for one in queue.by_class]
    _table(screen, ("class", "decided", "waiting", "past due"), rows)
    _records(screen, "operator day decided", queue.by_operator)
    rows = [
        (
            one.write_class,
            one.promoted,
            f"{one.confirmed} of {one.confirmed + one.refuted}",
            f"{one.low:.3f} to {one.high:.3f}",
            "suspended" if one.suspended else "on",
        )
        for one in found.auto
    ]
    _table(screen, ("automatic promotion", "promoted", "confirmed", "interval", "state"), rows)


def _draw_flow(screen: Screen, found: Metrics) -> None:
    captures, flow = found.captures, found.flow
    fields: list[tuple[str, object]] = [
        ("captures", _counts(captures.by_kind.items())),
        ("waiting", captures.waiting),
        ("to retry", captures.retrying or None),
        ("parked", captures.parked or None),
        ("refused", _counts((f"{one.gate} {one.reason}", one.count) for one in flow.refusals)),
        ("masked", _counts((f"{one.kind} in {one.write_class}", one.count) for one in flow.redactions)),
        ("proposed", _counts(flow.proposals.items())),
        ("duplicates", _counts(flow.duplicates.items())),
        ("retracted", _counts((one.name, one.count) for one in flow.retractions)),
    ]
    _section(screen, "Pipeline", fields)
    rows = [(one.tier, one.write_class, "policy" if one.auto else "person", one.count) for one in flow.promotions]
    _table(screen, ("tier", "class", "promoted by", "count"), rows)


def _draw_storage(screen: Screen, found: Metrics) -> None:
    _section(screen, "Storage", [("memories", sum(one.records for one in found.storage))])
    _records(screen, "tier write_class records bytes", found.storage)
    rows = [
        (
            one.tier or "all",
            one.write_class or "all",
            f"{one.records} of {one.most_records or 'any'}",
            f"{one.bytes} of {one.most_bytes or 'any'}",
            _share(one.share) or "-",
        )
        for one in found.budgets
    ]
    _table(screen, ("budget of", "class", "records", "bytes", "used"), rows)
    _records(screen, "extractor day calls", found.model_calls)
    rows = [
        (curve.source, f"{point.raw:.2f}", f"{point.estimate:.2f}", f"{point.approved} of {point.verdicts}")
        for curve in found.calibrations
        for point in curve.points
    ]
    _table(screen, ("source", "stated confidence", "calibrated", "approved"), rows)


def _section(screen: Screen, name: str, fields: Sequence[tuple[str, object]]) -> None:
    screen.line("")
    screen.line((name, "bold"))
    screen.fields(fields)


def _records(screen: Screen, columns: str, found: Sequence[object]) -> None:
    if found:
        screen.line("")
        screen.records(columns, found)


def _table(screen: Screen, columns: Sequence[str], rows: _Rows) -> None:
    shown = list(rows)
    if shown:
        screen.line("")
        screen.table(columns, shown)


def _counts(counts: Iterable[tuple[str, int]]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts)


def _of(part: int, whole: int, what: str) -> str | None:
    return f"{part} of {whole} {what}".rstrip() if whole else None


def _share(value: float | None) -> str | None:
    return f"{value:.1%}" if value is not None else None


def _number(value: float | None) -> str | None:
    return f"{value:g}" if value is not None else None


def _spread(spread: Spread) -> str | None:
    named = (("median", spread.median), ("90 %", spread.ninetieth), ("longest", spread.longest))
    return ", ".join(f"{name} {_length(seconds)}" for name, seconds in named if seconds is not None) or None


def _length(seconds: float) -> str:
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"
