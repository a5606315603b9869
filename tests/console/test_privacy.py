"""Consent and erasure in the console: the ledger, granting, renewing, revoking, forgetting."""

import csv
import io
import json
import re
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import pytest

from muniment.testing import People
from tests.console.browser import Browser, words
from tests.interfaces.http import RunningServer
from tests.stories import CONSENT, promoted, texts

SUBJECT = "customer:cust_1"
HOSTILE = "<script>alert(1)</script>\u202e" + "W" * 200
GRANT = {"subject": SUBJECT, "purpose": "support", "predicates": "*", "labels": "PII", "basis": "opt_in"}


@pytest.mark.rule("CON-1")
def test_a_consent_is_recorded_renewed_and_revoked_and_the_ledger_keeps_all_three(
    officer: Browser, http_server: RunningServer, people: People
) -> None:
    assert "No consents yet" in officer.get("consent")
    done = officer.post("consent", **GRANT, evidence=f"screen:v3\n{HOSTILE}\n", valid_until="2026-02-01T00:00")
    assert done.status_code == 303
    (first,) = http_server.local.consent.list(people.officer, subject=SUBJECT)
    assert first.evidence_refs == ("screen:v3", HOSTILE)
    assert done.headers["location"].endswith(f"#{first.consent_id}")
    ledger = officer.get("consent", subject=SUBJECT)
    assert "<script>alert" not in ledger
    assert HOSTILE in words(ledger)

    form = officer.get("consent/new", subject=SUBJECT, renews=first.consent_id)
    assert f'name="supersedes" value="{first.consent_id}"' in form
    assert 'value="support"' in form
    officer.post("consent", **GRANT, supersedes=first.consent_id, valid_until="2026-06-01T00:00")
    _, second = http_server.local.consent.list(people.officer, subject=SUBJECT)
    assert (second.supersedes, second.root_id) == (first.consent_id, first.consent_id)
    assert "2 records of this consent" in officer.get("consent", subject=SUBJECT)

    revoked = officer.post(f"consent/{second.consent_id}/revoke", subject=SUBJECT, evidence="ticket:1")
    assert revoked.status_code == 303
    ledger = words(officer.get("consent", subject=SUBJECT))
    assert "3 records of this consent" in ledger
    assert "ticket:1" in ledger
    assert "Revoke this consent" not in ledger, "there is nothing left to revoke"
    again = officer.post(f"consent/{second.consent_id}/revoke", subject=SUBJECT)
    assert (again.status_code, "superseded or revoked before" in again.text) == (400, True)


@pytest.mark.rule("CON-3")
def test_what_rested_on_a_consent_is_hidden_when_an_officer_revokes_it_here(
    officer: Browser, http_server: RunningServer, people: People
) -> None:
    given = http_server.local.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    assert "No visible memory depends on this consent" in words(officer.get("consent", subject=SUBJECT))
    promoted(http_server.local, people, classification="PII", subject=SUBJECT)
    promoted(http_server.local, people, "Ring 1", predicate="lives_at", classification="PII", subject=SUBJECT)
    promoted(http_server.local, people, "tea", predicate="drinks")
    ledger = officer.get("consent", subject=SUBJECT)
    assert 'data-dependents="2"' in ledger
    assert "2 memories (2 semantic; 2 preference) depend on this consent" in words(ledger)
    assert len(texts(http_server.local, people.run())) == 3
    officer.post(f"consent/{given.consent_id}/revoke", subject=SUBJECT)
    assert len(texts(http_server.local, people.run())) == 1


def test_consents_that_end_soon_come_first(officer: Browser, http_server: RunningServer, people: People) -> None:
    for days in (40, 20, 10):
        ends = http_server.clock.now + timedelta(days=days)
        http_server.local.consent.grant(people.officer, subject=f"customer:d{days}", valid_until=ends, **CONSENT)
    page = officer.get("consent")
    ending, _, subjects = page.partition('id="subjects"')
    assert 0 < ending.index("customer:d10") < ending.index("customer:d20")
    assert "customer:d40" not in ending
    assert "customer:d40" in subjects


