"""Memory and its reasons in a real browser: searched, over time by keyboard, as a graph, explained and replayed."""

from datetime import timedelta

import pytest
from playwright.sync_api import Page, expect

from muniment.testing import People
from tests.console.conftest import OpenWindow
from tests.interfaces.http import RunningServer
from tests.stories import promoted, proposed

SUBJECT = "customer:cust_1"


def shown(page: Page) -> list[str | None]:
    return [one.get_attribute("data-memory") for one in page.locator("tr[data-memory]").all()]


def test_memories_are_searched_and_one_is_opened_with_its_whole_life(
    open_window: OpenWindow, site: RunningServer, people: People
) -> None:
    item = proposed(site.local, people.run(), write_class="statement", text="the harbour office closes at noon")
    harbour = site.local.queue.approve(people.reviewer, item.proposal_id, note="heard it").memory_id
    promoted(site.local, people, "tea", predicate="drinks")
    site.local.recall(people.run(), query="harbour")
    window = open_window(people.reviewer)
    page = window.go("memory")
    assert len(shown(page)) == 2
    window.press("/")
    window.type("harbour office")
    window.press("Enter")
    page.wait_for_url("**find=**")
    assert "harbour" not in page.url
    assert shown(page) == [harbour]
    window.follow(page.get_by_role("link", name="the harbour office closes at noon"))
    steps = page.locator("[data-timeline] > li")
    expect(steps.filter(has_text="Promoted")).to_have_count(1)
    expect(steps.filter(has_text="heard it")).to_have_count(1)
    expect(steps.filter(has_text="Recalled once")).to_have_count(1)
    page.get_by_text("Retract this memory").click()
    retract = page.get_by_role("button", name="Retract permanently")
    expect(retract).to_be_disabled()
    page.get_by_label("Reason").select_option("deprecated")
    page.get_by_label("to confirm").fill("retract")
    expect(retract).to_be_enabled()
    retract.click()
    window.toast("Retracted. It will not be recalled again.")
    expect(page.locator("[data-state=retracted]").first).to_be_visible()


@pytest.mark.rule("REC-7")
def test_the_slider_goes_from_change_to_change_by_keyboard(
    open_window: OpenWindow, site: RunningServer, people: People
) -> None:
    first = promoted(site.local, people, "email")
    site.clock.advance(hours=1)
    second = promoted(site.local, people, "tea", predicate="drinks")
    site.clock.advance(hours=1)
    site.local.retract(people.reviewer, first, reason="deprecated")
    site.clock.advance(hours=1)
    window = open_window(people.reviewer)
    page = window.go("memory/over-time?user_id=cust_1")
    table = page.locator("[data-shown]")
    assert shown(page) == [second]
    page.get_by_role("slider").focus()
    for expected in ([second], [second, first], [first]):
        window.press("ArrowLeft")
        expect(table.locator("tr[data-memory]")).to_have_count(len(expected))
        expect(table).not_to_have_attribute("aria-busy", "true")
        assert shown(page) == expected
        expect(page.get_by_role("slider")).to_be_focused()
    # A stop further there is none, and the way on leads back.
    window.press("ArrowLeft", "ArrowRight")
    expect(table.locator("tr[data-memory]")).to_have_count(2)
    assert "slide=" in page.url
    page.reload()
    assert shown(page) == [second, first]


def test_two_moments_are_compared_in_the_viewers_own_time(
    open_window: OpenWindow, site: RunningServer, people: People
) -> None:
    first = promoted(site.local, people, "email")
    site.clock.advance(hours=1)
    since = site.clock.now
    site.clock.advance(hours=1)
    second = promoted(site.local, people, "tea", predicate="drinks")
    site.local.retract(people.reviewer, first, reason="deprecated")
    site.clock.advance(minutes=1)
    window = open_window(people.reviewer)
    page = window.go("memory/over-time?user_id=cust_1")
    theirs = since + timedelta(hours=4)
    page.get_by_label("Changes since (your time)").fill(theirs.strftime("%Y-%m-%dT%H:%M:%S"))
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.locator("[data-added]")).to_have_text("1")
    expect(page.locator("[data-ended]")).to_have_text("1")
    assert shown(page) == [second, first]
    stamp = page.locator("[data-changes] h2 time").first
    expect(stamp).to_have_attribute("title", since.strftime("%Y-%m-%d %H:%M:%S UTC"))


