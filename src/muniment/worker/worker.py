"""The worker: finds jobs that are due, puts each into the queue once, and runs what is in the queue.

The queue is procrastinate's, so that any number of workers can share it. A job of a tenant is in it at most once. A
worker that was killed leaves nothing locked, since every job can run twice, at the same time, or be cut off at any
line. Other workers remove the rows that it leaves.
"""

import logging
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
from procrastinate import App, PsycopgConnector
from procrastinate.exceptions import AlreadyEnqueued, ConnectorException
from procrastinate.jobs import Status

from muniment.database.job_queue import queue_pool
from muniment.database.server_liveness import answering, no_answer
from muniment.errors import MunimentError, PurgeIncomplete, StorageUnavailable
from muniment.job import JobResult
from muniment.opening import Opened
from muniment.worker.due import LOOK_EVERY, Due, DueJobs, rest_seconds
from muniment.worker.registry import JOBS

log = logging.getLogger("muniment.jobs")

QUEUE = "muniment"
CONCURRENCY = 4
# A worker without a sign of life for so many seconds is dead; its jobs run again.
GONE_AFTER = 20.0
# Seconds to wait for a connection to the queue's tables.
BUSY_SECONDS = 5.0
# Seconds before a database that is away is tried again.
AGAIN_SECONDS = 0.25
# For so many seconds after the embedded server died, due jobs are looked for often.
CALM_SECONDS = 10.0

OnDone = Callable[[Due, JobResult | None], None]


class Worker:
    """Works for an open fabric; `on_done` is called for every job that ran, with None for one that failed."""

    def __init__(self, opened: Opened, *, concurrency: int = CONCURRENCY, on_done: OnDone | None = None) -> None:
        self._opened = opened
        self._concurrency = concurrency
        self._on_done = on_done
        self._running: set[Due] = set()
        self._app = App(
            connector=PsycopgConnector(
                **queue_pool(opened.address),
                min_size=1,
                max_size=concurrency + 3,
                timeout=BUSY_SECONDS,
                reconnect_timeout=BUSY_SECONDS,
            )
        )
        self._task = self._app.task(name="work", queue=QUEUE)(self._work)

    async def until_idle(self, tenants: list[str] | None = None) -> int:
        """Run what is due, and what becomes due by it, until nothing is; return how many jobs ran."""
        ran = 0
        due_jobs = DueJobs(self._opened, eager=True)
        try:
            async with self._open():
                await self._remove_dead_workers()
                while found := await due_jobs.due(tenants):
                    ran += await self._enqueue(found)
                    await self._app.run_worker_async(**self._options(), wait=False, listen_notify=False)
        except ConnectorException as error:
            raise StorageUnavailable(no_answer()) from error
        return ran

    async def forever(self) -> None:
        """Work until cancelled, finishing the jobs in progress; wait for a database that is away."""
        due_jobs = DueJobs(self._opened)
        last_error: str | None = None
        while True:
            try:
                # Fails at once while the database is away; the queue's own connections would wait.
                await due_jobs.due([])
                last_error = None
                await self._until_away()
            except (StorageUnavailable, ConnectorException) as error:
                why = str(error) if isinstance(error, StorageUnavailable) else no_answer()
                if why != last_error:
                    log.warning("%s", why)
                last_error = why
            await anyio.sleep(AGAIN_SECONDS)

    async def _until_away(self) -> None:
        async with self._open(), anyio.create_task_group() as tasks:
            tasks.start_soon(self._watch_for_due_jobs)
            try:
                listens = self._opened.address.pooler is None
                await self._app.run_worker_async(
                    **self._options(), wait=True, fetch_job_polling_interval=LOOK_EVERY, listen_notify=listens
                )
            except ConnectorException:
                log.warning("the worker lost the database")
            tasks.cancel_scope.cancel()

    async def _work(self, tenant_id: str, job: str) -> None:
        due = Due(tenant_id, job)
        self._running.add(due)
        try:
            done = await run(self._opened, due)
        finally:
            self._running.discard(due)
        if self._on_done is not None:
            self._on_done(due, done)

    async def _watch_for_due_jobs(self) -> None:
        """Check for due jobs again and again."""
        due_jobs = DueJobs(self._opened)
        deaths, calm_at = self._opened.deaths, 0.0
        while True:
            began = time.monotonic()
            try:
                await self._enqueue(await due_jobs.due())
                await self._remove_dead_workers()
                rest = rest_seconds(time.monotonic() - began)
            except StorageUnavailable as error:
                log.warning("%s", error)
                rest = AGAIN_SECONDS
            except Exception as error:
                log.warning("cannot look for due jobs: %s", type(error).__name__)
                rest = LOOK_EVERY
            if self._opened.deaths != deaths:
                # The jobs in progress are due again; a check takes long only because it waits for dead connections.
                deaths, calm_at = self._opened.deaths, time.monotonic() + CALM_SECONDS
            await self._rest(rest if time.monotonic() > calm_at else min(rest, LOOK_EVERY / 2), deaths)

    async def _rest(self, seconds: float, deaths: int) -> None:
        """Rest that long, or until the database server has died once more."""
        ends_at = time.monotonic() + seconds
        while (left := ends_at - time.monotonic()) > 0 and self._opened.deaths == deaths:  # noqa: ASYNC110  the watch is a thread
            await anyio.sleep(min(left, AGAIN_SECONDS))

    async def _enqueue(self, found: list[Due]) -> int:
        enqueued = 0
        for due in found:
            if due in self._running:
                continue
            waits = self._task.configure(queueing_lock=f"{due.job} {due.tenant_id}")
            with suppress(AlreadyEnqueued):
                await waits.defer_async(tenant_id=due.tenant_id, job=due.job)
                enqueued += 1
        return enqueued

    async def _remove_dead_workers(self) -> None:
        """Delete the rows of workers without a sign of life for `GONE_AFTER`, and of their jobs.

        Those jobs are in the queue again already: they stay due until a worker records that they ran.
        """
        manager = self._app.job_manager
        jobs = await manager.get_stalled_jobs(queue=QUEUE, seconds_since_heartbeat=GONE_AFTER)
        for job in jobs:
            if job.id is not None:
                # Another worker may have deleted it at this moment.
                with suppress(ConnectorException):
                    await manager.finish_job_by_id_async(job.id, Status.ABORTED, delete_job=True)
        await manager.prune_stalled_workers(GONE_AFTER)

    @asynccontextmanager
    async def _open(self) -> AsyncGenerator[None]:
        try:
            with answering():
                await self._app.open_async()
            yield
        finally:
            # What could not be opened would be taken for open the next time. Also when cancelled.
            with anyio.CancelScope(shield=True):
                await self._app.close_async()

    def _options(self) -> dict[str, Any]:
        return {
            "queues": [QUEUE],
            "concurrency": self._concurrency,
            "delete_jobs": "always",
            "install_signal_handlers": False,
            "update_heartbeat_interval": GONE_AFTER / 4,
            "stalled_worker_timeout": GONE_AFTER,
        }


