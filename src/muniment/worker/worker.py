"""The worker: looks out for jobs that are due, puts each into the queue once, and runs what is in the queue.

The queue is procrastinate's: as many workers as wanted share it. A job of a tenant waits in it once at most; a
worker that was killed leaves nothing locked, since every job can run twice, at once, or be cut off at any line. The
rows that it leaves are removed by any other worker.
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

from muniment.database.job_queue import QueueConnection, queue_address
from muniment.database.server_liveness import answering, no_answer
from muniment.errors import MunimentError, PurgeIncomplete, StorageUnavailable
from muniment.job import Done
from muniment.opening import Opened
from muniment.worker.due import LOOK_EVERY, Due, DueJobs, rest_after
from muniment.worker.registry import JOBS

log = logging.getLogger("muniment.jobs")

QUEUE = "muniment"
CONCURRENCY = 4
# A worker that was not heard of for so many seconds is gone; what it was at is done anew.
GONE_AFTER = 20.0
# For a connection to the queue's tables.
BUSY_SECONDS = 5.0
# Seconds before a database that is away is asked again.
AGAIN_SECONDS = 0.25
# For so many seconds after the embedded server died due jobs are looked for often.
CALM_SECONDS = 10.0

Told = Callable[[Due, Done | None], None]


class Worker:
    """Works for an open fabric; `on_done` hears of every job that ran, with None for one that failed."""

    def __init__(self, opened: Opened, *, concurrency: int = CONCURRENCY, on_done: Told | None = None) -> None:
        self._opened = opened
        self._concurrency = concurrency
        self._on_done = on_done
        self._running: set[Due] = set()
        self._app = App(
            connector=PsycopgConnector(
                conninfo=queue_address(opened.address),
                connection_class=QueueConnection,
                min_size=1,
                max_size=concurrency + 3,
                timeout=BUSY_SECONDS,
                reconnect_timeout=BUSY_SECONDS,
            )
        )
        self._task = self._app.task(name="work", queue=QUEUE)(self._work)

    async def until_idle(self, tenants: list[str] | None = None) -> int:
        """Run what is due, and what becomes due by it, until nothing is; how many jobs ran."""
        ran = 0
        lookout = DueJobs(self._opened, eager=True)
        try:
            async with self._open():
                await self._remove_dead_workers()
                while found := await lookout.due(tenants):
                    ran += await self._put(found)
                    await self._app.run_worker_async(**self._how(), wait=False, listen_notify=False)
        except ConnectorException as error:
            raise StorageUnavailable(no_answer()) from error
        return ran

    async def forever(self) -> None:
        """Work until cancelled; what is being done then is finished first. A database that is away is waited for."""
        lookout = DueJobs(self._opened)
        told: str | None = None
        while True:
            try:
                # Fails at once while it is away, where the queue's own connections would be waited for.
                await lookout.due([])
                told = None
                await self._until_away()
            except (StorageUnavailable, ConnectorException) as error:
                why = str(error) if isinstance(error, StorageUnavailable) else no_answer()
                if why != told:
                    log.warning("%s", why)
                told = why
            await anyio.sleep(AGAIN_SECONDS)

    async def _until_away(self) -> None:
        async with self._open(), anyio.create_task_group() as tasks:
            tasks.start_soon(self._look)
            try:
                await self._app.run_worker_async(**self._how(), wait=True, fetch_job_polling_interval=LOOK_EVERY)
            except ConnectorException:
                log.warning("the worker lost the database")
            tasks.cancel_scope.cancel()

    async def _work(self, tenant_id: str, job: str) -> None:
        what = Due(tenant_id, job)
        self._running.add(what)
        try:
            done = await run(self._opened, what)
        finally:
            self._running.discard(what)
        if self._on_done is not None:
            self._on_done(what, done)

    async def _look(self) -> None:
        """Again and again; a database that is away is waited for."""
        lookout = DueJobs(self._opened)
        deaths, calm_at = self._opened.deaths, 0.0
        while True:
            began = time.monotonic()
            try:
                await self._put(await lookout.due())
                await self._remove_dead_workers()
                rest = rest_after(time.monotonic() - began)
            except StorageUnavailable as error:
                log.warning("%s", error)
                rest = AGAIN_SECONDS
            except Exception as error:
                log.warning("cannot look for due jobs: %s", type(error).__name__)
                rest = LOOK_EVERY
            if self._opened.deaths != deaths:
                # What was under way is due again; a look takes long only because it waits for dead connections.
                deaths, calm_at = self._opened.deaths, time.monotonic() + CALM_SECONDS
            await self._rest(rest if time.monotonic() > calm_at else min(rest, LOOK_EVERY / 2), deaths)

    async def _rest(self, seconds: float, deaths: int) -> None:
        """Rest that long, or until the database server has died once more."""
        ends_at = time.monotonic() + seconds
        # The watch is a thread, and knows no event loop.
        while (left := ends_at - time.monotonic()) > 0 and self._opened.deaths == deaths:  # noqa: ASYNC110
            await anyio.sleep(min(left, AGAIN_SECONDS))

    async def _put(self, found: list[Due]) -> int:
        put = 0
        for what in found:
            if what in self._running:
                continue
            waits = self._task.configure(queueing_lock=f"{what.job} {what.tenant_id}")
            with suppress(AlreadyEnqueued):
                await waits.defer_async(tenant_id=what.tenant_id, job=what.job)
                put += 1
        return put

    async def _remove_dead_workers(self) -> None:
        """Delete the rows of workers that were not heard of for `GONE_AFTER`, and of the jobs that they were at.

        Those jobs were put into the queue anew already: they are due as long as no worker recorded that they ran.
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
            # What could not be opened would be taken for open the next time.
            await self._app.close_async()

    def _how(self) -> dict[str, Any]:
        return {
            "queues": [QUEUE],
            "concurrency": self._concurrency,
            "delete_jobs": "always",
            "install_signal_handlers": False,
            "update_heartbeat_interval": GONE_AFTER / 4,
            "stalled_worker_timeout": GONE_AFTER,
        }


