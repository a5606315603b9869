"""Consent, erasure, audit, metrics and packs in a real browser."""

import json
from pathlib import Path

import pytest
from playwright.sync_api import expect

from muniment.testing import People
from tests.console.conftest import OpenWindow
from tests.interfaces.http import RunningServer
from tests.stories import CONSENT, KEY, promoted, proposed, run_worker, texts

SUBJECT = "customer:cust_1"


@pytest.mark.rule("CON-1")
def test_a_consent_is_granted_renewed_and_revoked(open_window: OpenWindow, site: RunningServer, people: People) -> None:
    window = open_window(people.officer)
    page = window.go("consent")
    page.get_by_role("link", name="Record a consent").first.click()
    page.get_by_label("Subject").fill(SUBJECT)
    page.get_by_label("Purpose").fill("support")
    page.get_by_label("Basis").fill("opt_in")
    page.get_by_label("Valid until").fill("2001-01-01T00:00")
    window.expected_statuses.add(400)
    page.get_by_role("button", name="Record").click()
    expect(page.get_by_role("alert")).to_contain_text("valid_until")
    expect(page.get_by_label("Purpose")).to_have_value("support")
    until = site.clock.now.replace(year=site.clock.now.year + 1)
    page.get_by_label("Valid until").fill(until.strftime("%Y-%m-%dT%H:%M"))
    page.get_by_role("button", name="Record").click()
    window.toast("Consent recorded")
    promoted(site.local, people, classification="PII", subject=SUBJECT)
    assert texts(site.local, people.run())
    window.follow(page.get_by_role("link", name="Renew"))
    expect(page.get_by_label("Basis")).to_have_value("opt_in")
    page.get_by_role("button", name="Renew").click()
    window.toast("Consent renewed")
    expect(page.get_by_text("2 records of this consent")).to_be_visible()
    page.get_by_text("Revoke…").click()
    page.get_by_label("Evidence of the revocation").fill("ticket:4711")
    page.get_by_role("button", name="Revoke this consent").click()
    window.toast("Consent revoked")
    assert texts(site.local, people.run()) == []
    assert len(site.local.consent.list(people.officer, subject=SUBJECT)) == 3


def test_a_person_is_erased_only_once_their_id_was_typed(
    open_window: OpenWindow, site: RunningServer, people: People
) -> None:
    promoted(site.local, people, "grey-parrot", subject=SUBJECT)
    window = open_window(people.officer)
    page = window.go("erasures")
    page.get_by_label("Subject").fill(SUBJECT)
    page.get_by_role("region", name="Erase a person").get_by_role("button", name="Continue").click()
    erase = page.get_by_role("button", name="Erase permanently")
    expect(page.get_by_text("This cannot be undone.")).to_be_visible()
    expect(erase).to_be_disabled()
    page.get_by_label("to confirm").fill("customer:cust_")
    expect(erase).to_be_disabled()
    page.get_by_label("to confirm").fill(SUBJECT)
    erase.click()
    expect(page.locator("[data-receipt]")).to_contain_text("1 erased")
    assert texts(site.local, people.run()) == []
    expect(page.locator("[data-erasure]")).to_have_count(1)


@pytest.mark.rule("AUD-2")
def test_the_log_is_narrowed_and_the_chain_verified_in_place(
    open_window: OpenWindow, site: RunningServer, people: People, tmp_path: Path
) -> None:
    promoted(site.local, people)
    run_worker(site.local, people.tenant_id)
    window = open_window(people.auditor)
    page = window.go("audit")
    page.get_by_label("Event", exact=True).select_option("memory.promoted")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("[data-event]")).to_have_count(1)
    window.follow(page.get_by_role("link", name="Clear"))
    page.get_by_label("Actor").fill("boris")
    window.follow(page.get_by_role("button", name="Show"))
    assert {one.text_content() for one in page.locator("[data-event] td.by a").all()} == {"boris"}
    window.follow(page.get_by_role("link", name="Chain"))
    with page.expect_download() as exported:
        page.get_by_role("link", name="Export the head").click()
    kept = tmp_path / "head.json"
    exported.value.save_as(kept)
    page.get_by_text("Compare with an exported head").click()
    page.get_by_label("Exported head").fill(kept.read_text())
    page.get_by_role("button", name="Verify the chain").click()
    expect(page.locator("[data-verified=yes]")).to_contain_text("The chain is intact.")
    forged = json.loads(kept.read_text()) | {"hash": "0" * 64}
    page.get_by_label("Exported head").fill(json.dumps(forged))
    page.get_by_role("button", name="Verify the chain").click()
    expect(page.locator("[data-verified=no]")).to_contain_text("The chain is broken")
    window.check(widths=(390,), tabbing=False)


