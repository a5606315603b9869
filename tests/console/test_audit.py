"""Audit in the console: the log, what was denied, the chain, archives, and a memory's trail."""

import csv
import io
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from fastapi import Request, Response

from muniment.console.csv_lines import csv_line
from muniment.console.event_details import event_details, event_ids
from muniment.console.progress import LINES, Progress, Work, respond
from muniment.console.rendering import page, parsed_time, time
from muniment.errors import RoleMissing, StorageUnavailable
from muniment.model.chain import Verification
from muniment.pack import builtin_pack, load_pack
from muniment.testing import People, TestServer
from tests.console.browser import Browser, words
from tests.faults.forging import begin_unchecked
from tests.interfaces.http import RunningServer
from tests.recall.batches import promoted_together
from tests.stories import promoted, run_job

HOSTILE = "<script>alert(1)</script>\u202e" + "W" * 300


@pytest.fixture
def tamper(server: TestServer, database: str, tenant: str) -> Callable[[str], None]:
    """As somebody who can write anything in the database, and has no key."""

    def run(statement: str) -> None:
        with server.connect(database) as owner:
            begin_unchecked(owner)
            assert owner.execute(statement.replace(":tenant", f"'{tenant}'")).rowcount

    return run


def kinds(page: str) -> list[str]:
    """What the events of a page are, in their order."""
    cells = [part.partition("</td>")[0] for part in page.split('data-th="Event"')[1:]]
    return [words(one.partition(">")[2]) for one in cells]


@pytest.mark.rule("AUD-1")
def test_the_log_is_read_latest_first_by_type_actor_and_id(
    auditor: Browser, http_server: RunningServer, people: People
) -> None:
    memory_id = promoted(http_server.local, people)
    http_server.local.retract(people.second_reviewer, memory_id, reason="wrong")
    everything = kinds(auditor.get("audit"))
    assert everything[0] == "retracted"
    assert everything.index("promoted") < everything.index("proposed") < everything.index("captured")
    assert kinds(auditor.get("audit", type="memory.promoted")) == ["promoted"]
    assert kinds(auditor.get("audit", actor="clara")) == ["retracted"]
    assert kinds(auditor.get("audit", actor="clara", type="memory.promoted")) == []
    assert kinds(auditor.get("audit", about=memory_id)) == ["retracted", "promoted"]
    assert "No matches" in auditor.get("audit", about="pm_nothing")
    auditor.get("audit", 422, type="memory.nonsense")
    auditor.get("audit", 400, about="x" * 2000)


@pytest.mark.rule("AUD-1")
def test_the_log_is_narrowed_to_a_range_of_time_and_exported(
    auditor: Browser, http_server: RunningServer, people: People
) -> None:
    clock = http_server.clock
    first = promoted(http_server.local, people)
    clock.advance(hours=2)
    moment = clock.now
    http_server.local.retract(people.second_reviewer, first, reason="wrong")
    assert kinds(auditor.get("audit", since=moment.isoformat())) == ["retracted"]
    before = kinds(auditor.get("audit", until=moment.isoformat()))
    assert "retracted" not in before and before[0] == "promoted"
    assert "No matches" in auditor.get("audit", since=(moment + timedelta(days=1)).isoformat())
    auditor.get("audit", 400, since="yesterday")
    whole = auditor.get("audit/export", format="jsonl")
    assert auditor.get("audit/export", format="jsonl", since="0001-01-01", until="9999-12-31") == whole
    lines = auditor.get("audit/export", format="jsonl", since=moment.isoformat()).splitlines()
    assert [json.loads(one)["type"] for one in lines] == ["memory.retracted"]
    table = list(csv.reader(io.StringIO(auditor.get("audit/export", format="csv"))))
    assert table[0] == ["seq", "at", "type", "actor", "event_id", "data"]
    assert "memory.captured" in {line[2] for line in table} and table[-1][2] == "memory.retracted"
    assert len(table) - 1 == len(http_server.local.events(people.auditor, limit=1000))


