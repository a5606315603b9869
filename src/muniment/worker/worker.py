"""The worker: finds jobs that are due, puts each into the queue once, and runs what is in the queue.

The queue is procrastinate's, so that any number of workers can share it. A job of a tenant is in it at most once. A
worker that was killed leaves nothing locked, since every job can run twice, at the same time, or be cut off at any
line. Other workers remove the rows that it leaves.
"""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress

import anyio
from procrastinate import App, JobContext, PsycopgConnector
from procrastinate.exceptions import AlreadyEnqueued, ConnectorException
from procrastinate.jobs import Job as QueuedJob
from procrastinate.jobs import Status

from muniment.database.cluster.errors import NodeAway
from muniment.database.cluster.guard import ClusterRepair
from muniment.database.job_queue import queue_pool, waiting_locks
from muniment.database.server_liveness import answering, no_answer
from muniment.errors import MunimentError, PurgeIncomplete, StorageUnavailable
from muniment.job import JobResult
from muniment.opening import Opened
from muniment.worker.due import CHECK_EVERY, LEFT_MORE, Due, DueJobs
from muniment.worker.registry import JOBS

log = logging.getLogger("muniment.jobs")

QUEUE = "muniment"
# What goes first: consolidation in tenants where little waits, as far as is known.
FIRST = "muniment-first"
CONCURRENCY = 4
# A worker without a sign of life for so many seconds is dead; its jobs run again.
GONE_AFTER = 20.0
# Seconds to wait for a connection to the queue's tables.
BUSY_SECONDS = 5.0
# Seconds that the jobs in progress have once the worker is cancelled; then they are cancelled too.
GRACE = 10.0
# Seconds before a database that is away is tried again.
AGAIN_SECONDS = 0.25
# For so many seconds after the embedded server died, due jobs are looked for often.
CALM_SECONDS = 10.0

# Clock-driven jobs are added while fewer than MOST_WAITING are queued; at least LEAST_OTHERS per check.
MOST_WAITING, LEAST_OTHERS = 100, 20

# Jobs that are put into the queue with one statement, at most.
BATCH = 500

OnDone = Callable[[Due, JobResult | None], None]