def test_consents_that_end_soon_are_of_all_records_and_the_latest_records_come_first(
    officer: Browser, http_server: RunningServer, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("muniment.console.pages.consent.MOST_RECORDS", 3)
    local, start = http_server.local, http_server.clock.now
    soon = local.consent.grant(people.officer, subject="customer:d9", valid_until=start + timedelta(days=9), **CONSENT)
    for n in range(3):
        ends = start + timedelta(days=300 + n)
        local.consent.grant(people.officer, subject=f"customer:late{n}", valid_until=ends, **CONSENT)
    gone = local.consent.grant(people.officer, subject="customer:r", valid_until=start + timedelta(days=9), **CONSENT)
    local.consent.revoke(people.officer, gone.consent_id)
    ending, _, subjects = officer.get("consent").partition('id="subjects"')
    assert f'data-ending="{soon.consent_id}"' in ending and ending.count("data-ending=") == 1
    assert "customer:r" in subjects and "customer:late0" not in subjects and "customer:d9" not in subjects
    older = officer.get("consent", after=local.consent.list(people.officer, latest=True)[1].consent_id)
    assert "customer:late2" in older.partition('id="subjects"')[2]
    ends_by = [one.consent_id for one in local.consent.list(people.officer, ends_by=start + timedelta(days=9))]
    assert ends_by == [soon.consent_id]


def test_the_ledger_is_exported_whole(officer: Browser, http_server: RunningServer, people: People) -> None:
    local = http_server.local
    given = local.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    local.consent.grant(people.officer, subject="customer:other", **CONSENT)
    local.consent.revoke(people.officer, given.consent_id)
    assert "/console/consent/export?format=csv" in officer.get("consent")
    rows = list(csv.DictReader(io.StringIO(officer.get("consent/export", format="csv"))))
    assert [(one["subject"], one["action"]) for one in rows] == [
        (SUBJECT, "grant"),
        ("customer:other", "grant"),
        (SUBJECT, "revoke"),
    ]
    assert rows[0]["state"] == "revoked" and rows[0]["data_classifications_allowed"] == '["PII"]'
    lines = officer.get("consent/export", format="jsonl", subject=SUBJECT).splitlines()
    assert [json.loads(one)["action"] for one in lines] == ["grant", "revoke"]


def test_receipts_and_records_of_a_range_of_time_are_shown_and_exported(
    officer: Browser, http_server: RunningServer, people: People
) -> None:
    local, clock = http_server.local, http_server.clock
    names = ["customer:first", "customer:second", "customer:third"]
    times = []
    for name in names:
        times.append(clock.now.isoformat())
        local.consent.grant(people.officer, subject=name, **CONSENT)
        local.erase(people.officer, subject=name)
        clock.advance(minutes=5)
    second = {"since": times[1], "until": times[2]}
    for path, column in (("erasures", "subject"), ("consent", "subject")):
        rows = list(csv.DictReader(io.StringIO(officer.get(f"{path}/export", format="csv", **second))))
        assert {one[column] for one in rows} == {"customer:second"}, path
        page = officer.get(path, **second)
        assert [name in page for name in names] == [False, True, False], path
        assert [name in officer.get(path, since=times[1]) for name in names] == [False, True, True], path
        assert "in this range of time" in officer.get(path, until=times[0])
        assert "expected a date and a time" in officer.get(path, 400, since="soon")
        officer.get(f"{path}/export", 422, since="soon")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"labels": "SECRET"}, "declares no label SECRET"),
        ({"subject": "nobody"}, "subject"),
        ({"valid_until": "yesterday"}, "valid_until: expected a date and a time"),
        ({"valid_until": "2020-01-01T00:00"}, "must lie in the future"),
        ({"purpose": ""}, "purpose"),
    ],
)
def test_an_invalid_consent_is_reported_beside_the_form_with_what_was_typed(
    officer: Browser, http_server: RunningServer, people: People, wrong: dict[str, str], said: str
) -> None:
    answer = officer.post("consent", **{**GRANT, "basis": "typed <b>before</b>", **wrong})
    assert answer.status_code == 400
    assert said in words(answer.text)
    assert 'value="typed &lt;b&gt;before&lt;/b&gt;"' in answer.text
    assert http_server.local.consent.list(people.officer) == []