def test_no_cell_of_an_export_is_a_formula() -> None:
    assert csv_line("=1+1", "@x", "-2", "plain") == "'=1+1,'@x,'-2,plain\r\n"
    # Where a spreadsheet divides lines elsewhere, too.
    assert csv_line("a;=1+1", "b; @x|+1", "\t-2", "c;d - e", " =1") == "a;'=1+1,b; '@x|'+1,'\t'-2,c;d - e, '=1\r\n"
    assert csv_line("a\n\nb\n=1") == '"a\n\nb\n\'=1"\r\n'


@pytest.mark.rule("AUD-1")
def test_of_an_event_with_many_items_the_first_are_shown(
    auditor: Browser, http_server: RunningServer, people: People
) -> None:
    first, *_, last = promoted_together(http_server.local, people)
    page = auditor.get("audit", type="memory.promoted")
    assert kinds(page) == ["promoted"]
    assert first in page and last not in page and "and 3 more" in words(page)
    assert last in auditor.get("audit", about=last)


def test_the_ids_of_an_event_are_named_once_and_of_many_the_first() -> None:
    some = [{"memory_id": f"pm_{n}", "proposal_id": "mwp_1", "reason": "<b>"} for n in range(7)]
    assert words(str(event_ids(some))) == "pm_0 , mwp_1 , pm_1 , pm_2 , pm_3 and those of 2 more"
    assert words(str(event_ids([{"subject": "<b>x", "memory_ids": ["pm_1", "pm_1"]}]))) == "<b>x , pm_1"
    assert event_ids([{"count": 3}]) == ""


def test_a_time_in_an_event_is_shown_like_any_other_and_other_texts_stay_as_they_are() -> None:
    assert parsed_time("2026-01-08T10:00:00+01:00") == time(datetime(2026, 1, 8, 9, tzinfo=UTC))
    assert [parsed_time(one) for one in ("<b>soon</b>", "2026-01-08T10:00:00")] == [
        "<b>soon</b>",
        "2026-01-08T10:00:00",
    ]


def test_a_long_log_comes_page_by_page_and_nothing_twice(
    auditor: Browser, http_server: RunningServer, people: People
) -> None:
    for number in range(60):
        http_server.local.capture(people.service, kind="statement", text=f"fact {number}", classification="INTERNAL")
    first = auditor.get("audit", type="memory.captured")
    assert len(kinds(first)) == 50
    more = first.partition("before=")[2].partition('"')[0]
    second = auditor.get("audit", type="memory.captured", before=more)
    assert len(kinds(second)) == 10
    assert 'rel="next"' not in second
    older = auditor.get("audit", actor="importer")
    assert len(kinds(older)) == 50
    assert len(kinds(auditor.get("audit", actor="importer", before=more))) == 10
    numbers = [part.partition('"')[0] for page in (first, second) for part in page.split('data-event="')[1:]]
    assert len(set(numbers)) == 60


@pytest.mark.rule("AUD-1")
def test_provenance_begins_with_the_memories_that_were_promoted_last(
    auditor: Browser, http_server: RunningServer, people: People
) -> None:
    assert "No memories yet" in auditor.get("audit/trail")
    first, second = (promoted(http_server.local, people, "x", predicate=name) for name in ("eats", "drinks"))
    http_server.local.retract(people.reviewer, first, reason="wrong")
    page = auditor.get("audit/trail")
    assert re.findall(r'data-memory="([^"]+)"', page) == [second, first]
    assert f"/console/audit/trail?memory_id={first}" in page and "retracted" in words(page)


@pytest.mark.rule("AUD-3")
def test_denied_attempts_are_listed_separately(auditor: Browser, http_server: RunningServer, people: People) -> None:
    assert "No security events" in auditor.get("audit/security")
    promoted(http_server.local, people)
    with pytest.raises(RoleMissing):
        http_server.local.queue.list(people.officer)
    page = auditor.get("audit/security")
    assert kinds(page) == ["security"]
    assert {"petra", "role_missing", "read_queue"} <= set(words(page).split())


