"""Captures in a real browser: one is run again by keyboard."""

import pytest

from muniment.testing import People
from tests.console.conftest import OpenWindow
from tests.console.test_captures import refused
from tests.interfaces.http import RunningServer


@pytest.mark.rule("CAP-11")
def test_a_capture_is_run_again_by_keyboard(open_window: OpenWindow, site: RunningServer, people: People) -> None:
    capture_id = refused(site, people)
    window = open_window(people.reviewer)
    page = window.page
    page.goto("/console/captures/refusals")
    page.get_by_role("button", name=f"Run again {capture_id}").focus()
    window.press("Enter")
    page.wait_for_url(f"**/console/captures/{capture_id}*")
    assert page.get_by_text("Queued for consolidation 2").is_visible()
    assert site.local.captures.list(people.auditor)[0].state == "waiting"
