"""The vector index of a large tenant: an HNSW index over its own vectors, made and dropped by the owner (JOB-11).

Up to `MADE_ABOVE` vectors all are compared, which is exact, and an insert pays for no index. The index is on the
tenant's partition, for its rows alone: no tenant's vectors lie in another's graph. Building it blocks no reader and no
writer (CONCURRENTLY). On a cluster every shard of the partition has it, empty but in the tenant's own shard.

INVARIANT: an index counts as whole only if its build came to its end and the planner keeps no samples of it, which
would be content in the catalogue. One that is not was left by a build that was killed: it is dropped and made again.
"""

from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

import anyio
import psycopg
from psycopg import AsyncConnection, IsolationLevel, sql
from psycopg.pq import TransactionStatus

from muniment.database.address import Address
from muniment.database.cluster.nodes import conninfo_of, shard_of
from muniment.database.partitions import partition_of
from muniment.database.storage import Transaction
from muniment.language.embedding import BUILTIN_EMBEDDER

# An index is made above so many vectors of the built-in embedder, and dropped below so many: a tenant at the border
# does not get one made and dropped in turns.
MADE_ABOVE, DROPPED_BELOW = 100_000, 50_000
# "vectors" as a number: only one build in a database at a time; two would wait for each other.
_LOCK = 0x76656374
# Seconds between two looks for an index that is being made.
_PAUSE = 0.02

Step = Literal["make", "make again", "drop"]


def index_name(tenant_id: str) -> str:
    """The name of a tenant's index: a digest, because a tenant's id may be longer than a name can be."""
    return f"memory_vectors_near_{sha256(tenant_id.encode()).hexdigest()[:24]}"


async def next_step(tx: Transaction) -> Step | None:
    """What is to be done with the index of the transaction's tenant, None if nothing."""
    row = await tx.row(
        "indexing.vector_index", embedder=BUILTIN_EMBEDDER, most=MADE_ABOVE + 1, index=index_name(tx.tenant_id)
    )
    assert row is not None
    vectors, whole = row["vectors"], row["whole"]
    if whole is None:
        return "make" if vectors > MADE_ABOVE else None
    if vectors < DROPPED_BELOW:
        return "drop"
    return None if whole else "make again"


async def take(address: Address, tenant_id: str, step: Step) -> bool:
    """Take that step as the owner of the tables; False if another build is under way, and nothing was done.

    Safe to repeat and to be killed. Waits for transactions that are open, up to five minutes for each.
    """
    name = sql.Identifier("muniment", index_name(tenant_id))
    async with await AsyncConnection.connect(address.for_owner(), autocommit=True) as owner:
        row = await (await owner.execute("SELECT pg_try_advisory_lock(%s)", [_LOCK])).fetchone()
        if row is None or not row[0]:
            return False
        await owner.execute("SET lock_timeout = '5min'")
        await owner.execute("SET maintenance_work_mem = '512MB'")
        try:
            if step != "make":
                await owner.execute(sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(name))
            # One that another process made meanwhile stays: on a cluster, creating it again marks it as broken.
            if step == "make again" or (step == "make" and not await _exists(owner, index_name(tenant_id))):
                await _make(address, owner, tenant_id)
        finally:
            # Closing the connection would release the lock too, but only some time later.
            if owner.info.transaction_status == TransactionStatus.IDLE:
                await owner.execute("SELECT pg_advisory_unlock(%s)", [_LOCK])
        return True


@dataclass(frozen=True)
class _Place:
    """Where the rows are that an index is built over: the server, the table there, and the index's name there."""

    conninfo: str
    table: str
    index: str
    # Whether a node of a cluster has them, and the coordinator's index is only a definition.
    in_shard: bool


async def _make(address: Address, owner: AsyncConnection, tenant_id: str) -> None:
    name, table = index_name(tenant_id), await partition_of(owner, "memory_vectors", tenant_id)
    create = sql.SQL(
        "CREATE INDEX CONCURRENTLY IF NOT EXISTS {} ON muniment.{}"
        " USING hnsw ((vector::public.halfvec(256)) public.halfvec_cosine_ops) WHERE tenant_id = {} AND embedder = {}"
    ).format(sql.Identifier(name), sql.Identifier(table), sql.Literal(tenant_id), sql.Literal(BUILTIN_EMBEDDER))
    place = await _place(address, owner, table, tenant_id)
    failed: list[psycopg.Error] = []
    async with await AsyncConnection.connect(place.conninfo) as other:
        await other.set_isolation_level(IsolationLevel.READ_COMMITTED)
        if place.in_shard:
            await other.execute("SET LOCAL citus.enable_manual_changes_to_shards = on")
            # Not hidden from us, as shards are from others that look into the catalogue.
            await other.execute("SET LOCAL citus.override_table_visibility = off")
        # The build waits for transactions that may write to the table: until this one ends, it reads no row.
        await other.execute(sql.SQL("LOCK TABLE muniment.{} IN ROW EXCLUSIVE MODE").format(sql.Identifier(place.table)))
        async with anyio.create_task_group() as tasks:

            async def build() -> None:
                try:
                    await owner.execute(create)
                except psycopg.Error as error:
                    failed.append(error)
                    tasks.cancel_scope.cancel()

            tasks.start_soon(build)
            await _keep_out_of_statistics(other, place.index)
            await other.commit()
        if failed:
            raise failed[0]
    if place.in_shard:
        # The shards of others too, where no row is indexed, and those that a move makes from the definition.
        await owner.execute(_unsampled(name))


async def _place(address: Address, owner: AsyncConnection, table: str, tenant_id: str) -> _Place:
    shard = await shard_of(owner, f"muniment.{table}", tenant_id)
    name = index_name(tenant_id)
    if shard is None:
        return _Place(address.for_owner(), table, name, in_shard=False)
    place = await conninfo_of(owner, shard.group, address.for_owner())
    # Citus names what belongs to a shard by the shard's number, as it names the shard.
    return _Place(place, shard.name, f"{name}{shard.name.removeprefix(table)}", in_shard=True)


async def _keep_out_of_statistics(connection: AsyncConnection, name: str) -> None:
    """Once the index is in the catalogue, forbid samples of it; ANALYZE of its table waits for the end of the build."""
    # Not to_regclass(): within a transaction that remembers what was not there.
    while not await _exists(connection, name):  # noqa: ASYNC110  the server makes it
        await anyio.sleep(_PAUSE)
    await connection.execute(_unsampled(name))


async def _exists(connection: AsyncConnection, name: str) -> bool:
    there = "SELECT FROM pg_class WHERE relnamespace = 'muniment'::regnamespace AND relname = %s"
    return await (await connection.execute(there, [name])).fetchone() is not None


def _unsampled(name: str) -> sql.Composed:
    return sql.SQL("ALTER INDEX muniment.{} ALTER COLUMN 1 SET STATISTICS 0").format(sql.Identifier(name))