@pytest.mark.rule("AUD-2")
def test_the_chain_is_verified_and_every_break_is_reported_at_its_place(
    auditor: Browser, http_server: RunningServer, people: People, tamper: Callable[[str], None]
) -> None:
    assert "Nothing is sealed yet" in auditor.get("audit/chain")
    auditor.get("audit/head.json", 404)
    promoted(http_server.local, people)
    http_server.local.seal(people.tenant_id)
    head = auditor.get("audit/head.json")
    assert json.loads(head) == http_server.local.chain_head(people.auditor).model_dump(mode="json")
    holds = auditor.post("audit/chain", head=head)
    assert (holds.status_code, "The chain is intact" in holds.text) == (200, True)

    tamper("UPDATE events SET body = 'other' WHERE tenant_id = :tenant AND seq = 2 AND n = 0")
    broken = auditor.post("audit/chain").text
    assert "The chain is broken in 1 place." in words(broken)
    assert 'data-break="changed"' in broken
    assert 'href="/console/audit?before=3"' in broken


@pytest.mark.rule("SCL-2")
def test_what_is_below_the_promise_is_shown_beside_an_intact_chain() -> None:
    below = ("worker1:5432: the planner may keep samples of 2 columns with content", "worker2:5432: 1 shard")
    found = Verification(ok=True, events=3, batches=1, unsealed=0, below_promise=below)
    shown = words(bytes(page("audit_chain.html", None, head=None, found=found, text="").body).decode())
    assert "The chain is intact." in shown
    assert f"less than is promised, and nothing is served until it is repaired. {'; '.join(below)}" in shown
    without = page("audit_chain.html", None, head=None, found=found.model_copy(update={"below_promise": ()}), text="")
    assert b"data-below-promise" not in bytes(without.body)


@pytest.mark.rule("AUD-4")
def test_a_row_that_is_not_what_the_log_says_is_named(
    auditor: Browser, http_server: RunningServer, people: People, tamper: Callable[[str], None]
) -> None:
    memory = promoted(http_server.local, people)
    http_server.local.seal(people.tenant_id)
    assert "rows match the log from sequence 1 on" in words(auditor.post("audit/chain").text)
    tamper("UPDATE memories SET approver = 'eve' WHERE tenant_id = :tenant")
    broken = auditor.post("audit/chain").text
    assert 'data-break="row_changed"' in broken
    assert f"memories {memory} it is not what was written" in " ".join(words(broken).split())


def test_an_invalid_head_is_reported_beside_the_form(auditor: Browser) -> None:
    for wrong in ("not json", "[1]", '{"batch": 1}'):
        answer = auditor.post("audit/chain", head=wrong)
        assert (answer.status_code, 'role="alert"' in answer.text) == (400, True)
        assert words(f"<p>{wrong}</p>") in words(answer.text)


def test_a_script_gets_the_progress_and_then_the_page(
    auditor: Browser, http_server: RunningServer, people: People
) -> None:
    promoted(http_server.local, people)
    http_server.local.seal(people.tenant_id)
    answer = auditor.post("audit/chain", accept="application/x-ndjson")
    assert answer.headers["content-type"] == "application/x-ndjson"
    lines = [json.loads(line) for line in answer.text.splitlines()]
    events = len(http_server.local.events(people.auditor))
    assert lines[0] == {"done": lines[0]["done"], "total": lines[0]["total"]}
    assert lines[-2]["done"] == lines[-2]["total"] <= events
    assert "The chain is intact" in lines[-1]["page"]
    assert auditor.post("audit/chain", accept="application/x-ndjson", form_token="no").status_code == 403


async def _asked(work: Work, *, gone: bool = False) -> list[dict[str, Any]]:
    """The lines that a script is sent; `gone` is one that does not wait for them."""
    sent: list[bytes] = []

    async def receive() -> dict[str, Any]:
        if not gone:
            await anyio.sleep_forever()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message.get("body", b""))

    scope: dict[str, Any] = {"type": "http", "headers": [(b"accept", LINES.encode())]}
    await (await respond(Request(scope), work))(scope, receive, send)
    return [json.loads(line) for line in b"".join(sent).splitlines()]


