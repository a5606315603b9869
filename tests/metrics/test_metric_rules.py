"""The pure parts of metrics: the interval, captures ranked as memories are, budgets, and the form for Prometheus."""

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from muniment.language.embedding.tokenizers import CharacterTokenizer
from muniment.metrics.measure import budgets
from muniment.metrics.prometheus import FAMILIES, MOST_NAMES, OTHERS, prometheus_text
from muniment.metrics.tokens import Prompt, RankedCapture, ranked, tokens_filled
from muniment.model.compiled import Format
from muniment.model.metrics import (
    AutoAccuracy,
    CalibrationCurve,
    ClassQueue,
    ContradictionMetrics,
    CurvePoint,
    GoldenMetrics,
    Metrics,
    ModelCalls,
    OperatorDay,
    PiiMetrics,
    QueueMetrics,
    RecallMetrics,
    Spread,
    Stored,
    Tally,
    TokenMetrics,
    WorkflowHits,
    wilson,
)
from muniment.pack import builtin_pack, load_pack
from muniment.recall.compiling.blocks import Fact
from muniment.recall.compiling.formats import find_layout

AT = datetime(2026, 1, 5, 9, tzinfo=UTC)
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"


# ---- the interval ----


@pytest.mark.rule("MET-8")
@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [
        (0, 0, 0.0, 1.0),
        (0, 10, 0.0, 0.2775),
        (10, 10, 0.7225, 1.0),
        (29, 30, 0.8333, 0.9941),
        (50, 100, 0.4038, 0.5962),
    ],
)
def test_the_interval_is_wilsons(successes: int, trials: int, low: float, high: float) -> None:
    assert wilson(successes, trials) == (pytest.approx(low, abs=1e-4), pytest.approx(high, abs=1e-4))


@pytest.mark.rule("MET-8")
@given(trials=st.integers(1, 10_000), share=st.floats(0, 1), z=st.floats(0, 5))
def test_the_interval_holds_the_share_and_widens_with_doubt(trials: int, share: float, z: float) -> None:
    successes = round(trials * share)
    low, high = wilson(successes, trials, z)
    assert 0 <= low <= successes / trials <= high <= 1
    wider = wilson(successes, trials, z + 1)
    assert wider[0] <= low and high <= wider[1]


@pytest.mark.parametrize(("successes", "trials", "z"), [(2, 1, 1.96), (-1, 1, 1.96), (0, -1, 1.96), (1, 2, -1.0)])
def test_counts_that_make_no_sense_are_refused(successes: int, trials: int, z: float) -> None:
    with pytest.raises(ValueError):
        wilson(successes, trials, z)


# ---- captures ranked as memories are ----


def _ranked_capture(
    number: int, text: str, *, source: str = "agent", evidence: int = 0, intent: str | None = None
) -> RankedCapture:
    at = AT - timedelta(minutes=number)
    return RankedCapture(f"cap_{number}", 100 - number, at, at, source, "message", "bot", intent, text, evidence)


SAID = [
    _ranked_capture(1, "She plays chess on Sundays."),
    _ranked_capture(2, "The parcel to Lyon was late.", source="operator"),
    _ranked_capture(3, "A parcel went to Rome.", evidence=2),
]


@pytest.mark.rule("MET-3")
@pytest.mark.parametrize(
    ("query", "intent", "order"),
    [
        ("late parcels to Lyon", None, [2, 3, 1]),
        ("who plays chess", None, [1, 2, 3]),
        (None, None, [2, 3, 1]),  # by priority: an operator's, then one with evidence
    ],
)
def test_captures_come_in_the_order_that_memories_would(
    query: str | None, intent: str | None, order: list[int]
) -> None:
    prompt = Prompt(query, intent, AT, 100, 0)
    assert [one.capture_id for one in ranked(prompt, SAID, builtin_pack())] == [f"cap_{number}" for number in order]


@pytest.mark.rule("MET-3")
def test_the_runs_own_intent_comes_first_among_equals() -> None:
    same = [
        _ranked_capture(1, "tea"),
        _ranked_capture(1, "tea", intent="sales.offer"),
        _ranked_capture(1, "tea", intent="sales.*"),
    ]
    same = [RankedCapture(**{**vars(one), "capture_id": f"cap_{n}"}) for n, one in enumerate(same)]
    prompt = Prompt("tea", "sales.offer", AT, 100, 0)
    assert [one.intent_id for one in ranked(prompt, same, builtin_pack())] == ["sales.offer", "sales.*", None]


