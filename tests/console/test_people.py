"""A person's page in the console: what is held, who read it, handing it over, and what an erasure would remove."""

import json
import re
from collections.abc import Iterator

import pytest

from muniment.testing import People, TestServer
from tests.console.browser import Browser, words
from tests.interfaces.http import RunningServer
from tests.pack_activation import acme, put_in_force
from tests.stories import CONSENT, event_data, promoted
from tests.subject.conftest import PACK, subject

SUBJECT, USER = "customer:cust_1", "cust_1"
HOSTILE = "Joanna <script>alert(1)</script> \u202e & <b>tea</b>."


@pytest.fixture(scope="module")
def own_server(server: TestServer, database: str) -> Iterator[RunningServer]:
    with RunningServer(server, database) as opened:
        yield opened


def _known(http_server: RunningServer, people: People) -> str:
    local = http_server.local
    local.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    fields = {"write_class": "statement", "entity": None, "predicate": None, "subject": SUBJECT, "user_id": USER}
    memory_id = promoted(local, people, None, text=HOSTILE, **fields)
    promoted(local, people, "tea", predicate="drinks", entity="customer:cust_2", user_id="cust_2")
    local.recall(people.run(USER), "tea")
    return memory_id


@pytest.mark.rule("ERA-5")
def test_a_persons_page_shows_what_is_held_and_who_read_it(
    officer: Browser, http_server: RunningServer, people: People
) -> None:
    memory_id = _known(http_server, people)
    shown = officer.get("people", subject=SUBJECT, user_id=USER)
    assert "<script>alert" not in shown and HOSTILE in words(shown)
    assert f'data-memory="{memory_id}"' in shown and shown.count("data-memory=") == 1
    assert "1 live memory 0 ended memories with their text 1 capture 0 facts" in words(shown)
    assert 'data-kind="statement"' in shown
    assert CONSENT["purpose"] in shown and shown.count("data-consent=") == 1
    assert shown.count("data-recall=") == 1 and "the person's own run" in words(shown)
    assert "an erasure removes 1 memory" in words(shown)
    assert 'action="/console/erasures/search"' in shown


@pytest.mark.rule("ERA-5")
def test_facts_about_others_that_name_the_person_are_counted_apart_and_can_be_looked_at(
    officer: Browser, http_server: RunningServer, people: People
) -> None:
    _known(http_server, people)
    other = promoted(
        http_server.local, people, SUBJECT, entity="customer:cust_3", predicate="referred_by", user_id=None
    )
    held = http_server.local.people.get(people.officer, subject=SUBJECT, user_id=USER).memories
    assert (held.live, held.naming, held.named_in) == (2, 1, (other,))
    shown = officer.get("people", subject=SUBJECT, user_id=USER)
    assert "1 more is about others and names this person" in words(shown)
    assert f"erasures/fact?fact_id={other}" in shown and shown.count("data-memory=") == 1
    before = officer.get("erasures", subject=SUBJECT, user_id=USER)
    assert "2 (2 live; 1 about others that names this person)" in words(before)
    http_server.local.erase(people.officer, subject=SUBJECT, user_id=USER)
    after = http_server.local.people.get(people.officer, subject=SUBJECT, user_id=USER).memories
    assert (after.live, after.removed, after.naming, after.named_in) == (0, 2, 0, ())


def test_who_read_what_is_told_in_words(officer: Browser, http_server: RunningServer, people: People) -> None:
    _known(http_server, people)
    shown = officer.get("people", subject=SUBJECT, user_id=USER)
    reads = words(shown.partition('id="reads"')[2].partition("</section>")[0])
    assert HOSTILE in reads and "pm_" not in reads


def test_a_person_who_is_an_end_user_too_is_asked_for_by_both_ids(
    officer: Browser, http_server: RunningServer, people: People
) -> None:
    _known(http_server, people)
    shown = officer.get("people", subject="customer:cust_2")
    assert "Sealed under another key." in shown and "drinks" not in words(shown)
    (form,) = re.findall(r"<div[^>]* data-other-id>.*?</form>", shown, re.DOTALL)
    assert 'name="subject" value="customer:cust_2"' in form and 'name="user_id" required' in form
    both = officer.get("people", subject="customer:cust_2", user_id="cust_2")
    assert "drinks: tea" in words(both) and "data-other-id" not in both and "another key" not in both


