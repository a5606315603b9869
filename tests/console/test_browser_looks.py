"""Every page in a real browser: in light and dark, on a phone and at 200 %, by keyboard, with names for who cannot see."""

from collections.abc import Iterator
from uuid import uuid4

import pytest
from playwright.sync_api import Browser

from muniment.testing import People
from tests.console.chromium import Window
from tests.console.furnished import Furnished, furnished
from tests.interfaces.http import HttpDoor
from tests.soak import SOAKING

PAGES = (
    "queue", "queue, nothing fits", "proposal", "proposal out of a message", "proposal that contradicts",
    "proposal, rejected", "preview", "contradictions", "contradiction", "contradiction, settled", "captures",
    "captures, nothing fits", "refusals", "capture", "memory",
    "memory, nothing fits", "one memory", "one that ended", "over time", "difference", "graph", "why", "why, explained",
    "recalls", "recall", "replay", "consent", "ledger", "grant", "erasure", "erasure, to confirm", "receipt", "audit", "security events", "chain",
    "archives", "trail", "metrics", "work", "packs", "pack", "packs in force", "activation", "compare", "backtest", "register",
)  # fmt: skip
# By Tab from end to end, one page of each part; in a soak all of them.
STEPPED_THROUGH = (
    "queue",
    "proposal",
    "contradiction",
    "captures",
    "refusals",
    "graph",
    "memory",
    "why",
    "consent",
    "erasure",
    "audit",
    "metrics",
    "packs",
)


@pytest.fixture(scope="module")
def all_there(site: HttpDoor) -> Furnished:
    return furnished(site, People(f"tenant_{uuid4().hex[:12]}"))


@pytest.fixture(scope="module")
def window(browser_itself: Browser, site: HttpDoor, all_there: Furnished) -> Iterator[Window]:
    with Window(browser_itself, site.url).sign_in(site, all_there.everybody) as opened:
        yield opened


def test_every_page_that_is_furnished_is_looked_at(all_there: Furnished) -> None:
    assert tuple(all_there.paths) == PAGES


@pytest.mark.parametrize("name", PAGES)
def test_a_page_can_be_read_by_everybody(window: Window, all_there: Furnished, name: str) -> None:
    window.page.set_viewport_size({"width": 1280, "height": 900})
    window.go(all_there.paths[name])
    window.look(steps=SOAKING or name in STEPPED_THROUGH)


@pytest.mark.parametrize("name", ["proposal that contradicts", "ledger", "erasure", "one memory", "pack", "metrics"])
def test_what_opens_can_be_read_too(window: Window, all_there: Furnished, name: str) -> None:
    window.page.set_viewport_size({"width": 1280, "height": 900})
    page = window.go(all_there.paths[name])
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    window.look(steps=False)
    window.press("?")
    page.locator("dialog[data-help]").wait_for()
    window.look(widths=(390,), steps=False)
    window.press("Escape")


def test_the_page_to_sign_in_and_a_page_that_is_not_there(browser_itself: Browser, site: HttpDoor) -> None:
    with Window(browser_itself, site.url) as stranger:
        stranger.go("signin")
        stranger.look()


def test_a_page_that_is_not_there_says_so(window: Window) -> None:
    window.go("memory/pm_none", 404)
    window.look()
