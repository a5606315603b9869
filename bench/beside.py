"""Beside peers: the same LoCoMo turns and questions through ours and through others, in one run on one machine."""

import resource
import statistics
import sys
import time
from typing import Any

import anyio

from bench import locomo
from bench.measure import Figure
from bench.peers import PEERS
from bench.peers import run as run_peer
from bench.peers.database import fresh_database
from bench.picture import OURS, Row
from muniment import AsyncFabric, __version__
from muniment.evaluation.temporary_fabric import evaluation_pack
from muniment.opening import Opened
from muniment.pack import Pack
from muniment.testing import People, TestServer
from muniment.testing.database import MASTER_KEYS
from muniment.worker.registry import JOBS

ROUNDS, WARM_UP, ONE_BY_ONE = 2, 20, 300
SEARCH_BAR, PUT_BAR, BATCH_BAR, RECALL_BAR = 0.5, 2.0, 10.0, 0.66


async def ours(server: TestServer, conversations: list[locomo.Conversation]) -> Row:
    """Every turn through capture, gates, review and promotion; then every question."""
    database = server.clone()
    async with AsyncFabric.open(server.url(database), master_keys=MASTER_KEYS, pack=_pack()) as fabric:
        empty = _size(server, database)
        alone = await _one_by_one(fabric, conversations[0])
        proven = [await _proven(fabric, talk.id) for talk in conversations]
        started, turns = time.perf_counter(), 0
        for talk, people in zip(conversations, proven, strict=True):
            await _together(fabric, talk, people)
            turns += len(talk.turns)
        batch = turns / (time.perf_counter() - started)
        with server.connect(database) as owner:
            owner.autocommit = True
            owner.execute("VACUUM ANALYZE")
        times, shares = await _asked(fabric, conversations)
        disk = _size(server, database) - empty
    server.drop(database)
    return Row(
        name=OURS,
        version=__version__,
        adds_per_second=alone,
        batch_adds_per_second=batch,
        search_median_ms=statistics.median(times) * 1000,
        search_p95_ms=statistics.quantiles(times, n=20)[-1] * 1000,
        recall_at_10=statistics.mean(shares),
        memory_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        disk_mb=disk / 2**20,
    )


def _pack() -> Pack:
    """As for every evaluation, and policy promotes statements alone where their source is proven."""
    document = evaluation_pack(20).document()
    document["pack_meta"]["id"] = "muniment.bench"
    document["memory_layer"]["classes"]["statement"] |= {"approval": "auto", "auto_promotion": {"threshold": 0.9}}
    document["memory_layer"]["audit"]["sample_share"] = 0.0
    return Pack.model_validate(document)


async def _one_by_one(fabric: AsyncFabric, talk: locomo.Conversation) -> float:
    """Turns captured one a call, each committed, while the worker promotes beside it: how many a second, all done."""
    people = await _proven(fabric, "one_by_one")
    turns = talk.turns[:ONE_BY_ONE]
    opened = fabric._opened
    assert opened is not None
    started = ended = time.perf_counter()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_work_on, opened, people.tenant_id)
        for turn in turns:
            await fabric.capture(people.service, **_item(turn))
        while (await fabric.work.backlog(people.admin)).behind or await _waiting(fabric, people):  # noqa: ASYNC110  it is another's work
            await anyio.sleep(0.005)
        ended = time.perf_counter()
        tasks.cancel_scope.cancel()
    return len(turns) / (ended - started)


async def _work_on(opened: Opened, tenant_id: str) -> None:
    while True:
        await JOBS["consolidate"].run(opened, tenant_id)
        await anyio.sleep(0.01)


async def _together(fabric: AsyncFabric, talk: locomo.Conversation, people: People) -> None:
    """All turns in one call, then the worker until all are promoted."""
    opened = fabric._opened
    assert opened is not None
    await fabric.capture_many(people.service, [_item(turn) for turn in talk.turns])
    while (await JOBS["consolidate"].run(opened, people.tenant_id)).more:
        pass


def _item(turn: locomo.Turn) -> dict[str, Any]:
    return {"kind": "message", "text": turn.text, "classification": "INTERNAL", "observed_at": turn.date,
            "user_id": "user", "origin": f"turn:{turn.id}"}  # fmt: skip