def test_a_privacy_officer_sets_and_removes_the_display_name_on_the_persons_page(
    officer: Browser, reviewer: Browser, http_server: RunningServer, people: People
) -> None:
    _known(http_server, people)
    shown = officer.get("people", subject=SUBJECT, user_id=USER)
    assert "Set a display name" in shown
    name = "Joanna <i>Quandt</i>"
    done = officer.post("people/name", subject=SUBJECT, user_id=USER, display_name=name)
    assert (done.status_code, done.headers["location"].partition("?")[0]) == (303, "/console/people")
    shown = officer.get(done.headers["location"].removeprefix("/console/"))
    assert name in words(shown) and "<i>" not in shown and "Change the display name" in shown
    assert http_server.local.subjects.get_name(people.reviewer, subject=SUBJECT).name == name
    officer.post("people/name", subject=SUBJECT, user_id=USER, display_name=name, remove="yes")
    assert http_server.local.subjects.get_name(people.reviewer, subject=SUBJECT).name is None
    assert "nobody" in officer.post("people/name", subject="nobody", display_name="x").text
    assert reviewer.post("people/name", subject=SUBJECT, display_name="x").status_code == 403


def test_the_pages_of_memories_and_reads_go_on(
    officer: Browser, http_server: RunningServer, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("muniment.console.pages.people.MEMORIES_SHOWN", 1)
    monkeypatch.setattr("muniment.console.pages.people.READS_SHOWN", 1)
    for value in ("tea", "milk"):
        promoted(http_server.local, people, value, predicate=f"drinks_{value}", entity=SUBJECT, subject=SUBJECT)
        http_server.local.recall(people.run(USER), value)
    first = officer.get("people", subject=SUBJECT)
    assert first.count("data-memory=") == first.count("data-recall=") == 1
    (memory,) = http_server.local.people.memories(people.officer, subject=SUBJECT, limit=1)
    (read,) = http_server.local.people.reads(people.officer, subject=SUBJECT, limit=1)
    assert f"after={memory.memory_id}" in first and f"before={read.recall_id}" in first
    older = officer.get("people", subject=SUBJECT, after=memory.memory_id, before=read.recall_id)
    assert f'data-memory="{memory.memory_id}"' not in older and older.count("data-memory=") == 1
    assert f'data-recall="{read.recall_id}"' not in older and older.count("data-recall=") == 1
    assert 'role="alert"' in officer.get("people", 400, subject=SUBJECT, after="pm_none")


def test_an_id_under_which_nothing_is_held_is_told_before_anything_else(
    officer: Browser, http_server: RunningServer, people: People
) -> None:
    _known(http_server, people)
    shown = words(officer.get("people", subject="customer:cust_l"))
    assert shown.index("Nothing is held under this id") < shown.index("Held about this person")
    assert "Renew or revoke" not in shown
    assert "Nothing is held under this id" not in words(officer.get("people", subject=SUBJECT))


@pytest.mark.rule("SUB-5")
def test_a_request_for_access_is_answered_by_a_file_that_is_recorded(
    officer: Browser, auditor: Browser, http_server: RunningServer, people: People
) -> None:
    _known(http_server, people)
    saved = officer.post("people/export.json", subject=SUBJECT, user_id=USER)
    assert saved.headers["content-disposition"] == 'attachment; filename="access-request.json"'
    assert [one["text"] for one in json.loads(saved.text)["memories"]] == [HOSTILE]
    page = officer.post("people/export.html", subject=SUBJECT, user_id=USER).text
    assert "<script>alert" not in page and HOSTILE in words(page)
    recalled = words(page.partition("Who recalled what")[2])
    assert HOSTILE in recalled and "pm_" not in recalled, "memories are named by their texts"
    assert f"basis {CONSENT['basis']}" in words(page)
    assert [one["user_id"] for one in event_data(http_server.local, people, "exported")] == [USER, USER]
    officer.get("people/export.json", 405)
    assert officer.post("people/export.json", subject=SUBJECT, form_token="another").status_code == 403
    assert officer.post("people/export.txt", subject=SUBJECT).status_code == 404
    assert auditor.post("people/export.json", subject=SUBJECT).status_code == 403
    auditor.get("people", 403, subject=SUBJECT)
    assert ">People<" not in auditor.get("consent")


@pytest.mark.rule("SUB-5", "IMP-4")
def test_what_was_captured_as_a_typed_fact_is_handed_over_in_words(
    officer: Browser, http_server: RunningServer, people: People
) -> None:
    promoted(http_server.local, people, "42", entity=SUBJECT, predicate="shoe_size", subject=SUBJECT)
    page = officer.post("people/export.html", subject=SUBJECT).text
    assert f"{SUBJECT} shoe size: 42" in words(page.partition("What was said and captured")[2])


@pytest.mark.rule("ERA-2")
def test_an_erasure_first_shows_how_much_it_removes_and_then_gives_a_receipt(
    officer: Browser, http_server: RunningServer, people: People
) -> None:
    _known(http_server, people)
    asked = words(officer.get("erasures", subject=SUBJECT, user_id=USER))
    assert "As of now, this removes: Memories 1 (1 live)" in asked
    assert "Nothing is held under this name" in words(officer.get("erasures", subject="customer:nobody"))
    held = http_server.local.people.get(people.officer, subject=SUBJECT, user_id=USER)
    officer.post("erasures", subject=SUBJECT, user_id=USER, typed=SUBJECT)
    (receipt,) = http_server.local.erasures(people.officer)
    assert held.would_remove == {name: count for name, count in receipt.rows.items() if count}
    gone = words(officer.get("people", subject=SUBJECT, user_id=USER))
    assert "Joanna" not in gone and "Nothing is held under this name that an erasure would remove" in gone


def test_a_wrong_name_is_reported_beside_the_form(officer: Browser) -> None:
    page = officer.get("people", 400, subject='"><img src=x>')
    assert "<img src=x" not in page and 'role="alert"' in page
    assert "subject: expected an id such as customer:cus_77" in words(page)


@pytest.mark.rule("SUB-3")
def test_a_request_to_be_erased_waits_here_and_is_refused_or_answered_by_an_erasure(
    own_server: RunningServer, people: People
) -> None:
    put_in_force(own_server.local, people.tenant_id, acme("1.0.0", PACK))
    browser = Browser(own_server, people.officer)
    assert "Nobody is waiting to be erased" in words(browser.get("people"))
    joanna = subject(people, "joanna")
    own_server.local.propose(people.run("joanna"), write_class="statement", text="Tea.", classification="INTERNAL")
    first = own_server.local.me.forget_everything(joanna)
    assert f'data-request="{first.request_id}"' in browser.get("people")
    assert "This person asked to be erased" in words(browser.get("people", user_id="joanna"))
    # A notice of it leads to the page of erasures, which an auditor reads too.
    assert f'data-request="{first.request_id}"' in browser.get("erasures")
    auditor = Browser(own_server, people.auditor)
    read = auditor.get("erasures").partition(f'data-request="{first.request_id}"')[2].partition("</tr>")[0]
    assert "joanna" in read and "<form" not in read and "href" not in read
    auditor.close()
    assert browser.post("people/requests/refuse", request_id=first.request_id).status_code == 303
    assert browser.post("people/requests/refuse", request_id=first.request_id).status_code == 400
    own_server.local.me.forget_everything(joanna)
    browser.post("erasures", user_id="joanna", typed="joanna")
    assert "Nobody is waiting to be erased" in words(browser.get("people"))
    browser.close()


def test_the_form_for_a_consent_offers_the_packs_purposes_and_the_bases_in_use(
    own_server: RunningServer, people: People
) -> None:
    pack = "memory_layer:\n  classes:\n" + "".join(
        f"    {name}: {{consent_purposes: [care, support]}}\n"
        for name in ("evidence_link", "preference", "decision_outcome", "correction", "statement")
    )
    put_in_force(own_server.local, people.tenant_id, acme("1.0.0", pack))
    own_server.local.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    browser = Browser(own_server, people.officer)
    form = browser.get("consent/new", subject=SUBJECT)
    assert '<option value="care"></option><option value="support"></option>' in form
    assert "One of the pack: care, support." in words(form)
    assert f'<option value="{CONSENT["basis"]}"></option>' in form
    browser.close()
