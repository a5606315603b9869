"""What a killed worker leaves in the job queue's tables, and that another worker removes it."""

import os
import signal
import subprocess
import sys
from typing import Any

import psycopg
import pytest

from muniment import Fabric
from muniment.testing import People, TestServer
from muniment.testing.database import MASTER_KEYS
from muniment.worker.worker import GONE_AFTER, Worker
from tests.faults.concurrency import hold_clock
from tests.faults.servers import ROOT, environment, eventually

WORKER = """
import asyncio, sys
from muniment import AsyncFabric
from muniment.worker.worker import Worker
from muniment.testing.database import MASTER_KEYS

async def work():
    async with AsyncFabric.open(sys.argv[1], master_keys=MASTER_KEYS) as fabric:
        await Worker(fabric.opened).forever()

asyncio.run(work())
"""

Owner = psycopg.Connection[tuple[Any, ...]]
# The rows of a worker that runs: one for each of its kinds of slots.
EACH = 3


def rows(owner: Owner, statement: str) -> list[tuple[Any, ...]]:
    return owner.execute(statement.encode()).fetchall()


def workers(owner: Owner) -> list[int]:
    return [row[0] for row in rows(owner, "SELECT id FROM procrastinate.procrastinate_workers ORDER BY id")]


def begun(owner: Owner) -> list[tuple[Any, ...]]:
    return rows(owner, "SELECT id, worker_id FROM procrastinate.procrastinate_jobs WHERE status = 'doing' ORDER BY id")


def heard_of(owner: Owner, seconds: float) -> None:
    """As if the workers had been heard of that long ago."""
    owner.execute(
        "UPDATE procrastinate.procrastinate_workers SET last_heartbeat = now() - make_interval(secs => %s)", [seconds]
    )


def killed_at_work(server: TestServer, database: str, people: People) -> None:
    """Let a worker begin to consolidate, and kill it in the middle."""
    with server.connect(database) as owner, hold_clock(server, database, people.tenant_id) as gate:
        before = len(workers(owner))
        worker = subprocess.Popen([sys.executable, "-c", WORKER, server.url(database)], cwd=ROOT, env=environment())
        gate.until_waiting(1)
        eventually(lambda: len(workers(owner)) == before + EACH)
        os.kill(worker.pid, signal.SIGKILL)
        worker.wait()


@pytest.mark.rule("ERR-6", "ERR-2", "JOB-1")
def test_rows_of_killed_workers_are_removed_and_their_jobs_are_done_by_another(
    server: TestServer, fresh_database: str, people: People
) -> None:
    with (
        Fabric.open(server.url(fresh_database), master_keys=MASTER_KEYS) as fabric,
        server.connect(fresh_database) as owner,
    ):
        fabric.capture(people.run(), kind="statement", text="said before the kill", classification="PUBLIC")
        for _ in range(2):
            killed_at_work(server, fresh_database, people)
        assert len(workers(owner)) == 2 * EACH
        assert len(begun(owner)) >= 2, "jobs that nobody does any more"

        heard_of(owner, -60)  # However long what follows takes.
        fabric._portal.call(Worker(fabric._fabric.opened).until_idle)
        assert len(workers(owner)) == 2 * EACH, "they may be alive"
        assert [one.candidate.text for one in fabric.queue.list(people.reviewer)] == ["said before the kill"]

        heard_of(owner, GONE_AFTER + 1)
        fabric._portal.call(Worker(fabric._fabric.opened).until_idle)
        assert workers(owner) == []
        assert begun(owner) == []
        assert len(fabric.queue.list(people.reviewer)) == 1


@pytest.mark.rule("ERR-6")
def test_a_worker_that_runs_removes_the_rows_of_one_that_is_killed_meanwhile(
    server: TestServer, fresh_database: str, people: People
) -> None:
    with (
        Fabric.open(server.url(fresh_database), master_keys=MASTER_KEYS) as fabric,
        server.connect(fresh_database) as owner,
    ):
        fabric.capture(people.run(), kind="statement", text="said before the kill", classification="PUBLIC")
        running = fabric._portal.start_task_soon(Worker(fabric._fabric.opened).forever)
        try:
            eventually(lambda: len(workers(owner)) == EACH)
            alive = workers(owner)
            # One that died long ago, with a job in hand.
            owner.execute(
                "WITH w AS (INSERT INTO procrastinate.procrastinate_workers (last_heartbeat)"
                " VALUES (now() - interval '1 hour') RETURNING id)"
                " INSERT INTO procrastinate.procrastinate_jobs (queue_name, task_name, status, worker_id)"
                " SELECT 'muniment', 'work', 'doing', id FROM w"
            )
            eventually(lambda: workers(owner) == alive and begun(owner) == [])
        finally:
            running.cancel()
