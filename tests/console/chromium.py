"""A real browser: windows on the console in which nothing may go wrong unseen."""

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, Self

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, expect, sync_playwright

from muniment import Principal
from tests.interfaces.http import HttpDoor

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


@contextmanager
def chromium() -> Generator[Browser]:
    """Debian's Chromium; where there is none, the test is reported as not run.

    A loop of Playwright's runs in this thread meanwhile, so that no other can.
    """
    if (found := shutil.which("chromium")) is None:
        pytest.skip("not run: there is no browser here; install chromium")
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=list(ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


class Window:
    """Somebody's window: what its pages complain of, and what they ask anybody else for, comes to light."""

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
        # Answers that the test is about, which a browser complains of all the same.
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

    def sign_in(self, door: HttpDoor, who: Principal) -> Self:
        """With a key of theirs, without the page for it."""
        answer = self.context.request.post("/console/signin", form={"key": door.key(who)}, max_redirects=0)
        assert answer.status == 303, answer.text()
        return self

    def go(self, path: str, status: int = 200) -> Page:
        """Open a page of the console, and see that all is well with it."""
        if status != 200:
            self.expected_statuses.add(status)
        answer = self.page.goto(f"/console/{path}")
        assert answer is not None and answer.status == status, f"{path}: {answer and answer.status}"
        self.assert_no_problems()
        return self.page

    def assert_no_problems(self) -> None:
        """Nothing went wrong so far; of what did, the next test hears no more."""
        told, self.problems = self.problems, []
        assert told == [], "\n".join(told)

    def check(self, *, widths: tuple[int, ...] = WIDTHS, tabbing: bool = True) -> None:
        """The page that is open keeps to what every page owes: in both schemes, at all widths, by keyboard."""
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
        """What the Tab key does not reach, and where the focus cannot be seen."""
        page = self.page
        for _ in range(page.evaluate(TAB_ORDER, "begin")):
            page.keyboard.press("Tab")
        return page.evaluate(TAB_ORDER, "end")

    def press(self, *keys: str) -> None:
        """Keys, one after the other, on a page whose scripts have run."""
        self.page.wait_for_load_state()
        for key in keys:
            self.page.keyboard.press(key)

    def type(self, text: str) -> None:
        """A text, typed into the field that has the focus."""
        self.page.locator("input:focus, textarea:focus").wait_for()
        self.page.keyboard.type(text)

    def toast(self, text: str) -> None:
        """A message that says so is there."""
        self.page.locator("[data-toasts]").get_by_text(text).wait_for()

    def close(self) -> None:
        """Close it; all was well until then."""
        self.context.close()
        self.assert_no_problems()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        self.context.close()
        if kind is None:
            self.assert_no_problems()
