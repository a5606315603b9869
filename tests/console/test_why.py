"""Why visible: every filter with its inputs, for a recall, a run or a moment; and recalls run again."""

import re
from collections.abc import Iterator

import pytest

from muniment.testing import People
from tests.console.browser import Browser, words
from tests.interfaces.http import RunningServer
from tests.stories import CONSENT, promoted


@pytest.fixture
def browser(http_server: RunningServer, people: People) -> Iterator[Browser]:
    opened = Browser(http_server, people.person("maria", "reviewer", "auditor"))
    yield opened
    opened.close()


def verdicts(page: str) -> dict[str, bool]:
    """Each filter, and whether it let the memory through."""
    found = re.findall(r'data-filter="(\w+)" data-passed="(\w+)"', page)
    return {name: passed == "yes" for name, passed in found}


@pytest.mark.rule("REC-10")
def test_a_recall_is_explained_filter_by_filter(browser: Browser, http_server: RunningServer, people: People) -> None:
    memory_id = promoted(http_server.local, people)
    seen = http_server.local.recall(people.run()).recall_id
    unseen = http_server.local.recall(people.run("cust_2", classification_allowed={"PUBLIC"})).recall_id
    page = browser.get("why", memory_id=memory_id, recall_id=seen)
    assert len(verdicts(page)) == 14
    assert all(verdicts(page).values())
    assert "The recall returned it" in page
    assert 'data-visibility="visible"' in page
    hidden = browser.get("why", memory_id=memory_id, recall_id=unseen)
    assert {name for name, passed in verdicts(hidden).items() if not passed} == {"user", "classification"}
    said = words(hidden)
    assert "users: no user, cust_2" in said
    assert "Rules of the pack" in said
    assert f"/console/why/replay?recall_id={unseen}" in hidden


@pytest.mark.rule("REC-10")
def test_a_run_that_never_was_is_explained_at_a_moment(
    browser: Browser, http_server: RunningServer, people: People
) -> None:
    before = http_server.clock.now
    http_server.clock.advance(hours=1)
    memory_id = promoted(http_server.local, people, qualifiers={"region": "de"})
    http_server.clock.advance(hours=1)
    asked = {"memory_id": memory_id, "of": "run", "user_id": "cust_1"}
    assert all(verdicts(browser.get("why", **asked)).values())
    elsewhere = verdicts(browser.get("why", **asked, qualifiers="region=fr, x=y", labels="PUBLIC, INTERNAL"))
    assert [name for name, passed in elsewhere.items() if not passed] == ["qualifiers"]
    assert 'role="alert">role: ' in browser.get("why", 400, **asked, role="stranger")
    early = browser.get("why", **asked, as_of=before.isoformat())
    assert 'data-visibility="not_yet_promoted"' in early
    nobody = browser.get("why", memory_id=memory_id, of="moment")
    assert "user" not in verdicts(nobody)
    assert "content" in verdicts(nobody)


def test_a_memory_alone_offers_the_recalls_that_returned_it(
    browser: Browser, http_server: RunningServer, people: People
) -> None:
    memory_id = promoted(http_server.local, people)
    assert "No recall has returned it yet" in browser.get("why", memory_id=memory_id)
    recall = http_server.local.recall(people.run()).recall_id
    assert f"/console/why?memory_id={memory_id}&amp;recall_id={recall}" in browser.get("why", memory_id=memory_id)
    alone = browser.get("why")
    assert "data-why" in alone
    assert f'/console/why/recalls/{recall}"' in alone


def recalls_on(page: str) -> list[str]:
    return re.findall(r'<tr data-row data-recall="(\w+)"', page)


@pytest.mark.rule("REC-8")
def test_the_section_opens_on_the_latest_recalls_before_any_field(
    browser: Browser, http_server: RunningServer, people: People
) -> None:
    promoted(http_server.local, people)
    recall = http_server.local.recall(people.run()).recall_id
    page = browser.get("why")
    assert 0 < page.index(f'data-recall="{recall}"') < page.index('id="memory_id"')


def test_a_recall_is_picked_from_the_latest_by_user_run_or_memory(
    browser: Browser, http_server: RunningServer, people: People
) -> None:
    assert "No recalls yet" in browser.get("why/recalls")
    memory_id = promoted(http_server.local, people)
    made: list[str] = []
    for run in (people.run(run_id="r1"), people.run("cust_2", run_id="<b>r2</b>")):
        http_server.clock.advance(seconds=1)
        made.insert(0, http_server.local.recall(run, "the secret question about customer:cust_1").recall_id)
    page = browser.get("why/recalls")
    assert recalls_on(page) == made
    assert "<b>r2" not in page
    assert "secret" not in page
    assert recalls_on(browser.get("why/recalls", user_id="cust_1")) == made[1:]
    assert recalls_on(browser.get("why/recalls", run_id="<b>r2</b>")) == made[:1]
    assert recalls_on(browser.get("why/recalls", memory_id=memory_id)) == made[1:]
    assert "No matches" in browser.get("why/recalls", user_id="cust_3")
    assert 'role="alert">after: ' in browser.get("why/recalls", 400, after="rcl_0")
    assert f"why/recalls?memory_id={memory_id}" in browser.get(f"memory/{memory_id}")


