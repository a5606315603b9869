"""My memory in the console: what end users see and do about themselves."""

import json
from collections.abc import Iterator

import pytest

from muniment import Principal
from muniment.testing import People, TestServer
from tests.console.browser import Browser, words
from tests.interfaces.http import RunningServer
from tests.pack_activation import acme, put_in_force
from tests.subject.conftest import PACK, subject

HOSTILE = "Joanna says <script>alert(1)</script> & <b>tea</b>."


@pytest.fixture(scope="module")
def own_server(server: TestServer, database: str) -> Iterator[RunningServer]:
    with RunningServer(server, database) as opened:
        yield opened


@pytest.fixture
def joanna(own_server: RunningServer, people: People) -> Iterator[Browser]:
    put_in_force(own_server.local, people.tenant_id, acme("1.0.0", PACK))
    browser = Browser(own_server, subject(people, "joanna"))
    yield browser
    browser.close()


def _said(
    own_server: RunningServer, people: People, text: str, user_id: str = "joanna", label: str = "INTERNAL"
) -> str:
    made = own_server.local.propose(
        people.run(user_id), write_class="statement", text=text, classification=label, kind="message"
    )
    return getattr(made, "proposal_id", "")


@pytest.mark.rule("SUB-1", "SUB-2")
def test_a_person_confirms_what_waits_and_sees_why_it_is_held(
    joanna: Browser, own_server: RunningServer, people: People
) -> None:
    waits = _said(own_server, people, HOSTILE)
    shown = joanna.get("me", proposal=waits)
    assert "<script>alert" not in shown and HOSTILE in words(shown)
    assert joanna.post(f"me/proposals/{waits}/confirm").status_code == 303
    (memory,) = own_server.local.me.list(subject(people, "joanna"))
    details = words(joanna.get(f"me/memories/{memory.memory_id}"))
    assert "you said it" in details and "approved by joanna" in details
    assert joanna.post(f"me/memories/{memory.memory_id}/correct", right="Joanna drinks tea.").status_code == 303
    assert "waits" not in details and "A reviewer decides" in words(joanna.get("me"))
    assert joanna.post(f"me/memories/{memory.memory_id}/forget").status_code == 303
    assert own_server.local.recall(people.run("joanna")).records == ()


@pytest.mark.rule("SUB-1")
def test_a_person_is_told_in_words_what_reviewers_did(
    joanna: Browser, own_server: RunningServer, people: People
) -> None:
    queue, waits = own_server.local.queue, _said(own_server, people, "Joanna drinks tea.")
    queue.comment(people.reviewer, waits, text="heard it too")
    memory_id = queue.approve(people.reviewer, waits, note="heard it").memory_id
    queue.look_again(people.second_reviewer, waits, would="approve")
    said = words(joanna.get(f"me/memories/{memory_id}"))
    assert "commented by boris" in said and "approved by boris" in said and "looked at again by clara" in said


@pytest.mark.rule("SUB-4", "CON-9")
def test_a_person_answers_consents_and_revokes(joanna: Browser, own_server: RunningServer, people: People) -> None:
    _said(own_server, people, "I am allergic to nuts.", label="PII")
    person = subject(people, "joanna")
    (asked,) = own_server.local.me.requests(person)
    assert "I am allergic to nuts." in words(joanna.get("me"))
    assert joanna.post(f"me/requests/{asked.request_id}/grant").status_code == 303
    (given,) = own_server.local.me.consents(person)
    assert joanna.post(f"me/consents/{given.consent_id}/revoke").status_code == 303
    assert joanna.post("me/consents", labels="PII").status_code == 303
    assert [one.state for one in own_server.local.me.consents(person) if one.action == "grant"] == ["revoked", "active"]


@pytest.mark.rule("SUB-4")
def test_a_person_is_offered_the_labels_that_need_their_consent(
    joanna: Browser, own_server: RunningServer, people: People
) -> None:
    shown = joanna.get("me")
    assert 'name="labels" value="PII">' in shown and 'name="labels" value="RESTRICTED">' in shown
    assert 'value="INTERNAL"' not in shown
    assert joanna.post("me/consents", labels=["PII", "RESTRICTED"]).status_code == 303
    (given,) = own_server.local.me.consents(subject(people, "joanna"))
    assert given.data_classifications_allowed == ("PII", "RESTRICTED")
    assert joanna.post("me/consents").status_code == 400


