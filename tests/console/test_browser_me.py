"""My memory in a real browser: on a phone, in dark, by keyboard, and by a click on what is asked."""

import pytest

from muniment import Principal
from muniment.testing import People
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
    window.go("me")
    window.check(tabbing=True)
    memory = site.local.me.list(joanna, live=True)[0]
    window.go(f"me/memories/{memory.memory_id}")
    window.check(tabbing=True)


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