def test_the_graph_leads_from_entity_to_entity(open_window: OpenWindow, site: RunningServer, people: People) -> None:
    promoted(site.local, people, "company:acme", predicate="works_at")
    promoted(site.local, people, "company:globex", entity="company:acme", predicate="part_of")
    window = open_window(people.reviewer)
    page = window.go(f"memory/graph?entity={SUBJECT}")
    expect(page.locator("[data-node]")).to_have_count(2)
    page.locator("[data-node='company:acme']").press("Enter")
    page.wait_for_url("**entity=company**")
    expect(page.locator("[data-node='company:globex']")).to_have_count(1)
    expect(page.locator("[data-edges] tbody tr")).to_have_count(2)


@pytest.mark.rule("REC-10")
def test_why_a_memory_was_seen_is_explained_and_the_recall_replayed(
    open_window: OpenWindow, site: RunningServer, people: People
) -> None:
    memory = promoted(site.local, people)
    site.local.recall(people.run())
    both = people.person("rita", "reviewer", "auditor")
    window = open_window(both)
    page = window.go(f"memory/{memory}")
    window.follow(page.get_by_role("link", name="Why visible?"))
    window.follow(page.locator("[data-recalls]").get_by_role("link", name="Why visible in"))
    expect(page.locator("[data-visibility]")).to_have_attribute("data-visibility", "visible")
    expect(page.get_by_text("The recall returned it.")).to_be_visible()
    assert page.locator("[data-filter]").count() == page.locator("[data-passed=yes]").count()
    window.follow(page.get_by_role("link", name="Replay this recall"))
    expect(page.locator("[data-replay]")).to_have_attribute("data-replay", "same")
    page.go_back()
    # Typing what a run is like says that a run is meant.
    page.get_by_label("User").fill("cust_2")
    expect(page.get_by_label("For a run", exact=True)).to_be_checked()
    page.get_by_role("button", name="Explain").click()
    expect(page.locator("[data-filter=user]")).to_have_attribute("data-passed", "no")
    expect(page.locator("[data-visibility]")).to_contain_text("user")


@pytest.mark.rule("REC-5", "REC-9", "REC-10")
def test_a_recall_is_picked_from_the_latest_and_leads_to_why_and_to_its_replay(
    open_window: OpenWindow, site: RunningServer, people: People
) -> None:
    memory = promoted(site.local, people)
    recall = site.local.recall(people.run(run_id="r1")).recall_id
    site.clock.advance(minutes=1)
    site.local.recall(people.run("cust_2", run_id="r2"))
    window = open_window(people.person("rita", "reviewer", "auditor"))
    page = window.go("why")
    expect(page.locator("tr[data-recall]")).to_have_count(2)
    window.follow(page.get_by_role("link", name="Recalls", exact=True))
    window.press("/")
    window.type("cust_1")
    window.press("Enter")
    page.wait_for_url("**user_id=cust_1**")
    expect(page.locator("tr[data-recall]")).to_have_count(1)
    window.follow(page.get_by_role("link", name=recall, exact=True))
    row = page.locator(f"[data-memory='{memory}']")
    expect(row).to_have_attribute("data-visibility", "visible")
    row.get_by_role("link", name="Why").click()
    expect(page.get_by_text("The recall returned it.")).to_be_visible()
    page.go_back()
    window.follow(page.get_by_role("link", name="Replay this recall"))
    expect(page.locator("[data-replay]")).to_have_attribute("data-replay", "same")
    page = window.go(f"memory/{memory}")
    window.follow(page.get_by_role("link", name="Recalls of it"))
    expect(page.locator("tr[data-recall]")).to_have_count(1)
