"""Access to the database: a transaction of one tenant, under the login of one task.

There is no connection without a tenant. The program never runs as the owner of the tables; each task has a login with
just the privileges it needs, and forced row-level security restricts it to the tenant of the transaction.
"""

from asyncio import CancelledError
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from weakref import WeakValueDictionary

import psycopg
from anyio import CancelScope, Semaphore, WouldBlock
from psycopg.adapt import Dumper
from psycopg.pq import Format
from psycopg.rows import dict_row
from psycopg_pool import PoolTimeout, TooManyRequests

from muniment.database.address import Address
from muniment.database.begin import ONE_PLAN, begin_statements, person_statement
from muniment.database.connection import Connection
from muniment.database.notices import listen
from muniment.database.pool import Pool
from muniment.database.server_liveness import Row, ServerLiveness, no_answer, unavailable
from muniment.database.statements import Statement
from muniment.database.transaction import LATEST, TASKS, NamedStatement, RowKeys, Task, Tick, Transaction
from muniment.errors import Conflict, RequestRepeated, SchemaMissing, TooLarge

__all__ = [
    "LATEST",
    "TASKS",
    "TENANT_SHARE",
    "NamedStatement",
    "Row",
    "RowKeys",
    "Storage",
    "Task",
    "Tick",
    "Transaction",
    "as_owner",
]

# The constraint that a subject's key is wrapped under an existing version of the tenant's key.
_KEY_VERSION = "subjects_tenant_id_key_version_fkey"
# The constraint that a request is carried out once.
_ONCE = "requests_once"
# Connections of each task: all, and those that one tenant may use at once. Its clock serialises its writes anyway.
CONNECTIONS = 12
TENANT_SHARE = 2