def test_the_form_offers_the_labels_and_bases_of_the_pack(
    officer: Browser, http_server: RunningServer, people: People
) -> None:
    shown = officer.get("consent/new")
    assert re.findall(r'name="labels" value="([^"]+)"( checked)?', shown) == [("PII", " checked"), ("RESTRICTED", "")]
    offered = shown.partition('id="f-basis-list"')[2].partition("</datalist>")[0]
    assert 'value="user_opt_in"' in offered and 'value="legitimate_interest"' in offered
    assert "user_opt_in, contract, legal_obligation" in words(officer.get("consent/load"))
    both = {**GRANT, "labels": ["PII", "RESTRICTED"]}
    assert officer.post("consent", **both).status_code == 303
    (given,) = http_server.local.consent.list(people.officer)
    assert given.data_classifications_allowed == ("PII", "RESTRICTED")
    again = officer.get("consent/new", subject=SUBJECT, renews=given.consent_id)
    assert re.findall(r'name="labels" value="([^"]+)" checked', again) == ["PII", "RESTRICTED"]
    none = officer.post("consent", **{**GRANT, "labels": []})
    assert (none.status_code, "data_classifications_allowed" in none.text) == (400, True)
    assert 'name="labels" value="PII">' in none.text, "what was typed stays as it was"


def test_an_invalid_subject_is_reported_beside_the_search(officer: Browser) -> None:
    page = officer.get("consent", 400, subject='"><img src=x>')
    assert "<img src=x" not in page
    assert 'role="alert"' in page


def test_an_auditor_reads_the_ledger_and_the_receipts_but_has_nothing_to_press(
    auditor: Browser, http_server: RunningServer, people: People
) -> None:
    given = http_server.local.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    ledger = auditor.get("consent", subject=SUBJECT)
    assert given.consent_id in ledger
    assert not any(offered in words(ledger) for offered in ("Renew", "Revoke", "Record a consent", "Erase"))
    assert 'action="/console/erasures"' not in auditor.get("erasures", subject=SUBJECT)
    auditor.get("consent/new", 403)
    assert auditor.post("consent", **GRANT).status_code == 403
    assert auditor.post(f"consent/{given.consent_id}/revoke", subject=SUBJECT).status_code == 403
    assert auditor.post("erasures", subject=SUBJECT, typed=SUBJECT).status_code == 403
    assert http_server.local.erasures(people.officer) == []


def test_a_form_without_the_sessions_own_token_does_nothing(
    officer: Browser, http_server: RunningServer, people: People
) -> None:
    for path, fields in (("consent", GRANT), ("erasures", {"subject": SUBJECT, "typed": SUBJECT})):
        assert officer.post(path, **fields, form_token="another").status_code == 403
    assert (http_server.local.consent.list(people.officer), http_server.local.erasures(people.officer)) == ([], [])


@pytest.mark.rule("ERA-2")
def test_a_person_is_erased_only_when_their_id_was_typed_once_more(
    officer: Browser, http_server: RunningServer, people: People
) -> None:
    http_server.local.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    promoted(http_server.local, people, classification="PII", subject=SUBJECT)
    asked = officer.get("erasures", subject=SUBJECT, user_id="cust_1")
    assert f'data-must-equal="{SUBJECT}"' in asked
    assert "1 consent record of the subject is kept" in words(asked)
    for typed in ("", "cust_1", SUBJECT.upper()):
        wrong = officer.post("erasures", subject=SUBJECT, user_id="cust_1", typed=typed)
        assert (wrong.status_code, "nothing was erased" in wrong.text) == (400, True)
    assert http_server.local.erasures(people.officer) == []

    done = officer.post("erasures", subject=SUBJECT, user_id="cust_1", typed=SUBJECT)
    (receipt,) = http_server.local.erasures(people.officer)
    query = parse_qs(urlsplit(done.headers["location"]).query)
    assert (done.status_code, query["done"]) == (303, [receipt.erasure_id])
    page = officer.get("erasures", done=receipt.erasure_id)
    assert f'data-receipt="{receipt.erasure_id}"' in page
    assert "1 erased" in words(page)
    assert "not yet" in page
    assert texts(http_server.local, people.run()) == []