class Worker:
    """Works for an open fabric; `on_done` is called for every job that ran, with None for one that failed."""

    def __init__(self, opened: Opened, *, concurrency: int = CONCURRENCY, on_done: OnDone | None = None) -> None:
        self._opened = opened
        self._concurrency = concurrency
        self._on_done = on_done
        self._running: dict[Due, anyio.CancelScope] = {}
        self._cluster = ClusterRepair(opened.address)
        self._app = App(
            connector=PsycopgConnector(
                **queue_pool(opened.address, opened.context.storage.primaries),
                min_size=1,
                max_size=concurrency + 5,
                timeout=BUSY_SECONDS,
                reconnect_timeout=BUSY_SECONDS,
            )
        )
        self._task = self._app.task(name="work", queue=QUEUE, pass_context=True)(self._work)

    async def until_idle(self, tenants: list[str] | None = None) -> int:
        """Run what is due, and what becomes due by it, until nothing is; return how many jobs ran."""
        ran = 0
        due_jobs = DueJobs(self._opened, eager=True)
        try:
            async with self._open():
                await self._remove_dead_workers()
                while found := await due_jobs.due(tenants):
                    ran += await self._enqueue(found, due_jobs.goes_first)
                    await self._run_queued_jobs({(FIRST, QUEUE): self._concurrency}, wait=False)
        except ConnectorException as error:
            raise StorageUnavailable(no_answer()) from error
        return ran

    async def forever(self) -> None:
        """Work until cancelled, finishing the jobs in progress; wait for a database that is away.

        Raises `StorageUnavailable` if the fabric was closed.
        """
        # Also while a cluster is not served because of what can be repaired.
        repairing = asyncio.create_task(self._repair_cluster())
        try:
            await self._work_while_there()
        finally:
            repairing.cancel()
            with anyio.CancelScope(shield=True):
                await asyncio.gather(repairing, return_exceptions=True)

    async def _work_while_there(self) -> None:
        """Work whenever the database answers and is served."""
        due_jobs = DueJobs(self._opened)
        last_error: str | None = None
        while True:
            try:
                # Fails at once while the database is away; the queue's own connections would wait.
                await due_jobs.due([])
                last_error = None
                await self._until_away()
            except (StorageUnavailable, ConnectorException) as error:
                if self._opened.context.storage.is_closed:
                    raise
                why = str(error) if isinstance(error, StorageUnavailable) else no_answer()
                if why != last_error:
                    log.warning("%s", why)
                last_error = why
            await anyio.sleep(AGAIN_SECONDS)

    async def _until_away(self) -> None:
        async with self._open(), anyio.create_task_group() as tasks:
            tasks.start_soon(self._watch_for_due_jobs)
            try:
                await self._run_queued_jobs(self._slots())
            except ConnectorException:
                log.warning("the worker lost the database")
            tasks.cancel_scope.cancel()

    def _slots(self) -> dict[tuple[str, ...], int]:
        """How many jobs of which queues run at a time.

        One slot is for the ordinary queue alone: however much goes first, the rest is not held up altogether. Of three
        or more one is for what goes first alone: it does not wait until one of the others ends.
        """
        match self._concurrency:
            case 1:
                return {(FIRST, QUEUE): 1}
            case 2:
                return {(FIRST, QUEUE): 1, (QUEUE,): 1}
            case count:
                return {(FIRST,): 1, (FIRST, QUEUE): count - 2, (QUEUE,): 1}

    async def _run_queued_jobs(self, slots: Mapping[tuple[str, ...], int], *, wait: bool = True) -> None:
        """Run what is in the queues, until cancelled or, without `wait`, until they are empty.

        Cancelled, it finishes the jobs in progress; after `GRACE` seconds they are cancelled too. Raises
        `ConnectorException` if the database is lost.
        """
        running = [asyncio.create_task(self._run_slots(queues, count, wait)) for queues, count in slots.items()]
        try:
            await asyncio.wait(running, return_when=asyncio.FIRST_EXCEPTION)
            # If one has failed, the others finish their jobs.
            _stop(running)
            await asyncio.wait(running)
        except asyncio.CancelledError:
            _stop(running)
            await self._finish(running)
            raise
        for error in [one.exception() for one in running if not one.cancelled()]:
            if error is not None:
                raise error

    async def _run_slots(self, queues: tuple[str, ...], count: int, wait: bool) -> None:
        await self._app.run_worker_async(
            queues=list(queues),
            concurrency=count,
            wait=wait,
            fetch_job_polling_interval=CHECK_EVERY,
            listen_notify=wait and self._opened.address.pooler is None,
            delete_jobs="always",
            install_signal_handlers=False,
            update_heartbeat_interval=GONE_AFTER / 4,
            stalled_worker_timeout=GONE_AFTER,
        )

    async def _finish(self, running: "list[asyncio.Task[None]]") -> None:
        """Wait for the jobs in progress, however often this is cancelled; after `GRACE` seconds cancel them."""
        cut_at, is_cut = time.monotonic() + GRACE, False
        with anyio.CancelScope(shield=True):
            while not all(one.done() for one in running):
                with suppress(asyncio.CancelledError):
                    await asyncio.wait(running, timeout=None if is_cut else max(cut_at - time.monotonic(), 0.0))
                if not is_cut and time.monotonic() >= cut_at:
                    is_cut = True
                    for job in self._running.values():
                        job.cancel()
        for one in running:
            if not one.cancelled():
                one.exception()

    async def _work(self, queued: JobContext, tenant_id: str, job: str) -> None:
        due = Due(tenant_id, job)
        # In a scope, so that one that is cut off still releases what it holds and waits for its threads.
        with anyio.CancelScope() as scope:
            self._running[due] = scope
            try:
                done = await run(self._opened, due, briefly=queued.job.queue == FIRST)
            except NodeAway as error:
                # It stays due, without a failure, and is found again when the node is back.
                log.warning("%s", error, extra={"job": job, "tenant": tenant_id})
                return
            finally:
                self._running.pop(due, None)
            if self._on_done is not None:
                self._on_done(due, done)

    async def _watch_for_due_jobs(self) -> None:
        """Check for due jobs again and again."""
        due_jobs = DueJobs(self._opened)
        deaths, calm_at = self._opened.deaths, 0.0
        while True:
            try:
                found = await due_jobs.next(await self._room())
                rest = due_jobs.rest
                await self._enqueue(found, due_jobs.goes_first)
                await self._remove_dead_workers()
            except StorageUnavailable as error:
                log.warning("%s", error)
                rest = AGAIN_SECONDS
            except Exception as error:
                log.warning("cannot look for due jobs: %s", type(error).__name__)
                rest = CHECK_EVERY
            if self._opened.deaths != deaths:
                # The jobs in progress are due again; a check takes long only because it waits for dead connections.
                deaths, calm_at = self._opened.deaths, time.monotonic() + CALM_SECONDS
            await self._rest(rest if time.monotonic() > calm_at else min(rest, CHECK_EVERY / 2), deaths)

    async def _repair_cluster(self) -> None:
        """Repair a cluster again and again; it holds up no job."""
        while True:
            await self._cluster.repair_when_due()
            await anyio.sleep(CHECK_EVERY)

    async def _rest(self, seconds: float, deaths: int) -> None:
        """Rest that long, or until the database server has died once more."""
        ends_at = time.monotonic() + seconds
        while (left := ends_at - time.monotonic()) > 0 and self._opened.deaths == deaths:  # noqa: ASYNC110  the watch is a thread
            await anyio.sleep(min(left, AGAIN_SECONDS))

    async def _room(self) -> int:
        """How many clock-driven jobs may be queued now.

        The queue stays short, so that what a quiet tenant captured does not wait for the housekeeping of all others.
        Some are always added: work that follows the log, however much, does not hold them up.
        """
        waiting = sum(one["todo"] for one in await self._app.job_manager.list_queues_async(queue=QUEUE))
        return max(LEAST_OTHERS, MOST_WAITING - waiting)

    async def _enqueue(self, found: list[Due], goes_first: Callable[[Due], bool]) -> int:
        """Put into the queue what is not in it yet; return how many."""
        # With a single slot all take their turn: nothing else would keep the ordinary ones from waiting for ever.
        jobs = [
            self._queued_job(due, first=self._concurrency > 1 and goes_first(due))
            for due in found
            if due not in self._running
        ]
        return sum([await self._enqueue_batch(jobs[n : n + BATCH]) for n in range(0, len(jobs), BATCH)])

    def _queued_job(self, due: Due, *, first: bool) -> QueuedJob:
        deferrer = self._task.configure(
            queueing_lock=f"{due.job} {due.tenant_id}", queue=FIRST if first else QUEUE, priority=int(first)
        )
        return deferrer.make_new_job(tenant_id=due.tenant_id, job=due.job)

    async def _enqueue_batch(self, jobs: list[QueuedJob]) -> int:
        """Enqueue in two statements: with many tenants, one for each job would take seconds."""
        manager = self._app.job_manager
        waiting = await waiting_locks(self._app, [one.queueing_lock for one in jobs if one.queueing_lock])
        new = [one for one in jobs if one.queueing_lock not in waiting]
        if not new:
            return 0
        try:
            return len(await manager.batch_defer_jobs_async(new))
        except AlreadyEnqueued:
            # Another worker enqueued one of them at this moment.
            enqueued = 0
            for one in new:
                with suppress(AlreadyEnqueued):
                    await manager.defer_job_async(one)
                    enqueued += 1
            return enqueued

    async def _remove_dead_workers(self) -> None:
        """Delete the rows of workers without a sign of life for `GONE_AFTER`, and of their jobs.

        Those jobs are in the queue again already: they stay due until a worker records that they ran.
        """
        manager = self._app.job_manager
        jobs = await manager.get_stalled_jobs(seconds_since_heartbeat=GONE_AFTER)
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


