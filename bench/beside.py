"""Beside peers: the same LoCoMo turns and questions through ours and through others, in one run on one machine."""

import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

import anyio

from bench import locomo
from bench.furnish import WORDS
from bench.measure import Figure, at_least, at_most, disk_bytes, log_bytes, postmaster
from bench.meter import Cost, Meter, in_runs, median, peak_memory_bytes
from bench.peers import PEERS
from bench.peers import run as run_peer
from bench.peers.database import fresh_database
from bench.picture import OURS, Row
from bench.writer import A_SECOND, PACK, writing
from muniment import AsyncFabric, Principal, RunContext, __version__
from muniment.testing import People, TestServer
from muniment.testing.database import MASTER_KEYS
from muniment.worker.registry import JOBS

USER, BESIDE = "user", "one-by-one"
ASKED, WARM_UP, QUIET_SECONDS, MOST_PROMOTED = 10, 20, 10.0, 0.97
MASTER_KEY = "YSBtYXN0ZXIga2V5IGZvciB0ZXN0cywgMzIgYnl0ZXM="  # MASTER_KEYS, as the worker's process reads it
RECALL_BAR, WRITTEN_BAR, CAPTURE_BAR, BATCH_BAR, OWN_BATCH_BAR, ONE_BAR = 0.65, 0.8, 0.6, 3.0, 0.8, 1.2
LOG_BAR, DISK_BAR, EVIDENCE_BAR = 10.0, 8.0, 0.69

Said = tuple[str, locomo.Turn]
Asked = tuple[str, locomo.Question]


@dataclass(frozen=True)
class Ours:
    """Our line of the table, and what only we are measured by."""

    row: Row
    promoted: int
    acknowledged: Cost
    written: Cost
    written_detail: str
    one_log_kb: float


async def run(server: TestServer, quick: bool) -> list[Figure | Row]:
    """Ours and each peer; nothing where the data is not there."""
    conversations = locomo.load()
    if conversations is None:
        print(f"no LoCoMo at {locomo.place()}: left out", file=sys.stderr)
        return []
    if quick:
        conversations = [replace(one, turns=one.turns[:40], questions=one.questions[:15]) for one in conversations[:2]]
    ours = await _ours(server, conversations, 1.0 if quick else QUIET_SECONDS)
    rows = [ours.row]
    for name in PEERS:
        with fresh_database(server) as address:
            job = locomo.as_job(conversations, postgres=address, postmaster=postmaster(server))
            rows.append(replace(run_peer(name, job), scope=ours.row.scope))
            print(rows[-1], file=sys.stderr)
    return [*rows, *figures(ours, rows, conversations)]


async def _ours(server: TestServer, conversations: list[locomo.Conversation], quiet: float) -> Ours:
    """Every turn through capture, gates, review by policy and promotion; then every question."""
    database, meter = server.clone(), Meter(postmaster(server))
    said = [(talk.id, turn) for talk in conversations for turn in talk.turns]
    asked = [(talk.id, question) for talk in conversations for question in talk.questions]
    async with AsyncFabric.open(server.url(database), master_keys=MASTER_KEYS, pack=PACK) as fabric:
        for tenant in (*(talk.id for talk in conversations), BESIDE):
            await prove(fabric, tenant)
        empty, log = disk_bytes(server, database), log_bytes(server)
        together = [await _together(fabric, meter, said[some]) for some in in_runs(len(said))]
        promoted = sum(many for _, many in together)
        log = log_bytes(server) - log
        disk = disk_bytes(server, database) - empty
        search, times, shares = await _ask(fabric, meter, said, asked)
        memory = peak_memory_bytes()
        written, detail = await _ask_beside_writer(server, database, fabric, meter, conversations, quiet)
        one_log = log_bytes(server)
        one = await _one_by_one(server, database, fabric, said)
        one_log = log_bytes(server) - one_log
        acknowledged = [await _capture(fabric, meter, said[some]) for some in in_runs(len(said))]
    server.drop(database)
    row = Row(
        name=OURS,
        version=__version__,
        scope=scope_of(conversations),
        add=one,
        batch=median([cost for cost, _ in together]),
        search=search,
        search_p95_ms=statistics.quantiles(times, n=20)[-1] * 1000,
        recall_at_10=statistics.mean(shares),
        memory_mb=memory / 2**20,
        disk_kb=disk / promoted / 1024,
        log_kb=log / promoted / 1024,
    )
    print(row, file=sys.stderr)
    return Ours(row, promoted, median(acknowledged), written, detail, one_log / len(said) / 1024)


def scope_of(conversations: Sequence[locomo.Conversation]) -> str:
    """How many memories a run sees: the turns of its conversation."""
    sizes = sorted(len(talk.turns) for talk in conversations)
    return f"{sizes[0]}" if sizes[0] == sizes[-1] else f"{sizes[0]} to {sizes[-1]}"


