"""A browser for each module that looks with one, one server for all of them; a tenant for each test."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser

from muniment import Principal
from muniment.console.pages import live
from muniment.testing import TestServer
from tests.console.chromium import Scheme, Window, chromium
from tests.doors.http import HttpDoor

# Opens a window for somebody who is signed in: `look(people.reviewer)`, narrow or dark where it is said.
Open = Callable[..., Window]


@pytest.fixture(scope="module")
def browser_itself() -> Iterator[Browser]:
    """Of the module: while there is one, no other loop can run in this thread, and others need theirs."""
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="package")
def site(server: TestServer, database: str) -> Iterator[HttpDoor]:
    with HttpDoor(server, database) as opened:
        yield opened


@pytest.fixture
def opened(browser_itself: Browser, site: HttpDoor, monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """Windows; all was well with each of them until the end."""
    monkeypatch.setattr(live, "LOOK_EVERY", 0.02)
    windows: list[Window] = []

    def open_one(who: Principal | None = None, *, width: int = 1280, scheme: Scheme = "light") -> Window:
        window = Window(browser_itself, site.url, width=width, scheme=scheme)
        windows.append(window)
        return window if who is None else window.sign_in(site, who)

    yield open_one
    for window in windows:
        window.context.close()
    for window in windows:
        window.fine()
