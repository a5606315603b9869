"""The worker, and the work in hand: what waits, what was parked, which classes were suspended."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated

import anyio
import typer

from muniment import loops
from muniment.cli.asking import Call, ListsByDefault, verb
from muniment.cli.options import PLACE, WHERE, WHO
from muniment.cli.output import Screen, listed, moment, note
from muniment.cli.views import count
from muniment.database.end_signals import ending_signals
from muniment.model.breaker import Breaker
from muniment.model.fields import WriteClass
from muniment.model.work import Backlog, ClockReset, JobRun, Parked
from muniment.opening import connect

app = typer.Typer()
work = typer.Typer(cls=ListsByDefault)
_OPTIONS = (*WHO, *WHERE)
_PANEL = "Run it"


@verb(app, "worker", panel=_PANEL, options=PLACE, example="muniment worker --until-idle")
def worker(
    call: Call,
    until_idle: Annotated[
        bool, typer.Option("--until-idle", help="Run what is due, and what becomes due by it; then end.")
    ] = False,
    concurrency: Annotated[
        int, typer.Option("--concurrency", metavar="N", min=1, max=64, help="Jobs at once in this process.")
    ] = 4,
) -> None:
    """Run the jobs of all tenants: consolidation, expiry, erasure's purge, audit batches, webhooks and the others.

    As many workers as wanted share the work. One that is killed loses nothing; one that is told to end (Ctrl-C,
    SIGTERM) finishes what it is at.
    """
    ran = anyio.run(_work, call, until_idle, concurrency, backend_options=loops.OPTIONS)
    call.show({"jobs": ran}, lambda: Screen().line(f"{count(ran, 'job')} done"))


async def _work(call: Call, until_idle: bool, concurrency: int) -> int:
    # A quarter of a second to import, which only those pay who work.
    from muniment.job import Done
    from muniment.worker.due import Due
    from muniment.worker.worker import Worker

    ran = 0

    def tell(what: Due, done: Done | None) -> None:
        nonlocal ran
        ran += 1
        if done is None:
            note(f"{what.tenant_id}  {what.job}: failed, see muniment work jobs")
        elif done.nonzero:
            note(f"{what.tenant_id}  {what.job}: {listed(f'{number} {name}' for name, number in done.nonzero.items())}")

    opened = await connect(call.settings(), None)
    try:
        at_work = Worker(opened, concurrency=concurrency, on_done=tell)
        if until_idle:
            await at_work.until_idle()
        else:
            note("working; Ctrl-C ends it")
            await _until_told(at_work.forever)
    finally:
        with anyio.CancelScope(shield=True):
            await opened.close()
    return ran


async def _until_told(working: Callable[[], Awaitable[None]]) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_watch, tasks.cancel_scope)
        await working()
        tasks.cancel_scope.cancel()


async def _watch(scope: anyio.CancelScope) -> None:
    with anyio.open_signal_receiver(*ending_signals()) as signals:
        async for _ in signals:
            scope.cancel()


@verb(work, "list", options=_OPTIONS, example="muniment work list")
def backlog(call: Call) -> None:
    """Show how much waits to be consolidated, and since when."""
    with call.open() as fabric:
        found = fabric.work.backlog(call.principal("admin"))
    call.show(found, lambda: _draw_backlog(found))


@verb(work, "parked", options=_OPTIONS, example="muniment work parked")
def parked(
    call: Call,
    limit: Annotated[int, typer.Option("--limit", help="At most so many.")] = 100,
    after: Annotated[str | None, typer.Option("--after", metavar="ID", help="The last one of the page before.")] = None,
) -> None:
    """List the captures that were given up after the last try, with the reason, oldest first."""
    with call.open() as fabric:
        found = fabric.work.parked(call.principal("admin"), limit=limit, after=after)
    call.show(found, lambda: _draw_parked(found))
    if not found:
        call.note("nothing is parked")
    elif len(found) == limit:
        call.note(f"there may be more: muniment work parked --after {found[-1].capture_id}")


@verb(work, "requeue", options=_OPTIONS, example="muniment work requeue cap_01a1de60ebda060e4c4895463c41")
def requeue(
    call: Call,
    capture_ids: Annotated[
        list[str] | None, typer.Argument(metavar="CAPTURE...", help="Parked captures; all of them when none is named.")
    ] = None,
) -> None:
    """Have parked captures tried again."""
    with call.open() as fabric:
        again = fabric.work.requeue(call.principal("admin"), capture_ids or None)
    call.show({"requeued": list(again)}, lambda: Screen().line(f"{count(len(again), 'capture')} to be tried again"))


@verb(work, "jobs", options=_OPTIONS, example="muniment work jobs")
def jobs(call: Call) -> None:
    """List the jobs: when each ran last, how long it took, and what went wrong."""
    with call.open() as fabric:
        found = fabric.work.jobs(call.principal("admin"))
    call.show(found, lambda: _draw_jobs(found))
    if not found:
        call.note("no job has run yet: start muniment worker")


@verb(work, "breakers", options=_OPTIONS, example="muniment work breakers")
def breakers(call: Call) -> None:
    """List the classes whose promotion without a person was suspended."""
    with call.open() as fabric:
        found = fabric.work.breakers(call.principal("admin"))
    call.show(found, lambda: _draw_breakers(found))
    if not found:
        call.note("no class was ever suspended")


@verb(work, "resume", options=_OPTIONS, example="muniment work resume preference")
def resume(
    call: Call, write_class: Annotated[WriteClass, typer.Argument(metavar="CLASS", help="A suspended class.")]
) -> None:
    """Let a suspended class be promoted without a person again."""
    with call.open() as fabric:
        changed = fabric.work.resume(call.principal("admin"), write_class)
    call.show(changed, lambda: _draw_breakers([changed]))


def _draw_backlog(found: Backlog) -> None:
    screen = Screen()
    since = f", since {moment(found.since)}" if found.since is not None else ""
    screen.line(f"{count(found.behind, 'capture')} to be consolidated{since}")
    again = f", from {moment(found.next_at)} on" if found.next_at is not None else ""
    screen.line(f"{found.again} to be tried again{again}")
    screen.line(f"{found.parked} parked")


def _draw_parked(found: Sequence[Parked]) -> None:
    screen = Screen()
    for one in found:
        screen.line(f"{one.capture_id}  {moment(one.parked_at)}  tried {count(one.tries, 'time')}")
        screen.line(one.error or "", indent=4)


def _draw_jobs(found: Sequence[JobRun]) -> None:
    screen = Screen()
    for one in found:
        said = f"failed {count(one.failures, 'time')}: {one.error}" if one.failures else f"took {one.took:.2f} s"
        screen.line(f"{one.job:<12} {moment(one.ran_at)}  {said}")


def _draw_breakers(found: Sequence[Breaker]) -> None:
    screen = Screen()
    for one in found:
        state = "suspended" if one.open else "promoted by policy"
        right = f"  {one.correct} of {one.samples} samples right" if one.open else ""
        screen.line(f"{one.write_class:<18} {state} since {moment(one.at)} by {one.by}{right}")


@verb(
    work, "reset-clock", options=_OPTIONS, example="muniment work reset-clock --reason 'the clock of node 3 was ahead'"
)
def reset_clock(
    call: Call,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why, for the log.")],
) -> None:
    """Bring the tenant's clock back to now, after a program's clock was ahead. The sequence numbers go on."""
    with call.open() as fabric:
        done = fabric.work.reset_clock(call.principal("admin"), reason=reason)
    call.show(done, lambda: _draw_reset(Screen(), done))


def _draw_reset(screen: Screen, done: ClockReset) -> None:
    screen.line(f"the clock is back at {moment(done.at)} from {moment(done.was_at)}, with number {done.seq}")