class Storage:
    """Pools of connections, one per task, opened on first use; one of several `processes` uses its part."""

    def __init__(self, address: Address, *, processes: int = 1, explain: Callable[[], str] = no_answer) -> None:
        self._address = address
        self._explain = explain
        # INVARIANT: more than the share of one tenant (ISO-3).
        self._max_connections = max(2 * TENANT_SHARE, CONNECTIONS // processes)
        self._pools: dict[Task, Pool] = {}
        self._local_settings = {
            task: tuple(Statement("setting", text) for text in address.local_settings(task)) for task in TASKS
        }
        self._liveness = ServerLiveness(address.for_task("recall"), address.hosts)
        # An entry lives while a transaction of the tenant runs or waits, and for a while after.
        self._turns: WeakValueDictionary[tuple[str, Task], Semaphore] = WeakValueDictionary()
        # Those used last, so that the next transaction of the same tenant finds them.
        self._last_turns: deque[Semaphore] = deque(maxlen=64)

    async def answers(self) -> None:
        """Check that the server answers; raises `StorageUnavailable` if it does not."""
        with _ErrorTranslation(self._explain):
            pool = await self._pool("recall")
            connection = await pool.take()
            try:
                await connection.exchange([(Statement("answers", "SELECT 1"), [])])
            finally:
                await pool.put(connection)

    @property
    def can_listen(self) -> bool:
        """Whether notices can be received: not through a pooler."""
        return self._address.pooler is None

    async def listen(self, channel: str, on_start: Callable[[], None], on_notice: Callable[[str], None]) -> bool:
        """Listen for notices until the connection is lost; see `notices.listen`."""
        return await listen(self._address.for_task("recall"), channel, on_start, on_notice)

    async def close(self) -> None:
        """Close all connections."""
        self._liveness.close()
        for pool in self._pools.values():
            await pool.close()
        self._pools.clear()

    @asynccontextmanager
    async def transaction(
        self,
        tenant_id: str,
        task: Task,
        now: datetime,
        *,
        read_only: bool = False,
        under: str | None = None,
        row_keys: RowKeys | None = None,
        one_plan: bool = False,
        person: tuple[str, ...] = (),
    ) -> AsyncGenerator[Transaction]:
        """Open a transaction of that tenant under that task's login; commit at the end, roll back on an error.

        `under` is the pack that it decides under: if another is in force, `PackChanged` is raised. Its events list the
        rows it inserts, digested with the key from `row_keys`. A `read_only` transaction sees one snapshot, and the
        database refuses its writes. With `one_plan` each statement keeps one plan for all values, as all do after the
        tick: only for statements that read by keys. `person` are the names of the person whose rows the task `subject`
        sees.
        Raises `StorageUnavailable` if the database is away, and `Conflict` if it cannot get a lock.
        """
        with _ErrorTranslation(self._explain):
            pool = await self._pool(task)
            turn = self._turn(tenant_id, task)
            try:
                turn.acquire_nowait()
            except WouldBlock:
                await pool.unless_away(turn.acquire)
            try:
                reading = read_only or task == "recall"
                begin: tuple[Statement, ...] = (
                    begin_statements(tenant_id, reading, read_only) + self._local_settings[task]
                )
                if one_plan:
                    begin += ONE_PLAN
                if task == "subject":
                    begin += person_statement(person)
                writes = not read_only and task not in ("recall", "auditor", "subject")
                connection = await pool.take()
                transaction = Transaction(
                    tenant_id, now, connection, begin, pool.replace, writes, task, row_keys, one_plan
                )
                try:
                    if under is not None:
                        transaction.decide_under(under)
                    yield transaction
                    await transaction.complete()
                except Exception as error:
                    if (cancellation := _cancellation_behind(error)) is not None:
                        transaction.connection.pgconn.finish()
                        raise cancellation from None
                    await _roll_back(transaction.connection)
                    raise
                except BaseException:
                    # Cancelled inside: the state of the connection is unknown, so it is closed.
                    transaction.connection.pgconn.finish()
                    raise
                finally:
                    with CancelScope(shield=True):
                        await pool.put(transaction.connection)
            finally:
                turn.release()

    def _turn(self, tenant_id: str, task: Task) -> Semaphore:
        """The semaphore that limits how many connections one tenant uses at once (ISO-3)."""
        turn = self._turns.get((tenant_id, task))
        if turn is None:
            turn = self._turns[tenant_id, task] = Semaphore(TENANT_SHARE)
            self._last_turns.append(turn)
        return turn

    async def _pool(self, task: Task) -> Pool:
        pool = self._pools.get(task)
        if pool is None:
            place, size = self._address.for_task(task), self._max_connections
            pool = Pool(
                place,
                self._liveness,
                name=task,
                max_size=size,
                explain=self._explain,
                names_statements=self._address.pooler is None,
            )
            self._pools[task] = pool
        if not pool.is_open:
            await pool.open()
        return pool


@asynccontextmanager
async def as_owner(
    address: Address, tenant_id: str, now: datetime, *, row_keys: RowKeys | None = None, read_only: bool = False
) -> AsyncGenerator[Transaction]:
    """A transaction of that tenant as the owner of the tables, for maintenance only.

    With `row_keys` its events list the rows it inserts. A `read_only` one sees one snapshot, and cannot write.
    """
    with _ErrorTranslation():
        async with await Connection.connect(address.for_owner(), autocommit=True, row_factory=dict_row) as connection:
            begin = begin_statements(tenant_id, read_only, read_only)
            transaction = Transaction(tenant_id, now, connection, begin, writes=not read_only, _row_keys=row_keys)
            yield transaction
            await transaction.complete()


_ROLLBACK = Statement("rollback", "ROLLBACK")


async def _roll_back(connection: Connection) -> None:
    if connection.closed or not connection.has_begun:
        return
    try:
        await connection.exchange([(_ROLLBACK, [])])
    except psycopg.Error:
        await connection.close()


def _cancellation_behind(error: BaseException) -> BaseException | None:
    """The cancellation hidden behind an error that was raised while a transaction was left."""
    seen: BaseException | None = error
    while seen is not None and not isinstance(seen, CancelledError):
        seen = seen.__context__
    return seen


class _ErrorTranslation:
    """Turns the driver's errors into ours, by class (SQLSTATE) and never by text."""

    def __init__(self, explain: Callable[[], str] = no_answer) -> None:
        self._explain = explain

    def __enter__(self) -> None: ...

    def __exit__(self, _type: object, error: BaseException | None, _trace: object) -> None:
        match error:
            case (
                psycopg.errors.DeadlockDetected()
                | psycopg.errors.LockNotAvailable()
                | psycopg.errors.SerializationFailure()
            ):
                raise Conflict("another transaction changes the same rows; try again") from error
            case psycopg.errors.ForeignKeyViolation() if error.diag.constraint_name == _KEY_VERSION:
                raise Conflict("the tenant's key is being rotated; try again") from error
            case psycopg.errors.UniqueViolation() if error.diag.constraint_name == _ONCE:
                raise RequestRepeated("was carried out before", field="idempotency_key") from error
            case psycopg.errors.UndefinedTable() | psycopg.errors.InvalidSchemaName():
                raise SchemaMissing("the database lacks tables of this version; run: muniment db migrate") from error
            case psycopg.errors.ProgramLimitExceeded():
                raise TooLarge("is larger than the database can hold in one place") from error
            case PoolTimeout() | TooManyRequests() | psycopg.OperationalError():
                raise unavailable(error, self._explain) from error
            case _:
                return


class HalfVector(bytes):
    """A `halfvec` in the binary format that the database reads and sends."""


class _HalfVectorDumper(Dumper):
    format = Format.BINARY
    # Left to the server: the type `halfvec` has another oid in each database.
    oid = 0

    def dump(self, obj: HalfVector) -> bytes:
        return obj


psycopg.adapters.register_dumper(HalfVector, _HalfVectorDumper)
