"""What an auditor does in a real browser, in their own time zone: a moment asked about, the log narrowed and taken away."""

import csv
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import expect

from muniment.testing import People
from tests.console.conftest import OpenWindow, Sql
from tests.interfaces.http import RunningServer
from tests.stories import KEY, promoted, proposed

# Nine hours and thirty-one minutes in Dubai.
ASKED = datetime(2026, 1, 6, 5, 31, tzinfo=UTC)


@pytest.mark.rule("REC-7")
def test_what_was_believed_at_a_moment_is_asked_in_local_time(
    open_window: OpenWindow, site: RunningServer, people: People
) -> None:
    site.clock.now = ASKED - timedelta(hours=1)
    memory = promoted(site.local, people, "email")
    site.clock.now = ASKED - timedelta(minutes=5)
    recall = site.local.recall(people.run()).recall_id
    site.clock.now = ASKED + timedelta(hours=3)
    # At 09:31 UTC this would be the answer.
    site.local.retract(people.second_reviewer, memory, reason="wrong")
    promoted(site.local, people, "fax")
    site.clock.now = ASKED + timedelta(hours=8)
    window = open_window(people.auditor)
    page = window.go("why/believed")
    page.get_by_label("Moment (your time)").fill("2026-01-06T09:31")
    page.get_by_label("User").fill("cust_1")
    window.follow(page.get_by_role("button", name="Show"))
    expect(page.get_by_label("Moment (your time)")).to_have_value("2026-01-06T09:31")
    known = page.get_by_role("region", name="What was in memory at")
    expect(known).to_contain_text("09:31")
    expect(known.get_by_role("row").filter(has_text="email")).to_have_count(1)
    expect(known.get_by_text("fax")).to_have_count(0)
    told = page.locator(f"[data-recall='{recall}']")
    expect(told).to_contain_text("09:26")
    expect(told.locator(f"[data-told='{memory}']")).to_contain_text("email")
    expect(told.get_by_role("link", name="why visible")).to_have_attribute("href", re.compile(recall))
    window.follow(known.get_by_role("link", name="filters"))
    expect(page.locator("[data-visibility]")).to_have_attribute("data-visibility", "visible")
    expect(page.get_by_label("Time (your time), also used for a run")).to_have_value("2026-01-06T09:31")


@pytest.mark.rule("AUD-1")
def test_the_log_is_narrowed_in_local_time_and_exported(
    open_window: OpenWindow, site: RunningServer, people: People, tmp_path: Path
) -> None:
    site.clock.now = ASKED - timedelta(hours=2)
    memory = promoted(site.local, people)
    site.clock.now = ASKED
    site.local.retract(people.second_reviewer, memory, reason="wrong")
    site.clock.advance(hours=5)
    window = open_window(people.auditor)
    page = window.go("audit")
    page.get_by_label("From (your time)").fill("2026-01-06T09:30")
    page.get_by_label("Until (your time)").fill("2026-01-06T09:32")
    window.follow(page.get_by_role("button", name="Show"))
    rows = page.locator("tr[data-event]")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("retracted")
    expect(rows).to_contain_text("09:31")
    with page.expect_download() as lines:
        page.get_by_role("link", name="JSON Lines").click()
    lines.value.save_as(tmp_path / "log.jsonl")
    (one,) = (json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines())
    assert (one["type"], datetime.fromisoformat(one["at"])) == ("memory.retracted", ASKED)
    with page.expect_download() as table:
        page.get_by_role("link", name="CSV").click()
    table.value.save_as(tmp_path / "log.csv")
    with (tmp_path / "log.csv").open() as opened:
        head, line = csv.reader(opened)
    assert dict(zip(head, line, strict=True))["type"] == "memory.retracted"


def test_the_day_of_the_queue_begins_at_midnight_of_the_viewer(
    open_window: OpenWindow, site: RunningServer, people: People
) -> None:
    site.clock.now = datetime(2026, 1, 5, 19, 30, tzinfo=UTC)
    promoted(site.local, people)
    site.clock.advance(hours=1)
    promoted(site.local, people, "tea", predicate="drinks")
    window = open_window(people.reviewer)
    page = window.go("queue")
    page = window.go("queue")
    expect(page.locator("[data-progress-of-day]")).to_have_text("1 decided by you today (Asia/Dubai)")
    window.context.add_cookies([{"name": "muniment_zone", "value": "<b>nowhere", "url": f"{site.url}/console"}])
    answer = window.context.request.get("/console/queue").text()
    assert "<b>nowhere" not in answer and "(UTC)" in answer.partition("data-progress-of-day")[2]


