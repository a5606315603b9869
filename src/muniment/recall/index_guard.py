"""Keeps what this process holds in memory within reach of erasures (ADR 56).

Vectors and words in the index are content. Before a process holds any of a tenant it adds its row to `index_holders`.
Once a minute, and whenever content of the tenant was removed, it overwrites what ended and confirms the visibility
number up to which it did. A purge waits until every process has confirmed the erasure, or has no lease any more:
without one a process holds nothing.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, suppress
from contextvars import Context
from datetime import UTC, datetime
from time import monotonic
from uuid import uuid4
from weakref import WeakValueDictionary

import anyio
from anyio.abc import TaskGroup

from muniment.database.storage import Storage, Transaction
from muniment.errors import MunimentError, StorageUnavailable
from muniment.recall.scope_index import Lease, PartKey, ScopeIndexes
from muniment.recall.scope_part import VisibilityNumber

log = logging.getLogger("muniment.recall")

# How often a process confirms, and how long its lease is. Its own time is up earlier, so that everything is dropped
# when the lease ends by the database's clock.
CONFIRM_SECONDS = 60.0
HOLD_SECONDS = 120.0
LEASE_SECONDS = 180.0
# A process that ends sooner does not listen for notices.
LISTEN_AFTER_SECONDS = 1.0
LISTEN_AGAIN_SECONDS = 10.0
# How long the last rows of a process may take to be removed.
CLOSE_SECONDS = 3.0


class IndexGuard:
    """The index of this process, with its leases and the task that confirms them; the task runs while there are any."""

    def __init__(self, scopes: ScopeIndexes | None = None) -> None:
        self.scopes = scopes if scopes is not None else ScopeIndexes()
        self.holder_id = uuid4().hex
        self.listen_after = LISTEN_AFTER_SECONDS
        self._storage: Storage | None = None
        # Tenants that have a row of this process, and one lock for whoever changes it.
        self._rows: set[str] = set()
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        # Tenants whose content was removed, and that were not confirmed since.
        self._told: set[str] = set()
        self._task: asyncio.Task[None] | None = None

    async def hold(self, storage: Storage, tenant_id: str) -> bool:
        """Get a lease on a tenant, unless there is one; False if the tenant has no memories.

        Raises `StorageUnavailable`.
        """
        if tenant_id in self.scopes.leases and monotonic() < self.scopes.leases[tenant_id].until:
            return True
        self._storage = storage
        async with self._turn(tenant_id):
            self.scopes.drop_unused()
            if tenant_id in self.scopes.leases:
                return True
            asked_at = monotonic()
            async with self._transaction(tenant_id) as tx:
                _, found = await tx.gather(("holders.durable", {}), ("scopes.number", {}))
                if not found:
                    return False
                number = VisibilityNumber(found[0]["visible_seq"], found[0]["mark"])
                await tx.do("holders.hold", **self._row(number))
            self._rows.add(tenant_id)
            self.scopes.leases[tenant_id] = Lease(number, asked_at + HOLD_SECONDS)
        self._start()
        return True

    async def confirm(self, tenant_id: str) -> None:
        """Overwrite what ended in a tenant, and confirm that to the database; raises StorageUnavailable."""
        async with self._turn(tenant_id):
            self._told.discard(tenant_id)
            self.scopes.drop_unused()
            lease = self.scopes.leases.get(tenant_id)
            if lease is None:
                await self._release(tenant_id)
                return
            asked_at = monotonic()
            async with self._transaction(tenant_id) as tx:
                number = await self._drop_ended(tx, tenant_id, lease)
                confirmed = number is not None and await tx.do("holders.confirm", **self._row(number))
            if confirmed:
                lease.until = asked_at + HOLD_SECONDS
            else:
                await self._release(tenant_id)

    async def confirm_all(self) -> None:
        """Confirm every tenant; what cannot be confirmed is dropped when its lease ends."""
        for tenant_id in sorted(self._rows):
            await self._confirm_quietly(tenant_id)
        self.scopes.drop_unused()

    async def tend(self) -> None:
        """Give up the leases on tenants of which nothing is held, now and the last time, and confirm all others."""
        self.scopes.drop_unused()
        for tenant_id, lease in list(self.scopes.leases.items()):
            is_empty = not self.scopes.of_tenant(tenant_id)
            if is_empty and lease.was_empty:
                self.scopes.leases.pop(tenant_id)
            lease.was_empty = is_empty
        await self.confirm_all()

    async def close(self) -> None:
        """Drop everything, and remove this process from those that hold an index."""
        self.scopes.clear()
        with anyio.move_on_after(CLOSE_SECONDS, shield=True):
            if self._task is not None and not self._task.done():
                self._task.cancel()
                await asyncio.wait([self._task])
            with suppress(MunimentError):
                for tenant_id in sorted(self._rows):
                    await self.confirm(tenant_id)

    # ---- one tenant ----

    async def _drop_ended(self, tx: Transaction, tenant_id: str, lease: Lease) -> VisibilityNumber | None:
        """Overwrite in memory what ended since the lease's number; returns the number up to which that was done.

        From then on nothing is held that was read at an earlier number.
        """
        before = {key: part.number for key, part in self.scopes.of_tenant(tenant_id).items()}
        numbers = sorted({lease.number.seq, *(number.seq for number in before.values())})
        _, found, marks, ended = await tx.gather(
            ("holders.durable", {}),
            ("scopes.number", {}),
            ("holders.marks", {"numbers": numbers}),
            ("scopes.ended", {"after": lease.number.seq}),
        )
        known = {VisibilityNumber(row["visible_seq"], row["mark"]) for row in marks}
        if not found or lease.number not in known or self.scopes.leases.get(tenant_id) is not lease:
            return None
        number = VisibilityNumber(found[0]["visible_seq"], found[0]["mark"])
        lease.number = number
        self._remove(tenant_id, [row["memory_id"] for row in ended], number, before, known)
        return number

    def _remove(
        self,
        tenant_id: str,
        memory_ids: Sequence[str],
        number: VisibilityNumber,
        before: dict[PartKey, VisibilityNumber],
        known: set[VisibilityNumber],
    ) -> None:
        for key, part in self.scopes.of_tenant(tenant_id).items():
            if part.number == before.get(key) and part.number not in known:
                self.scopes.drop(key)  # Read from a database that was restored since.
            elif part.number.seq < number.seq:
                part.remove_ended(memory_ids)

    async def _release(self, tenant_id: str) -> None:
        """Drop everything of a tenant, and remove the row."""
        self.scopes.leases.pop(tenant_id, None)
        self.scopes.forget(tenant_id)
        if tenant_id in self._rows:
            async with self._transaction(tenant_id) as tx:
                await tx.do("holders.release", holder_id=self.holder_id)
            self._rows.discard(tenant_id)

    async def _confirm_quietly(self, tenant_id: str) -> None:
        try:
            await self.confirm(tenant_id)
        except StorageUnavailable:
            pass  # Everything is dropped when the lease ends.
        except Exception as error:
            log.warning("tenant %s: the index in memory cannot be confirmed: %s", tenant_id, type(error).__name__)

    def _turn(self, tenant_id: str) -> asyncio.Lock:
        turn = self._turns.get(tenant_id)
        if turn is None:
            turn = self._turns[tenant_id] = asyncio.Lock()
        return turn

    def _row(self, number: VisibilityNumber) -> dict[str, object]:
        return {"holder_id": self.holder_id, "visible_seq": number.seq, "lease": LEASE_SECONDS}

    def _transaction(self, tenant_id: str) -> AbstractAsyncContextManager[Transaction]:
        assert self._storage is not None
        return self._storage.transaction(tenant_id, "recall", datetime.now(UTC))

    # ---- the task ----

    def _start(self) -> None:
        if self._task is None or self._task.done():
            # In a context of its own: it belongs to no call.
            self._task = asyncio.get_running_loop().create_task(self._watch(), context=Context())

    async def _watch(self) -> None:
        """Confirm once a minute, and when told, until nothing is held."""
        while self._rows:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._listen, tasks)
                while self._rows:
                    await anyio.sleep(CONFIRM_SECONDS)
                    await self.tend()
                tasks.cancel_scope.cancel()

    async def _listen(self, tasks: TaskGroup) -> None:
        """Confirm the tenants whose content was removed as soon as notices name them."""
        assert self._storage is not None

        def heard(tenant_id: str) -> None:
            if tenant_id in self._rows and tenant_id not in self._told:
                self._told.add(tenant_id)
                tasks.start_soon(self._confirm_quietly, tenant_id)

        def began() -> None:
            tasks.start_soon(self.confirm_all)  # What was removed before is not told.

        await anyio.sleep(self.listen_after)
        while self._storage.can_listen:
            if await self._storage.listen("muniment_removed", began, heard):
                # The connection was lost: the database may have been restored, or not have the last row any more.
                self.scopes.clear()
            await anyio.sleep(LISTEN_AGAIN_SECONDS)