def test_long_work_that_fails_says_why_and_ends_when_nobody_waits_for_it() -> None:
    async def fails(on_progress: Progress) -> Response:
        on_progress(1, 2)
        raise StorageUnavailable("no database")

    async def goes_on(on_progress: Progress) -> Response:
        await anyio.sleep_forever()
        return Response()

    assert anyio.run(_asked, fails) == [{"done": 1, "total": 2}, {"problem": "no database"}]
    assert anyio.run(partial(_asked, goes_on, gone=True)) == []


@pytest.mark.rule("JOB-4")
def test_archives_are_listed_and_looked_at(server: TestServer, database: str, people: People, tmp_path: Path) -> None:
    document = builtin_pack().document()
    document["pack_meta"] |= {"id": "acme.archives"}
    document["memory_layer"]["retention"] |= {"captures": {"statement": "30d"}, "archives": "365d"}
    with RunningServer(server, database, pack=load_pack(json.dumps(document)), archives=tmp_path) as http_server:
        early = Browser(http_server, people.auditor)
        assert "No archives" in early.get("audit/archives")
        promoted(http_server.local, people)
        http_server.clock.advance(days=31)
        run_job(http_server.local, "compact", people.tenant_id)
        (archive,) = http_server.local.archives(people.auditor)
        auditor = Browser(http_server, people.auditor)
        listed = auditor.get("audit/archives")
        assert f'data-archive="{archive.archive_id}"' in listed
        assert archive.digest in listed
        checked = auditor.post("audit/archives").text
        assert 'data-verified="yes"' in checked
        assert "1 archive with 1 capture." in words(checked)
        (file,) = tmp_path.rglob("*.zst*")
        file.write_bytes(b"nothing")
        broken = auditor.post("audit/archives").text
        assert 'data-verified="no"' in broken
        assert archive.archive_id in broken.partition('data-verified="no"')[2].partition("</table>")[0]
        early.close()
        auditor.close()


def test_hundreds_of_events_of_one_transaction_are_counted_and_shown_on_request(
    auditor: Browser, http_server: RunningServer, people: People
) -> None:
    local = http_server.local
    opened = local._fabric._opened
    assert opened is not None

    async def many() -> None:
        async with opened.context.transaction(people.tenant_id, "writer") as tx:
            for n in range(120):
                tx.emit("memory.sla_breached", f"actor_{n}", proposal_id=f"mwp_{n}")

    promoted(local, people)
    local._portal.call(many)
    page = auditor.get("audit", type="memory.sla_breached")
    assert page.count("data-event=") == 75
    assert 'data-left="45"' in page
    assert auditor.get("audit", type="memory.sla_breached", whole="yes").count("data-event=") == 120


@pytest.mark.rule("AUD-1")
def test_a_memorys_trail_goes_back_to_its_capture_and_hostile_words_stay_words(
    auditor: Browser, http_server: RunningServer, people: People, others: People
) -> None:
    memory_id = promoted(http_server.local, people, HOSTILE)
    recall = http_server.local.recall(people.run())
    page = auditor.get("audit/trail", memory_id=memory_id)
    assert "<script>alert" not in page
    assert HOSTILE in words(page)
    trail = http_server.local.trail(people.auditor, memory_id)
    assert trail.capture is not None
    ids = (trail.capture.capture_id, trail.memory.proposal_id, trail.memory.verdict_id, recall.recall_id)
    assert all(one in page for one in ids)
    theirs = promoted(http_server.local, others)
    nothing = auditor.get("audit/trail", 404, memory_id="pm_nothing")
    assert auditor.get("audit/trail", 404, memory_id=theirs).replace(theirs, "pm_nothing") == nothing


def test_only_an_auditor_is_let_in(http_server: RunningServer, people: People) -> None:
    reviewer = Browser(http_server, people.reviewer)
    for path in ("audit", "audit/security", "audit/chain", "audit/head.json", "audit/archives", "audit/trail"):
        reviewer.get(path, 403)
    assert reviewer.post("audit/chain").status_code == 403
    assert reviewer.post("audit/archives").status_code == 403
    reviewer.close()


def test_what_an_event_says_is_so_or_not_is_said_in_words() -> None:
    shown = words(str(event_details({"archived": False, "document": True, "count": 1, "nested": {"finished": True}})))
    assert shown == "archived no document yes count 1 nested finished yes"
