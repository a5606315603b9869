"""Administration in the console: keys, webhooks, models and budgets, and backfills."""

import re

import pytest

from muniment.testing import People
from tests.console.browser import Browser, words
from tests.interfaces.http import RunningServer
from tests.pack_activation import acme, put_in_force
from tests.stories import promoted

HOSTILE = "<script>alert(1)</script>\u202e"


@pytest.mark.rule("ISO-5")
def test_keys_are_shown_with_what_each_allows_and_cannot_be_made_here(
    admin: Browser, reviewer: Browser, http_server: RunningServer, people: People
) -> None:
    made = http_server.local.keys.create(
        people.admin,
        principal_id="refund_bot",
        kind="agent",
        roles=["agent"],
        user_id="cust_1",
        clearance=["PUBLIC", "PII"],
        speaks_for={"tools": ["crm.lookup"], "channels": ["*"]},
        expires_in="7d",
        label=f"till {HOSTILE}",
    )
    shown = admin.get("admin/keys")
    assert "<script>alert" not in shown and str(made.token) not in shown
    row = words(shown.partition(f'data-key="{made.key_id}"')[2].partition("</tr>")[0])
    for told in ("refund_bot", "only for cust_1", "tool crm.lookup", "channel any", "PUBLIC", "PII", "never", "active"):
        assert told in row
    assert made.key_id in shown.partition("data-ending-keys")[2].partition("</p>")[0]
    assert "<form" not in shown.partition("<main")[2].partition("</main>")[0]
    http_server.local.keys.revoke(people.admin, made.key_id)
    assert "revoked" in words(admin.get("admin/keys"))
    reviewer.get("admin/keys", 403)
    assert ">Administration<" not in reviewer.get("packs")
    assert admin.get("admin", 303) == ""


def test_a_webhook_is_added_rotated_and_removed_and_its_secret_is_shown_once(
    admin: Browser, reviewer: Browser, http_server: RunningServer, people: People
) -> None:
    assert "No webhooks" in words(admin.get("admin/webhooks"))
    refused = admin.post("admin/webhooks", url="ftp://nowhere")
    assert (refused.status_code, 'value="ftp://nowhere"' in refused.text) == (400, True)
    added = admin.post("admin/webhooks", url="https://8.8.8.8/hook", types="memory.erased")
    assert added.status_code == 200
    (hook,) = http_server.local.webhooks.list(people.admin)
    secret = added.text.partition("data-secret>")[2].partition("<")[0]
    assert secret and secret not in admin.get("admin/webhooks")
    again = admin.post(f"admin/webhooks/{hook.webhook_id}/rotate").text
    assert secret not in again and "data-secret>" in again
    assert admin.post(f"admin/webhooks/{hook.webhook_id}/remove", typed="no").status_code == 400
    assert reviewer.post(f"admin/webhooks/{hook.webhook_id}/remove", typed=hook.webhook_id).status_code == 403
    assert len(http_server.local.webhooks.list(people.admin)) == 1
    assert admin.post(f"admin/webhooks/{hook.webhook_id}/remove", typed=hook.webhook_id).status_code == 303
    assert http_server.local.webhooks.list(people.admin) == []
    assert admin.post(f"admin/webhooks/{hook.webhook_id}/paint").status_code == 404


def test_models_and_budgets_are_those_of_the_pack_in_force(
    admin: Browser, http_server: RunningServer, people: People
) -> None:
    assert "sets no budgets" in words(admin.get("admin/limits"))
    pack = """
memory_layer:
  extraction: {model: {model: default, daily_calls: 77}}
  budgets: [{tier: semantic, records: 1234}]
"""
    put_in_force(http_server.local, people.tenant_id, acme("1.0.0", pack))
    shown = words(admin.get("admin/limits"))
    assert "every label but" in shown and "77" in shown and "1,234" in shown


@pytest.mark.rule("MET-10", "JOB-10")
def test_each_budget_says_how_much_of_it_is_used_now(
    admin: Browser, http_server: RunningServer, people: People
) -> None:
    budgets = "[{records: 2}, {tier: semantic, records: 10}, {tier: durable, bytes: 1000000}]"
    pack = acme("1.0.0", f"memory_layer: {{budgets: {budgets}, alerts: {{budget_share: 0.9}}}}")
    put_in_force(http_server.local, people.tenant_id, pack)
    for predicate in ("eats", "drinks"):
        promoted(http_server.local, people, "rye", predicate=predicate)
    shown = admin.get("admin/limits")
    assert re.findall(r'data-share="([^"]+)"', shown) == ["1.0", "0.2", "0.0"]
    said = words(shown)
    assert "2 of 2" in said and "2 of 10" in said and "0 of 1,000,000" in said
    assert "100 %, full" in said and "20 %" in said and "no limit" in said


@pytest.mark.rule("MET-10")
def test_what_the_budgets_limit_is_counted_once_a_minute_for_this_page_and_the_metrics(
    admin: Browser, http_server: RunningServer, people: People
) -> None:
    fabric = http_server.local
    put_in_force(fabric, people.tenant_id, acme("1.0.0", "memory_layer: {budgets: [{records: 10}]}"))
    promoted(fabric, people, "rye", predicate="eats")
    counted = f'Counted <time datetime="{http_server.clock.now.isoformat()}"'
    shown = admin.get("admin/limits")
    assert "1 of 10" in words(shown) and counted in shown
    http_server.clock.advance(seconds=59)
    promoted(fabric, people, "rye", predicate="drinks")
    shown = admin.get("admin/limits")
    assert "1 of 10" in words(shown) and counted in shown
    assert counted in admin.get("metrics"), "the same count"
    http_server.clock.advance(seconds=1)
    shown = admin.get("admin/limits")
    assert "2 of 10" in words(shown) and "Counted " in shown and counted not in shown


@pytest.mark.rule("JOB-8")
def test_a_backfill_is_planned_first_then_ordered_by_a_reviewer(
    admin: Browser, reviewer: Browser, http_server: RunningServer, people: People
) -> None:
    assert "No backfills" in words(admin.get("packs/backfills"))
    assert "A reviewer orders it" in words(admin.get("packs/backfills"))
    promoted(http_server.local, people)
    put_in_force(http_server.local, people.tenant_id, acme("1.0.0"))
    ref = http_server.local.packs.in_force(people.admin).pack
    assert f'value="{ref}"' in reviewer.get("packs/backfills")
    planned = reviewer.post("packs/backfills/plan", ref=ref)
    assert (planned.status_code, "data-plan" in planned.text) == (200, True)
    assert http_server.local.packs.backfills(people.admin) == []
    assert reviewer.post("packs/backfills/plan", ref="nobody@9.9.9").status_code == 400
    assert admin.post("packs/backfills/order", ref=ref).status_code == 403
    assert reviewer.post("packs/backfills/order", ref=ref).status_code == 303
    (made,) = http_server.local.packs.backfills(people.admin)
    assert f'data-backfill="{made.backfill_id}"' in admin.get("packs/backfills")
