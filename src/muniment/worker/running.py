"""Running one job in one tenant: what it found is recorded, what it raises is too, and nobody else is stopped."""

import logging
import time

import anyio

from muniment.errors import MunimentError, PurgeIncomplete, StorageUnavailable
from muniment.job import Done
from muniment.opening import Opened
from muniment.worker.due import Due
from muniment.worker.registry import JOBS

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