def test_whoever_is_not_named_is_not_erased(officer: Browser, http_server: RunningServer, people: People) -> None:
    assert officer.post("erasures", typed="").status_code == 400
    assert officer.post("erasures", subject="no ceid", typed="no ceid").status_code == 400
    officer.get("erasures", 400, subject="no ceid")
    assert http_server.local.erasures(people.officer) == []


@pytest.mark.rule("ERA-5")
def test_an_officer_searches_for_a_name_and_takes_a_memory_away(
    officer: Browser, auditor: Browser, http_server: RunningServer, people: People
) -> None:
    memory_id = promoted(http_server.local, people, f"a garden with Anna Lindqvist {HOSTILE}", predicate="shares")
    receipt = http_server.local.erase(people.officer, subject="customer:anna_17")
    assert 'action="/console/erasures/search"' not in auditor.get("erasures")
    assert auditor.post("erasures/search", name="Anna Lindqvist").status_code == 403
    found = officer.post("erasures/search", name="anna lindqvist", erasure_id=receipt.erasure_id)
    assert (found.status_code, f'data-hit="{memory_id}"' in found.text) == (200, True)
    assert "<script>alert" not in found.text
    assert "The search is complete" in words(found.text)
    assert "Name search done" in words(officer.get("erasures"))
    assert officer.post("erasures/search", name="x").status_code == 400
    row = found.text.partition(f'data-hit="{memory_id}"')[2].partition("</tr>")[0]
    assert "<details" in row and "Erase permanently" in row.partition("<details")[2], "no text goes with one click"
    gone = officer.post("erasures/memory", memory_id=memory_id, name="anna lindqvist")
    assert (gone.status_code, memory_id in gone.text) == (200, True)
    assert 'value="anna lindqvist"' in gone.text, "the search can go on"
    assert http_server.local.get(people.auditor, memory_id).tombstoned_at is not None


@pytest.mark.rule("ERA-8")
def test_an_officer_sees_what_erasing_one_fact_takes_and_erases_it(
    officer: Browser, auditor: Browser, http_server: RunningServer, people: People
) -> None:
    memory_id = promoted(http_server.local, people, f"a violet giraffe {HOSTILE}", predicate="keeps")
    assert "erasures/fact" not in auditor.get("erasures")
    auditor.get("erasures/fact", 403, fact_id=memory_id)
    shown = officer.get("erasures/fact", fact_id=memory_id)
    assert ("violet giraffe" in shown, "<script>alert" in shown, "data-shared" in shown) == (True, False, False)
    assert "no such memory or proposal" in officer.get("erasures/fact", 400, fact_id="pm_none")
    officer.post("erasures/fact", fact_id=memory_id)
    (receipt,) = http_server.local.erasures(people.officer)
    assert (receipt.fact_id, receipt.memories) == (memory_id, 1)
    assert memory_id in officer.get("erasures", done=receipt.erasure_id)
    assert "was erased before" in officer.post("erasures/fact", fact_id=memory_id).text


@pytest.mark.rule("REC-14")
def test_a_memory_is_shown_with_when_it_holds(reviewer: Browser, http_server: RunningServer, people: People) -> None:
    end = datetime(2126, 6, 1, tzinfo=UTC)
    memory_id = promoted(http_server.local, people, "email", predicate="channel", valid_until=end)
    assert "until June 2126" in words(reviewer.get(f"memory/{memory_id}"))
    assert "until June 2126" in words(reviewer.get("memory"))
