"""A real browser: windows on the console that report every error of their pages."""

import shutil
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, Self

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Dialog, Error, Locator, Page, Request, expect, sync_playwright

from muniment import Principal
from tests.interfaces.http import RunningServer

ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
Scheme = Literal["light", "dark"]
# Four hours ahead of UTC, in summer too.
ZONE = "Asia/Dubai"
# How long a busy machine may take until a page shows what a test waits for.
PATIENCE_MS = 20_000
# A phone, 1280 at 200 %, and a desk.
WIDTHS = (390, 640, 1280)
PAGE_CHECKS = (Path(__file__).parent / "page_checks.js").read_text()
TAB_ORDER = (Path(__file__).parent / "tab_order.js").read_text()


NO_BROWSER = "there is no browser here; install chromium"


def require_browser() -> None:
    """End the program if there is no browser; for those that take a while before they use it."""
    if shutil.which("chromium") is None:
        sys.exit(NO_BROWSER)


@contextmanager
def chromium() -> Generator[Browser]:
    """Start Chromium; without one, the test is skipped.

    Playwright's event loop then runs in this thread, so that no other can.
    """
    if (found := shutil.which("chromium")) is None:
        pytest.skip(f"not run: {NO_BROWSER}")
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=list(ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


class Window:
    """A browser window that records errors in the console and requests to other hosts."""

    def __init__(self, browser: Browser, url: str, *, width: int = 1280, scheme: Scheme = "light") -> None:
        self.url = url
        self.context = browser.new_context(
            base_url=url,
            viewport={"width": width, "height": 900},
            color_scheme=scheme,
            reduced_motion="reduce",
            locale="en-GB",
            timezone_id=ZONE,
        )
        self.context.set_default_timeout(PATIENCE_MS)
        self.page: Page = self.context.new_page()
        self.problems: list[str] = []
        # Error statuses that the test expects, which the browser logs all the same.
        self.expected_statuses: set[int] = set()
        self.page.on("console", self._on_console)
        self.page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        self.page.on("request", self._on_request)

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type not in ("error", "warning"):
            return
        if any(f"status of {status}" in message.text for status in self.expected_statuses):
            return
        self.problems.append(f"{message.type}: {message.text}")

    def _on_request(self, request: Request) -> None:
        if not request.url.startswith(f"{self.url}/"):
            self.problems.append(f"asked elsewhere: {request.url}")

    def sign_in(self, http_server: RunningServer, who: Principal) -> Self:
        """Sign in with an API key, without using the sign-in page."""
        answer = self.context.request.post("/console/signin", form={"key": http_server.key(who)}, max_redirects=0)
        assert answer.status == 303, answer.text()
        return self

    def go(self, path: str, status: int = 200) -> Page:
        """Open a page of the console and check that it reported no problem."""
        if status != 200:
            self.expected_statuses.add(status)
        answer = self.page.goto(f"/console/{path}")
        assert answer is not None and answer.status == status, f"{path}: {answer and answer.status}"
        self.assert_no_problems()
        return self.page

    def assert_no_problems(self) -> None:
        """Assert that no problem was reported; clear the list for the next test."""
        result, self.problems = self.problems, []
        assert result == [], "\n".join(result)

    def check(self, *, widths: tuple[int, ...] = WIDTHS, tabbing: bool = True) -> None:
        """Check names, structure, contrast and layout of the open page, in both schemes and at all widths, and the Tab order."""
        page = self.page
        wrong: list[str] = []
        wrong += page.evaluate(PAGE_CHECKS, "words")
        for scheme in ("dark", "light"):
            page.emulate_media(color_scheme=scheme)
            wrong += [f"{scheme}: {one}" for one in page.evaluate(PAGE_CHECKS, "colours")]
        for width in widths:
            page.set_viewport_size({"width": width, "height": 900})
            wrong += [f"{width} px: {one}" for one in page.evaluate(PAGE_CHECKS, "layout")]
        if tabbing:
            wrong += self._tab_through()
        assert wrong == [], f"{page.url}\n" + "\n".join(wrong)
        self.assert_no_problems()

    def _tab_through(self) -> list[str]:
        """Return what Tab does not reach, and where the focus is not visible."""
        page = self.page
        for _ in range(page.evaluate(TAB_ORDER, "begin")):
            page.keyboard.press("Tab")
        return page.evaluate(TAB_ORDER, "end")

    def follow(self, link: Locator) -> None:
        """Click a link or the button of a form, and wait until the scripts of the next page have run."""
        with self.page.expect_navigation():
            link.click()

    def press(self, *keys: str) -> None:
        """Press keys one after the other, once the scripts of the page have run."""
        self.page.wait_for_load_state()
        for key in keys:
            self.page.keyboard.press(key)

    def type(self, text: str) -> None:
        """Type a text into the focused field."""
        self.page.locator("input:focus, textarea:focus").wait_for()
        self.page.keyboard.type(text)

    def toast(self, text: str) -> None:
        """Wait for a toast with that text, which two of them may have."""
        self.page.locator("[data-toasts]").get_by_text(text).first.wait_for()

    def close(self) -> None:
        """Close the window and check that it reported no problem."""
        self.end()
        self.assert_no_problems()

    def end(self) -> None:
        """Close the window; problems of leaving its pages do not count.

        Chromium can hang when it closes a page that is on its way to another one, so each page is left first. One that
        cannot be left stays open until the browser ends.
        """
        problems = list(self.problems)
        if all(_leave(page) for page in self.context.pages):
            self.context.close()
        self.problems = problems

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        self.end()
        if kind is None:
            self.assert_no_problems()


def _leave(page: Page) -> bool:
    """Open an empty page in its place, and return whether that was possible."""
    page.on("dialog", _accept)
    for _ in range(3):
        try:
            page.goto("about:blank", timeout=10_000)
        except Error:
            continue  # Another navigation came between.
        return True
    return False


def _accept(dialog: Dialog) -> None:
    with suppress(Error):  # A test may have answered it.
        dialog.accept()
