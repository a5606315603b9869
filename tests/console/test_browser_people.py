"""A person's page in a real browser: from a name to an export and an erasure with its receipt, by keyboard, on a phone."""

import pytest
from playwright.sync_api import expect

from muniment.testing import People
from tests.console.chromium import Scheme
from tests.console.conftest import OpenWindow
from tests.interfaces.http import RunningServer
from tests.stories import CONSENT, promoted, proposed

SUBJECT = "customer:cust_1"
HOSTILE = "<script>alert(1)</script>\u202e" + "W" * 200


@pytest.fixture
def known(site: RunningServer, people: People) -> None:
    """Somebody about whom there is something in every part of the page."""
    local = site.local
    local.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    promoted(local, people, f"grey-parrot {HOSTILE}", subject=SUBJECT)
    ended = promoted(local, people, "tea", predicate="drinks", subject=SUBJECT)
    local.retract(people.reviewer, ended, reason="wrong")
    proposed(local, people.run("cust_1"), entity=SUBJECT, predicate="lives_in", value="Bonn", subject=SUBJECT)
    local.recall(people.run("cust_1"), "parrot")


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (1440, "dark"), (390, "light"), (390, "dark")])
def test_the_page_can_be_read_by_everybody(open_window: OpenWindow, people: People, width: int, scheme: Scheme) -> None:
    window = open_window(people.officer, width=width, scheme=scheme)
    window.go("people")
    window.check(tabbing=True)
    window.go(f"people?subject={SUBJECT}&user_id=cust_1")
    window.check(tabbing=True)
    window.go(f"erasures?subject={SUBJECT}&user_id=cust_1")
    window.check()


@pytest.mark.rule("ERA-2")
@pytest.mark.usefixtures("known")
def test_an_officer_hands_over_and_erases_by_keyboard(
    open_window: OpenWindow, site: RunningServer, people: People
) -> None:
    window = open_window(people.officer)
    page = window.go("people")
    page.get_by_label("Subject").focus()
    page.keyboard.type(SUBJECT)
    page.keyboard.press("Tab")
    page.keyboard.type("cust_1")
    page.keyboard.press("Enter")
    expect(page.locator("[data-held]")).to_contain_text("1live memory")
    with page.expect_download() as saving:
        page.get_by_role("button", name="Save as a page").focus()
        page.keyboard.press("Enter")
    assert saving.value.suggested_filename == "access-request.html"
    page.get_by_role("link", name="Erase this person…").focus()
    page.keyboard.press("Enter")
    expect(page.locator("[data-would-remove]")).to_contain_text("2 (1 live)")
    page.get_by_label("to confirm").focus()
    page.keyboard.type(SUBJECT)
    page.keyboard.press("Enter")
    expect(page.locator("[data-receipt]")).to_contain_text("2 erased")
    (receipt,) = site.local.erasures(people.officer)
    assert receipt.memories == 2
