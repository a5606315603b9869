"""Notices after an action: shown on the next page, with or without script, and never forged by a link."""

from html import unescape

import pytest

from muniment.testing import People
from tests.console.browser import Browser, words
from tests.console.conftest import SignIn
from tests.interfaces.http import RunningServer
from tests.stories import KEY, proposed

DONE = "Assigned to <b>mallory</b>"


@pytest.fixture
def place(http_server: RunningServer, people: People, reviewer: Browser) -> str:
    """Where an assignment redirects to, with its notice."""
    item = proposed(http_server.local, people.run(), **KEY, value="email").proposal_id
    done = reviewer.post(f"queue/{item}/assign", to="<b>mallory</b>")
    assert done.status_code == 303
    return done.headers["location"].removeprefix("/console/")


def notice(page: str) -> str | None:
    """The notice on a page."""
    _, there, rest = page.partition("data-notice>")
    return unescape(rest.partition("</div>")[0]) if there else None


def test_a_page_shows_the_notice_of_the_action_before_it(reviewer: Browser, place: str) -> None:
    page = reviewer.get(place)
    assert notice(page) == DONE
    assert "<b>" not in page
    assert notice(reviewer.get(place.partition("?")[0])) is None


def test_a_notice_that_the_session_did_not_sign_is_not_shown(
    reviewer: Browser, signed_in: SignIn, people: People, place: str
) -> None:
    path, _, query = place.partition("?notice=")
    for other in (
        f"{path}?notice=Your+key+has+expired",
        f"{path}?notice={query}+and+more",
        f"{path}?notice={'0' * 32}Done",
    ):
        page = reviewer.get(other)
        assert notice(page) is None
        assert "has expired" not in words(page)
    again = signed_in(people.reviewer)
    assert notice(again.get(place)) is None
