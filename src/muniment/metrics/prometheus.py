"""Metrics in Prometheus' text format: gauges over the window, without content and with few labels."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from muniment.model.metrics import Metrics, Spread

# Values of labels that callers choose (workflows, extractors, sources, rules); all others are counted together.
MOST_NAMES = 50
OTHERS = "(others)"
NONE = ""

Sample: TypeAlias = tuple[tuple[str, ...], float | None]

# Every metric by its name: its help text, and its labels after the tenant.
FAMILIES: dict[str, tuple[str, tuple[str, ...]]] = {
    "muniment_window_seconds": ("Length of the window that was counted over", ()),
    "muniment_read_lag_seconds": ("How far behind the standby was that these figures were read from", ()),
    "muniment_golden_queries": ("Golden queries of the last run, by whether they passed (MET-1)", ("passed",)),
    "muniment_golden_precision": ("Mean precision of golden queries (MET-1)", ()),
    "muniment_golden_recall": ("Mean recall of golden queries (MET-1)", ()),
    "muniment_golden_regression_accuracy": ("Share of golden queries that once failed which pass (MET-1)", ()),
    "muniment_memory_hit_ratio": ("Share of recalls with a plain record that the run cites (MET-2)", ("workflow",)),
    "muniment_memory_found_ratio": ("Share of recalls with any record (MET-2)", ("workflow",)),
    "muniment_workflow_recalls": ("Recalls by workflow (MET-2)", ("workflow",)),
    "muniment_prompt_tokens": ("Tokens of sampled prompts: compiled, or of captures instead (MET-3)", ("of",)),
    "muniment_prompt_tokens_ratio": ("Tokens of compiled memory for each of captures (MET-3)", ()),
    "muniment_pii_violations": ("Memories promoted without consent or with unmasked personal data (MET-4)", ("why",)),
    "muniment_pii_unmasked": ("Memories with unmasked personal data by kind (MET-4)", ("kind",)),
    "muniment_pii_unscanned": ("Memories of the window that were not scanned yet (MET-4)", ()),
    "muniment_contradictions_resolved": ("Contradictions that ended, by outcome (MET-5)", ("outcome",)),
    "muniment_contradiction_resolution_seconds": ("How long those were open (MET-5)", ("stat",)),
    "muniment_contradictions_open": ("Contradictions open at the end (MET-5)", ()),
    "muniment_contradiction_open_seconds": ("How long those have been open (MET-5)", ("stat",)),
    "muniment_corrections": ("Corrections, measured ones, and those that changed a decision (MET-6)", ("state",)),
    "muniment_correction_adoption_ratio": ("Share of measured corrections that changed a decision (MET-6)", ()),
    "muniment_queue_decided": ("Proposals that people decided (MET-7)", ("write_class",)),
    "muniment_queue_decided_in_time": ("Of those, before they were due (MET-7)", ("write_class",)),
    "muniment_queue_operators": ("People who decided any (MET-7)", ()),
    "muniment_queue_decided_per_operator_day": ("Mean decided by a person on a day with any (MET-7)", ()),
    "muniment_queue_waiting": ("Proposals waiting at the end (MET-7)", ("write_class",)),
    "muniment_queue_past_due": ("Of those, past their time (MET-7)", ("write_class",)),
    "muniment_queue_waiting_seconds": ("How long they have been waiting (MET-7)", ("stat",)),
    "muniment_auto_accuracy": ("Share of sampled auto-promotions that people confirmed (MET-8)", ("write_class",)),
    "muniment_auto_accuracy_low": ("Lower end of its 95 % interval (MET-8)", ("write_class",)),
    "muniment_auto_accuracy_high": ("Upper end of its 95 % interval (MET-8)", ("write_class",)),
    "muniment_auto_samples": ("Samples of auto-promotion by what became of them (MET-8)", ("write_class", "verdict")),
    "muniment_auto_suspended": (
        "1 if policy may currently not promote the class without a person (MET-8)",
        ("write_class",),
    ),
    "muniment_messages": ("Messages: all, that gave a candidate, that said again what was promoted (MET-9)", ("what",)),
    "muniment_repeated_telling_ratio": ("Share of messages with a candidate that only repeat (MET-9)", ()),
    "muniment_memories": ("Live memories (MET-10)", ("tier", "write_class")),
    "muniment_memory_bytes": ("Bytes of their sealed bodies (MET-10)", ("tier", "write_class")),
    "muniment_budget_used_ratio": ("Used share of a budget of the pack (MET-10)", ("tier", "write_class", "of")),
    "muniment_model_calls": ("Times a language model was asked (MET-10)", ("extractor",)),
    "muniment_calibration_estimate": (
        "What a source's claim from this confidence on is worth (MET-10)",
        ("source", "raw"),
    ),
    "muniment_calibration_verdicts": ("Verdicts behind the last calibration of a source (MET-10)", ("source",)),
    "muniment_captures": ("Captures", ("kind",)),
    "muniment_captures_pending": ("Captures that wait now: for their turn, to be tried again, parked", ("state",)),
    "muniment_captures_oldest_waiting_seconds": ("Age of the oldest capture that waits for its turn", ()),
    "muniment_refusals": ("Candidates that a gate refused", ("gate", "reason")),
    "muniment_redactions": ("What was masked, by kind (RED-4)", ("kind", "write_class")),
    "muniment_redaction_exceptions": ("What the pack excepts and was left as it is (RED-5)", ("kind", "write_class")),
    "muniment_proposals": ("Proposals that entered the queue", ("write_class",)),
    "muniment_duplicates": ("Proposals set aside as duplicates", ("write_class",)),
    "muniment_promotions": ("Memories promoted, by policy or by a person", ("tier", "write_class", "by")),
    "muniment_retractions": ("Memories retracted", ("reason",)),
    "muniment_recalls": ("Recalls", ()),
    "muniment_recalls_degraded": ("Recalls in which something was missing", ()),
    "muniment_recall_results_median": ("Median number of memories that a recall returned", ()),
    "muniment_erasures": ("Erasures, and those whose purge is complete", ("state",)),
    "muniment_erasure_purge_seconds": ("How long until they were", ("stat",)),
}


def prometheus_text(metrics: Mapping[str, Metrics]) -> str:
    """The metrics of those tenants in Prometheus' text format.

    Figures over a window go up and down, so all are gauges. A metric without a value is left out.
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Tenants(metrics))
    return generate_latest(registry).decode()