async def run(opened: Opened, due: Due) -> JobResult | None:
    """Run a job in a tenant and record the result; None if it failed, which is recorded and tried again later.

    Raises `StorageUnavailable` if the database is away, or the embedded server died meanwhile: then nothing is
    recorded, and the job stays due.
    """
    context, started, deaths = opened.context, time.monotonic(), opened.deaths
    done: JobResult | None = None
    error: str | None = None
    async with context.transaction(due.tenant_id, "jobs") as tx:
        (clock,) = await tx.commit_with(("tenant.clock", {}))
    try:
        done = await JOBS[due.job].run(opened, due.tenant_id)
    except Exception as problem:
        if isinstance(problem, StorageUnavailable) and opened.deaths != deaths:
            raise
        # Whatever it is, the next job runs. An error's message may hold content, its code and its class do not.
        error = problem.code if isinstance(problem, MunimentError) else type(problem).__name__
        if isinstance(problem, PurgeIncomplete):
            error = f"{problem.code}: {problem.message}"  # About the server and its settings; shown on the receipt.
        log.warning("job failed", extra={"job": due.job, "tenant": due.tenant_id, "error": str(error)})
    more = done is not None and done.more
    with anyio.CancelScope(shield=True):
        async with context.transaction(due.tenant_id, "jobs") as tx:
            tx.defer(
                "jobs.ran",
                job=due.job,
                seq=clock[0]["seq"] if clock and not more else -1,
                next_at=tx.now if more else done.next_at if done is not None else None,
                took=time.monotonic() - started,
                failures=0 if error is None else 1,
                error=error,
            )
    if done is not None and done.nonzero:
        log.info("job done", extra={"job": due.job, "tenant": due.tenant_id, "counts": done.nonzero})
    return done
