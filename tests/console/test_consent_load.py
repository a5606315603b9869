"""Loading many consents in the console: errors by line, nothing lost, the pack's purposes, hostile lines."""

import json
from html import unescape
from typing import get_args

import pytest

from muniment.model.fields import WriteClass
from muniment.testing import People
from tests.console.browser import Browser, words
from tests.interfaces.http import RunningServer
from tests.pack_activation import acme, put_in_force

HEAD = "consent_id,subject_ceid,purpose,predicates_allowed,data_classifications_allowed,basis,captured_at,evidence_refs"
HOSTILE = "<script>alert(1)</script>\u202e=cmd"


def line(number: int, purpose: str = "support", at: str = "2026-01-01T00:00:00Z", refs: str = "screen:v3") -> str:
    return f"cns_{number},customer:c{number},{purpose},*,PII,opt_in,{at},{refs}"


def field(shown: str) -> str:
    """What is left in the field to load."""
    return unescape(shown.partition('<textarea id="text"')[2].partition(">")[2].partition("</textarea>")[0]).strip()


@pytest.mark.rule("CON-8")
def test_correct_lines_are_loaded_and_the_others_stay_in_the_field_with_why(
    officer: Browser, http_server: RunningServer, people: People
) -> None:
    wrong = [line(2, at="yesterday"), f'"cns_3","customer:{HOSTILE}",support,*,PII,opt_in,2026-01-01T00:00:00Z,"a\nb"']
    text = "\r\n".join([HEAD, line(1), *wrong, "cns_4,customer:c4", line(5), ""])
    shown = officer.post("consent/load", text=text).text
    assert [one.consent_id for one in http_server.local.consent.list(people.officer)] == ["cns_1", "cns_5"]
    said = words(shown)
    assert "2 consents recorded , 3 not loaded" in said
    assert "line 3 cns_2, customer:c2 captured_at" in said and "line 4" in said
    assert "line 6" in said and "has not as many cells as the header" in said
    assert "<script>alert" not in shown
    left = field(shown)
    assert left.splitlines()[0] == HEAD and "cns_1," not in left and "cns_5" not in left
    mended = left.replace("yesterday", "2026-01-02T00:00:00Z")
    again = officer.post("consent/load", text=mended).text
    assert "1 consent recorded , 2 not loaded" in words(again)
    assert len(http_server.local.consent.list(people.officer)) == 3


@pytest.mark.rule("CON-8")
def test_a_file_loaded_twice_is_recorded_once_and_json_lines_are_read_too(
    officer: Browser, http_server: RunningServer, people: People
) -> None:
    document = {"consent_id": "cns_7", "subject_ceid": "customer:c7", "purpose": "support", "basis": "opt_in"}
    document |= {"scope": {"predicates_allowed": ["*"], "data_classifications_allowed": ["PII"]}}
    document |= {"captured_at": "2026-01-01T00:00:00Z"}
    text = "\ufeff" + json.dumps(document) + "\n{broken\n" + json.dumps(document | {"tenant_id": "tenant_of_others"})
    first, second = (officer.post("consent/load", text=text).text for _ in range(2))
    assert "1 consent recorded , 2 not loaded" in words(first)
    assert "0 consents recorded , 1 was in the ledger before, 2 not loaded" in words(second).replace(" ,", " ,")
    assert "another tenant" in words(first) and "line 2 is not JSON" in " ".join(words(first).split())
    assert field(first).splitlines() == text.splitlines()[1:]
    assert len(http_server.local.consent.list(people.officer)) == 1


def test_semicolons_separate_cells_where_a_spreadsheet_writes_them(
    officer: Browser, http_server: RunningServer, people: People
) -> None:
    text = "\n".join(one.replace(",", ";") for one in (HEAD, line(1)))
    assert "1 consent recorded" in words(officer.post("consent/load", text=text).text)
    (made,) = http_server.local.consent.list(people.officer)
    assert made.evidence_refs == ("screen:v3",)


@pytest.mark.rule("CON-2")
def test_a_purpose_that_the_pack_does_not_name_is_an_error_unless_it_is_wanted(
    officer: Browser, http_server: RunningServer, people: People
) -> None:
    classes = "".join(f"    {name}: {{consent_purposes: [care]}}\n" for name in get_args(WriteClass))
    put_in_force(http_server.local, people.tenant_id, acme("1.0.0", f"memory_layer:\n  classes:\n{classes}"))
    assert "One of the pack: care" in words(officer.get("consent/load"))
    text = f"{HEAD}\n{line(1, 'care')}\n{line(2, 'marketing')}"
    refused = officer.post("consent/load", text=text).text
    assert "1 consent recorded , 1 not loaded" in words(refused)
    assert "line 3 cns_2, customer:c2 purpose no class of the pack in force names it" in words(refused)
    wanted = officer.post("consent/load", text=field(refused), any_purpose="yes").text
    assert "1 consent recorded ." in words(wanted).replace("recorded.", "recorded .")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("\n", "expected a header"),
        (HEAD, "has no consents"),
        ("consent_id,subject_ceid,approved\ncns_1,a,b", "has a column 'approved', which consents do not have"),
        ('consent_id,subject_ceid\n"cns_1,a', "is not CSV"),
    ],
)
def test_what_cannot_be_read_at_all_is_kept_in_the_field(
    officer: Browser, http_server: RunningServer, people: People, text: str, why: str
) -> None:
    refused = officer.post("consent/load", text=text)
    assert refused.status_code == 400 and why in words(refused.text)
    assert "Nothing was loaded" in words(refused.text) and field(refused.text) == text.strip()
    assert http_server.local.consent.list(people.officer) == []


def test_only_a_privacy_officer_loads_consents(reviewer: Browser, auditor: Browser) -> None:
    reviewer.get("consent/load", 403)
    auditor.get("consent/load", 403)
