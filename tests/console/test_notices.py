"""What a deed came to: said on the page after it, with or without a script, and never by a link of another's."""

from html import unescape

import pytest

from muniment.testing import People
from tests.console.browser import Browser, words
from tests.console.conftest import SignIn
from tests.interfaces.http import HttpDoor
from tests.stories import KEY, proposed

DONE = "Assigned to <b>mallory</b>"


@pytest.fixture
def place(door: HttpDoor, people: People, reviewer: Browser) -> str:
    """Where an assignment leads to, with what it came to."""
    item = proposed(door.near, people.run(), **KEY, value="email").proposal_id
    done = reviewer.post(f"queue/{item}/assign", to="<b>mallory</b>")
    assert done.status_code == 303
    return done.headers["location"].removeprefix("/console/")


def said(page: str) -> str | None:
    """The message of a page."""
    _, there, rest = page.partition("data-notice>")
    return unescape(rest.partition("</div>")[0]) if there else None


def test_a_page_says_what_the_deed_before_it_came_to(reviewer: Browser, place: str) -> None:
    page = reviewer.get(place)
    assert said(page) == DONE
    assert "<b>" not in page
    assert said(reviewer.get(place.partition("?")[0])) is None


def test_words_that_the_session_did_not_say_are_not_shown(
    reviewer: Browser, signed_in: SignIn, people: People, place: str
) -> None:
    path, _, query = place.partition("?notice=")
    for other in (
        f"{path}?notice=Your+key+has+expired",
        f"{path}?notice={query}+and+more",
        f"{path}?notice={'0' * 32}Done",
    ):
        page = reviewer.get(other)
        assert said(page) is None
        assert "has expired" not in words(page)
    again = signed_in(people.reviewer)
    assert said(again.get(place)) is None