@pytest.mark.rule("CAN-3")
def test_parked_work_is_tried_again_from_its_page(
    open_window: OpenWindow, site: RunningServer, people: People, sql: Sql
) -> None:
    proposed(site.local, people.run(), **KEY, value="x")
    at = site.clock.now
    for name in ("cap_a", "cap_b"):
        sql(
            "INSERT INTO muniment.retries VALUES (%s, %s, 1, '*', 5, %s, %s, %s)",
            *(people.tenant_id, name, at, "<b>it failed</b>", at),
        )
    window = open_window(people.admin)
    page = window.go("metrics/work")
    row = page.get_by_role("row").filter(has_text="cap_a")
    expect(row).to_contain_text("<b>it failed</b>")
    row.get_by_role("checkbox").check()
    page.get_by_role("button", name="Retry selected").click()
    window.toast("1 will be retried")
    assert [one.capture_id for one in site.local.work.parked(people.admin)] == ["cap_b"]
    window.check(widths=(390,), tabbing=False)


@pytest.mark.rule("REV-14", "REC-1")
def test_the_page_of_a_proposal_tells_who_will_see_it(
    open_window: OpenWindow, site: RunningServer, people: People
) -> None:
    item = proposed(site.local, people.run(None), **KEY, value="x", qualifiers={"region": "de"}).proposal_id
    window = open_window(people.reviewer)
    page = window.go(f"queue/{item}")
    seen = page.locator("dd [data-seen-by]")
    expect(seen.get_by_role("listitem")).to_have_text(
        [
            "every run",
            "cleared for INTERNAL",
            "with region=de or without region",
            "for 365 d after its promotion, then it expires",
        ]
    )
    window.check(widths=(390, 1280), tabbing=False)


@pytest.mark.rule("AUD-1")
def test_the_log_and_the_lists_are_dense_where_the_browser_is_set_so(
    open_window: OpenWindow, site: RunningServer, people: People
) -> None:
    site.clock.now = ASKED
    memory = promoted(site.local, people)
    window = open_window(people.auditor)
    page = window.go("audit?type=memory.promoted")
    row = page.locator("tr[data-event]")
    ids, details = row.locator("[data-th=IDs]"), row.locator("[data-th=Details]")
    expect(details).to_be_visible()
    expect(ids).to_be_hidden()
    high = row.bounding_box()
    page.get_by_role("button", name="Compact rows").click()
    expect(details).to_be_hidden()
    expect(ids.get_by_role("link", name=memory)).to_be_visible()
    low = row.bounding_box()
    assert high is not None and low is not None and low["height"] < high["height"] / 2
    window.check(tabbing=False)
    page = window.go("captures")
    expect(page.get_by_role("button", name="Comfortable rows")).to_be_visible()
    window.check(widths=(390, 1280), tabbing=False)
    page.get_by_label("From (your time)").fill("2026-01-06T10:00")
    window.follow(page.get_by_role("button", name="Show"))
    expect(page.get_by_text("No capture matches")).to_be_visible()


def test_an_event_of_the_log_is_two_lines_at_most_and_tells_its_second(
    open_window: OpenWindow, site: RunningServer, people: People
) -> None:
    site.clock.now = ASKED + timedelta(seconds=7)
    promoted(site.local, people)
    page = open_window(people.auditor, width=1440).go("audit")
    event = page.locator("[data-event]").filter(has_text="promoted").first
    expect(event).to_contain_text("09:31:07")
    line, row = event.locator(".seq").evaluate("cell => parseFloat(getComputedStyle(cell).lineHeight)"), event
    height = row.evaluate("row => row.clientHeight")
    assert height < 3 * line, f"{height} px of {line} px lines"
    expect(event.get_by_role("definition")).not_to_have_count(0)
