"""The worker, and the backlog: what waits, what was parked, the jobs, suspended classes."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from muniment.cli.call import Call
from muniment.cli.command import command, group, list_command, verb_command
from muniment.cli.options import ASKER, PLACE, argument, flag
from muniment.cli.output import Screen, counted, format_time, joined, write_note
from muniment.model.breaker import Breaker
from muniment.model.context import Principal
from muniment.model.fields import WriteClass
from muniment.model.work import Backlog, ClockReset, JobRun, Parked

if TYPE_CHECKING:
    import anyio

    from muniment.sync_verbs import Verbs

app = typer.Typer()
work = group(app, "work", lists=True)
_JOB = "job ran_at took failures error"
_BREAKER = "write_class open at by correct samples"


@command(app, "worker", options=PLACE, example="muniment worker --until-idle")
def worker(
    call: Call,
    until_idle: Annotated[
        bool, flag("--until-idle", "Run the jobs that are due, and those they cause; then end.")
    ] = False,
    concurrency: Annotated[
        int, flag("--concurrency", "N", "Jobs at the same time in this process.", min=1, max=64)
    ] = 4,
) -> None:
    """Run the background jobs of all tenants.

    They are consolidation, expiry, purges after an erasure, batches of the audit chain, webhooks and others. Several
    workers share the jobs. A worker that is killed loses nothing; on Ctrl-C or SIGTERM it finishes its jobs.
    """
    import anyio

    from muniment import loops

    ran = anyio.run(_work, call, until_idle, concurrency, backend_options=loops.OPTIONS)
    call.show({"jobs": ran}, lambda: Screen().line(f"{counted(ran, 'job')} done"))


async def _work(call: Call, until_idle: bool, concurrency: int) -> int:
    import anyio

    from muniment.job import JobResult
    from muniment.opening import connect
    from muniment.worker.due import Due
    from muniment.worker.worker import Worker

    ran = 0

    def report(due: Due, done: JobResult | None) -> None:
        nonlocal ran
        ran += 1
        if done is None:
            write_note(f"{due.tenant_id}  {due.job}: failed, see muniment work jobs")
        elif done.nonzero:
            write_note(
                f"{due.tenant_id}  {due.job}: {joined(f'{number} {name}' for name, number in done.nonzero.items())}"
            )

    opened = await connect(call.settings(), None)
    try:
        running = Worker(opened, concurrency=concurrency, on_done=report)
        if until_idle:
            await running.until_idle()
        else:
            write_note("working; Ctrl-C ends it")
            await _until_signal(running.forever)
    finally:
        with anyio.CancelScope(shield=True):
            await opened.close()
    return ran


async def _until_signal(run: Callable[[], Awaitable[None]]) -> None:
    import anyio

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_cancel_on_signal, tasks.cancel_scope)
        await run()
        tasks.cancel_scope.cancel()


async def _cancel_on_signal(scope: "anyio.CancelScope") -> None:
    import anyio

    from muniment.database.end_signals import ending_signals

    with anyio.open_signal_receiver(*ending_signals()) as signals:
        async for _ in signals:
            scope.cancel()


def _draw_backlog(screen: Screen, found: Backlog) -> None:
    since = f", since {format_time(found.since)}" if found.since is not None else ""
    screen.line(f"{counted(found.behind, 'capture')} to consolidate{since}")
    retry = f", from {format_time(found.next_at)} on" if found.next_at is not None else ""
    screen.line(f"{found.again} to retry{retry}")
    screen.line(f"{found.parked} parked")


@verb_command(work, "list", "admin", draw=_draw_backlog, example="muniment work list")
def backlog(fabric: "Verbs", admin: Principal) -> Backlog:
    """Show how many captures wait to be consolidated, and since when."""
    return fabric.work.backlog(admin)


@list_command(
    work,
    "parked",
    "admin",
    draw="capture_id parked_at tries error",
    key="capture_id",
    empty="nothing is parked",
    limit=100,
    example="muniment work parked",
)
def parked(fabric: "Verbs", admin: Principal, **page: Any) -> Sequence[Parked]:
    """List the captures that were parked after their last retry, with the reason, the oldest first."""
    return fabric.work.parked(admin, **page)


@command(work, "requeue", options=ASKER, example="muniment work requeue cap_01a1de60")
def requeue(
    call: Call,
    capture_ids: Annotated[list[str] | None, argument("CAPTURE...", "Parked captures; by default all of them.")] = None,
) -> None:
    """Have parked captures tried again."""
    with call.open() as fabric:
        done = fabric.work.requeue(call.principal("admin"), capture_ids or None)
    call.show({"requeued": list(done)}, lambda: Screen().line(f"{counted(len(done), 'capture')} to be tried again"))


@verb_command(work, "jobs", "admin", draw=_JOB, empty="no job has run yet", example="muniment work jobs")
def jobs(fabric: "Verbs", admin: Principal) -> Sequence[JobRun]:
    """List the jobs: when each ran last, how many seconds it took, and its error."""
    return fabric.work.jobs(admin)


@verb_command(work, "breakers", "admin", draw=_BREAKER, empty="none was suspended", example="muniment work breakers")
def breakers(fabric: "Verbs", admin: Principal) -> Sequence[Breaker]:
    """List the classes whose automatic promotion was suspended, or has been resumed."""
    return fabric.work.breakers(admin)


@verb_command(work, "resume", "admin", draw=_BREAKER, example="muniment work resume preference")
def resume(
    fabric: "Verbs", admin: Principal, write_class: Annotated[WriteClass, argument("CLASS", "A suspended class.")]
) -> Breaker:
    """Resume the automatic promotion of a suspended class."""
    return fabric.work.resume(admin, write_class)


def _draw_reset(screen: Screen, done: ClockReset) -> None:
    screen.line(f"the clock was set from {format_time(done.was_at)} to {format_time(done.at)}, sequence {done.seq}")


@verb_command(
    work,
    "reset-clock",
    "admin",
    draw=_draw_reset,
    example="muniment work reset-clock --reason 'the clock of node 3 was ahead'",
)
def reset_clock(
    fabric: "Verbs", admin: Principal, reason: Annotated[str, flag("--reason", "TEXT", "Why, for the event log.")]
) -> ClockReset:
    """Set the tenant's clock back to now, after a program's clock was ahead. Sequence numbers continue."""
    return fabric.work.reset_clock(admin, reason=reason)
