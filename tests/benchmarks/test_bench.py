"""Every part of the bench runs; what it measures, and the report and the picture it makes of it."""

import asyncio
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from bench import beside, locomo, picture, readers
from bench.__main__ import PARTS, report
from bench.console_pages import NOT_MEASURED, OWN_PAGES, PAGES
from bench.furnish import WORDS, furnish
from bench.locomo import Conversation, Question, Turn
from bench.measure import at_least, at_most
from bench.meter import Cost, Meter, in_runs, median
from bench.pgbouncer import PGBOUNCER
from bench.writer import PACK
from fastapi.routing import APIRoute

from muniment import AsyncFabric
from muniment.console import app, oidc, sign_in
from muniment.console.pages import PAGES as MODULES
from muniment.pack import load_pack
from muniment.testing import People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.cluster.server import NODES
from tests.language.tiny_readers import tiny_readers

# These need data and other programs, or take long: they are run by hand with --quick.
BY_HAND = {"beside", "first_start", "cli_start", "console", "readers", "replaying"}
# And these a program or a cluster that may not be there.
NOT_THERE = ({"pooler"} if PGBOUNCER is None else set[str]()) | ({"cluster"} if not NODES else set[str]())


@pytest.mark.parametrize("name", sorted(PARTS.keys() - BY_HAND - NOT_THERE))
def test_a_part_runs_and_states_the_scope_of_each_figure(server: TestServer, name: str) -> None:
    found = asyncio.run(PARTS[name](server, True))
    assert found
    assert all(one.scope for one in found)


def test_every_page_of_the_console_is_measured() -> None:
    routers = (app.router, sign_in.router, oidc.router, *(module.router for module in MODULES))
    routes = [one for router in routers for one in router.routes if isinstance(one, APIRoute)]
    pages = {one.path.removeprefix("/console") for one in routes if "GET" in (one.methods or ())}
    measured = {"/" + path.partition("?")[0] for path in (*PAGES.values(), *OWN_PAGES.values())}
    assert {re.sub(r"{.*?}", "{}", one) for one in pages - NOT_MEASURED.keys()} == {
        re.sub(r"{.*?}", "{}", one) for one in measured
    }


def test_an_index_over_furnished_memories_is_brought_up_to_date_and_not_read_again(server: TestServer) -> None:
    database, people, pack = server.clone(), People("tenant_0"), load_pack(PACK)
    run = people.run(None, intent_id="support.orders.change")

    async def recall_beside_promotions() -> tuple[int, int]:
        await furnish(server, database, tenants=1, per_tenant=50, users=0, vectors=True, terms=True, pack=pack)
        async with AsyncFabric.open(server.url(database), master_keys=MASTER_KEYS, pack=pack) as fabric:
            await fabric.recall(run, WORDS[0])
            for word in WORDS[:3]:
                item = {"kind": "statement", "text": f"{word} and more", "classification": "INTERNAL", "user_id": None}
                await fabric.capture_many(people.service, [item])
                done = await fabric.consolidate("tenant_0")
                if done.proposals and not done.promoted:
                    await fabric.queue.approve_many(people.reviewer, done.proposals)
                ids = [record.id for record in (await fabric.recall(run, word)).all_records]
                assert len(ids) == len(set(ids))
            counts = fabric._context.scopes.counts
            assert counts.refreshed == 3
            return counts.built, counts.mismatched

    assert asyncio.run(recall_beside_promotions()) == (1, 0)


def test_beside_peers_our_recalls_return_what_was_asked_for_alone(server: TestServer) -> None:
    # `_recall` asserts it, with each recall.
    turns = [
        Turn(f"D1:{n}", f"Ann: {WORDS[n]} {WORDS[2 * n]} {WORDS[-n]}", datetime(2023, 5, 8, tzinfo=UTC))
        for n in range(1, 21)
    ]
    questions = [Question(f"What about the {WORDS[n]}?", (f"D1:{n}",), 1) for n in range(1, 8)]
    talk = Conversation("talk", tuple(turns), tuple(questions))
    ours = asyncio.run(beside._ours(server, [talk], quiet=0.5))
    assert ours.row.recall_at_10 == 1.0
    assert ours.row.scope == "20"
    store = picture.Row("LangGraph PostgresStore", add=Cost(1, 1), batch=Cost(1, 1), search=Cost(1, 1))
    assert len(beside.figures(ours, [ours.row, store], [talk])) == 9
    assert len(beside.figures(ours, [ours.row], [talk])) == 3


def test_the_readers_are_measured_from_the_judge_to_the_promotion(
    server: TestServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locomo, "load", lambda: None)
    tiny = tiny_readers(tmp_path, contradicts={"[CLS]": -5.0}, attack={"[CLS]": -5.0})
    found = asyncio.run(readers.measure(server, tiny, Cost(2.0, 2.0), quick=True))
    assert [one.bar for one in found] == ["<= 60", "<= 12", "<= 250", ">= 0.2"]
    assert all(one.value > 0 and one.scope for one in found)
    assert "100% of the turns were promoted" in found[1].detail
    assert len(asyncio.run(readers.measure(server, tiny, None, quick=True))) == 3


def test_without_weights_the_readers_are_left_out_with_a_line(
    server: TestServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(readers, "find_readers", lambda: None)
    assert asyncio.run(readers.run(server, True)) == []
    assert "no weights of trained readers are installed: left out" in capsys.readouterr().err


def test_cpu_of_another_process_and_its_children_is_counted() -> None:
    busy = "import time; t = time.process_time()\nwhile time.process_time() - t < 0.3: pass"
    parent = f"import subprocess, sys; sys.stdin.readline(); subprocess.run([sys.executable, '-c', {busy!r}]); print(flush=True); sys.stdin.readline()"
    with subprocess.Popen(
        [sys.executable, "-c", parent], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        with Meter(process.pid).block() as counted, Meter().block() as own:
            process.stdin.write("\n")
            process.stdin.flush()
            process.stdout.readline()
        process.stdin.close()
    assert counted.cpu - own.cpu > 0.25


def test_runs_have_nothing_in_common() -> None:
    things = list(range(13))
    runs = [things[some] for some in in_runs(len(things))]
    assert len(runs) == 5
    assert [one for run in runs for one in run] == things
    assert in_runs(2) == [slice(0, 1), slice(1, 2)]


def test_the_median_is_of_cpu_and_of_wall_time_each() -> None:
    assert median([Cost(1, 9), Cost(2, 7), Cost(3, 8)]) == Cost(2, 8)


def test_the_report_tells_bars_scopes_and_failures() -> None:
    figures = [at_most("one", 2.0, "times", 1.5, "1,000", "why"), at_least("two", 2.0, "times", 1.5, "20", "how")]
    told = report(figures, {"gate": "ValueError: no"}, quick=False)
    assert "| one | 2.00 times (missed) | <= 1.5 | 1,000 | why |" in told
    assert "| two | 2.00 times | >= 1.5 | 20 | how |" in told
    assert "Not measured: gate (ValueError: no)" in told


def test_the_picture_says_what_was_stored_how() -> None:
    rows = [
        picture.Row("Muniment", "1", "20", Cost(1, 2), None, Cost(3, 4), 5, 0.7),
        picture.Row("Other", error="not there"),
    ]
    drawn = picture.draw(rows, [picture.Growth(1000, 1, 190, Cost(1, 2))])
    assert all(line in drawn for line in picture.STORED)
    assert "not measured: not there" in drawn
    assert "1,000 memories, 190 in scope" in drawn
