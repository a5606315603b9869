"""The pages of an admin in a real browser: keys, webhooks, models and budgets, backfills, work, packs and charts."""

from typing import Any

import pytest
from playwright.sync_api import expect

from muniment.testing import People
from tests.console import axe
from tests.console.chromium import Scheme, Window
from tests.console.conftest import OpenWindow
from tests.interfaces.http import RunningServer
from tests.pack_activation import acme, put_in_force
from tests.stories import KEY, promoted, proposed, run_worker

HOSTILE = "<script>alert(1)</script>\u202e" + "W" * 80
LOOKS = pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (1440, "dark"), (390, "light"), (390, "dark")])
BUDGETS = "memory_layer: {budgets: [{records: 2}, {tier: semantic, records: 100, bytes: 1000000}]}"


def readable(window: Window, width: int) -> None:
    """Nothing serious for axe, and nothing wrong with names, contrast and layout."""
    window.page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    assert axe.findings(window.page) == []
    window.check(widths=(width,), tabbing=False)
    assert window.page.locator("script:not([src])").count() == 0


@LOOKS
def test_keys_and_budgets_are_read_by_everybody(
    open_window: OpenWindow, site: RunningServer, people: People, width: int, scheme: Scheme
) -> None:
    fields: dict[str, Any] = {"kind": "agent", "roles": ["agent"], "label": f"till {HOSTILE}"}
    speaks = {"tools": ["crm.lookup"], "channels": ["*"]}
    made = site.local.keys.create(people.admin, principal_id="refund_bot", speaks_for=speaks, expires_in="7d", **fields)
    put_in_force(site.local, people.tenant_id, acme("1.0.0", BUDGETS))
    for predicate in ("eats", "drinks"):
        promoted(site.local, people, HOSTILE, predicate=predicate)
    window = open_window(people.admin, width=width, scheme=scheme)
    page = window.go("admin/keys")
    row = page.locator(f"[data-key={made.key_id}]")
    for told in ("refund_bot", "tool crm.lookup", "channel any", "active"):
        expect(row).to_contain_text(told)
    expect(page.get_by_text("never here")).to_be_visible()
    expect(page.locator("main form")).to_have_count(0)
    readable(window, width)
    page.get_by_role("link", name="Models and budgets").click()
    expect(page.locator("[data-budget='1']")).to_contain_text("100 %, full")
    expect(page.locator("[data-budget='2']")).to_contain_text("2 of 100")
    readable(window, width)


def test_a_webhook_is_added_given_a_new_secret_and_removed_by_keyboard(
    open_window: OpenWindow, site: RunningServer, people: People
) -> None:
    window = open_window(people.admin, width=1440)
    page = window.go("admin/webhooks")
    window.expected_statuses.add(400)
    page.get_by_label("Address").fill("https://127.0.0.1/hook")
    page.get_by_label("Address").press("Enter")
    expect(page.get_by_role("alert")).to_be_visible()
    page.get_by_label("Address").fill(f"https://8.8.8.8/hook?{'<b>' * 20}".replace("<", "%3C").replace(">", "%3E"))
    page.get_by_label("Events").select_option(["memory.promoted", "memory.erased"])
    page.get_by_role("button", name="Add").press("Enter")
    first = page.locator("[data-secret]").inner_text()
    assert first
    (hook,) = site.local.webhooks.list(people.admin)
    readable(window, 1440)
    readable(window, 390)
    page.set_viewport_size({"width": 1440, "height": 900})
    page.get_by_role("button", name=f"New secret for {hook.webhook_id}").press("Enter")
    expect(page.locator("[data-secret]")).not_to_have_text(first)
    window.go("admin/webhooks")
    page.locator("summary", has_text="Remove…").press("Enter")
    remove = page.get_by_role("button", name="Remove for good")
    expect(remove).to_be_disabled()
    page.get_by_label("to confirm").fill(hook.webhook_id)
    remove.press("Enter")
    window.toast("The webhook is removed")
    assert site.local.webhooks.list(people.admin) == []


