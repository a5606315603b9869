"""Fixtures of the console's tests: browsers without script, and windows of a real browser."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser as Chromium

from muniment import Principal
from muniment.console.pages import live
from muniment.testing import People, TestServer
from tests.console.browser import Browser
from tests.console.chromium import Scheme, Window, chromium
from tests.interfaces.http import RunningServer

# Opens a window for a signed-in person: `open_window(people.reviewer)`, optionally narrow or dark.
OpenWindow = Callable[..., Window]
SignIn = Callable[[Principal], Browser]
Sql = Callable[..., list[tuple[Any, ...]]]


@pytest.fixture(scope="module")
def http_server(server: TestServer, database: str) -> Iterator[RunningServer]:
    with RunningServer(server, database) as opened:
        yield opened


@pytest.fixture
def signed_in(http_server: RunningServer) -> Iterator[SignIn]:
    """Sign somebody in, in a browser without script."""
    browsers: list[Browser] = []

    def sign_in(who: Principal) -> Browser:
        browsers.append(Browser(http_server, who))
        return browsers[-1]

    yield sign_in
    for browser in browsers:
        browser.close()


@pytest.fixture
def reviewer(signed_in: SignIn, people: People) -> Browser:
    return signed_in(people.reviewer)


@pytest.fixture
def auditor(signed_in: SignIn, people: People) -> Browser:
    return signed_in(people.auditor)


@pytest.fixture
def officer(signed_in: SignIn, people: People) -> Browser:
    return signed_in(people.officer)


@pytest.fixture
def admin(signed_in: SignIn, people: People) -> Browser:
    return signed_in(people.admin)


@pytest.fixture
def sql(server: TestServer, database: str) -> Iterator[Sql]:
    """As somebody who may do anything: for what only a job would write."""
    with server.connect(database) as owner:

        def run(text: str, *given: Any) -> list[tuple[Any, ...]]:
            done = owner.execute(text, given)
            return done.fetchall() if done.description else []

        yield run


@pytest.fixture(scope="module")
def chromium_browser() -> Iterator[Chromium]:
    """One per module: while it runs, no other event loop can run in this thread."""
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="package")
def site(server: TestServer, database: str) -> Iterator[RunningServer]:
    with RunningServer(server, database) as opened:
        yield opened


@pytest.fixture
def open_window(
    chromium_browser: Chromium, site: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> Iterator[OpenWindow]:
    """Open windows; at the end, each must have reported no problem."""
    monkeypatch.setattr(live, "CHECK_EVERY", 0.02)
    windows: list[Window] = []

    def open_one(who: Principal | None = None, *, width: int = 1280, scheme: Scheme = "light") -> Window:
        window = Window(chromium_browser, site.url, width=width, scheme=scheme)
        windows.append(window)
        return window if who is None else window.sign_in(site, who)

    yield open_one
    for window in windows:
        window.end()
    for window in windows:
        window.assert_no_problems()
