"""What policy promoted can be undone on the page of the memory, by a reviewer and by the person whom it is about (PRO-8)."""

from collections.abc import Iterator

import pytest

from muniment.pack import profile_pack
from muniment.testing import People, TestServer
from tests.console.browser import Browser, words
from tests.interfaces.http import RunningServer
from tests.pack_activation import put_in_force
from tests.stories import promoted
from tests.subject.conftest import subject

BEFORE, NOW = "I live in Berlin.", "I now live in Munich."


@pytest.fixture
def own_server(server: TestServer, database: str) -> Iterator[RunningServer]:
    with RunningServer(server, database) as opened:
        yield opened


@pytest.fixture
def told(own_server: RunningServer, people: People) -> tuple[str, str]:
    """Two memories that policy promoted, of which the second superseded the first."""
    put_in_force(own_server.local, people.tenant_id, profile_pack("personal"))
    run = people.run("joanna", speaks_for={"channels": ["app_chat"]})
    made: list[str] = []
    for text in (BEFORE, NOW):
        own_server.clock.advance(seconds=1)
        own_server.local.capture(run, kind="message", text=text, classification="INTERNAL", origin="channel:app_chat")
        made += own_server.local.consolidate(people.tenant_id).promoted
    return (made[0], made[1])


def live(own_server: RunningServer, people: People) -> list[str]:
    return [one.text for one in own_server.local.me.list(subject(people, "joanna"), live=True)]


@pytest.mark.rule("PRO-8")
def test_a_person_undoes_what_was_kept_without_anybody_and_what_it_replaced_is_back(
    own_server: RunningServer, people: People, told: tuple[str, str]
) -> None:
    joanna = Browser(own_server, subject(people, "joanna"))
    (_, newer) = told
    assert live(own_server, people) == [NOW]
    assert "You can undo that until" in words(joanna.get(f"me/memories/{newer}"))
    done = joanna.post(f"me/memories/{newer}/undo")
    assert "what it had replaced is back" in words(joanna.get(done.headers["location"].removeprefix("/console/")))
    assert live(own_server, people) == [BEFORE]
    assert "You can undo" not in words(joanna.get(f"me/memories/{newer}"))
    assert joanna.post(f"me/memories/{newer}/undo").status_code == 400
    joanna.close()


@pytest.mark.rule("PRO-8")
def test_a_reviewer_undoes_a_promotion_by_policy_within_its_term_and_none_of_a_person(
    own_server: RunningServer, people: People, told: tuple[str, str]
) -> None:
    reviewer = Browser(own_server, people.reviewer)
    (older, newer) = told
    assert "Undo the promotion" in reviewer.get(f"memory/{newer}")
    done = reviewer.post(f"memory/{newer}/undo")
    assert "Undone: 1 restored" in words(reviewer.get(done.headers["location"].removeprefix("/console/")))
    assert live(own_server, people) == [BEFORE]
    assert "Undo the promotion" not in reviewer.get(f"memory/{older}"), "it was superseded"
    again = reviewer.post(f"memory/{newer}/undo").headers["location"]
    assert "Not undone" in words(reviewer.get(again.removeprefix("/console/")))
    by_person = promoted(own_server.local, people)
    assert "Undo the promotion" not in reviewer.get(f"memory/{by_person}")
    reviewer.close()


@pytest.mark.rule("PRO-8")
def test_after_its_term_nothing_offers_to_undo_it(
    own_server: RunningServer, people: People, told: tuple[str, str]
) -> None:
    (_, newer) = told
    own_server.clock.advance(days=2)
    for who, path in ((people.reviewer, "memory"), (subject(people, "joanna"), "me/memories")):
        browser = Browser(own_server, who)
        assert f"{newer}/undo" not in browser.get(f"{path}/{newer}")
        browser.close()
