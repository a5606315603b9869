"""Access to the database: a transaction of one tenant, under the login of one task.

There is no connection without a tenant. The program never runs as the owner of the tables; each task has a login with
just the privileges it needs, and forced row-level security restricts it to the tenant of the transaction.
"""

from asyncio import CancelledError
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from functools import partial
from weakref import WeakValueDictionary

import psycopg
from anyio import CancelScope, Semaphore, WouldBlock
from psycopg.adapt import Dumper
from psycopg.pq import Format
from psycopg.rows import dict_row
from psycopg_pool import PoolTimeout, TooManyRequests

from muniment.database.address import Address
from muniment.database.begin import ONE_PLAN, begin_statements, person_statement
from muniment.database.cluster.errors import NodeAway, node_lost, violates
from muniment.database.cluster.guard import ClusterGuard
from muniment.database.cluster.node_liveness import EVERY_TENANT, NodeLiveness
from muniment.database.cluster.nodes import node_of
from muniment.database.connection import Connection
from muniment.database.notices import listen
from muniment.database.pool import CLOSED, Pool
from muniment.database.primaries import Primaries
from muniment.database.replica import Replica, ReplicaSettings, StandbyUnfit
from muniment.database.server_liveness import Row, ServerLiveness, no_answer, unavailable
from muniment.database.statements import Statement
from muniment.database.transaction import LATEST, TASKS, NamedStatement, RowKeys, Task, Tick, Transaction
from muniment.errors import Conflict, RequestRepeated, SchemaMissing, StorageUnavailable, TooLarge

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

    def __init__(
        self,
        address: Address,
        *,
        processes: int = 1,
        explain: Callable[[], str] = no_answer,
        replica: ReplicaSettings | None = None,
    ) -> None:
        self._address = address
        self.primaries = Primaries(address.for_task("recall"))
        self._explain = lambda: self.primaries.problem or explain()
        # INVARIANT: more than the share of one tenant (ISO-3).
        self._max_connections = max(2 * TENANT_SHARE, CONNECTIONS // processes)
        self._pools: dict[Task, Pool] = {}
        self._closed = False
        self._local_settings = {
            task: tuple(Statement("setting", text) for text in address.local_settings(task)) for task in TASKS
        }
        # Which nodes are away, if the address is that of a cluster's coordinator.
        self.nodes = NodeLiveness(address.direct().for_task("recall"))
        self._guard = ClusterGuard(address.direct().for_task("recall"))
        self._liveness = ServerLiveness(address.for_task("recall"), address.hosts, self.nodes)
        self.replica = Replica(replica, address, self._ask, self._max_connections) if replica is not None else None
        # An entry lives while a transaction of the tenant runs or waits, and for a while after.
        self._turns: WeakValueDictionary[tuple[str, str], Semaphore] = WeakValueDictionary()
        # Those used last, so that the next transaction of the same tenant finds them.
        self._last_turns: deque[Semaphore] = deque(maxlen=64)

    async def answers(self) -> None:
        """Check that the server answers; raises `StorageUnavailable` if it does not."""
        await self._ask(Statement("answers", "SELECT 1 AS one"))

    async def _ask(self, statement: Statement) -> Row:
        """Run a statement that belongs to no tenant, and return its row."""
        with _ErrorTranslation(self._explain):
            pool = await self._pool("recall")
            connection = await pool.take()
            try:
                self._require_sound(connection)
                (reply,) = await connection.exchange([(statement, [])])
            finally:
                await pool.put(connection)
        return reply.rows[0]

    def _require_sound(self, connection: Connection) -> None:
        """Raise `StorageUnavailable` while a cluster keeps less than is promised (SCL-2)."""
        if connection.of_cluster:
            self._guard.require()

    async def below_promise(self) -> tuple[str, ...]:
        """Check now what a cluster keeps less well than is promised (SCL-2), in words; nothing on one server."""
        with _ErrorTranslation(self._explain):
            pool = await self._pool("recall")
            connection = await pool.take()
            of_cluster = connection.of_cluster
            await pool.put(connection)
        if not of_cluster:
            return ()
        try:
            return await self._guard.check_now()
        except (psycopg.Error, OSError, TimeoutError) as error:
            raise unavailable(error, self._explain) from error

    @property
    def is_closed(self) -> bool:
        """Whether it was closed, for good."""
        return self._closed

    @property
    def can_listen(self) -> bool:
        """Whether notices can be received: not through a pooler."""
        return self._address.pooler is None

    async def listen(self, channel: str, on_start: Callable[[], None], on_notice: Callable[[str], None]) -> bool:
        """Listen for notices until the connection is lost; see `notices.listen`."""
        if self._closed:
            raise StorageUnavailable(CLOSED)
        return await listen(self._address.for_task("recall"), channel, on_start, on_notice)

    async def close(self) -> None:
        """Close all connections, for good."""
        self._closed = True
        self._liveness.close()
        # One that fails leaves none of the others open: a pool that is never closed keeps the process from ending.
        async with AsyncExitStack() as closing:
            for pool in self._pools.values():
                closing.push_async_callback(pool.close)
            closing.push_async_callback(self._guard.close)
            closing.push_async_callback(self.nodes.close)
            if self.replica is not None:
                closing.push_async_callback(self.replica.close)

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
        Raises `StorageUnavailable` if the database is away, `NodeAway` if only the tenant's node of a cluster is, and
        `Conflict` if it cannot get a lock.
        """
        with _ErrorTranslation(self._explain):
            pool = await self._pool(task)
            reading = read_only or task == "recall"
            begin: tuple[Statement, ...] = begin_statements(tenant_id, reading, read_only)
            if task == "subject":
                begin += person_statement(person)
            writes = not read_only and task not in ("recall", "auditor", "subject")

            async def take() -> Connection:
                await self.nodes.require(tenant_id)
                return await pool.take(tenant_id)

            async def begin_on(connection: Connection) -> Transaction:
                self._require_sound(connection)
                first = begin
                if connection.of_cluster or self._address.pooler is not None:
                    first += self._local_settings[task]
                if one_plan and not connection.of_cluster:
                    first += ONE_PLAN
                made = Transaction(tenant_id, now, connection, first, pool.replace, writes, task, row_keys, one_plan)
                if under is not None:
                    made.decide_under(under)
                return made

            on_error = partial(self._raise_node_away, tenant_id)
            async with self._running(pool, self._turn(tenant_id, task), take, begin_on, on_error) as transaction:
                yield transaction
        if self.replica is not None and (writes or task == "recall"):
            self.replica.note_write(tenant_id)

    @asynccontextmanager
    async def on_standby(self, tenant_id: str, now: datetime) -> AsyncGenerator[tuple[Transaction, float]]:
        """Open a read-only transaction of the auditor's login on the standby; with how many seconds it is behind.

        Raises `StandbyUnfit` if it cannot answer, and `StorageUnavailable` or `Conflict` as every transaction does.
        INVARIANT: no other task's, and nothing that writes or opens content (SCL-4, TIR-5).
        """
        assert self.replica is not None, "no standby is configured"
        replica, lag = self.replica, 0.0
        with _ErrorTranslation(self._explain):
            pool = await replica.pool()

            async def begin_on(connection: Connection) -> Transaction:
                nonlocal lag
                lag = await replica.fit(connection, tenant_id)
                begin = begin_statements(tenant_id, True, True)
                return Transaction(tenant_id, now, connection, begin, writes=False, task="auditor", lags=True)

            try:
                turn = self._turn(tenant_id, "standby")
                async with self._running(pool, turn, pool.take, begin_on) as transaction:
                    yield transaction, lag
            except psycopg.ProgrammingError as error:
                # It has not replayed a migration yet: a table, a column, a grant.
                raise StandbyUnfit("behind") from error

    @asynccontextmanager
    async def _running(
        self,
        pool: Pool,
        turn: Semaphore,
        take: Callable[[], Awaitable[Connection]],
        begin: Callable[[Connection], Awaitable[Transaction]],
        on_error: Callable[[Connection, Exception], Awaitable[None]] | None = None,
    ) -> AsyncGenerator[Transaction]:
        """`take` a connection of that pool and `begin` a transaction; commit at the end, roll back on an error.

        `on_error` is called with an error after the rollback, and may raise another in its place.
        """
        try:
            turn.acquire_nowait()
        except WouldBlock:
            await pool.unless_away(turn.acquire)
        try:
            connection, transaction = await take(), None
            try:
                transaction = await begin(connection)
                yield transaction
                await transaction.complete()
            except Exception as error:
                connection = transaction.connection if transaction is not None else connection
                if (cancellation := _cancellation_behind(error)) is not None:
                    connection.pgconn.finish()
                    raise cancellation from None
                await _roll_back(connection)
                if on_error is not None:
                    await on_error(connection, error)
                raise
            except BaseException:
                # Cancelled inside: the state of the connection is unknown, so it is closed.
                connection = transaction.connection if transaction is not None else connection
                connection.pgconn.finish()
                raise
            finally:
                with CancelScope(shield=True):
                    await pool.put(transaction.connection if transaction is not None else connection)
        finally:
            turn.release()

    async def _raise_node_away(self, tenant_id: str, connection: Connection, error: Exception) -> None:
        """Raise `NodeAway` if the error came because of the tenant's node, and have the node looked at."""
        if connection.hung_up:
            if self.nodes.away and (tenant_id == EVERY_TENANT or await self.nodes.is_away(tenant_id)):
                raise NodeAway from error
        elif connection.of_cluster and node_lost(error):
            self.nodes.suspect(tenant_id)
            raise NodeAway from error

    def _turn(self, tenant_id: str, task: str) -> Semaphore:
        """The semaphore that limits how many connections one tenant uses at once (ISO-3)."""
        turn = self._turns.get((tenant_id, task))
        if turn is None:
            turn = self._turns[tenant_id, task] = Semaphore(TENANT_SHARE)
            self._last_turns.append(turn)
        return turn

    async def _pool(self, task: Task) -> Pool:
        pool = self._pools.get(task)
        if pool is None:
            if self._closed:
                raise StorageUnavailable(CLOSED)
            place, size = self._address.for_task(task), self._max_connections
            pool = Pool(
                place,
                self._liveness,
                name=task,
                max_size=size,
                explain=self._explain,
                names_statements=self._address.pooler is None,
                primaries=self.primaries,
            )
            self._pools[task] = pool
        if not pool.is_open:
            await pool.open()
        return pool


@asynccontextmanager
async def as_owner(
    address: Address,
    tenant_id: str,
    now: datetime,
    *,
    row_keys: RowKeys | None = None,
    read_only: bool = False,
    on_node: bool = False,
) -> AsyncGenerator[Transaction]:
    """A transaction of that tenant as the owner of the tables, for maintenance only.

    With `row_keys` its events list the rows it inserts. A `read_only` one sees one snapshot, and cannot write. One that
    is `on_node` goes to the node of a cluster that holds the tenant's rows, not through the coordinator; on one server
    it is like any other.
    """
    with _ErrorTranslation():
        place = await node_of(address.for_owner(), tenant_id) if on_node else address.for_owner()
        async with await Connection.connect(place, autocommit=True, row_factory=dict_row) as connection:
            await connection.ask_whether_of_cluster()
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
            case psycopg.errors.ForeignKeyViolation() if violates(error, _KEY_VERSION):
                raise Conflict("the tenant's key is being rotated; try again") from error
            case psycopg.errors.UniqueViolation() if violates(error, _ONCE):
                raise RequestRepeated("was carried out before", field="idempotency_key") from error
            case psycopg.errors.UndefinedTable() | psycopg.errors.InvalidSchemaName():
                raise SchemaMissing("the database lacks tables of this version; run: muniment db migrate") from error
            case psycopg.errors.ProgramLimitExceeded():
                raise TooLarge("is larger than the database can hold in one place") from error
            case psycopg.Error() if node_lost(error):
                raise NodeAway from error
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
