"""Captures and refusals in the console: listed, read with a record of it, run again."""

import re
from typing import Any

import pytest

from muniment.console.pages import refused as refused_pages
from muniment.testing import People
from tests.console.browser import Browser, words
from tests.console.conftest import SignIn
from tests.interfaces.http import RunningServer
from tests.stories import CONSENT, event_data

SUBJECT = "customer:cust_1"
SECRET: dict[str, Any] = {
    "kind": "statement",
    "text": "keeps <b>bees</b>",
    "classification": "PII",
    "subject": SUBJECT,
}


def refused(http_server: RunningServer, people: People, **fields: Any) -> str:
    capture_id = http_server.local.capture(people.run(), **SECRET | fields).capture_id
    http_server.local.consolidate(people.tenant_id)
    return capture_id


@pytest.mark.rule("CAP-11", "CAN-5")
def test_refusals_have_a_page_with_gate_and_reason_and_a_way_to_run_the_capture_again(
    reviewer: Browser, http_server: RunningServer, people: People
) -> None:
    assert "No refusals" in reviewer.get("captures/refusals")
    capture_id = refused(http_server, people)
    shown = reviewer.get("captures/refusals")
    assert "consent missing" in words(shown)
    assert "bees" not in shown
    assert f"/console/captures/{capture_id}/rerun" in shown
    assert "No matches" in reviewer.get("captures/refusals", gate="trust")
    http_server.local.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    answer = reviewer.post(f"captures/{capture_id}/rerun", reason="consent_changed")
    assert answer.status_code == 303
    assert reviewer.post(f"captures/{capture_id}/rerun").status_code == 409
    http_server.local.consolidate(people.tenant_id)
    (item,) = http_server.local.queue.list(people.reviewer)
    page = reviewer.get(f"captures/{capture_id}")
    assert f"/console/queue/{item.proposal_id}" in page
    assert "requested by boris : consent changed" in words(page)
    assert "run again since" in reviewer.get("captures/refusals")
    assert "No matches" in reviewer.get("captures/refusals", latest="yes")
    reviewer.get("captures/refusals", 400, after="nonsense")
    assert reviewer.post("captures/cap_none/rerun").status_code == 404
    assert reviewer.post(f"captures/{capture_id}/rerun", reason="because").status_code == 422


@pytest.mark.rule("CAP-11")
def test_all_that_a_gate_refused_for_one_reason_is_run_again_in_steps_that_say_how_many_are_left(
    reviewer: Browser, http_server: RunningServer, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refused_pages, "MOST_RERUN", 2)
    monkeypatch.setattr(refused_pages, "_PAGE", 3)
    ids = {refused(http_server, people) for _ in range(5)}
    assert len(ids) == 5
    local = http_server.local
    local.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    fields, told = {"gate": "consent", "reason": "consent_missing"}, []
    for step in range(3):
        answer = reviewer.post("captures/refusals/rerun", **fields)
        assert answer.status_code == 303
        page = reviewer.get(answer.headers["location"].removeprefix("/console/"))
        told.append(words(page))
        after = re.search(r'name="after" value="([^"]+)"', page)
        assert (after is None) == (step == 2)
        if after is not None:
            fields["after"] = after[1]
    assert "2 captures are run again, 3 are left" in told[0]
    assert "2 captures are run again, 1 is left" in told[1]
    assert "1 capture is run again" in told[2] and "left" not in told[2]
    del fields["after"]
    again = reviewer.post("captures/refusals/rerun", **fields).headers["location"]
    assert "0 captures are run again" in words(reviewer.get(again.removeprefix("/console/"))), "they wait already"
    local.consolidate(people.tenant_id)
    (item,) = local.queue.list(people.reviewer)
    assert (item.count, item.candidate.capture_id in ids) == (5, True)
    assert local.refusals.list(people.reviewer, latest=True) == []
    assert reviewer.post("captures/refusals/rerun", gate="consent").status_code == 422


@pytest.mark.rule("CAP-11", "ISO-5")
def test_a_capture_is_read_on_a_page_of_its_own_and_that_is_recorded(
    reviewer: Browser, auditor: Browser, signed_in: SignIn, http_server: RunningServer, people: People
) -> None:
    capture_id = refused(http_server, people)
    nothing = refused(http_server, people, kind="message", text="Hello there", classification="PUBLIC")
    listed = auditor.get("captures")
    assert listed.index(nothing) < listed.index(capture_id)
    assert nothing not in reviewer.get("captures")
    assert "bees" not in listed
    assert event_data(http_server.local, people, "capture_read") == []
    page = auditor.get(f"captures/{capture_id}")
    assert "keeps &lt;b&gt;bees&lt;/b&gt;" in page
    assert "Run again" not in page, "an auditor changes nothing"
    assert "Run again" in reviewer.get(f"captures/{capture_id}")
    reviewer.get(f"captures/{nothing}", 404)
    assert [one["capture_id"] for one in event_data(http_server.local, people, "capture_read")] == [
        capture_id,
        capture_id,
    ]
    assert "No matches" in auditor.get("captures", subject="customer:nobody")
    assert nothing in auditor.get("captures", kind="message", state="processed")
    auditor.get("captures", 400, state="nonsense")
    auditor.get("captures", 400, after="cap_none")
    for who in (people.officer, people.admin):
        outsider = signed_in(who)
        for path in ("captures", "captures/refusals", f"captures/{capture_id}"):
            outsider.get(path, 403)
    assert auditor.post(f"captures/{capture_id}/rerun").status_code == 403


@pytest.mark.rule("CAP-11")
def test_long_lists_of_captures_and_refusals_come_page_by_page(
    auditor: Browser, http_server: RunningServer, people: People
) -> None:
    items = [SECRET | {"text": f"fact {n}"} for n in range(60)]
    ids = [one.capture_id for one in http_server.local.capture_many(people.run(), items)]
    http_server.local.consolidate(people.tenant_id)
    for path in ("captures", "captures/refusals"):
        first = auditor.get(path)
        last = first.partition("after=")[2].partition('"')[0]
        second = auditor.get(path, after=last)
        assert [sum(one in page for one in ids) for page in (first, second)] == [50, 10]
        assert 'rel="next"' not in second
