"""The work in hand, for those who run it: backlog, parked captures, jobs, and classes that were suspended."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from muniment.context import FabricContext
from muniment.errors import Conflict, InvalidInput
from muniment.language.redaction import holds_personal_data
from muniment.model.breaker import Breaker
from muniment.model.context import Asker
from muniment.model.fields import Artifact, Name, WriteClass, build
from muniment.model.work import Backlog, ClockReset, JobRun, Parked
from muniment.review import store as review
from muniment.verbs import arguments as checks


class _Named(Artifact):
    capture_ids: Annotated[tuple[Name, ...], Field(min_length=1, max_length=10_000, fail_fast=True)] | None = None


class _Reason(Artifact):
    reason: Name


class AsyncWork:
    """What the jobs are at in a tenant."""

    def __init__(self, context: FabricContext) -> None:
        self._context = context

    async def backlog(self, asker: Asker) -> Backlog:
        """How much waits to be consolidated."""
        await self._context.authorise(asker, "read_work")
        async with self._context.transaction(asker.tenant_id, "auditor") as tx:
            row = await tx.row("candidate.backlog")
            assert row is not None
            return Backlog(**row)

    async def parked(self, asker: Asker, *, limit: int = 100, after: str | None = None) -> Sequence[Parked]:
        """Captures that were given up after the last try, oldest first; `after` is the last id of the page before."""
        count, last = checks.page(limit, after)
        await self._context.authorise(asker, "read_work")
        async with self._context.transaction(asker.tenant_id, "auditor") as tx:
            return [Parked(**row) for row in await tx.rows("candidate.parked", after=last or "", count=count)]

    async def requeue(self, asker: Asker, capture_ids: Sequence[str] | None = None) -> Sequence[str]:
        """Have parked captures tried again, all of them where none is named; gives those that were parked."""
        given = build(_Named, {"capture_ids": capture_ids})
        principal = await self._context.authorise(asker, "work")
        async with self._context.write_once(principal.tenant_id, "writer") as tx:
            ids = list(given.capture_ids) if given.capture_ids is not None else None
            again = sorted(row["capture_id"] for row in await tx.rows("candidate.requeue", capture_ids=ids))
            if again:
                tx.emit("memory.note", principal.id, about="requeued", captures=len(again))
            return again

    async def jobs(self, asker: Asker) -> Sequence[JobRun]:
        """When each job ran last."""
        await self._context.authorise(asker, "read_work")
        async with self._context.transaction(asker.tenant_id, "auditor") as tx:
            return [JobRun(**row) for row in await tx.rows("jobs.runs")]

    async def breakers(self, asker: Asker) -> Sequence[Breaker]:
        """The classes whose promotion without a person was ever suspended, and how they stand."""
        await self._context.authorise(asker, "read_work")
        async with self._context.transaction(asker.tenant_id, "auditor") as tx:
            return await review.breakers(tx)

    async def reset_clock(self, asker: Asker, *, reason: str) -> ClockReset:
        """Bring the tenant's clock back to now, after a program's clock was ahead; the numbers go on.

        It is an event, `memory.clock_reset`. A time that the clock passes twice by this is ambiguous to `as_of` from
        then on; a number never is. Raises `Conflict` where the clock is not ahead, and `ClockAhead` where this
        program's own clock is.
        """
        given = build(_Reason, {"reason": reason})
        principal = await self._context.authorise(asker, "work")
        if holds_personal_data(await self._context.pack_for(asker), [given.reason]):
            raise InvalidInput("holds personal data, which an event cannot", field="reason")
        async with self._context.write_once(principal.tenant_id, "writer") as tx:
            done = await tx.set_back(principal.id, given.reason)
            if done is None:
                raise Conflict("the tenant's clock is not ahead")
            tick, was_at = done
            tx.emit("memory.clock_reset", principal.id, was_at=was_at, reason=given.reason)
        return ClockReset(seq=tick.seq, at=tick.at, was_at=was_at, reset_by=principal.id, reason=given.reason)

    async def resume(self, asker: Asker, write_class: WriteClass) -> Breaker:
        """Let a suspended class be promoted without a person again; its samples are counted anew.

        Raises `Conflict` for a class that is not suspended.
        """
        which = checks.write_class(write_class, "write_class")
        principal = await self._context.authorise(asker, "work")
        async with self._context.write_once(principal.tenant_id, "writer") as tx:
            if which not in await review.suspended_classes(tx):
                raise Conflict("is not suspended", field="write_class")
            await review.resume_class(tx, which, principal)
        async with self._context.transaction(principal.tenant_id, "auditor") as tx:
            return next(one for one in await review.breakers(tx) if one.write_class == which)
