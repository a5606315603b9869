"""Metrics in the console: charts as they are drawn, the figures of a window, breakers, and the work in hand."""

import re
from datetime import UTC, date, datetime, timedelta
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.console import charts
from muniment.console.charts import Bars, Interval, Point, Scale
from muniment.console.figures import accuracy, calibration, figures, throughput
from muniment.model.metrics import AutoAccuracy, CalibrationCurve, CurvePoint, Metrics, OperatorDay, QueueMetrics
from muniment.testing import People
from tests.console.browser import Browser, words
from tests.console.conftest import Sql
from tests.interfaces.http import RunningServer
from tests.stories import KEY, promoted, proposed

HOSTILE = "</text><script>alert(1)</script>\u202e" + "W" * 300
UNTIL = datetime(2026, 1, 31, 12, tzinfo=UTC)
EMPTY = Metrics(tenant_id="t", since=UNTIL - timedelta(days=30), until=UNTIL, at=UNTIL, pack="p@1.0.0")


def drawn(chart: Any) -> ElementTree.Element:
    """A chart, if it is well-formed."""
    return ElementTree.fromstring(str(chart))


def all_of(chart: Any, tag: str, kind: str) -> list[ElementTree.Element]:
    return [one for one in drawn(chart).iter(tag) if kind in one.get("class", "").split()]


# ---- charts ----


@given(st.floats(min_value=0, allow_infinity=False, allow_nan=False, max_value=1e12))
def test_ticks_are_few_begin_at_nothing_and_reach_the_most(most: float) -> None:
    marks = charts.ticks(most)
    assert marks[0] == 0
    assert 2 <= len(marks) <= 7
    assert marks[-1] >= most * 0.999999
    assert marks == sorted(set(marks))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_scale_never_leaves_its_axis(value: float) -> None:
    assert 10 <= Scale(0, 1, 10, 90)(value) <= 90
    assert Scale(0, 0, 10, 90)(value) == 10


def test_columns_are_stacked_and_as_high_as_their_values() -> None:
    chart = charts.columns(["1 Jan", "2 Jan"], [Bars("a", (3, 0)), Bars("b", (1, 4))], about="x")
    first, second, third = all_of(chart, "rect", "bar")
    heights = [float(one.get("height", "0")) for one in (first, second, third)]
    assert heights[0] == pytest.approx(3 * heights[1], abs=0.2)
    assert heights[2] == pytest.approx(heights[0] + heights[1], abs=0.2)
    assert float(second.get("y", "0")) + heights[1] == pytest.approx(float(first.get("y", "0")), abs=0.2)
    assert [one.get("class") for one in (first, second, third)] == ["s1 bar", "s2 bar", "s2 bar"]


def test_bars_are_as_long_as_their_values_and_say_them() -> None:
    rows = [Bars("one", (10.0, None)), Bars("two", (5.0, 0.0))]
    chart = charts.bars(rows, about="x", unit=lambda value: f"{value:g} h", mark=10)
    long, short, nothing = (float(one.get("width", "0")) for one in all_of(chart, "rect", "bar"))
    assert (long, nothing) == (2 * short, 1)
    assert [one.text for one in all_of(chart, "text", "value")] == ["10 h", "5 h", "0 h"]
    assert float(all_of(chart, "line", "floor")[0].get("x1", "0")) == long


def test_an_interval_reaches_from_end_to_end_around_its_share_and_the_floor_is_drawn() -> None:
    rows = [Interval("good", 0.9, 0.96, 0.99), Interval("unknown", 0.0, None, 1.0)]
    chart = charts.intervals(rows, about="x", floor_at=0.95)
    line = all_of(chart, "line", "whisker")[0]
    (dot,) = list(drawn(chart).iter("circle"))
    floor = all_of(chart, "line", "floor")[0]
    left, right, at = float(line.get("x1", "0")), float(line.get("x2", "0")), float(dot.get("cx", "0"))
    assert left < float(floor.get("x1", "0")) < at < right


def test_a_curve_goes_through_what_was_claimed_and_what_held() -> None:
    chart = charts.reliability([Point(0.0, 0.0, 4), Point(1.0, 1.0, 16)], about="x")
    ideal = all_of(chart, "line", "ideal")[0]
    first, last = all_of(chart, "circle", "dot")
    assert (first.get("cx"), first.get("cy")) == (ideal.get("x1"), ideal.get("y1"))
    assert (last.get("cx"), last.get("cy")) == (ideal.get("x2"), ideal.get("y2"))
    assert float(last.get("r", "0")) > float(first.get("r", "0"))