@pytest.mark.rule("JOB-8")
@LOOKS
def test_a_backfill_is_planned_ordered_and_followed(
    open_window: OpenWindow, site: RunningServer, people: People, width: int, scheme: Scheme
) -> None:
    local = site.local
    promoted(local, people, HOSTILE, predicate="eats")
    renamed = "ontology: {predicates: {likes_to_eat: {type: string, renamed_from: [eats]}}}"
    pack = acme("1.0.0", renamed, ontology_version='"2.0.0"')
    put_in_force(local, people.tenant_id, pack)
    window = open_window(people.reviewer, width=width, scheme=scheme)
    page = window.go("packs/backfills")
    expect(page.get_by_role("heading", name="No backfills")).to_be_visible()
    page.get_by_label("Pack", exact=True).fill("nobody@9.9.9")
    window.expected_statuses.add(400)
    page.get_by_role("button", name="Show what would change").click()
    expect(page.get_by_role("alert")).to_be_visible()
    page.get_by_label("Pack", exact=True).fill("acme@1.0.0")
    page.get_by_role("button", name="Show what would change").click()
    expect(page.locator("[data-plan]")).to_contain_text("Nothing was changed yet.")
    assert local.packs.backfills(people.admin) == []
    readable(window, width)
    page.set_viewport_size({"width": width, "height": 900})
    page.get_by_role("button", name="Order it").press("Enter")
    window.toast("The backfill is ordered")
    expect(page.locator("[data-backfill]")).to_contain_text("under way")
    run_worker(local, people.tenant_id)
    window.go("packs/backfills")
    expect(page.locator("[data-backfill]")).to_contain_text("finished")
    readable(window, width)


@LOOKS
def test_every_chart_has_a_sentence_that_says_what_to_do_and_a_table(
    open_window: OpenWindow, site: RunningServer, people: People, width: int, scheme: Scheme
) -> None:
    local = site.local
    clara = people.second_reviewer
    promoted(local, people, HOSTILE)
    late = [
        proposed(local, people.run(), **KEY | {"predicate": f"eats_{n}"}, value="rye").proposal_id for n in range(3)
    ]
    local.queue.assign(clara, late[0])
    local.capture(people.run(), kind="statement", text="ill", classification="PII", subject="customer:cust_9")
    local.recall(people.run(), "channel")
    local.consolidate(people.tenant_id)
    site.clock.advance(days=8)
    run_worker(local, people.tenant_id)
    window = open_window(people.person("rita", "auditor", "admin"), width=width, scheme=scheme)
    page = window.go("metrics")
    charts = page.locator("[data-figure]")
    assert charts.count() >= 5
    for name in ("overdue", "refusals", "accuracy", "tokens"):
        expect(page.locator(f"[data-figure={name}]")).to_be_visible()
    for name in ("overdue", "refusals"):
        expect(page.locator(f"[data-figure={name}] [data-advice]")).to_be_visible()
    for number in range(charts.count()):
        one = charts.nth(number)
        if one.locator("svg").count():
            one.get_by_text("Show as a table").click()
            expect(one.get_by_role("table")).to_be_visible()
            assert one.locator("tbody tr").count() >= 1
    readable(window, width)


@pytest.mark.rule("PAC-5")
def test_a_draft_is_compared_tried_and_put_in_force_by_another_admin_then_the_old_one_is_retired(
    open_window: OpenWindow, site: RunningServer, people: People
) -> None:
    local = site.local
    promoted(local, people, HOSTILE)
    put_in_force(local, people.tenant_id, acme("1.0.0"))
    looser = "memory_layer: {trust: {floor: 0.1}}"
    local.packs.register(people.admin, acme("1.1.0", looser))
    first = open_window(people.admin, width=1440)
    page = first.go("packs")
    row = page.locator("[data-pack='acme@1.1.0']")
    row.get_by_role("link", name="Changes").click()
    expect(page.locator("[data-change$=floor]").first).to_be_visible()
    page.go_back()
    row.get_by_role("link", name="Activate").click()
    expect(page.locator("[data-loosens]")).to_contain_text("floor")
    expect(page.locator("[data-second-person]")).to_contain_text("a different admin than ada")
    readable(first, 1440)
    readable(first, 390)
    page.set_viewport_size({"width": 1440, "height": 900})
    page.get_by_label("Reason").fill(f"more is kept {HOSTILE}")
    first.expected_statuses |= {400, 403, 409}
    page.get_by_role("button", name="Activate").click()
    expect(page.get_by_role("alert")).to_be_visible()
    assert local.packs.in_force(people.admin).pack == "acme@1.0.0"
    other = open_window(people.person("zoe", "admin"), width=1440)
    page = other.go("packs/acme@1.1.0/activate")
    page.get_by_label("Reason").fill("more is kept")
    page.get_by_role("button", name="Activate").press("Enter")
    other.toast("acme@1.1.0 is in force")
    other.go("packs/acme@1.0.0")
    page.get_by_text("Retire this version").click()
    page.get_by_label("Reason").fill("replaced")
    page.get_by_role("button", name="Retire").press("Enter")
    other.toast("acme@1.0.0 is retired")
    expect(page.locator("[data-pack='acme@1.0.0']")).to_contain_text("retired")
