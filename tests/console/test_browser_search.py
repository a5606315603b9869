"""A search of the queue in a real browser: its words are in no address, and hold in links, by the back button, when it changes."""

import pytest
from playwright.sync_api import Page, expect

from muniment.testing import People
from tests.console.chromium import Scheme
from tests.console.conftest import OpenWindow
from tests.interfaces.http import RunningServer
from tests.stories import KEY, proposed

NAME = "Zacharias"


def ids(page: Page) -> list[str | None]:
    return [one.get_attribute("data-id") for one in page.locator("tr[data-row]").all()]


@pytest.mark.rule("ERA-2")
@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (390, "dark")])
def test_words_are_searched_by_keyboard_and_are_in_no_address_that_the_browser_asks_for(
    open_window: OpenWindow, site: RunningServer, people: People, width: int, scheme: Scheme
) -> None:
    hers = proposed(site.local, people.run(), **KEY, value=NAME).proposal_id
    proposed(site.local, people.run(), **KEY | {"predicate": "eats"}, value="rye")
    window = open_window(people.reviewer, width=width, scheme=scheme)
    page = window.go("queue")
    addresses: list[str] = []
    page.on("request", lambda request: addresses.append(request.url))
    window.press("/")
    window.type(NAME)
    with page.expect_navigation():
        window.press("Enter")
    expect(page.locator("[data-searched]")).to_have_text("1 found.")
    assert ids(page) == [hers]
    expect(page.get_by_label("Search", exact=True)).to_have_value(NAME)
    # The list is loaded again when something changes, and still shows what was found.
    later = proposed(site.local, people.run(), **KEY | {"predicate": "drinks"}, value=NAME).proposal_id
    expect(page.locator("tr[data-row]")).to_have_count(2)
    page.get_by_label("Order").select_option("newest")
    window.follow(page.get_by_role("button", name="Filter", exact=True))
    assert set(ids(page)) == {later, hers}
    window.follow(page.locator(f"tr[data-id={hers}] [data-open]"))
    window.follow(page.locator("[data-back]"))
    assert set(ids(page)) == {later, hers}
    page.go_back()
    page.go_back()
    expect(page.get_by_label("Search", exact=True)).to_have_value(NAME)
    assert not any(NAME in one for one in addresses)
    window.check(widths=(width,), tabbing=False)


@pytest.mark.rule("REV-13")
def test_all_that_a_search_found_are_decided_and_nothing_else(
    open_window: OpenWindow, site: RunningServer, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("muniment.console.listing.PAGE_SIZE", 1)
    run = people.run()
    found = [proposed(site.local, run, **KEY | {"predicate": f"p{n}"}, value=NAME).proposal_id for n in range(2)]
    other = proposed(site.local, run, **KEY | {"predicate": "eats"}, value="rye").proposal_id
    site.local.subjects.name(people.officer, KEY["entity"], "Martha Jung")
    window = open_window(people.reviewer)
    page = window.go("queue")
    window.press("/")
    window.type(NAME)
    with page.expect_navigation():
        window.press("Enter")
    window.press("X", "X", "a")
    dialog = page.locator("dialog[data-plan-dialog]")
    expect(dialog.get_by_role("heading")).to_contain_text("2 proposals")
    expect(dialog.locator("[data-plan]")).to_contain_text("Martha Jung customer:cust_1")
    window.press("Enter")
    window.toast("2 promoted")
    states = {one: site.local.queue.get(people.reviewer, one).status for one in (*found, other)}
    assert states == {found[0]: "promoted", found[1]: "promoted", other: "pending"}
