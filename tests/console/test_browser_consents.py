"""Loading many consents and finding a person by name in a real browser, and verifying a long log with its progress."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from muniment.audit import verify
from muniment.console.pages import consent_load
from muniment.testing import People
from tests.console import axe
from tests.console.chromium import Scheme
from tests.console.conftest import OpenWindow
from tests.interfaces.http import RunningServer

HEAD = "consent_id,subject_ceid,purpose,predicates_allowed,data_classifications_allowed,basis,captured_at,evidence_refs"
HOSTILE = "<script>alert(1)</script>\u202e" + "W" * 120


def line(number: int, at: str = "2026-01-01T00:00:00Z", refs: str = "screen:v3") -> str:
    return f"cns_{number},customer:c{number},support,*,PII,opt_in,{at},{refs}"


@pytest.mark.rule("CON-8")
@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (1440, "dark"), (390, "light"), (390, "dark")])
def test_a_file_of_consents_is_loaded_and_what_failed_is_mended_in_place(
    open_window: OpenWindow,
    site: RunningServer,
    people: People,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    width: int,
    scheme: Scheme,
) -> None:
    monkeypatch.setattr(consent_load, "AT_ONCE", 2)
    window = open_window(people.officer, width=width, scheme=scheme)
    page = window.go("people")
    window.follow(page.get_by_role("link", name="Load many consents…"))
    assert axe.findings(page) == []
    window.check(widths=(width,), tabbing=width == 1440)
    page.set_viewport_size({"width": width, "height": 900})
    lines = [HEAD, *(line(n) for n in range(5)), line(5, at=HOSTILE), f"cns_6,{HOSTILE}"]
    file = tmp_path / "consents.csv"
    file.write_text("\ufeff" + "\r\n".join(lines), "utf-8")
    page.get_by_label("File").set_input_files(file)
    text = page.get_by_label("Consents, as CSV")
    expect(text).to_be_focused()
    page.get_by_role("button", name="Load").press("Enter")
    result = page.locator("[data-loaded]")
    expect(result).to_contain_text("5 consents recorded, 2 not loaded.")
    expect(page.locator("[data-failed-line]")).to_have_count(2)
    expect(page.locator("[data-failed-line]").first).to_contain_text("line 7")
    expect(page.locator("[data-failed-line]").first).to_contain_text("captured_at")
    expect(page.locator("[data-result]")).to_be_focused()
    assert axe.findings(page) == []
    window.check(widths=(width,), tabbing=False)
    left = text.input_value()
    assert left.splitlines()[0] == HEAD and len(left.splitlines()) == 3
    text.fill(left.replace(HOSTILE, "2026-01-02T00:00:00Z", 1))
    page.get_by_role("button", name="Load").press("Enter")
    expect(result).to_contain_text("1 consent recorded, 1 not loaded.")
    assert len(site.local.consent.list(people.officer)) == 6
    text.fill("nonsense")
    page.get_by_role("button", name="Load").press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("Nothing was loaded")
    expect(text).to_have_value("nonsense")


def test_a_file_that_is_not_text_is_refused_before_it_is_sent(
    open_window: OpenWindow, people: People, tmp_path: Path
) -> None:
    file = tmp_path / "consents.csv"
    file.write_bytes(b"consent_id,subject_ceid\n\xff\xfe")
    window = open_window(people.officer)
    page = window.go("consent/load")
    page.get_by_label("File").set_input_files(file)
    window.toast("The file is not UTF-8")
    expect(page.get_by_label("Consents, as CSV")).to_have_value("")


@pytest.mark.rule("ERA-5")
@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (390, "dark")])
def test_a_person_is_found_by_the_name_that_colleagues_gave(
    open_window: OpenWindow, site: RunningServer, people: People, width: int, scheme: Scheme
) -> None:
    site.local.subjects.name(people.officer, "customer:c1", "Änna <b>Lindqvist</b>")
    window = open_window(people.officer, width=width, scheme=scheme)
    page = window.go("people")
    page.get_by_label("Name", exact=True).fill("anna")
    page.get_by_label("Name", exact=True).press("Enter")
    expect(page.locator("[data-hit]")).to_contain_text("Änna <b>Lindqvist</b>")
    assert axe.findings(page) == []
    window.check(widths=(width,), tabbing=False)
    window.follow(page.get_by_role("link", name="Open the person"))
    expect(page.get_by_role("heading", level=1)).to_contain_text("Änna <b>Lindqvist</b>")
    assert axe.findings(page) == []


@pytest.mark.rule("AUD-4")
@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (390, "dark")])
def test_a_long_log_is_verified_with_its_rows_and_shows_how_far_it_is(
    open_window: OpenWindow,
    site: RunningServer,
    people: People,
    monkeypatch: pytest.MonkeyPatch,
    width: int,
    scheme: Scheme,
) -> None:
    monkeypatch.setattr(verify, "_BATCHES_AT_ONCE", 1)
    read_page = verify._page

    async def slowly(*where: Any) -> Any:
        """As on a long log, where each page takes a while."""
        await asyncio.sleep(0.1)
        return await read_page(*where)

    monkeypatch.setattr(verify, "_page", slowly)
    run = people.run()
    for number in range(20):
        texts = [f"It rains {number} {n} {HOSTILE[:20]}" for n in range(20)]
        items = [{"kind": "message", "text": text, "classification": "INTERNAL"} for text in texts]
        site.local.capture_many(run, items)
        site.local.seal(people.tenant_id)
    window = open_window(people.auditor, width=width, scheme=scheme)
    page = window.go("audit/chain")
    # Every line that the progress shows is kept, to be read afterwards.
    page.evaluate(
        """() => { const seen = window.seen = []; const bar = document.querySelector("[data-progress]");
        new MutationObserver(() => seen.push(bar.textContent.trim())).observe(bar, { subtree: true, childList: true, characterData: true }); }"""
    )
    page.get_by_role("button", name="Verify the chain").press("Enter")
    verified = page.locator("[data-verified=yes]")
    expect(verified).to_contain_text("The chain is intact.")
    expect(verified).to_contain_text("rows match the log from sequence 1 on")
    shown = [one for one in page.evaluate("window.seen") if " of " in one]
    assert len(set(shown)) >= 3, "the progress moves"
    assert axe.findings(page) == []
    window.check(widths=(width,), tabbing=False)