async def prove(fabric: AsyncFabric, tenant_id: str) -> None:
    """Have people bear out what this source says, so that policy promotes it alone.

    What proves it is about another user and alike to nothing else: no benched recall sees it, none opens a contradiction.
    """
    people, chance = People(tenant_id), random.Random(tenant_id)
    texts = {" ".join(chance.sample(WORDS, 9)) for _ in range(60)}
    said = [{"kind": "statement", "text": text, "classification": "INTERNAL", "user_id": "another"} for text in texts]
    await fabric.capture_many(people.service, said)
    done = await fabric.consolidate(tenant_id)
    await fabric.queue.approve_many(people.reviewer, done.proposals)
    assert not await fabric.contradictions.list(people.reviewer)
    assert fabric._opened is not None
    assert (await JOBS["calibrate"].run(fabric._opened, tenant_id)).nonzero


def item_of(turn: locomo.Turn) -> dict[str, Any]:
    """A turn as it is captured."""
    return {"kind": "statement", "text": turn.text, "classification": "INTERNAL", "observed_at": turn.date,
            "user_id": USER, "origin": f"turn:{turn.id}"}  # fmt: skip


async def _together(fabric: AsyncFabric, meter: Meter, said: Sequence[Said]) -> tuple[Cost, int]:
    """The turns of each conversation in one call, then promoted, in this process; the cost of each, and how many."""
    promoted = 0
    with meter.block() as spent:
        for talk, some in groupby(said, key=lambda one: one[0]):
            items = [item_of(turn) for _, turn in some]
            await fabric.capture_many(_service(talk), items)
            promoted += len((await fabric.consolidate(talk)).promoted)
    # A few wait for a person or were said before.
    assert promoted >= MOST_PROMOTED * len(said), f"{promoted} of {len(said)} promoted"
    return spent.each(promoted), promoted


