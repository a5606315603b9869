"""The verbs of the work in hand: backlog, parked captures, job runs, suspended classes, and the tenant's clock."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from muniment.context import FabricContext
from muniment.errors import Conflict, InvalidInput
from muniment.language.redaction import holds_personal_data
from muniment.model.context import Principal
from muniment.model.fields import Name, WriteClass
from muniment.model.inputs import Listing, PageSize, VerbInput
from muniment.model.work import Backlog, Breaker, ClockReset, JobRun, Parked
from muniment.review import store as review
from muniment.verbs.declaration import verb


@verb("work.backlog", right="read_work", http="GET /work/backlog", cli="work list")
async def backlog(context: FabricContext, reader: Principal) -> Backlog:
    """Show how many captures wait to be consolidated, and since when."""
    async with context.transaction(reader.tenant_id, "auditor") as tx:
        row = await tx.row("candidate.backlog")
        assert row is not None
        return Backlog(**row)


class ListParked(Listing):
    """Which parked captures to list."""

    limit: PageSize = 100


@verb("work.parked", right="read_work", http="GET /work/parked", page_key="capture_id", cli="work parked")
async def parked(context: FabricContext, reader: Principal, request: ListParked) -> Sequence[Parked]:
    """List the captures that were parked after their last retry, with the reason, the oldest first.

    `after` is the id of the last of the previous page.
    """
    async with context.transaction(reader.tenant_id, "auditor") as tx:
        rows = await tx.rows("candidate.parked", after=request.after or "", count=request.limit)
        return [Parked(**row) for row in rows]


class Requeue(VerbInput):
    """Which parked captures to try again; by default all."""

    capture_ids: Annotated[tuple[Name, ...], Field(min_length=1, max_length=10_000, fail_fast=True)] | None = Field(
        None, description="parked captures; by default all of them"
    )


@verb("work.requeue", right="work", http="POST /work/requeue", positional=("capture_ids",), cli="work requeue")
async def requeue(context: FabricContext, admin: Principal, request: Requeue) -> Sequence[str]:
    """Have parked captures tried again, by default all; returns the ids of those that were parked."""
    async with context.write_once(admin.tenant_id, "writer") as tx:
        ids = list(request.capture_ids) if request.capture_ids is not None else None
        again = sorted(row["capture_id"] for row in await tx.rows("candidate.requeue", capture_ids=ids))
        if again:
            tx.emit("memory.note", admin.id, about="requeued", captures=len(again))
        return again


@verb("work.jobs", right="read_work", http="GET /work/jobs", cli="work jobs")
async def jobs(context: FabricContext, reader: Principal) -> Sequence[JobRun]:
    """List the jobs: when each ran last, how many seconds it took, and its error."""
    async with context.transaction(reader.tenant_id, "auditor") as tx:
        return [JobRun(**row) for row in await tx.rows("jobs.runs")]


@verb("work.breakers", right="read_work", http="GET /work/breakers", cli="work breakers")
async def breakers(context: FabricContext, reader: Principal) -> Sequence[Breaker]:
    """List the classes whose automatic promotion was suspended, or has been resumed."""
    async with context.transaction(reader.tenant_id, "auditor") as tx:
        return await review.breakers(tx)


class ResetClock(VerbInput):
    """Why a tenant's clock is reset."""

    reason: Name = Field(description="why, for the event log")


@verb("work.reset_clock", right="work", http="POST /work/clock/reset", cli="work reset-clock")
async def reset_clock(context: FabricContext, admin: Principal, request: ResetClock) -> ClockReset:
    """Set the tenant's clock back to now, after a program's clock was ahead. Sequence numbers continue.

    It is an event, `memory.clock_reset`. A time that the clock passes twice is ambiguous to `as_of` from then on; a
    sequence number never is. Raises `Conflict` if the clock is not ahead, and `ClockAhead` if this program's own
    clock is.
    """
    if holds_personal_data(await context.pack_for(admin), [request.reason]):
        raise InvalidInput("holds personal data, which an event cannot", field="reason")
    async with context.write_once(admin.tenant_id, "writer") as tx:
        done = await tx.set_back(admin.id, request.reason)
        if done is None:
            raise Conflict("the tenant's clock is not ahead")
        tick, was_at = done
        tx.emit("memory.clock_reset", admin.id, was_at=was_at, reason=request.reason)
    return ClockReset(seq=tick.seq, at=tick.at, was_at=was_at, reset_by=admin.id, reason=request.reason)


class ResumeClass(VerbInput):
    """A suspended class."""

    write_class: WriteClass = Field(description="a suspended class")


@verb("work.resume", right="work", http="POST /work/breakers/{write_class}/resume", cli="work resume")
async def resume(context: FabricContext, admin: Principal, request: ResumeClass) -> Breaker:
    """Resume the automatic promotion of a suspended class; its samples are counted from the start.

    Raises `Conflict` for a class that is not suspended.
    """
    write_class = request.write_class
    async with context.write_once(admin.tenant_id, "writer") as tx:
        if write_class not in await review.suspended_classes(tx):
            raise Conflict("is not suspended", field="write_class")
        await review.resume_class(tx, write_class, admin)
    async with context.transaction(admin.tenant_id, "auditor") as tx:
        return next(one for one in await review.breakers(tx) if one.write_class == write_class)
