"""Stating and correcting facts in a real browser, with the gates' answer before anything is saved."""

import pytest
from playwright.sync_api import Route, expect

from muniment.testing import People
from tests.console.conftest import OpenWindow
from tests.interfaces.http import RunningServer
from tests.stories import CONSENT, KEY, promoted, proposed


def test_somebody_with_the_role_states_and_corrects_and_sees_the_checks_before(
    open_window: OpenWindow, site: RunningServer, people: People
) -> None:
    memory_id = promoted(site.local, people, "phone")
    writer = open_window(people.author)
    page = writer.go("")
    expect(page.get_by_role("heading", name="State a fact")).to_be_visible()
    page.get_by_label("Text").fill("Call me on +49 30 901820")
    expect(page.locator("[data-check=passes], [data-check=refused]")).to_be_visible()
    page.get_by_label("Text").fill("The shop in Basel closes at eight")
    expect(page.locator("[data-check=passes]")).to_contain_text("closes at eight")
    page.get_by_role("button", name="Save").click()
    writer.toast("Saved: another person has to approve it")
    both = open_window(people.person("mia", "reviewer", "correction_writer"))
    page = both.go(f"memory/{memory_id}")
    both.follow(page.get_by_role("link", name="Correct this"))
    page.get_by_label("Value").fill("post")
    expect(page.locator("[data-check=passes]")).to_contain_text("it would replace that memory")
    page.get_by_role("button", name="Save").click()
    both.toast("Saved: another person has to approve it")
    found = site.local.queue.list(people.reviewer, write_class="correction")
    assert [one.candidate.value for one in found] == ["post"]


def test_a_stated_fact_has_its_subject_its_references_and_a_label_of_the_pack(
    open_window: OpenWindow, site: RunningServer, people: People
) -> None:
    site.local.consent.grant(people.officer, subject="customer:cust_1", **CONSENT)
    window = open_window(people.person("mia", "reviewer", "correction_writer"))
    page = window.go("state")
    labels = page.get_by_label("Classification").locator("option").all_inner_texts()
    in_force = site.local.packs.in_force(people.admin).pack
    assert labels == list(site.local.packs.get(people.admin, in_force).pack.labels)
    expect(page.get_by_label("Classification")).to_have_value("INTERNAL")
    page.get_by_label("Classification").select_option("PII")
    page.get_by_label("Text").fill("She lives near the harbour")
    expect(page.locator("[data-check=refused]")).to_be_visible()
    page.get_by_label("Subject").fill("customer:cust_1")
    page.get_by_label("References").fill("ticket:812\nmail:9")
    expect(page.locator("[data-check=passes]")).to_be_visible()
    window.check(widths=(1280,), tabbing=False)
    page.get_by_role("button", name="Save").click()
    window.toast("Saved: another person has to approve it")
    (found,) = site.local.queue.list(people.reviewer)
    stated = found.candidate
    assert (stated.subject, stated.classification) == ("customer:cust_1", "PII")
    assert stated.evidence_refs == ("ticket:812", "mail:9")


def test_who_states_facts_sees_below_the_form_what_became_of_each(
    open_window: OpenWindow, site: RunningServer, people: People
) -> None:
    window = open_window(people.author)
    page = window.go("state")
    expect(page.get_by_text("Nothing yet.")).to_be_visible()
    page.get_by_label("Text").fill("<b>The hotline</b> closes at six")
    page.get_by_role("button", name="Save").click()
    window.toast("Saved: another person has to approve it")
    row = page.locator("[data-capture]")
    expect(row).to_contain_text("<b>The hotline</b> closes at six")
    expect(row).to_contain_text("waits for a person")
    (found,) = site.local.queue.list(people.reviewer)
    site.local.queue.reject(people.reviewer, found.proposal_id, reason="not_confirmed")
    page = window.go("state")
    expect(page.locator("[data-capture]")).to_contain_text(f"rejected by {people.reviewer.id}")
    expect(page.locator("[data-capture]")).to_contain_text("not confirmed")
    # Whoever may not read the queue gets no link into it.
    expect(page.locator("[data-capture]").get_by_role("link")).to_have_count(0)
    window.check()


def test_a_row_of_the_memory_search_leads_to_its_correction_for_who_may(
    open_window: OpenWindow, site: RunningServer, people: People
) -> None:
    memory_id = promoted(site.local, people, "phone")
    both = open_window(people.person("mia", "reviewer", "correction_writer"))
    page = both.go("memory?query=phone")
    both.follow(page.get_by_role("link", name=f"Correct {memory_id}"))
    expect(page.get_by_role("heading", name="Correct a memory")).to_be_visible()
    expect(page.get_by_label("Value")).to_have_value("phone")
    alone = open_window(people.reviewer).go("memory?query=phone")
    expect(alone.locator(f'[data-memory="{memory_id}"]')).to_be_visible()
    expect(alone.get_by_role("link", name=f"Correct {memory_id}")).to_have_count(0)


@pytest.mark.parametrize(("path", "label"), [("state", "Text"), ("queue/{item}", "Value")])
def test_what_was_typed_before_the_script_came_is_checked_once_it_runs(
    open_window: OpenWindow, site: RunningServer, people: People, path: str, label: str
) -> None:
    item = proposed(site.local, people.run(), **KEY, value="email").proposal_id
    window = open_window(people.person("mia", "reviewer", "correction_writer"))
    page = window.page
    delayed: list[Route] = []

    def delay(route: Route) -> None:
        delayed.append(route)

    page.route("**/static/check.js*", delay)
    with page.expect_request("**/static/check.js*"):
        page.goto(f"/console/{path.format(item=item)}", wait_until="commit")
    if path != "state":
        page.locator("#edit summary").click()
    page.get_by_label(label).fill("closes at eight")
    expect(page.locator("[data-check]")).to_have_count(0)
    delayed[0].continue_()
    expect(page.locator("[data-check=passes]")).to_contain_text("closes at eight")
