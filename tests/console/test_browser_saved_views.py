"""Saved views of the queue in a real browser, at 390 and 1440 pixels, light and dark."""

import pytest
from playwright.sync_api import expect

from muniment.testing import People
from tests.console.chromium import Scheme
from tests.console.conftest import OpenWindow
from tests.interfaces.http import RunningServer
from tests.stories import KEY, proposed


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (390, "dark")])
def test_a_view_is_saved_opened_and_removed_and_names_nobody(
    open_window: OpenWindow, site: RunningServer, people: People, width: int, scheme: Scheme
) -> None:
    plain = proposed(site.local, people.run(), **KEY, value="email").proposal_id
    held = proposed(site.local, people.run(), **KEY | {"predicate": "eats"}, value="rye").proposal_id
    site.local.queue.hold(people.reviewer, held)
    window = open_window(people.reviewer, width=width, scheme=scheme)
    page = window.go("queue?held=yes&order=newest&entity=customer:cust_1")
    expect(page.locator("[data-not-saved]")).to_contain_text("keeps no entity")
    expect(page.get_by_role("button", name="Save view")).to_have_count(0)
    page = window.go("queue?held=yes&order=newest")
    page.get_by_label("Name of the view").fill("On hold <b>")
    page.get_by_role("button", name="Save view").click()
    link = page.get_by_role("navigation", name="Saved views").get_by_role("link", name="On hold <b>")
    page = window.go("queue")
    expect(page.locator("details.filter-box")).not_to_have_attribute("open", "")
    expect(page.locator("tr[data-row]")).to_have_count(2)
    window.check(widths=(width,), tabbing=False)
    window.follow(link)
    expect(page.locator("tr[data-row]")).to_have_count(1)
    expect(page.locator(f"tr[data-id={held}]")).to_be_visible()
    expect(page.get_by_label("Order")).to_have_value("newest")
    assert plain not in page.url
    page.get_by_role("button", name="Remove the view On hold <b>").click()
    window.toast("View removed")
    expect(page.get_by_role("navigation", name="Saved views")).to_have_count(0)