async def _proven(fabric: AsyncFabric, tenant_id: str) -> People:
    """A tenant where people have borne out what this source says, so that policy promotes it alone."""
    people, opened = People(tenant_id), fabric._opened
    assert opened is not None
    said = [{"kind": "message", "text": f"fact {n} of the day before", "classification": "INTERNAL"} for n in range(60)]
    await fabric.capture_many(people.service, said)
    done = await fabric.consolidate(tenant_id)
    await fabric.queue.approve_many(people.reviewer, done.proposals)
    assert (await JOBS["calibrate"].run(opened, tenant_id)).nonzero
    return people


async def _waiting(fabric: AsyncFabric, people: People) -> bool:
    return bool(await fabric.queue.list(people.reviewer, limit=1))


async def _asked(fabric: AsyncFabric, conversations: list[locomo.Conversation]) -> tuple[list[float], list[float]]:
    questions = [(People(talk.id).run("user"), asked) for talk in conversations for asked in talk.questions]
    for who, asked in questions[:: len(questions) // WARM_UP]:
        await fabric.recall(who, asked.text, limit=10)
    times: list[float] = []
    shares: list[float] = []
    for _ in range(ROUNDS):
        for who, asked in questions:
            start = time.perf_counter()
            answer = await fabric.recall(who, asked.text, limit=10)
            times.append(time.perf_counter() - start)
            found = [(record.provenance.origin or "").removeprefix("turn:") for record in answer.records]
            shares.append(locomo.recall_at(found, asked.evidence))
    return times, shares


def _size(server: TestServer, database: str) -> int:
    with server.connect(database) as owner:
        found: Any = owner.execute("SELECT pg_database_size(current_database())").fetchone()
        return int(found[0])


def beside(server: TestServer) -> tuple[list[Row], list[Figure]]:
    """Ours and each peer; no figures where the data is not there."""
    import asyncio

    conversations = locomo.load()
    if conversations is None:
        print(f"no LoCoMo at {locomo.place()}: left out", file=sys.stderr)
        return [], []
    rows = [asyncio.run(ours(server, conversations))]
    for name in PEERS:
        with fresh_database(server) as address:
            rows.append(run_peer(name, locomo.as_job(conversations, rounds=ROUNDS, postgres=address)).row())
            print(rows[-1], file=sys.stderr)
    return rows, figures(rows)


def figures(rows: list[Row]) -> list[Figure]:
    """The bars beside LangGraph's store, and the share of evidence found."""
    mine = rows[0]
    found = mine.recall_at_10 or 0.0
    told = [
        Figure(
            "evidence recall@10 on LoCoMo, strict share",
            found,
            "",
            f">= {RECALL_BAR}",
            found >= RECALL_BAR,
            "755 questions",
        )
    ]
    store = next((row for row in rows if "LangGraph" in row.name and row.error is None), None)
    if store is None or not (mine.search_median_ms and store.search_median_ms and store.adds_per_second):
        return told
    search = mine.search_median_ms / store.search_median_ms
    alone = (mine.adds_per_second or 0) / store.adds_per_second
    batch = (mine.batch_adds_per_second or 0) / store.adds_per_second
    said = f"{mine.search_median_ms:.2f} ms against {store.search_median_ms:.2f} ms"
    return [
        *told,
        Figure("recall against LangGraph's search on LoCoMo", search, "times its median", f"<= {SEARCH_BAR}", search <= SEARCH_BAR, said),
        Figure(
            "capture to promoted memory, one a call, against its put", alone, "times as many", f">= {PUT_BAR}", alone >= PUT_BAR,
            f"{mine.adds_per_second:,.0f} a second (captured one a call, promoted by the worker beside) against {store.adds_per_second:,.0f}",
        ),
        Figure(
            "capture to promoted memory in batches against its put", batch, "times as many", f">= {BATCH_BAR}", batch >= BATCH_BAR,
            f"{mine.batch_adds_per_second:,.0f} a second against {store.adds_per_second:,.0f}; its own batches {store.batch_adds_per_second or 0:,.0f}",
        ),
    ]  # fmt: skip