class _Tenants(Collector):
    def __init__(self, metrics: Mapping[str, Metrics]) -> None:
        self._metrics = metrics

    def describe(self) -> Iterable[GaugeMetricFamily]:
        return ()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        by_tenant = {tenant: dict(_samples_of(one)) for tenant, one in sorted(self._metrics.items())}
        for name, (words, labels) in FAMILIES.items():
            family = GaugeMetricFamily(name, words, labels=["tenant", *labels])
            for tenant, samples in by_tenant.items():
                for values, number in samples.get(name, ()):
                    if number is not None:
                        family.add_metric([tenant, *values], float(number))
            if family.samples:
                yield family


def _samples_of(one: Metrics) -> Iterator[tuple[str, list[Sample]]]:
    yield "muniment_window_seconds", [((), (one.until - one.since).total_seconds())]
    if one.read_from is not None:
        yield "muniment_read_lag_seconds", [((), one.read_from.lag_s)]
    yield from _recall_samples(one)
    yield from _governance_samples(one)
    yield from _queue_samples(one)
    yield from _storage_samples(one)
    yield from _flow_samples(one)


def _recall_samples(one: Metrics) -> Iterator[tuple[str, list[Sample]]]:
    if (golden := one.golden) is not None:
        failed = golden.queries - golden.passed
        yield "muniment_golden_queries", [(("true",), golden.passed), (("false",), failed)]
        yield "muniment_golden_precision", [((), golden.precision)]
        yield "muniment_golden_recall", [((), golden.recall)]
        yield "muniment_golden_regression_accuracy", [((), golden.regression_accuracy)]
    # Those with most recalls come first; the rest have no share of their own that could be added up.
    named = one.hits[:MOST_NAMES]
    yield "muniment_memory_hit_ratio", [((hits.workflow_id or NONE,), hits.hit_rate) for hits in named]
    yield "muniment_memory_found_ratio", [((hits.workflow_id or NONE,), hits.found_rate) for hits in named]
    counted = [((hits.workflow_id or NONE,), float(hits.recalls)) for hits in one.hits]
    yield "muniment_workflow_recalls", _bounded(counted)
    yield "muniment_prompt_tokens", [(("compiled",), one.tokens.compiled), (("captures",), one.tokens.captures)]
    yield "muniment_prompt_tokens_ratio", [((), one.tokens.ratio)]
    yield "muniment_recalls", [((), one.recalls.recalls)]
    yield "muniment_recalls_degraded", [((), one.recalls.degraded)]
    yield "muniment_recall_results_median", [((), one.recalls.median_results)]


