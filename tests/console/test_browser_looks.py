"""Every page in a real browser: in light and dark, on a phone and at 200 %, by keyboard, with names for who cannot see."""

from collections.abc import Iterator
from uuid import uuid4

import pytest
from playwright.sync_api import Browser

from muniment.testing import People
from tests.console.chromium import Window
from tests.console.seeded import SeededTenant, seed_tenant
from tests.interfaces.http import RunningServer
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
TABBED_THROUGH = (
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
def seeded(site: RunningServer) -> SeededTenant:
    return seed_tenant(site, People(f"tenant_{uuid4().hex[:12]}"))


@pytest.fixture(scope="module")
def window(chromium_browser: Browser, site: RunningServer, seeded: SeededTenant) -> Iterator[Window]:
    with Window(chromium_browser, site.url).sign_in(site, seeded.everybody) as opened:
        yield opened


def test_every_seeded_page_is_checked(seeded: SeededTenant) -> None:
    assert tuple(seeded.paths) == PAGES


@pytest.mark.parametrize("name", PAGES)
def test_a_page_can_be_read_by_everybody(window: Window, seeded: SeededTenant, name: str) -> None:
    window.page.set_viewport_size({"width": 1280, "height": 900})
    window.go(seeded.paths[name])
    window.check(tabbing=SOAKING or name in TABBED_THROUGH)


@pytest.mark.parametrize("name", ["proposal that contradicts", "ledger", "erasure", "one memory", "pack", "metrics"])
def test_what_opens_can_be_read_too(window: Window, seeded: SeededTenant, name: str) -> None:
    window.page.set_viewport_size({"width": 1280, "height": 900})
    page = window.go(seeded.paths[name])
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    window.check(tabbing=False)
    window.press("?")
    page.locator("dialog[data-help]").wait_for()
    window.check(widths=(390,), tabbing=False)
    window.press("Escape")


def test_the_page_to_sign_in_and_a_page_that_is_not_there(chromium_browser: Browser, site: RunningServer) -> None:
    with Window(chromium_browser, site.url) as stranger:
        stranger.go("signin")
        stranger.check()


def test_a_page_that_is_not_there_says_so(window: Window) -> None:
    window.go("memory/pm_none", 404)
    window.check()
