"""Beside peers: the same LoCoMo turns and questions through ours and through others, in one run on one machine."""

import resource
import statistics
import sys
import time
from typing import Any

from bench import locomo
from bench.measure import Figure
from bench.peers import PEERS
from bench.peers import run as run_peer
from bench.peers.database import fresh_database
from bench.picture import OURS, Row
from muniment import AsyncFabric, Submission, __version__
from muniment.evaluation.throwaway import evaluation_pack
from muniment.testing import People, TestServer
from muniment.testing.database import MASTER_KEYS

ROUNDS, WARM_UP, ONE_BY_ONE = 2, 20, 300
SEARCH_BAR, PUT_BAR, BATCH_BAR, RECALL_BAR = 0.5, 2.0, 10.0, 0.66


async def ours(server: TestServer, conversations: list[locomo.Conversation]) -> Row:
    """Every turn through capture, gates, review and promotion; then every question."""
    database = server.clone()
    async with AsyncFabric.open(server.url(database), master_keys=MASTER_KEYS, pack=evaluation_pack(20)) as fabric:
        empty = _size(server, database)
        alone = await _one_by_one(fabric, conversations[0])
        started, turns = time.perf_counter(), 0
        for talk in conversations:
            await _together(fabric, talk)
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


async def _one_by_one(fabric: AsyncFabric, talk: locomo.Conversation) -> float:
    """A turn proposed and approved, one after the other: how many a second."""
    people = People("one_by_one")
    run = people.run("user", classification_allowed={"INTERNAL"})
    started = time.perf_counter()
    for turn in talk.turns[:ONE_BY_ONE]:
        done = await fabric.propose(
            run,
            write_class="statement",
            text=turn.text,
            classification="INTERNAL",
            confidence=0.7,
            observed_at=turn.date,
        )
        assert isinstance(done, Submission), done
        await fabric.queue.approve(people.reviewer, done.proposal_id)
    return min(ONE_BY_ONE, len(talk.turns)) / (time.perf_counter() - started)


async def _together(fabric: AsyncFabric, talk: locomo.Conversation) -> None:
    people = People(talk.id)
    items: list[dict[str, Any]] = [
        {"kind": "message", "text": turn.text, "classification": "INTERNAL", "observed_at": turn.date, "user_id": "user",
         "origin": f"turn:{turn.id}"}
        for turn in talk.turns
    ]  # fmt: skip
    await fabric.capture_many(people.service, items)
    done = await fabric.consolidate(people.tenant_id)
    await fabric.queue.approve_many(people.reviewer, done.proposals)


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
            f"{mine.adds_per_second:,.0f} a second (proposed and approved, each committed) against {store.adds_per_second:,.0f}",
        ),
        Figure(
            "capture to promoted memory in batches against its put", batch, "times as many", f">= {BATCH_BAR}", batch >= BATCH_BAR,
            f"{mine.batch_adds_per_second:,.0f} a second against {store.adds_per_second:,.0f}; its own batches {store.batch_adds_per_second or 0:,.0f}",
        ),
    ]  # fmt: skip