def test_hostile_names_stay_names_and_are_shortened_in_a_chart() -> None:
    rows = [Bars(HOSTILE, (1.0,))]
    for chart in (
        charts.bars(rows, about=HOSTILE, unit=str),
        charts.columns([HOSTILE], rows, about=HOSTILE),
        charts.intervals([Interval(HOSTILE, 0, 0.5, 1)], about=HOSTILE),
    ):
        assert "<script" not in str(chart)
        shown = [(one.text or "") + "".join(part.tail or "" for part in one) for one in drawn(chart).iter("text")]
        assert max(len(text) for text in shown) <= 46
        assert drawn(chart).get("aria-label") == HOSTILE


# ---- figures ----


def test_every_figure_of_an_empty_window_says_so_in_words() -> None:
    for one in figures(EMPTY, None):
        assert one.chart is None
        assert one.empty


@pytest.mark.rule("MET-7")
def test_of_many_people_the_busiest_have_a_colour_and_no_decision_is_lost() -> None:
    days = [date(2026, 1, 10), date(2026, 1, 11)]
    made = tuple(OperatorDay(operator=f"p{number}", day=day, decided=number + 1) for number in range(6) for day in days)
    found = EMPTY.model_copy(update={"queue": QueueMetrics(decided=42, operators=6, by_operator=made)})
    assert throughput(found, "Asia/Dubai").heads[0] == "Day (Asia/Dubai)"
    figure = throughput(found)
    assert figure.legend == ("p5", "p4", "p3", "3 others")
    result = [one.text or "" for one in drawn(figure.chart).iter("title")]
    assert sum(int(text.rpartition(" ")[2]) for text in result) == 42
    assert len(figure.rows) == 12


@pytest.mark.rule("MET-8", "MET-10")
def test_accuracy_shows_its_interval_and_calibration_what_was_approved() -> None:
    auto = AutoAccuracy(
        write_class="preference", promoted=90, confirmed=28, refuted=2, waiting=1, low=0.79, high=0.98, suspended=True
    )
    figure = accuracy(EMPTY.model_copy(update={"auto": (auto,)}), 0.95)
    assert figure.rows == (("preference", "90", "30", "93.3 %", "79 % to 98 %", "1", "suspended"),)
    assert all_of(figure.chart, "line", "floor")
    points = (
        CurvePoint(raw=0.5, estimate=0.4, verdicts=4, approved=1),
        CurvePoint(raw=0.9, estimate=0.9, verdicts=0, approved=0),
    )
    curve = CalibrationCurve(source="agent x@1", at=UNTIL, verdicts=4, approved=1, points=points)
    assert len(all_of(calibration(curve).chart, "circle", "dot")) == 1, "nothing is drawn of what has no verdict"


# ---- the pages ----


def test_a_window_is_chosen_and_its_figures_are_counted(http_server: RunningServer, people: People) -> None:
    browser = Browser(http_server, people.auditor)
    promoted(http_server.local, people)
    page = browser.get("metrics")
    assert "1 decision" in words(page)
    assert len(re.findall('data-figure="', page)) >= 12
    assert page.count("Show as a table") == page.count('<svg class="chart"') > 0
    assert 'aria-current="true">30 days' in page
    assert "style=" not in page
    browser.close()
    http_server.clock.advance(days=8)
    later = Browser(http_server, people.auditor)
    assert "0 decisions" in words(later.get("metrics", window="7d"))
    assert "1 decision" in words(later.get("metrics", window="90d"))
    later.get("metrics", 422, window="1y")
    later.close()