log = logging.getLogger("muniment.jobs")


async def run(opened: Opened, what: Due) -> Done | None:
    """Run it, again while it says that more waits; None if it failed, which is recorded and tried again later.

    Raises `StorageUnavailable` when the database is away, or the embedded server died meanwhile: nothing is recorded,
    so that the job stays due.
    """
    context, started, deaths = opened.context, time.monotonic(), opened.deaths
    done: Done | None = None
    error: str | None = None
    async with context.transaction(what.tenant_id, "jobs") as tx:
        clock = await tx.row("tenant.clock")
    try:
        done = await JOBS[what.job].run(opened, what.tenant_id)
    except Exception as problem:
        if isinstance(problem, StorageUnavailable) and opened.deaths != deaths:
            raise
        # Whatever it is, the next job runs. What an error says may be content: its code or its name is not.
        error = problem.code if isinstance(problem, MunimentError) else type(problem).__name__
        if isinstance(problem, PurgeIncomplete):
            error = f"{problem.code}: {problem.message}"  # Of the server and its settings; it stands on the receipt.
        log.warning("job %s of tenant %s failed: %s", what.job, what.tenant_id, error)
    with anyio.CancelScope(shield=True):
        async with context.transaction(what.tenant_id, "jobs") as tx:
            await tx.do(
                "jobs.ran",
                job=what.job,
                seq=clock["seq"] if clock is not None and not (done is not None and done.more) else -1,
                next_at=tx.now if done is not None and done.more else done.next_at if done is not None else None,
                took=time.monotonic() - started,
                failures=0 if error is None else 1,
                error=error,
            )
    if done is not None and done.told:
        log.info("job %s of tenant %s: %s", what.job, what.tenant_id, done.told)
    return done
