"""Removes erased content from the index in this process's memory, and confirms that to the database (ADR 56).

Vectors and words in the index are content. Before a process holds any of a tenant's, it adds its row to
`index_holders`, which is its lease. Once a minute, and whenever content of the tenant was removed, it overwrites the
memories that ended and confirms the visibility number up to which it did so. A purge waits until every process has
confirmed the erasure or its lease has ended: without a lease a process holds nothing.
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
from anyio import CancelScope
from anyio.abc import TaskGroup
from anyio.lowlevel import checkpoint_if_cancelled

from muniment.database.storage import NamedStatement, Row, Storage, Transaction
from muniment.errors import MunimentError, StorageUnavailable
from muniment.recall.scope_changes import PartKey
from muniment.recall.scope_index import Lease, Scope, ScopeIndexes
from muniment.recall.scope_part import VisibilityNumber

log = logging.getLogger("muniment.recall")

# How often a process confirms; for how long it holds anything after that, by its own clock; and the lease in the
# database. The second is shorter than the third, so that everything is dropped before the lease ends.
CONFIRM_SECONDS = 60.0
HOLD_SECONDS = 120.0
LEASE_SECONDS = 180.0
# How often it drops what it holds under leases that ran out, however long confirming takes.
DROP_SECONDS = 5.0
# Tenants that are confirmed at a time: each waits for the disk.
AT_ONCE = 4
# When a process begins to listen for notices, so that short ones never do; and when again after a lost connection.
LISTEN_AFTER_SECONDS = 1.0
LISTEN_AGAIN_SECONDS = 10.0
# How long a process that closes waits until its rows are removed.
CLOSE_SECONDS = 3.0


class IndexGuard:
    """The index of this process, its leases, and the task that renews them; the task runs while there are leases."""

    def __init__(self, scopes: ScopeIndexes | None = None) -> None:
        self.scopes = scopes if scopes is not None else ScopeIndexes()
        self.holder_id = uuid4().hex
        self.listen_after = LISTEN_AFTER_SECONDS
        self._storage: Storage | None = None
        # Tenants that have a row of this process; and for each a lock, which is held while the row is changed.
        self._rows: set[str] = set()
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        # Tenants of which a notice said that content was removed, and that were not confirmed since.
        self._notified: set[str] = set()
        self._task: asyncio.Task[None] | None = None
        # The confirmations that the task has begun.
        self._begun: set[CancelScope] = set()

    async def read_scope(
        self, storage: Storage, tx: Transaction, users: Sequence[str], embedder: str | None, dimensions: int
    ) -> Scope | None:
        """Read the scope of those users, or bring it up to date, as `ScopeIndexes.read` does.

        Without a lease on the tenant it acquires one in the same round trip: the row is committed before anything is
        read. Returns None if another task is changing the row. Raises `StorageUnavailable`.
        """
        tenant_id = tx.tenant_id
        if self.scopes.lease_of(tenant_id) is not None:
            return await self.scopes.read(tx.gather, tenant_id, users, embedder, dimensions)
        lock = self._lock(tenant_id)
        if lock.locked():
            # Its holder may wait for a connection, of which this recall has one.
            return None

        async def acquire_and_read(*statements: NamedStatement) -> list[list[Row]]:
            asked_at = monotonic()
            hold: NamedStatement = ("holders.hold", {"holder_id": self.holder_id, "lease": LEASE_SECONDS})
            acquired, found = await tx.gather_after([("holders.durable", {}), ("scopes.number", {}), hold], *statements)
            if acquired[1]:
                number = VisibilityNumber(acquired[1][0]["visible_seq"], acquired[1][0]["mark"])
                self._rows.add(tenant_id)
                self.scopes.leases[tenant_id] = Lease(number, asked_at + HOLD_SECONDS)
            return found

        async with lock:
            self._storage = storage
            scope = await self.scopes.read(acquire_and_read, tenant_id, users, embedder, dimensions)
        if tenant_id in self._rows:
            self._start_task()
        return scope

    async def confirm(self, tenant_id: str) -> None:
        """Overwrite the memories of a tenant that ended, confirm that to the database, and renew the lease.

        If the lease cannot be renewed, everything of the tenant is dropped. Raises `StorageUnavailable`.
        """
        async with self._lock(tenant_id):
            self._notified.discard(tenant_id)
            lease = self.scopes.lease_of(tenant_id)
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
        """Confirm every tenant; one that cannot be confirmed is dropped when its lease ends."""
        waiting = iter(sorted(self._rows))

        async def confirm_some() -> None:
            for tenant_id in waiting:
                await self._try_to_confirm(tenant_id)

        async with anyio.create_task_group() as tasks:
            for _ in range(AT_ONCE):
                tasks.start_soon(confirm_some)
        self.scopes.drop_unused()

    async def renew_leases(self) -> None:
        """Give up the leases of tenants of which nothing was held at this and at the last call; confirm all others."""
        self.scopes.drop_unused()
        for tenant_id, lease in list(self.scopes.leases.items()):
            is_empty = not self.scopes.of_tenant(tenant_id)
            if is_empty and lease.was_empty:
                self.scopes.leases.pop(tenant_id)
            lease.was_empty = is_empty
        await self.confirm_all()

    async def close(self) -> None:
        """Drop everything, stop the task, and remove the rows of this process."""
        self.scopes.clear()
        with anyio.move_on_after(CLOSE_SECONDS, shield=True):
            if self._task is not None and not self._task.done():
                self._task.cancel()
                await asyncio.wait([self._task], timeout=CLOSE_SECONDS / 2)
                for begun in list(self._begun):
                    begun.cancel()
                await asyncio.wait([self._task])
            with suppress(MunimentError):
                for tenant_id in sorted(self._rows):
                    await self.confirm(tenant_id)

    # ---- one tenant ----

    async def _drop_ended(self, tx: Transaction, tenant_id: str, lease: Lease) -> VisibilityNumber | None:
        """Overwrite the memories that ended after the lease's number, and move the lease to the tenant's number.

        Returns that number; None if the lease was replaced, or the database restored, since. From then on nothing is
        held that was read at an earlier number.
        """
        before = {key: part.number for key, part in self.scopes.of_tenant(tenant_id).items()}
        numbers = sorted({lease.number.seq, *(number.seq for number in before.values())})
        _, latest, marks, ended = await tx.gather(
            ("holders.durable", {}),
            ("scopes.number", {}),
            ("holders.marks", {"numbers": numbers}),
            ("scopes.ended", {"after": lease.number.seq}),
        )
        known_numbers = {VisibilityNumber(row["visible_seq"], row["mark"]) for row in marks}
        if not latest or lease.number not in known_numbers or self.scopes.leases.get(tenant_id) is not lease:
            return None
        number = VisibilityNumber(latest[0]["visible_seq"], latest[0]["mark"])
        lease.number = number
        self._remove(tenant_id, [row["memory_id"] for row in ended], number, before, known_numbers)
        return number

    def _remove(
        self,
        tenant_id: str,
        memory_ids: Sequence[str],
        number: VisibilityNumber,
        before: dict[PartKey, VisibilityNumber],
        known_numbers: set[VisibilityNumber],
    ) -> None:
        """Overwrite memories in the parts that are older than a number.

        `before` are the numbers that the parts had when the database was asked which of them it knows.
        """
        for key, part in self.scopes.of_tenant(tenant_id).items():
            if part.number == before.get(key) and part.number not in known_numbers:
                self.scopes.drop(key)  # Read from a database that was restored since.
            elif part.number.seq < number.seq:
                part.remove_ended(memory_ids)

    async def _release(self, tenant_id: str) -> None:
        """Drop everything of a tenant, and remove the row of this process."""
        self.scopes.leases.pop(tenant_id, None)
        self.scopes.forget(tenant_id)
        if tenant_id in self._rows:
            async with self._transaction(tenant_id) as tx:
                await tx.do("holders.release", holder_id=self.holder_id)
            self._rows.discard(tenant_id)

    async def _try_to_confirm(self, tenant_id: str) -> None:
        await checkpoint_if_cancelled()
        # A confirmation that has begun is finished: a statement that is cancelled costs its connection.
        with CancelScope(shield=True) as begun:
            self._begun.add(begun)
            try:
                await self.confirm(tenant_id)
            except StorageUnavailable:
                pass  # Everything is dropped when the lease ends.
            except Exception as error:
                log.warning("tenant %s: the index in memory cannot be confirmed: %s", tenant_id, type(error).__name__)
            finally:
                self._begun.discard(begun)

    def _lock(self, tenant_id: str) -> asyncio.Lock:
        lock = self._locks.get(tenant_id)
        if lock is None:
            lock = self._locks[tenant_id] = asyncio.Lock()
        return lock

    def _row(self, number: VisibilityNumber) -> dict[str, object]:
        return {"holder_id": self.holder_id, "visible_seq": number.seq, "lease": LEASE_SECONDS}

    def _transaction(self, tenant_id: str) -> AbstractAsyncContextManager[Transaction]:
        assert self._storage is not None
        return self._storage.transaction(tenant_id, "recall", datetime.now(UTC))

    # ---- the task ----

    def _start_task(self) -> None:
        if self._task is None or self._task.done():
            # In a context of its own: it belongs to no call.
            self._task = asyncio.get_running_loop().create_task(self._renew(), context=Context())

    async def _renew(self) -> None:
        """Confirm once a minute, and after each notice, until this process has no row."""
        while self._rows:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._listen, tasks)
                tasks.start_soon(self._drop_in_time)
                while self._rows:
                    await anyio.sleep(CONFIRM_SECONDS)
                    await self.renew_leases()
                tasks.cancel_scope.cancel()

    async def _drop_in_time(self) -> None:
        """Drop what is held under leases that ran out, every few seconds: a confirmation may wait for the database."""
        while True:
            await anyio.sleep(DROP_SECONDS)
            self.scopes.drop_unused()

    async def _listen(self, tasks: TaskGroup) -> None:
        """Confirm each tenant as soon as a notice says that content of it was removed."""
        assert self._storage is not None

        def on_notice(tenant_id: str) -> None:
            if tenant_id in self._rows and tenant_id not in self._notified:
                self._notified.add(tenant_id)
                tasks.start_soon(self._try_to_confirm, tenant_id)

        def on_start() -> None:
            tasks.start_soon(self.confirm_all)  # There was no notice of what was removed before.

        await anyio.sleep(self.listen_after)
        while self._storage.can_listen:
            if await self._storage.listen("muniment_removed", on_start, on_notice):
                # The connection was lost: the database may have been restored, or not have the last row any more.
                self.scopes.clear()
            await anyio.sleep(LISTEN_AGAIN_SECONDS)