@pytest.mark.rule("MET-10")
def test_what_is_stored_is_counted_once_a_minute_and_the_page_says_when(
    http_server: RunningServer, people: People
) -> None:
    browser, fabric = Browser(http_server, people.auditor), http_server.local
    promoted(fabric, people)
    first = http_server.clock.now
    counted = f'Counted <time datetime="{first.isoformat()}"'
    assert counted in browser.get("metrics")
    http_server.clock.advance(seconds=59)
    promoted(fabric, people, predicate="another")
    page = browser.get("metrics")
    assert counted in page and "2 decisions" in words(page), "all else is measured now"
    http_server.clock.advance(seconds=1)
    assert counted not in browser.get("metrics")
    now = fabric.metrics(people.auditor)
    assert sum(one.records for one in now.storage) == 2
    assert fabric.metrics(people.auditor, storage=False) == now.model_copy(update={"storage": (), "budgets": ()})
    browser.close()


@pytest.mark.rule("MET-3")
def test_tokens_are_a_share_of_the_captures_or_so_many_times_theirs(http_server: RunningServer, people: People) -> None:
    auditor = Browser(http_server, people.auditor)
    assert "data-tokens" not in auditor.get("metrics"), "no prompt was compiled"
    promoted(http_server.local, people)
    http_server.local.compile(people.run(), token_budget=400)
    tokens = http_server.local.metrics(people.auditor, since=http_server.clock.now - timedelta(days=1)).tokens
    assert tokens.ratio is not None
    result = f"{tokens.ratio:.1f}\u00d7" if tokens.ratio > 1 else f"{tokens.ratio * 100:.1f} %"
    assert f'data-tokens><span class="figure">{result}<' in auditor.get("metrics")
    auditor.close()


@pytest.mark.rule("JOB-6")
def test_an_admin_resumes_a_suspended_class_and_nobody_else(
    http_server: RunningServer, people: People, sql: Sql
) -> None:
    promoted(http_server.local, people)
    ((seq, at, txid),) = sql(
        "SELECT seq, at, txid FROM muniment.ticks WHERE tenant_id = %s ORDER BY seq DESC LIMIT 1", people.tenant_id
    )
    sql(
        "INSERT INTO muniment.breakers VALUES (%s, 'preference', %s, %s, %s, true, 'auto', 30, 20, 0.5)",
        *(people.tenant_id, seq, at, txid),
    )
    auditor, admin = Browser(http_server, people.auditor), Browser(http_server, people.admin)
    assert "suspended: everything is reviewed" in auditor.get("metrics")
    assert "metrics/resume" not in auditor.get("metrics")
    assert auditor.post("metrics/resume", write_class="preference").status_code == 403
    assert "metrics/resume" in admin.get("metrics")
    assert admin.post("metrics/resume", write_class="nonsense").status_code == 422
    assert admin.post("metrics/resume", write_class="preference").status_code == 303
    assert not http_server.local.work.breakers(people.admin)[0].open
    assert "is+not+suspended" in admin.post("metrics/resume", write_class="preference").headers["location"]
    for one in (auditor, admin):
        one.close()


@pytest.mark.rule("CAN-3")
def test_parked_captures_are_seen_and_an_admin_has_them_tried_again(
    http_server: RunningServer, people: People, sql: Sql
) -> None:
    proposed(http_server.local, people.run(), **KEY, value="x")
    at = http_server.clock.now
    for name in ("cap_a", "cap_b", "cap_c"):
        sql(
            "INSERT INTO muniment.retries VALUES (%s, %s, 1, '*', 5, %s, %s, %s)",
            *(people.tenant_id, name, at, HOSTILE, at),
        )
    reviewer, admin = Browser(http_server, people.reviewer), Browser(http_server, people.admin)
    page = reviewer.get("metrics/work")
    assert "3 parked" in words(page)
    assert "<script>alert" not in page
    assert "Retry selected" not in page
    assert reviewer.post("metrics/work/requeue", capture_id="cap_a").status_code == 403
    assert "Select" in admin.post("metrics/work/requeue").headers["location"]
    done = admin.post("metrics/work/requeue", capture_id=["cap_a", "cap_b"])
    assert "2+will+be+retried" in done.headers["location"]
    assert [one.capture_id for one in http_server.local.work.parked(people.admin)] == ["cap_c"]
    admin.post("metrics/work/requeue", everything="yes")
    assert http_server.local.work.parked(people.admin) == []
    for one in (reviewer, admin):
        one.close()


def test_a_privacy_officer_sees_no_figures(http_server: RunningServer, people: People) -> None:
    officer = Browser(http_server, people.officer)
    officer.get("metrics", 403)
    officer.get("metrics/work", 403)
    officer.close()