def _as_memory(texts: Sequence[str], form: Format = "markdown") -> str:
    """The captures as a prompt would show them."""
    layout = find_layout(form)
    known = (("class", "statement"), ("confidence", "0.60"), ("source", "agent"), ("kind", "message"))
    fields = (*known, ("observed", f"{AT:%Y-%m-%dT%H:%M}Z"), ("author", "bot"))
    facts = [Fact(f"m{number}", text, fields) for number, text in enumerate(texts, 1)]
    return layout.text([layout.block((fact,), conflict=False) for fact in facts])


@pytest.mark.rule("MET-3")
@pytest.mark.parametrize("form", ["markdown", "xml", "json", "messages"])
def test_they_are_put_in_as_memory_would_be_with_the_frame_and_their_provenance(form: Format) -> None:
    texts = ["Tea at four.", "The parcel to Lyon was late again."]
    same = [_ranked_capture(1, text) for text in texts]
    prompt = Prompt(None, None, AT, 10_000, 0, form)
    whole = CharacterTokenizer().count(_as_memory([one.text for one in ranked(prompt, same, builtin_pack())], form))
    # Counted block by block, each may take a token more or less.
    assert tokens_filled(prompt, same, builtin_pack(), CharacterTokenizer()) == pytest.approx(whole, abs=4)
    assert tokens_filled(prompt, [], builtin_pack(), CharacterTokenizer()) == 0


@pytest.mark.rule("MET-3")
def test_the_last_is_cut_to_the_room_that_is_left() -> None:
    long = [_ranked_capture(1, "x" * 4000)]
    bare = CharacterTokenizer().count(_as_memory([""]))
    assert tokens_filled(Prompt(None, None, AT, bare + 60, 0), long, builtin_pack(), CharacterTokenizer()) == bare + 60
    assert tokens_filled(Prompt(None, None, AT, bare + 10, 0), long, builtin_pack(), CharacterTokenizer()) == 0


# ---- budgets ----


@pytest.mark.rule("MET-10")
def test_a_budget_counts_its_tier_and_class_or_all_and_is_as_full_as_its_fuller_side() -> None:
    limits = (
        "[{records: 10}, {tier: durable, bytes: 100}, {tier: semantic, write_class: statement, records: 4, bytes: 100}]"
    )
    pack = load_pack('pack_meta: {id: a, version: "1.0.0"}\nmemory_layer: {budgets: ' + limits + "}")
    kept = [
        Stored(tier="semantic", write_class="statement", records=2, bytes=90),
        Stored(tier="semantic", write_class="preference", records=3, bytes=10),
        Stored(tier="durable", write_class="statement", records=1, bytes=150),
    ]
    used = [(one.records, one.bytes, one.share) for one in budgets(kept, pack)]
    assert used == [(6, 250, 0.6), (1, 150, 1.5), (2, 90, 0.9)]


# ---- for Prometheus ----


def _metrics(**parts: object) -> Metrics:
    window = {"tenant_id": "t", "since": AT - timedelta(days=1), "until": AT, "at": AT, "pack": "p@1.0.0"}
    return Metrics.model_validate({**window, **parts})


def _samples(text: str) -> dict[str, dict[tuple[str, ...], float]]:
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(text):
        for one in family.samples:
            labels = FAMILIES[one.name][1]
            place = (one.labels["tenant"], *(one.labels[label] for label in labels))
            assert set(one.labels) == {"tenant", *labels}
            assert place not in found.setdefault(one.name, {})
            found[one.name][place] = one.value
    return found