@pytest.mark.rule("AUD-3")
def test_denied_attempts_and_the_provenance_of_a_memory_are_a_click_away(
    open_window: OpenWindow, site: RunningServer, people: People
) -> None:
    memory = promoted(site.local, people)
    stranger = open_window(people.officer)
    stranger.go("queue", 403)
    window = open_window(people.auditor)
    page = window.go("audit/security")
    expect(page.locator("[data-event]")).to_contain_text("petra")
    window.follow(page.get_by_role("link", name="Provenance"))
    page.get_by_label("Memory").fill(memory)
    page.get_by_role("button", name="Show provenance").click()
    expect(page.locator("[data-trail]")).to_have_attribute("data-trail", memory)


def test_the_charts_of_a_window_can_be_read_as_tables(
    open_window: OpenWindow, site: RunningServer, people: People
) -> None:
    promoted(site.local, people)
    proposed(site.local, people.run(), **KEY | {"predicate": "eats"}, value="rye")
    window = open_window(people.person("rita", "auditor", "admin"))
    page = window.go("metrics")
    expect(page.locator("[data-figure] svg").first).to_be_visible()
    window.follow(page.get_by_role("link", name="24 hours"))
    expect(page.get_by_role("link", name="24 hours")).to_have_attribute("aria-current", "true")
    chart = page.locator("[data-figure]:has(svg)").first
    chart.get_by_text("Show as a table").click()
    expect(chart.get_by_role("table")).to_be_visible()
    window.follow(page.get_by_role("link", name="Background work"))
    expect(page.get_by_role("heading", name="Parked captures")).to_be_visible()


@pytest.mark.rule("PAC-1", "PAC-3", "PAC-4")
def test_a_pack_is_registered_compared_and_tried_on_history(
    open_window: OpenWindow, site: RunningServer, people: People
) -> None:
    site.local.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    site.local.capture(people.run(), kind="message", text="I prefer email.", classification="INTERNAL")
    run_worker(site.local, people.tenant_id)
    window = open_window(people.admin)
    page = window.go("packs/new")
    text = page.get_by_label("Pack (YAML or JSON)")
    text.fill("pack_meta: {id: shop}")
    window.expected_statuses.add(400)
    page.get_by_role("button", name="Check only").click()
    expect(page.get_by_role("alert")).to_contain_text("line 1")
    for version, most in (("1.0.0", 5), ("1.1.0", 9)):
        window.go("packs/new")
        text.fill(
            f'pack_meta: {{id: shop, version: "{version}"}}\nmemory_layer: {{recall_policy: {{max_recalls: {most}}}}}'
        )
        page.get_by_role("button", name="Register").click()
        window.toast(f"shop@{version} is registered")
    page.get_by_role("link", name="Changes").first.click()
    expect(page.locator("[data-change$=max_recalls] ins")).to_have_text("9")
    window.follow(page.get_by_role("link", name="Backtest"))
    page.get_by_label("Pack to test").select_option("shop@1.1.0")
    page.get_by_role("button", name="Run backtest").click()
    expect(page.locator("[data-result]")).to_contain_text("Notes")
    expect(page.locator("[data-result]")).to_be_focused()