def _stop(running: "list[asyncio.Task[None]]") -> None:
    """Have procrastinate finish its jobs and end; cancelled a second time it would end without them."""
    for one in running:
        if not one.cancelling():
            one.cancel()


async def run(opened: Opened, due: Due, *, briefly: bool = False) -> JobResult | None:
    """Run a job in a tenant and record the result; None if it failed, which is recorded and tried again later.

    With `briefly` it does only a part where that is much less.

    Raises `StorageUnavailable` if the database or the tenant's node of a cluster is away, or the embedded server died
    meanwhile: then nothing is recorded, and the job stays due.
    """
    context, started, deaths = opened.context, time.monotonic(), opened.deaths
    done: JobResult | None = None
    error: str | None = None
    async with context.transaction(due.tenant_id, "jobs") as tx:
        (clock,) = await tx.commit_with(("tenant.clock", {}))
    try:
        job = JOBS[due.job]
        done = await (job.run_briefly if briefly and job.run_briefly is not None else job.run)(opened, due.tenant_id)
    except Exception as problem:
        # A node that answers after all, but fails here again and again, is a failure like any other.
        if isinstance(problem, NodeAway) and await context.storage.nodes.look(due.tenant_id):
            raise
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
                seq=clock[0]["seq"] if clock and not more else LEFT_MORE,
                next_at=tx.now if more else done.next_at if done is not None else None,
                took=time.monotonic() - started,
                failures=0 if error is None else 1,
                error=error,
            )
    if done is not None and done.nonzero:
        log.info("job done", extra={"job": due.job, "tenant": due.tenant_id, "counts": done.nonzero})
    return done