def _governance_samples(one: Metrics) -> Iterator[tuple[str, list[Sample]]]:
    pii, open_, ended = one.pii, one.contradictions.open, one.contradictions.resolved
    yield "muniment_pii_violations", [(("without_consent",), pii.without_consent), (("unmasked",), pii.unmasked)]
    yield "muniment_pii_unmasked", [((tally.name,), tally.count) for tally in pii.unmasked_kinds]
    yield "muniment_pii_unscanned", [((), pii.waiting)]
    yield "muniment_contradictions_resolved", [((tally.name,), tally.count) for tally in one.contradictions.outcomes]
    yield "muniment_contradiction_resolution_seconds", _stats(ended)
    yield "muniment_contradictions_open", [((), open_.count)]
    yield "muniment_contradiction_open_seconds", _stats(open_)
    adoption = one.adoption
    counts = {"all": adoption.corrections, "measured": adoption.measured, "adopted": adoption.adopted}
    yield "muniment_corrections", [((state,), count) for state, count in counts.items()]
    yield "muniment_correction_adoption_ratio", [((), adoption.share)]
    purged = one.erasures.purged
    yield "muniment_erasures", [(("all",), one.erasures.erasures), (("purged",), purged.count)]
    yield "muniment_erasure_purge_seconds", _stats(purged)


def _queue_samples(one: Metrics) -> Iterator[tuple[str, list[Sample]]]:
    queue, classes = one.queue, one.queue.by_class
    yield "muniment_queue_decided", [((each.write_class,), each.decided) for each in classes]
    yield "muniment_queue_decided_in_time", [((each.write_class,), each.in_time) for each in classes]
    yield "muniment_queue_operators", [((), queue.operators)]
    days = queue.by_operator
    mean = sum(day.decided for day in days) / len(days) if days else None
    yield "muniment_queue_decided_per_operator_day", [((), mean)]
    yield "muniment_queue_waiting", [((each.write_class,), each.waiting.count) for each in classes]
    yield "muniment_queue_past_due", [((each.write_class,), each.past_due) for each in classes]
    yield "muniment_queue_waiting_seconds", _stats(queue.waiting)
    yield "muniment_auto_accuracy", [((each.write_class,), each.accuracy) for each in one.auto]
    yield "muniment_auto_accuracy_low", [((each.write_class,), each.low) for each in one.auto]
    yield "muniment_auto_accuracy_high", [((each.write_class,), each.high) for each in one.auto]
    verdicts = ("confirmed", "refuted", "waiting")
    samples: list[Sample] = [((each.write_class, name), getattr(each, name)) for each in one.auto for name in verdicts]
    yield "muniment_auto_samples", samples
    yield "muniment_auto_suspended", [((each.write_class,), each.suspended) for each in one.auto]