def test_numbers_come_out_under_their_names_by_tenant() -> None:
    full = _metrics(
        golden=GoldenMetrics(at=AT, queries=4, passed=3, precision=0.5, recall=1.0, regression=2, regression_passed=1),
        tokens=TokenMetrics(prompts=1, compiled=30, captures=60),
        pii=PiiMetrics(violations=1, unmasked=1, unmasked_kinds=(Tally(name="email", count=1),), memory_ids=("pm_1",)),
        contradictions=ContradictionMetrics(resolved=Spread(count=1, median=2.0, ninetieth=3.0), open=Spread(count=7)),
        queue=QueueMetrics(
            operators=2,
            by_operator=(
                OperatorDay(operator="boris", day=date(2026, 1, 5), decided=4),
                OperatorDay(operator="clara", day=date(2026, 1, 5), decided=2),
            ),
            by_class=(ClassQueue(write_class="statement", decided=6, in_time=5, past_due=1),),
        ),
        auto=(
            AutoAccuracy(
                write_class="preference",
                promoted=9,
                confirmed=3,
                refuted=1,
                waiting=0,
                low=0.3,
                high=0.9,
                suspended=True,
            ),
        ),
        model_calls=tuple(ModelCalls(extractor="llm@1", day=date(2026, 1, day), calls=day) for day in (3, 4)),
        calibrations=(
            CalibrationCurve(
                source="agent llm@1",
                at=AT,
                verdicts=4,
                approved=2,
                points=(CurvePoint(raw=0.5, estimate=0.4, verdicts=4, approved=2),),
            ),
        ),
        recalls=RecallMetrics(recalls=5, median_results=1.5),
    )
    text = prometheus_text({"acme": full, "other": _metrics()})
    found = _samples(text)
    assert found["muniment_golden_queries"] == {("acme", "true"): 3, ("acme", "false"): 1}
    assert found["muniment_golden_regression_accuracy"] == {("acme",): 0.5}
    assert found["muniment_prompt_tokens_ratio"] == {("acme",): 0.5}
    assert found["muniment_pii_unmasked"] == {("acme", "email"): 1}
    assert found["muniment_contradiction_resolution_seconds"] == {("acme", "median"): 2, ("acme", "p90"): 3}
    assert found["muniment_contradictions_open"] == {("acme",): 7, ("other",): 0}
    assert found["muniment_queue_decided_per_operator_day"] == {("acme",): 3}
    assert found["muniment_queue_decided_in_time"] == {("acme", "statement"): 5}
    assert found["muniment_auto_accuracy"] == {("acme", "preference"): 0.75}
    assert found["muniment_auto_suspended"] == {("acme", "preference"): 1}
    assert found["muniment_model_calls"] == {("acme", "llm@1"): 7}
    assert found["muniment_calibration_estimate"] == {("acme", "agent llm@1", "0.5"): 0.4}
    assert found["muniment_recalls"] == {("acme",): 5, ("other",): 0}
    assert found["muniment_window_seconds"] == {("acme",): 86_400, ("other",): 86_400}
    for name in found:
        assert f"# HELP {name} {FAMILIES[name][0]}\n# TYPE {name} gauge\n" in text
    assert not re.search("boris|clara|pm_1", text), "neither people nor memories are named"


def test_names_that_callers_choose_are_bounded() -> None:
    hits = tuple(
        WorkflowHits(workflow_id=f"w{n:03}", recalls=1000 - n, looked_at=1, found=1, cited=0)
        for n in range(MOST_NAMES + 7)
    )
    found = _samples(prometheus_text({"t": _metrics(hits=hits)}))
    assert len(found["muniment_workflow_recalls"]) == MOST_NAMES + 1
    assert found["muniment_workflow_recalls"]["t", OTHERS] == sum(one.recalls for one in hits[MOST_NAMES:])
    assert len(found["muniment_memory_hit_ratio"]) == MOST_NAMES


def test_the_page_names_every_metric_with_its_labels_and_no_other() -> None:
    rows = re.findall(r"^\| `(muniment_\w+)` \|([^|]*)\|", PAGE.read_text("utf-8"), re.MULTILINE)
    assert {name: tuple(re.findall(r"`(\w+)`", labels)) for name, labels in rows} == {
        name: labels for name, (_, labels) in FAMILIES.items()
    }


def test_the_page_names_every_part_of_the_metrics() -> None:
    parts = set(re.findall(r"^\| `(\w+)` \|", PAGE.read_text("utf-8"), re.MULTILINE))
    assert set(Metrics.model_fields) - {"tenant_id", "since", "until", "at", "pack"} <= parts