@pytest.mark.rule("REC-5", "REC-7")
def test_a_recall_shows_what_it_returned_and_what_of_it_holds(
    browser: Browser, http_server: RunningServer, people: People
) -> None:
    consent = http_server.local.consent.grant(people.officer, subject="customer:cust_1", **CONSENT)
    kept = promoted(http_server.local, people, "<i>tea</i>", predicate="drinks", evidence_refs=["ticket:1"])
    gone = promoted(
        http_server.local, people, "Ring 1", predicate="lives_at", subject="customer:cust_1", classification="PII"
    )
    recall = http_server.local.recall(people.run(), "the secret question about customer:cust_1").recall_id
    http_server.local.consent.revoke(people.officer, consent.consent_id)
    page = browser.get(f"why/recalls/{recall}")
    seen = dict(re.findall(r'data-memory="(\w+)" data-visibility="(\w+)"', page))
    assert seen == {kept: "visible", gone: "hidden"}
    said = words(page)
    assert "<i>tea" in said
    assert "<i>tea" not in page
    assert not any(one in said for one in ("Ring 1", "secret"))
    assert "withheld" in said
    assert all(one in said for one in ("ticket:1", people.reviewer.id, consent.consent_id))
    for memory_id in (kept, gone):
        assert f"/console/why?memory_id={memory_id}&amp;recall_id={recall}" in page
    assert f"/console/why/replay?recall_id={recall}" in page
    browser.get("why/recalls/rcl_none", 404)


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"of": "recall"}, "recall_id"),
        ({"recall_id": "rcl_none"}, "recall_id"),
        ({"of": "run", "qualifiers": "region"}, "qualifiers"),
        ({"of": "run", "intent_id": "no intent"}, "intent_id"),
        ({"of": "moment", "as_of": "soon"}, "as_of"),
        ({"memory_id": "pm_none", "of": "run"}, "memory_id"),
    ],
)
def test_what_cannot_be_asked_is_reported_with_what_was_typed(
    browser: Browser, http_server: RunningServer, people: People, asked: dict[str, str], field: str
) -> None:
    page = browser.get("why", 400, **{"memory_id": promoted(http_server.local, people), **asked})
    assert re.search(rf'role="alert">{field}: ', page)
    if field in asked and field != "as_of":
        assert f'value="{asked[field]}"' in page


@pytest.mark.rule("REC-9")
def test_a_recall_is_replayed_at_a_click_with_what_differs(
    browser: Browser, http_server: RunningServer, people: People
) -> None:
    consent = http_server.local.consent.grant(people.officer, subject="customer:cust_1", **CONSENT)
    kept = promoted(http_server.local, people, "tea", predicate="drinks")
    gone = promoted(http_server.local, people, subject="customer:cust_1", classification="PII")
    recall = http_server.local.recall(people.run()).recall_id
    same = browser.get("why/replay", recall_id=recall)
    assert 'data-replay="same"' in same
    http_server.local.consent.revoke(people.officer, consent.consent_id)
    differs = browser.get("why/replay", recall_id=recall)
    assert 'data-replay="differs"' in differs
    assert "its consent has ended" in differs
    assert {gone, kept} <= set(re.findall(r"pm_\w+", differs))
    assert 'role="alert">recall_id: ' in browser.get("why/replay", 400, recall_id="rcl_none")


def test_replay_begins_with_the_latest_recalls(http_server: RunningServer, people: People) -> None:
    browser = Browser(http_server, people.auditor)
    assert "No recalls yet" in browser.get("why/replay")
    recalls: list[str] = []
    for name in ("r1", "r2"):
        http_server.clock.advance(seconds=1)
        recalls.append(http_server.local.recall(people.run(run_id=name)).recall_id)
    page = browser.get("why/replay")
    assert re.findall(r'data-recall="([^"]+)"', page) == recalls[::-1]
    assert all(f"why/replay?recall_id={one}" in page for one in recalls)
    browser.close()


def test_only_an_auditor_replays(http_server: RunningServer, people: People) -> None:
    memory_id = promoted(http_server.local, people)
    recall = http_server.local.recall(people.run()).recall_id
    reviewer = Browser(http_server, people.reviewer)
    page = reviewer.get("why", memory_id=memory_id, recall_id=recall)
    assert "why/replay" not in page
    reviewer.get(f"why/replay?recall_id={recall}", 403)
    reviewer.close()


@pytest.mark.rule("REC-7", "AUD-3")
def test_what_was_believed_at_a_moment_is_a_guided_question(
    browser: Browser, http_server: RunningServer, people: People
) -> None:
    clock = http_server.clock
    memory_id = promoted(http_server.local, people)
    answered = http_server.local.recall(people.run())
    moment = clock.now
    clock.advance(hours=2)
    http_server.local.retract(people.reviewer, memory_id, reason="wrong")
    start = browser.get("why/believed")
    assert answered.recall_id in start
    page = browser.get("why/believed", at=moment.isoformat())
    assert memory_id in page and answered.recall_id in page and "of=moment" in page
    assert f'data-told="{memory_id}"' in page and f"recall_id={answered.recall_id}" in page
    later = browser.get("why/believed", at=clock.now.isoformat())
    assert memory_id not in later and answered.recall_id not in later
    assert "expected a date and a time" in browser.get("why/believed", 400, at="noon")