async def _ask(
    fabric: AsyncFabric, meter: Meter, said: Sequence[Said], asked: Sequence[Asked]
) -> tuple[Cost, list[float], list[float]]:
    """Every question once, in runs of different questions; beside the cost, single times and shares of the evidence."""
    for talk, turn in said[:: max(len(said) // WARM_UP, 1)]:
        await fabric.recall(_run(talk), turn.text, limit=ASKED)
    costs: list[Cost] = []
    times: list[float] = []
    shares: list[float] = []
    # Shuffled, so that each run asks in all conversations.
    asked = random.Random(1).sample(asked, len(asked))
    for some in in_runs(len(asked)):
        with meter.block() as spent:
            for talk, question in asked[some]:
                start = time.perf_counter()
                found = await _recall(fabric, talk, question.text)
                times.append(time.perf_counter() - start)
                shares.append(locomo.recall_at(found, question.evidence))
        costs.append(spent.each(len(asked[some])))
    return median(costs), times, shares


@cache
def _run(talk: str) -> RunContext:
    """The run that asks in a conversation: an agent makes its context once, not for each recall."""
    return People(talk).run(USER)


@cache
def _service(talk: str) -> Principal:
    """Who captures in a conversation, made once as well."""
    return People(talk).service


async def _recall(fabric: AsyncFabric, talk: str, query: str) -> list[str]:
    """The turns found: as many as were asked for and no more, which is what the peers return."""
    answer = await fabric.recall(_run(talk), query, limit=ASKED)
    assert len(answer.all_records) == ASKED and not answer.conflicts, (
        "a benched recall returns what was asked for alone"
    )
    return [(record.provenance.origin or "").removeprefix("turn:") for record in answer.records]


async def _ask_beside_writer(
    server: TestServer,
    database: str,
    fabric: AsyncFabric,
    meter: Meter,
    conversations: list[locomo.Conversation],
    quiet: float,
) -> tuple[Cost, str]:
    """All questions in the largest conversation, while another process promotes there; what that costs is taken off."""
    talk = max(conversations, key=lambda one: len(one.turns)).id
    queries = [question.text for one in conversations for question in one.questions]
    costs: list[Cost] = []
    with writing(server.url(database), talk, USER) as writer:
        writer.settle(meter, quiet)
        began, started = writer.promoted, time.perf_counter()
        for some in in_runs(len(queries)):
            before = writer.promoted
            with meter.block() as spent:
                for query in queries[some]:
                    await _recall(fabric, talk, query)
            calls = len(queries[some])
            costs.append(spent.each(calls).less((writer.promoted - before) * writer.cpu_ms_each / calls))
        rate = (writer.promoted - began) / (time.perf_counter() - started)
    return median(
        costs
    ), f"{rate:.0f} a second promoted of {A_SECOND:.0f} wanted, which took {writer.cpu_ms_each:.1f} ms CPU each"


async def _one_by_one(server: TestServer, database: str, fabric: AsyncFabric, said: Sequence[Said]) -> Cost:
    """Turns captured one a call while a worker in a process of its own promotes them; until all are promoted."""
    people, costs = People(BESIDE), list[Cost]()
    with _worker(server.url(database)) as pid:
        meter = Meter(postmaster(server), pid)
        await fabric.capture(people.service, **item_of(said[0][1]))
        await _until_promoted(fabric, people)  # it runs from here on
        for some in in_runs(len(said)):
            with meter.block() as spent:
                for _, turn in said[some]:
                    await fabric.capture(people.service, **item_of(turn))
                await _until_promoted(fabric, people)
            costs.append(spent.each(len(said[some])))
    return median(costs)


async def _until_promoted(fabric: AsyncFabric, people: People) -> None:
    """Until all captures are proposals, and those left in the queue wait for a person."""
    while (await fabric.work.backlog(people.admin)).behind or not all(  # noqa: ASYNC110  it is another's work
        one.human_reasons for one in await fabric.queue.list(people.reviewer)
    ):
        await anyio.sleep(0.2)


@contextmanager
def _worker(url: str) -> Generator[int]:
    """`muniment worker` with the same pack; its process."""
    muniment = str(Path(sys.executable).with_name("muniment"))
    given = {"MUNIMENT_DATABASE_URL": url, "MUNIMENT_MASTER_KEY": MASTER_KEY, "MUNIMENT_PACK": str(PACK)}
    with subprocess.Popen(
        [muniment, "worker"], env=os.environ | given, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as running:
        try:
            yield running.pid
            assert running.poll() is None, "the worker ended"
        finally:
            running.terminate()


async def _capture(fabric: AsyncFabric, meter: Meter, said: Sequence[Said]) -> Cost:
    """Turns captured one a call, each acknowledged; nobody works on them."""
    with meter.block() as spent:
        for talk, turn in said:
            await fabric.capture(_service(talk), **item_of(turn))
    return spent.each(len(said))


def figures(ours: Ours, rows: Sequence[Row], conversations: Sequence[locomo.Conversation]) -> list[Figure]:
    """The bars beside LangGraph's store, and our own."""
    mine, scope = ours.row, scope_of(conversations)
    largest = f"{max(len(talk.turns) for talk in conversations)} and what is written meanwhile"
    assert mine.add and mine.batch and mine.search and mine.recall_at_10 is not None
    assert mine.log_kb is not None and mine.disk_kb is not None
    questions = sum(len(talk.questions) for talk in conversations)
    turns = sum(len(talk.turns) for talk in conversations)
    log = f"in batches, with its whole trail, {ours.promoted:,} of {turns:,} turns promoted; {ours.one_log_kb:.1f} KB one a call with the worker"
    found = [
        at_least("evidence recall@10 on LoCoMo, turns as statements", mine.recall_at_10, "", EVIDENCE_BAR, scope, f"{questions} questions"),
        at_most("PostgreSQL's log for a promoted memory", mine.log_kb, "KB", LOG_BAR, scope, log),
        at_most("disk for a promoted memory", mine.disk_kb, "KB", DISK_BAR, scope, "in batches, with its whole trail, vacuumed"),
    ]  # fmt: skip
    store = next((row for row in rows if "LangGraph" in row.name and row.error is None), None)
    if store is None or not (store.add and store.batch and store.search):
        print("LangGraph's store was not measured: no bars against it", file=sys.stderr)
        return found
    times, many = "times its CPU", "times as many for its CPU"
    return [
        *found,
        at_most("recall against LangGraph's search on LoCoMo, warm", mine.search.cpu_ms / store.search.cpu_ms, times, RECALL_BAR, scope,
                _against(mine.search, store.search)),
        at_most(f"the same with a writer promoting {A_SECOND:.0f} a second in that tenant", ours.written.cpu_ms / store.search.cpu_ms, times,
                WRITTEN_BAR, largest, f"{_against(ours.written, store.search)}, which has no writer beside it; {ours.written_detail}"),
        at_most("one capture, acknowledged, against LangGraph's put", ours.acknowledged.cpu_ms / store.add.cpu_ms, times, CAPTURE_BAR, scope,
                _against(ours.acknowledged, store.add)),
        at_least("capture to promoted memory in batches, one process, against its put", store.add.cpu_ms / mine.batch.cpu_ms, many, BATCH_BAR,
                 scope, _against(mine.batch, store.add)),
        at_least("capture to promoted memory in batches against its own batches", store.batch.cpu_ms / mine.batch.cpu_ms, many, OWN_BATCH_BAR,
                 scope, _against(mine.batch, store.batch)),
        at_least("capture to promoted memory, one a call, worker in a process of its own, against its put",
                 store.add.cpu_ms / mine.add.cpu_ms, many, ONE_BAR, scope, _against(mine.add, store.add)),
    ]  # fmt: skip


def _against(ours: Cost, its: Cost) -> str:
    return f"{ours} against {its}"
