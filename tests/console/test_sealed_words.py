"""Words that are looked for are sealed in the address of the page, which histories and logs keep."""

import re
from html import unescape
from typing import Any

import pytest

from muniment.console import listing
from muniment.testing import People
from tests.console.browser import Browser, words
from tests.console.conftest import SignIn
from tests.interfaces.http import RunningServer
from tests.stories import KEY, promoted, proposed

NAME = "Zacharias"


def asked(browser: Browser, path: str, **fields: Any) -> str:
    """The address that a search leads to."""
    answer = browser.post(path, **fields)
    assert answer.status_code == 303, answer.text
    return answer.headers["location"].removeprefix("/console/")


def links(page: str) -> list[str]:
    return [unescape(one) for one in re.findall(r'(?:href|action)="([^"]*)"', page)]


def rows(page: str) -> list[str]:
    return re.findall(r'<tr data-row data-id="(mwp_\w+)"', page)


@pytest.mark.rule("ERA-2")
def test_words_of_a_queue_search_are_in_no_address_and_hold_on_every_page_of_the_list(
    http_server: RunningServer, reviewer: Browser, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "PAGE_SIZE", 1)
    about = [proposed(http_server.local, people.run(), **KEY | {"predicate": f"p{n}"}, value=NAME) for n in range(2)]
    proposed(http_server.local, people.run(), **KEY, value="email")
    first = asked(reviewer, "queue/search", words=NAME, write_class="preference", group="class")
    assert NAME not in first and "write_class=preference" in first and "group=class" in first
    page = reviewer.get(first)
    assert len(rows(page)) == 1
    assert f'value="{NAME}"' in page and "2 found, 1 on this page" in words(page)
    assert not any(NAME in one for one in links(page))
    following = next(one for one in links(page) if "after=" in one)
    second = reviewer.get(following.removeprefix("/console/"))
    assert {*rows(page), *rows(second)} == {one.proposal_id for one in about}
    found = re.search(r"find=([^&]+)", first)
    assert found is not None
    planned = reviewer.post("queue/plan", "application/json", all="yes", find=found[1]).json()
    assert len(planned["items"].split()) == 2
    kept = asked(reviewer, "queue/views", name="hers", find=found[1], overdue="yes")
    assert NAME not in kept and "overdue=yes" in kept
    assert "Not saved: a view keeps no words" in words(reviewer.get(kept))


@pytest.mark.rule("ERA-2")
def test_sealed_words_open_in_no_other_session_and_never_widen_what_is_decided(
    http_server: RunningServer, reviewer: Browser, people: People, signed_in: SignIn
) -> None:
    item = proposed(http_server.local, people.run(), **KEY, value=NAME).proposal_id
    address = asked(reviewer, "queue/search", words=NAME)
    other = signed_in(people.second_reviewer)
    page = other.get(address, 422)
    assert "this search ended with its session; search again" in words(page) and item not in page
    for sealed in (address.partition("find=")[2], "none", "ö", "A" * 5000):
        refused = other.post("queue/plan", "application/json", all="yes", find=sealed)
        assert (refused.status_code, refused.json()["field"]) == (422, "words")
    assert item in reviewer.get(address)


@pytest.mark.rule("ERA-2")
def test_words_looked_for_in_memory_and_at_a_moment_are_in_no_address(
    http_server: RunningServer, auditor: Browser, people: People
) -> None:
    memory_id = promoted(http_server.local, people, NAME)
    found = asked(auditor, "memory/search", query=NAME, state="all")
    page = auditor.get(found)
    assert memory_id in page and f'value="{NAME}"' in page
    assert not any(NAME in one for one in (found, *links(page)))
    nothing = auditor.get(asked(auditor, "memory/search", query="zebra", tier="durable"))
    wider = next(one for one in links(nothing) if "state=all" in one)
    assert "zebra" not in wider and "tier=durable" in wider
    assert 'value="zebra"' in auditor.get(wider.removeprefix("/console/"))
    moment = asked(auditor, "why/believed", at=http_server.clock.now.isoformat(), query=NAME)
    known = auditor.get(moment)
    assert NAME not in moment and memory_id in known and f'value="{NAME}"' in known
    assert "search again" in words(auditor.get("why/believed?find=none", 400))


@pytest.mark.rule("RED-5")
def test_the_value_of_an_exception_is_in_no_address(reviewer: Browser) -> None:
    address = asked(reviewer, "captures/exception/prepare", kind="email", value="zacharias@acme.example")
    page = reviewer.get(address)
    assert "zacharias" not in address and "redaction_exceptions.email" in page
    assert not any("zacharias" in one for one in links(page))
    assert "search again" in words(reviewer.get("captures/exception?kind=email&find=none", 400))


@pytest.mark.rule("ERA-2")
def test_the_query_of_a_preview_is_in_no_address(http_server: RunningServer, reviewer: Browser, people: People) -> None:
    item = proposed(http_server.local, people.run(), **KEY, value=NAME).proposal_id
    shown = reviewer.get(f"queue/{item}")
    assert 'method="post"' in shown[: shown.index("data-preview-form")].rpartition("<form")[2]
    page = reviewer.post(f"queue/{item}/preview", query=NAME)
    assert page.status_code == 200 and f'value="{NAME}"' in page.text
    assert not any(NAME in one for one in links(page.text))
    assert "html" in reviewer.post(f"queue/{item}/preview", "application/json", query=NAME).json()
