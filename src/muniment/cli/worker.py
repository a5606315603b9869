"""The worker, and the backlog: what waits, what was parked, the jobs, suspended classes."""

import logging
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from muniment.cli.call import Call
from muniment.cli.command import command, group
from muniment.cli.options import PLACE, flag
from muniment.cli.output import Screen, counted, format_time, joined, write_note
from muniment.cli.plain import plain
from muniment.errors import InvalidInput
from muniment.model.work import Backlog, ClockReset

if TYPE_CHECKING:
    import anyio
    from anyio.abc import TaskStatus

    from muniment.http.logs import Form
    from muniment.supervisor import Command, Link


app = typer.Typer()
log_of_jobs = logging.getLogger("muniment.jobs")
work = group(app, "work", lists=True)
_BREAKER = "write_class open at by correct samples"


@command(app, "worker", options=PLACE)
def worker(
    call: Call,
    until_idle: Annotated[
        bool, flag("--until-idle", "Run the jobs that are due, and those they cause; then end.")
    ] = False,
    concurrency: Annotated[int, flag("--concurrency N", "Jobs at the same time in each process.", min=1, max=64)] = 4,
    processes: Annotated[
        int, flag("--processes N", "Processes that share the jobs.", envvar="MUNIMENT_PROCESSES", min=1, max=512)
    ] = 1,
    log: Annotated[
        Literal["json", "text"] | None,
        flag(
            "--log", "The format of the log on stderr; by default text on a terminal, else JSON.", envvar="MUNIMENT_LOG"
        ),
    ] = None,
) -> None:
    """Run the background jobs of all tenants.

    They are consolidation, expiry, purges after an erasure, batches of the audit chain, webhooks and others. Several
    workers share the jobs. A worker that is killed loses nothing; on Ctrl-C or SIGTERM it finishes its jobs. With
    several processes, SIGHUP replaces them one by one, and one that dies is replaced. With --until-idle it says what
    the jobs did, and keeps a log only with --log.
    """
    import anyio

    from muniment import loops
    from muniment.http import logs

    if processes > 1 and until_idle:
        raise InvalidInput("runs in one process: leave out --processes", field="until_idle")
    call.note_broken_readers(call.settings())
    if not until_idle or log is not None:
        logs.set_up(log)
    if processes > 1:
        code, ran = _supervise(call, concurrency, processes, log)
    else:
        code, ran = 0, anyio.run(_work, call, until_idle, concurrency, 1, None, backend_options=loops.OPTIONS)
    call.show_line({"jobs": ran}, f"{counted(ran, 'job')} done")
    if code:
        raise typer.Exit(code)


def _supervise(call: Call, concurrency: int, processes: int, form: "Form | None") -> tuple[int, int]:
    """Work in several processes; the exit code, and how many jobs ran."""
    from muniment.supervisor import Supervisor

    figures: list[int] = []
    code = Supervisor(
        _work_in_process,
        (call, concurrency, processes, form),
        processes,
        on_ready=lambda: log_of_jobs.info("working in %s processes", processes),
        on_figure=figures.append,
    ).run()
    return code, sum(figures)


def _work_in_process(
    number: int, link: "Link", call: Call, concurrency: int, processes: int, form: "Form | None"
) -> None:
    """Work in one of several processes."""
    import anyio

    from muniment import loops
    from muniment.http import logs

    logs.set_up(form, process=number)
    link.send(anyio.run(_work, call, False, concurrency, processes, link, backend_options=loops.OPTIONS))


async def _work(call: Call, until_idle: bool, concurrency: int, processes: int, link: "Link | None") -> int:
    import anyio

    from muniment.job import JobResult
    from muniment.opening import connect
    from muniment.worker.due import Due
    from muniment.worker.worker import Worker

    ran = 0

    def report(due: Due, done: JobResult | None) -> None:
        nonlocal ran
        ran += 1
        if not until_idle:
            return  # It stands in the log.
        if done is None:
            write_note(f"{due.tenant_id}  {due.job}: failed, see muniment work jobs")
        elif done.nonzero:
            write_note(
                f"{due.tenant_id}  {due.job}: {joined(f'{number} {name}' for name, number in done.nonzero.items())}"
            )

    opened = await connect(replace(call.settings(), processes=processes), None, repairs=True)
    try:
        running = Worker(opened, concurrency=concurrency, on_done=report)
        if until_idle:
            await running.until_idle()
        else:
            async with anyio.create_task_group() as tasks:
                # Before it says that it works: then whoever reads that may end it.
                await tasks.start(_cancel_on_signal, tasks.cancel_scope)
                if link is None:
                    log_of_jobs.info("working")
                else:
                    link.send("ready")
                    tasks.start_soon(link.follow, partial(_on_command, tasks.cancel_scope))
                await running.forever()
                tasks.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await opened.close()
    return ran


def _on_command(scope: "anyio.CancelScope", command: "Command") -> None:
    if command != "work":
        scope.cancel()


async def _cancel_on_signal(scope: "anyio.CancelScope", *, task_status: "TaskStatus[None]") -> None:
    import anyio

    from muniment.database.end_signals import ending_signals

    with anyio.open_signal_receiver(*ending_signals()) as signals:
        task_status.started()
        async for _ in signals:
            scope.cancel()


def _draw_backlog(screen: Screen, found: Backlog) -> None:
    since = f", since {format_time(found.since)}" if found.since is not None else ""
    screen.line(f"{counted(found.behind, 'capture')} to consolidate{since}")
    retry = f", from {format_time(found.next_at)} on" if found.next_at is not None else ""
    screen.line(f"{found.again} to retry{retry}")
    screen.line(f"{found.parked} parked")
    if found.model_error is not None:
        screen.line(f"a language model fails: {found.model_error}")


def _draw_reset(screen: Screen, done: ClockReset) -> None:
    screen.line(f"the clock was set from {format_time(done.was_at)} to {format_time(done.at)}, sequence {done.seq}")


plain(work, "list", draw=_draw_backlog)
plain(work, "parked", draw="capture_id parked_at tries error", empty="nothing is parked")
plain(
    work,
    "requeue",
    draw=lambda screen, done: screen.line(f"{counted(len(done['requeued']), 'capture')} to be tried again"),
    document=lambda done, _: {"requeued": list(done)},
)
plain(work, "jobs", draw="job ran_at took failures error", empty="no job has run yet")
plain(work, "breakers", draw=_BREAKER, empty="none was suspended")
plain(work, "resume", draw=_BREAKER)
plain(work, "reset-clock", draw=_draw_reset)
