"""My memory in a real browser: on a phone, in dark, by keyboard, and by a click on what is asked."""

import pytest
from playwright.sync_api import expect

from muniment import Principal
from muniment.testing import People
from tests.console import axe
from tests.console.chromium import Scheme
from tests.console.conftest import OpenWindow
from tests.interfaces.http import RunningServer
from tests.pack_activation import acme, put_in_force
from tests.subject.conftest import PACK, subject


@pytest.fixture
def joanna(site: RunningServer, people: People) -> Principal:
    """Somebody about whom there is something in every part of the page."""
    local, run, person = site.local, people.run("joanna"), subject(people, "joanna")
    put_in_force(local, people.tenant_id, acme("1.0.0", PACK))
    for text in ("Joanna lives by the sea.", "Joanna takes the early train."):
        made = local.propose(run, write_class="statement", text=text, classification="INTERNAL")
        local.me.confirm(person, getattr(made, "proposal_id", ""))
    (first, _) = local.me.list(person)
    local.me.forget(person, first.memory_id)
    local.propose(run, write_class="statement", text="I am allergic to nuts.", classification="PII", kind="message")
    local.propose(run, write_class="statement", text="Joanna likes window seats.", classification="INTERNAL")
    local.me.consent(person, data_classifications_allowed=["RESTRICTED"])
    local.recall(run, "seats")
    return person


@pytest.mark.rule("SUB-1")
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_the_page_can_be_read_by_everybody(
    open_window: OpenWindow, site: RunningServer, joanna: Principal, width: int, scheme: Scheme
) -> None:
    window = open_window(joanna, width=width, scheme=scheme)
    page = window.go("me")
    window.check(tabbing=True)
    assert axe.findings_in(page, [(width, scheme)]) == []
    memory = site.local.me.list(joanna, live=True)[0]
    page = window.go(f"me/memories/{memory.memory_id}")
    window.check(tabbing=True)
    assert axe.findings_in(page, [(width, scheme)]) == []


@pytest.mark.rule("SUB-4")
def test_a_person_gives_and_revokes_a_consent_by_keyboard(
    open_window: OpenWindow, site: RunningServer, joanna: Principal
) -> None:
    window = open_window(joanna, width=390, scheme="dark")
    page = window.go("me")
    (given,) = [one.consent_id for one in site.local.me.consents(joanna) if one.state == "active"]
    page.locator(f"[data-consent='{given}'] summary").press("Enter")
    page.get_by_text("is hidden at once").wait_for()
    page.get_by_role("button", name="Revoke it").press("Enter")
    window.toast("Your consent is revoked.")
    label = page.get_by_role("checkbox", name="PII")
    assert not label.is_checked(), "nobody consents by leaving something as it is"
    label.press("Space")
    page.get_by_role("button", name="I consent", exact=True).press("Enter")
    window.toast("Your consent is recorded.")
    labels = [one.data_classifications_allowed for one in site.local.me.consents(joanna) if one.state == "active"]
    assert labels == [("PII",)]


@pytest.mark.rule("SUB-2", "SUB-5")
def test_a_person_answers_by_keyboard_on_a_phone(
    open_window: OpenWindow, site: RunningServer, people: People, joanna: Principal
) -> None:
    window = open_window(joanna, width=390)
    window.go("me")
    button = window.page.get_by_role("button", name="Remember it")
    button.focus()
    window.page.keyboard.press("Enter")
    window.page.get_by_text("It is remembered from now on.").wait_for()
    assert "Joanna likes window seats." in [one.text for one in site.local.recall(people.run("joanna")).records]


@pytest.mark.rule("SUB-3")
@pytest.mark.parametrize("width", [390, 1440])
def test_forgetting_can_be_undone_before_it_is_sent_and_is_final_after(
    open_window: OpenWindow, site: RunningServer, people: People, joanna: Principal, width: int
) -> None:
    window = open_window(joanna, width=width)
    page = window.go("me")
    (memory,) = site.local.me.list(joanna, live=True)
    row = page.locator(f"[data-memory='{memory.memory_id}']")
    forget = row.get_by_role("button", name="Forget")
    forget.press("Enter")
    window.toast(f"Forgetting: {memory.text}")
    expect(forget).to_have_attribute("aria-disabled", "true")
    expect(forget).to_be_focused()
    page.get_by_role("button", name="Undo").press("Enter")
    window.toast("Undone")
    expect(forget).to_have_attribute("aria-disabled", "false")
    assert site.local.me.get(joanna, memory.memory_id).state == "live"
    forget.press("Enter")
    forget.press("Enter")
    window.toast("It is forgotten.")
    expect(row.get_by_role("button", name="Allow again")).to_be_focused()
    assert site.local.me.get(joanna, memory.memory_id).state == "forgotten"
    assert memory.text not in [one.text for one in site.local.recall(people.run("joanna")).records]


@pytest.mark.rule("SUB-3")
def test_leaving_the_page_sends_what_is_forgotten_at_once(
    open_window: OpenWindow, site: RunningServer, joanna: Principal
) -> None:
    window = open_window(joanna)
    (memory,) = site.local.me.list(joanna, live=True)
    page = window.go(f"me/memories/{memory.memory_id}")
    page.get_by_role("button", name="Forget it").press("Enter")
    window.toast("Forgetting: ")
    window.press("u")
    window.toast("Undone")
    page.get_by_role("button", name="Forget it").press("Enter")
    window.toast("Forgetting: ")
    page = window.go("me")
    again = page.locator(f"[data-memory='{memory.memory_id}']").get_by_role("button", name="Allow again")
    # The page may have been asked for before the request that was sent on leaving the other one was answered.
    for _ in range(20):
        if again.is_visible():
            break
        page = window.go("me")
    expect(again).to_be_visible()