def _storage_samples(one: Metrics) -> Iterator[tuple[str, list[Sample]]]:
    yield "muniment_memories", [((each.tier, each.write_class), each.records) for each in one.storage]
    yield "muniment_memory_bytes", [((each.tier, each.write_class), each.bytes) for each in one.storage]
    used: dict[tuple[str, ...], float] = {}
    for budget in one.budgets:
        for of, count, most in (
            ("records", budget.records, budget.most_records),
            ("bytes", budget.bytes, budget.most_bytes),
        ):
            if most is not None:
                place = (budget.tier or NONE, budget.write_class or NONE, of)
                used[place] = max(used.get(place, 0.0), count / most)
    yield "muniment_budget_used_ratio", list(used.items())
    calls: dict[tuple[str, ...], float] = {}
    for call in one.model_calls:
        calls[(call.extractor,)] = calls.get((call.extractor,), 0) + call.calls
    yield "muniment_model_calls", _bounded(calls.items())
    curves = one.calibrations[:MOST_NAMES]
    points: list[Sample] = [
        ((curve.source, f"{point.raw:g}"), point.estimate) for curve in curves for point in curve.points
    ]
    yield "muniment_calibration_estimate", points
    yield "muniment_calibration_verdicts", [((curve.source,), curve.verdicts) for curve in curves]


def _flow_samples(one: Metrics) -> Iterator[tuple[str, list[Sample]]]:
    captures, flow, telling = one.captures, one.flow, one.telling
    yield "muniment_captures", [((kind,), count) for kind, count in captures.by_kind.items()]
    pending = {"waiting": captures.waiting, "retrying": captures.retrying, "parked": captures.parked}
    yield "muniment_captures_pending", [((state,), count) for state, count in pending.items()]
    yield "muniment_captures_oldest_waiting_seconds", [((), captures.oldest_waiting)]
    yield "muniment_refusals", [((each.gate, each.reason), each.count) for each in flow.refusals]
    for name, tallies in (
        ("muniment_redactions", flow.redactions),
        ("muniment_redaction_exceptions", flow.redaction_exceptions),
    ):
        counts: list[tuple[tuple[str, ...], float]] = [((each.kind, each.write_class), each.count) for each in tallies]
        yield name, _bounded(counts)
    yield "muniment_proposals", [((name,), count) for name, count in flow.proposals.items()]
    yield "muniment_duplicates", [((name,), count) for name, count in flow.duplicates.items()]
    promoted: list[Sample] = [
        ((each.tier, each.write_class, "auto" if each.auto else "person"), each.count) for each in flow.promotions
    ]
    yield "muniment_promotions", promoted
    yield "muniment_retractions", [((tally.name,), tally.count) for tally in flow.retractions]
    messages = {"all": telling.messages, "with_candidate": telling.with_candidates, "repeated": telling.repeated}
    yield "muniment_messages", [((what,), count) for what, count in messages.items()]
    yield "muniment_repeated_telling_ratio", [((), telling.share)]


def _stats(spread: Spread) -> list[Sample]:
    found: Sequence[tuple[str, float | None]] = (
        ("median", spread.median),
        ("p90", spread.ninetieth),
        ("max", spread.longest),
    )
    return [((name,), seconds) for name, seconds in found if seconds is not None]


def _bounded(counts: Iterable[tuple[tuple[str, ...], float]]) -> list[Sample]:
    """The largest counts, and the sum of all others."""
    ordered = sorted(counts, key=lambda one: (-one[1], one[0]))
    rest: dict[tuple[str, ...], float] = {}
    for values, count in ordered[MOST_NAMES:]:
        place = (OTHERS, *values[1:])
        rest[place] = rest.get(place, 0.0) + count
    return [*ordered[:MOST_NAMES], *rest.items()]
