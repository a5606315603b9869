"""What a page lists is taken away as a file: all of it, by the same filters, under the same rights."""

import csv
import io
import json
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest

from muniment.console import export
from muniment.errors import RoleMissing
from muniment.testing import People
from tests.console.browser import Browser, words
from tests.console.test_captures import refused
from tests.interfaces.http import RunningServer
from tests.stories import promoted

Listed = Callable[[RunningServer, People], Sequence[Any]]
# Each page with a list: what it lists, with the id of an entry.
LISTS: dict[str, tuple[str, Listed]] = {
    "captures": ("capture_id", lambda server, people: server.local.captures.list(people.auditor)),
    "captures/refusals": ("refusal_id", lambda server, people: server.local.refusals.list(people.auditor)),
    "why/recalls": ("recall_id", lambda server, people: server.local.recalls.list(people.auditor)),
    "erasures": ("erasure_id", lambda server, people: server.local.erasures(people.auditor)),
}


def lines(browser: Browser, path: str, **query: str) -> list[dict[str, Any]]:
    return [json.loads(one) for one in browser.get(f"{path}/export", format="jsonl", **query).splitlines()]


def table(browser: Browser, path: str, **query: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(browser.get(f"{path}/export", format="csv", **query))))


def fill(http_server: RunningServer, people: People) -> None:
    """Five of each: captures that were refused, recalls, erasures."""
    for n in range(5):
        refused(http_server, people, subject=f"customer:c{n}")
        http_server.local.recall(people.run(run_id=f"=r{n}"))
        http_server.local.erase(people.officer, subject=f"customer:e{n}")
        http_server.clock.advance(minutes=1)


@pytest.mark.rule("AUD-1")
@pytest.mark.parametrize("path", LISTS)
def test_a_list_is_exported_whole_in_its_order_whatever_is_read_at_once(
    auditor: Browser, http_server: RunningServer, people: People, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(http_server, people)
    monkeypatch.setattr(export, "AT_ONCE", 2)
    name, listed = LISTS[path]
    expected = [one.model_dump(mode="json") for one in listed(http_server, people)]
    assert len(expected) == 5
    assert lines(auditor, path) == expected
    cells = table(auditor, path)
    assert len(cells) == 5
    if name in cells[0]:
        assert [one[name] for one in cells] == [one[name] for one in expected]
    page = auditor.get(path)
    assert f"/console/{path}/export?format=csv" in page and f"/console/{path}/export?format=jsonl" in page


@pytest.mark.parametrize("path", ["captures", "captures/refusals", "why/recalls", "audit/security"])
def test_a_list_and_its_file_are_narrowed_to_a_range_of_time(
    auditor: Browser, http_server: RunningServer, people: People, path: str
) -> None:
    times = []
    for n in range(3):
        times.append(http_server.clock.now)
        refused(http_server, people)
        http_server.local.recall(people.run(run_id=f"r{n}"))
        with pytest.raises(RoleMissing):
            http_server.local.queue.list(people.officer)
        http_server.clock.advance(milliseconds=1)
    between = {"since": times[1].isoformat(), "until": times[2].isoformat()}
    for narrowed, count in (({}, 3), (between, 1), ({"since": between["since"]}, 2), ({"until": between["since"]}, 1)):
        assert auditor.get(path, **narrowed).count("data-row") == count, narrowed
        if path == "audit/security":
            assert len(lines(auditor, "audit", type="memory.security", **narrowed)) == count
        else:
            assert len(lines(auditor, path, **narrowed)) == count
    late = {"since": (times[2] + timedelta(days=1)).isoformat()}
    assert "No matches" in auditor.get(path, **late)
    auditor.get(path, 400, since="yesterday")
    if path != "audit/security":
        assert "No matches" in auditor.get(path, until="0001-01-01T00:00:00Z")
        auditor.get(f"{path}/export", 422, since="yesterday")
        auditor.get(f"{path}/export", 422, until="9999-12-31T23:59:59.999999-14:00")


def test_no_cell_of_a_list_is_a_formula_and_no_content_leaves_with_it(
    auditor: Browser, http_server: RunningServer, people: People
) -> None:
    fill(http_server, people)
    assert {one["run_id"] for one in table(auditor, "why/recalls")} == {f"'=r{n}" for n in range(5)}
    http_server.local.recall(people.run(run_id="\uff1dcmd|' /C calc'!A0"))
    assert "'\uff1dcmd|' /C calc'!A0" in {one["run_id"] for one in table(auditor, "why/recalls")}
    assert "bees" not in auditor.get("captures/export") + auditor.get("captures/export", format="jsonl")


def test_no_text_of_an_entry_adds_an_entry_to_its_file(
    auditor: Browser, http_server: RunningServer, people: People
) -> None:
    promoted(http_server.local, people)
    pack = http_server.local.packs.register(people.admin, 'pack_meta: {id: acme, version: "1.0.0"}')
    reason = 'agreed\u2028{"seq": 1, "type": "memory.erased"}\u2029'
    http_server.local.packs.activate(people.admin, pack.ref, reason=reason)
    (event,) = lines(auditor, "audit", type="memory.pack_activated")[-1:]
    assert reason in json.dumps(event, ensure_ascii=False).replace('\\"', '"')


def test_who_may_not_see_a_list_gets_no_file_of_it(
    officer: Browser, reviewer: Browser, http_server: RunningServer, people: People
) -> None:
    promoted(http_server.local, people)
    for path in ("captures", "captures/refusals", "audit"):
        officer.get(f"{path}/export", 403)
    reviewer.get("audit/export", 403)
    unreviewed = {"text": "Hello there", "kind": "message", "classification": "PUBLIC"}
    hidden = http_server.local.capture(people.run(), **unreviewed).capture_id
    assert hidden not in reviewer.get("captures/export"), "a reviewer sees what led to a proposal or a refusal"


@pytest.mark.rule("AUD-3")
def test_security_events_are_narrowed_by_who_tried(
    auditor: Browser, http_server: RunningServer, people: People
) -> None:
    for who in (people.officer, people.admin):
        with pytest.raises(RoleMissing):
            http_server.local.queue.list(who)
    page = auditor.get("audit/security", actor="petra")
    assert page.count("data-row") == 1 and "petra" in words(page)
    assert "export?type=memory.security&amp;actor=petra" in page