@pytest.mark.rule("SUB-1")
def test_what_only_a_reviewer_decides_is_not_asked_of_the_person(
    joanna: Browser, own_server: RunningServer, people: People
) -> None:
    fact = {"write_class": "preference", "entity": "user:tom", "predicate": "likes", "value": "cellos"}
    waits = own_server.local.propose(people.run("joanna"), **fact, classification="INTERNAL")
    shown = joanna.get("me")
    assert "Shall this be remembered?" not in shown
    part = words(shown.partition('id="reviewed"')[2].partition("</section>")[0])
    assert "A reviewer decides about these" in part and "it is about somebody else" in part
    assert f"me/proposals/{getattr(waits, 'proposal_id', '')}" not in shown


@pytest.mark.rule("SUB-5")
def test_a_person_takes_everything_along(joanna: Browser, own_server: RunningServer, people: People) -> None:
    _said(own_server, people, HOSTILE)
    _said(own_server, people, "Tom plays the cello.", "tom")
    data = json.loads(joanna.get("me/export.json"))
    assert [one["text"] for one in data["captures"]] == [HOSTILE] and "cello" not in json.dumps(data)
    page = joanna.get("me/export.html")
    assert "<script>alert" not in page and HOSTILE in words(page)


@pytest.mark.rule("SUB-3")
def test_forgetting_everything_takes_the_own_name_typed_again(
    joanna: Browser, own_server: RunningServer, people: People
) -> None:
    _said(own_server, people, "Joanna lives by the sea.")
    assert joanna.post("me/erasure", typed="tom").status_code == 400
    assert own_server.local.erasure_requests.list(people.officer) == []
    assert joanna.post("me/erasure", typed="joanna").status_code == 303
    assert len(own_server.local.erasure_requests.list(people.officer)) == 1


@pytest.mark.rule("SUB-1")
def test_no_other_page_of_the_console_is_theirs_and_this_one_is_nobody_elses(
    joanna: Browser, own_server: RunningServer, people: People
) -> None:
    for path in ("queue", "memory", "captures", "consent", "erasures", "audit", "packs"):
        joanna.get(path, 403)
    for who in (people.reviewer, people.auditor, people.officer, people.admin):
        browser = Browser(own_server, who)
        browser.get("me", 403)
        browser.close()
    agent = Principal(tenant_id=people.tenant_id, id="bot", kind="agent", roles={"agent"})
    browser = Browser(own_server, agent)
    assert "Sign in" in browser._http.get("/console/me", follow_redirects=True).text
    browser.close()


@pytest.mark.rule("SUB-5")
def test_the_address_that_an_agent_gets_asks_to_sign_in(own_server: RunningServer, people: People) -> None:
    answer = own_server.http.get("/console/me?proposal=mwp_1", headers={"Accept": "text/html"}, follow_redirects=False)
    assert answer.status_code == 303 and answer.headers["location"].startswith("/console/signin?next=")
    key = own_server.key(people.run("joanna"), user_id="joanna")
    assert own_server.ask("GET", "/v1/me/memories", key=key).status_code == 403


@pytest.mark.rule("SUB-1")
def test_facts_about_oneself_are_shown_without_ones_own_id(
    joanna: Browser, own_server: RunningServer, people: People
) -> None:
    fact = {"write_class": "preference", "predicate": "shoe_size", "classification": "INTERNAL"}
    for entity, value in (("customer:joanna", "42"), ("customer:joanna2", "43")):
        made = own_server.local.propose(people.run("joanna"), entity=entity, value=value, **fact)
        own_server.local.queue.approve(people.reviewer, getattr(made, "proposal_id", ""))
    shown = joanna.get("me")
    assert "customer:joanna shoe" not in words(shown) and 'Forget: shoe size: 42"' in shown
    assert "customer:joanna2 shoe size: 43" in words(shown)
    one = next(one for one in own_server.local.me.list(subject(people, "joanna")) if one.value == "42")
    assert "customer:joanna shoe" not in words(joanna.get(f"me/memories/{one.memory_id}"))
