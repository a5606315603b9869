"""Every page in a real browser: in light and dark, on a phone and at 200 %, by keyboard, with names for who cannot see."""

from collections.abc import Iterator
from uuid import uuid4

import pytest
from fastapi.routing import APIRoute
from playwright.sync_api import Browser
from starlette.routing import compile_path

from muniment.collaboration import verbs as collaboration
from muniment.console import app, sign_in
from muniment.console.pages import PAGES as CONSOLE_PAGES
from muniment.testing import People
from tests.console import axe
from tests.console.chromium import Window
from tests.console.seeded import HOSTILE, SeededTenant, seed_tenant
from tests.interfaces.http import RunningServer
from tests.soak import SOAKING

PAGES = (
    "queue", "queue, nothing fits", "proposal", "proposal out of a message", "proposal that contradicts",
    "proposal, rejected", "preview", "contradictions", "contradiction", "contradiction, settled", "captures",
    "captures, nothing fits", "refusals", "capture", "memory",
    "memory, nothing fits", "one memory", "one that ended", "over time", "difference", "graph, to choose", "graph", "why", "why, explained",
    "recalls", "recall", "replay, to choose", "replay", "consent", "ledger", "grant", "erasure", "erasure, to confirm", "receipt", "audit", "security events", "chain",
    "archives", "trail, to choose", "trail", "metrics", "work", "packs", "pack", "packs in force", "activation", "compare", "backtest", "register",
    "queue by subject", "second look", "exception", "believed", "people", "person", "consent load", "keys", "webhooks", "limits", "backfills",
    "hostile proposal", "hostile memory", "hostile trail", "erasure of a fact", "state", "correction", "notices",
)  # fmt: skip
OWN_PAGES = ("me", "me, why")
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
    "queue by subject",
    "consent load",
    "webhooks",
)
# Routes that answer with no page of their own: files, streams, redirects.
NO_PAGES = {
    "",
    "/",
    "/static/{name}",
    "/oidc",
    "/callback",
    "/live",
    "/admin",
    "/audit/head.json",
    "/me/export.{kind}",
}


@pytest.fixture(scope="module")
def seeded(site: RunningServer) -> Iterator[SeededTenant]:
    # So that a decision of somebody else waits for a second look.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(collaboration, "DRAWN", 1.0)
        yield seed_tenant(site, People(f"tenant_{uuid4().hex[:12]}"))


@pytest.fixture(scope="module")
def window(chromium_browser: Browser, site: RunningServer, seeded: SeededTenant) -> Iterator[Window]:
    with Window(chromium_browser, site.url).sign_in(site, seeded.everybody) as opened:
        yield opened


@pytest.fixture(scope="module")
def own_window(chromium_browser: Browser, site: RunningServer, seeded: SeededTenant) -> Iterator[Window]:
    with Window(chromium_browser, site.url).sign_in(site, seeded.end_user) as opened:
        yield opened


def test_every_seeded_page_is_checked(seeded: SeededTenant) -> None:
    assert tuple(seeded.paths) == PAGES
    assert tuple(seeded.own_paths) == OWN_PAGES


def test_every_page_of_the_console_is_seeded(seeded: SeededTenant) -> None:
    routers = [(module.router, "") for module in CONSOLE_PAGES] + [
        (app.router, "/console"),
        (sign_in.router, "/console"),
    ]
    routes = {
        route.path.removeprefix(prefix)
        for router, prefix in routers
        for route in router.routes
        if isinstance(route, APIRoute) and "GET" in (route.methods or ())
    }
    paths = {f"/{one.partition('?')[0]}" for one in (*seeded.paths.values(), *seeded.own_paths.values(), "signin")}
    # What is exported is a file.
    pages = {route for route in routes - NO_PAGES if not route.endswith("/export")}
    assert pages - {route for route in pages for path in paths if compile_path(route)[0].match(path)} == set()


@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing_serious_on_a_page(window: Window, seeded: SeededTenant, name: str) -> None:
    page = window.go(seeded.paths[name])
    assert axe.findings_in(page, axe.LOOKS) == []


@pytest.mark.parametrize("name", OWN_PAGES)
def test_axe_finds_nothing_serious_on_the_pages_of_an_end_user(
    own_window: Window, seeded: SeededTenant, name: str
) -> None:
    page = own_window.go(seeded.own_paths[name])
    assert axe.findings_in(page, axe.LOOKS) == []


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
        page = stranger.go("signin")
        stranger.check()
        assert axe.findings_in(page, axe.LOOKS) == []


def test_a_page_that_is_not_there_says_so(window: Window) -> None:
    page = window.go("memory/pm_none", 404)
    window.check()
    assert axe.findings_in(page, axe.LOOKS) == []


def test_axe_finds_nothing_serious_in_what_a_form_answers(window: Window) -> None:
    page = window.go("people")
    page.get_by_label("Name", exact=True).fill(HOSTILE[:60])
    window.follow(page.get_by_role("button", name="Search"))
    assert axe.findings_in(page, axe.LOOKS) == []


def test_axe_finds_nothing_serious_in_the_dialogs_of_the_queue(window: Window) -> None:
    window.page.set_viewport_size({"width": 1440, "height": 900})
    page = window.go("queue")
    page.locator("[data-select-all]").check()
    for button, dialog in (("Approve selected", "[data-plan-dialog]"), ("Reject…", "[data-reject]")):
        page.set_viewport_size({"width": 1440, "height": 900})
        page.get_by_role("button", name=button).click()
        page.locator(f"dialog{dialog}[open]").wait_for()
        assert axe.findings_in(page, axe.LOOKS) == []
        window.press("Escape")


def test_the_head_of_the_table_stays_below_the_bar_of_actions_when_that_wraps(window: Window) -> None:
    window.page.set_viewport_size({"width": 960, "height": 420})
    page = window.go("queue")
    bar, head = page.locator("[data-bulk]"), page.locator(".queue thead th").last
    one_line = bar.bounding_box() or {}
    page.locator("[data-selected-count]").evaluate("one => { one.textContent = 'many words '.repeat(12); }")
    page.wait_for_function(
        "before => document.querySelector('[data-bulk]').offsetHeight > before + 10", arg=one_line["height"]
    )
    page.locator("tr[data-row]").last.scroll_into_view_if_needed()
    page.mouse.wheel(0, 2000)
    page.wait_for_function("document.querySelector('[data-bulk]').getBoundingClientRect().top === 0")
    below, above = bar.bounding_box(), head.bounding_box()
    assert below is not None
    assert above is not None
    assert abs(above["y"] - (below["y"] + below["height"])) <= 1
