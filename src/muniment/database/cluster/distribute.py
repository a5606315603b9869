"""Distributes the tables over a Citus cluster by tenant (SCL-1).

Foreign keys are dropped, the tables distributed one after the other, and the keys created again. A table keeps the
definitions of dropped keys until they are created, so that an interrupted run can be continued. Meanwhile the logins
cannot use the schema, so nothing is written while a key is missing.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import LiteralString, cast

from psycopg import AsyncConnection, sql

from muniment.database.address import Address
from muniment.database.cluster import checks
from muniment.database.cluster.catalogue import (
    NodeUse,
    distributed_tables,
    has_citus,
    is_unfinished,
    tenant_tables,
    use_of_nodes,
)
from muniment.database.cluster.guard import weakened
from muniment.database.cluster.nodes import is_divided
from muniment.database.migrate import as_owner_of_schema, holding_the_schema, migrate, status
from muniment.database.transaction import TASKS
from muniment.errors import Conflict, InvalidInput, StorageUnavailable

# The shards of each table on a new cluster. A tenant that outgrows its shard gets one of its own.
SHARDS = 32
_OLDEST_SERVER = 180000
Progress = Callable[[str, int, int], None]


def no_progress(_what: str, _n: int, _total: int) -> None:
    """Report no progress."""


# Session settings that the owner of a database can give all sessions in it.
_SETTINGS = {
    # The settings of a transaction, its tenant and person, are passed on to the node that holds its rows.
    "citus.propagate_set_commands": "local",
    # After this the coordinator stops waiting for a node, and the call fails.
    "citus.node_connection_timeout": "5s",
}
_LOGINS = sql.SQL(", ").join(sql.Identifier(f"muniment_{task}") for task in TASKS)
_SAVE_KEYS = """
CREATE TABLE muniment.keys_to_restore AS
SELECT row_number() OVER (ORDER BY c.relname, k.conname) AS number, c.relname AS place, k.conname AS name,
  pg_get_constraintdef(k.oid) AS definition
FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid
WHERE k.contype = 'f' AND k.connamespace = 'muniment'::regnamespace AND k.conparentid = 0
  AND NOT EXISTS (SELECT FROM pg_dist_partition d WHERE d.logicalrelid = k.conrelid)
"""
_VERSIONS = """
SELECT n.nodename || ':' || n.nodeport, r.success, r.result
FROM run_command_on_all_nodes('SHOW server_version_num') r JOIN pg_dist_node n ON n.nodeid = r.nodeid
"""
# Functions that read a tenant's rows as the owner have the tenant as their first argument, `whose`.
_FUNCTIONS = """
SELECT p.oid::regprocedure::text FROM pg_proc p
WHERE p.pronamespace = 'muniment'::regnamespace AND p.prosecdef AND p.proargnames[1] = 'whose'
ORDER BY 1
"""
_TENANT_PLACES = """
SELECT c.relname, c.relforcerowsecurity, EXISTS (SELECT FROM pg_dist_partition d WHERE d.logicalrelid = c.oid)
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id' AND NOT a.attisdropped
WHERE c.relnamespace = 'muniment'::regnamespace AND c.relkind IN ('r', 'p')
ORDER BY c.relname
"""


@dataclass(frozen=True)
class Cluster:
    """The nodes of a cluster, and the promises that it does not keep, in words."""

    nodes: tuple[NodeUse, ...]
    problems: tuple[str, ...]


@dataclass(frozen=True)
class Distribution:
    """What a run of `db distribute` did: how many tables are distributed, keys created again and columns repaired."""

    tables: int
    keys: int
    repaired: int
    problems: tuple[str, ...]


async def distribute(address: Address, on_progress: Progress = no_progress, *, shards: int = SHARDS) -> Distribution:
    """Distribute the tables, or continue where that was interrupted; return what was done and what is still wrong.

    Raises `InvalidInput` where there is no cluster, and `Conflict` for a schema that is not up to date.
    """
    if not (await status(address)).ready:
        raise Conflict("the schema is not up to date; run: muniment db migrate")
    async with holding_the_schema(address) as connection:
        await _require_cluster(connection)
        await _settings(connection)
        keys = await _keep_logins_out(connection)
        tables = await _distribute_tables(connection, shards, on_progress)
        await _restore_keys(connection, on_progress)
        await _delegate_functions(connection)
        await _force_row_security(connection, on_progress)
        repaired = await checks.repair(connection)
        found = await checks.problems(connection)
        await _remove_local_rows(connection, on_progress)
        await _let_logins_in(connection)
    return Distribution(tables, keys, repaired, tuple(found))


async def examine(address: Address) -> Cluster | None:
    """The nodes of a cluster and what is wrong with it; None where there is none."""
    async with as_owner_of_schema(address) as connection:
        if not await is_divided(connection):
            return None
        # Only this check runs in the session, so a silent node can be given up sooner.
        await connection.execute("SET citus.node_connection_timeout = '2s'")
        unfinished = ["the distribution is not finished"] if await is_unfinished(connection) else []
        return Cluster(tuple(await use_of_nodes(connection)), (*unfinished, *await checks.problems(connection)))


async def bring_up_to_date(
    address: Address, *, reset_logins: bool = False, on_progress: Progress = no_progress
) -> tuple[str, ...]:
    """Apply what is pending, as `migrate` does; on a cluster new tables are distributed too."""
    applied = await migrate(address, reset_logins=reset_logins)
    async with as_owner_of_schema(address) as connection:
        divided = await is_divided(connection)
    if divided and (found := (await distribute(address, on_progress)).problems):
        raise weakened(list(found))
    return applied


async def _require_cluster(connection: AsyncConnection) -> None:
    if not await has_citus(connection):
        raise InvalidInput(
            "this database has no extension citus: have a superuser run what muniment db distribute --script prints"
        )
    found = await use_of_nodes(connection)
    if not any(node.active and not node.coordinator for node in found):
        raise InvalidInput("the cluster has no worker: add one with citus_add_node() as a superuser first")
    for node in found:
        if not node.active:
            raise StorageUnavailable(f"the node {node.name} is not active: activate it, or remove it from the cluster")
    for name, success, result in await (await connection.execute(_VERSIONS)).fetchall():
        if not success:
            raise StorageUnavailable(f"the node {name} does not answer ({result})")
        if int(result) < _OLDEST_SERVER:
            # In earlier versions only a superuser can remove samples that the planner took of content.
            raise InvalidInput(f"a cluster needs PostgreSQL 18 or later on every node; {name} has an older one")


async def _settings(connection: AsyncConnection) -> None:
    row = await (await connection.execute("SELECT current_database()")).fetchone()
    assert row is not None
    for name, value in _SETTINGS.items():
        await connection.execute(
            sql.SQL("ALTER DATABASE {} SET {} = {}").format(
                sql.Identifier(row[0]), sql.SQL(cast("LiteralString", name)), sql.Literal(value)
            )
        )


async def _keep_logins_out(connection: AsyncConnection) -> int:
    """Keep the logins out and drop the foreign keys; return how many keys have to be created again."""
    if not await is_unfinished(connection):
        if set(await tenant_tables(connection)) <= await distributed_tables(connection):
            return 0
        async with connection.transaction():
            await connection.execute("SET LOCAL citus.enable_ddl_propagation = off")
            await connection.execute(_SAVE_KEYS)
            await connection.execute(sql.SQL("REVOKE USAGE ON SCHEMA muniment FROM {}").format(_LOGINS))
            for place, name, _ in await _keys(connection):
                await connection.execute(
                    sql.SQL("ALTER TABLE muniment.{} DROP CONSTRAINT {}").format(
                        sql.Identifier(place), sql.Identifier(name)
                    )
                )
            # The owner moves rows of all tenants, and checks keys against them.
            for place in await _places(connection, forced=True, distributed=False):
                await connection.execute(
                    sql.SQL("ALTER TABLE muniment.{} NO FORCE ROW LEVEL SECURITY").format(sql.Identifier(place))
                )
    return len(await _keys(connection))


async def _keys(connection: AsyncConnection) -> list[tuple[str, str, str]]:
    found = await connection.execute("SELECT place, name, definition FROM muniment.keys_to_restore ORDER BY number")
    return [(str(place), str(name), str(definition)) for place, name, definition in await found.fetchall()]


async def _places(connection: AsyncConnection, *, forced: bool, distributed: bool) -> list[str]:
    """The tables with a tenant and their partitions, by whether row security is forced and they are distributed."""
    rows = await (await connection.execute(_TENANT_PLACES)).fetchall()
    return [str(name) for name, *state in rows if state == [forced, distributed]]


async def _distribute_tables(connection: AsyncConnection, shards: int, on_progress: Progress) -> int:
    wanted, there = await tenant_tables(connection), await distributed_tables(connection)
    # All others are colocated with the table that is distributed first.
    first = next((table for table in wanted if table in there), "tenants")
    rest = [table for table in [first, *wanted] if table not in there]
    for n, table in enumerate(dict.fromkeys(rest)):
        on_progress(f"distributing {table}", n, len(rest))
        values = {"table": f"muniment.{table}", "first": f"muniment.{first}", "shards": shards}
        how = "shard_count => %(shards)s" if table == first else "colocate_with => %(first)s"
        await connection.execute(f"SELECT create_distributed_table(%(table)s, 'tenant_id', {how})", values)
    return len(wanted)


async def _restore_keys(connection: AsyncConnection, on_progress: Progress) -> None:
    if not await is_unfinished(connection):
        return
    keys = await _keys(connection)
    for n, (place, name, definition) in enumerate(keys):
        on_progress(f"key {name}", n, len(keys))
        async with connection.transaction():
            await connection.execute(
                sql.SQL("ALTER TABLE muniment.{} ADD CONSTRAINT {} {}").format(
                    sql.Identifier(place), sql.Identifier(name), sql.SQL(cast("LiteralString", definition))
                )
            )
            await connection.execute(
                "DELETE FROM muniment.keys_to_restore WHERE place = %s AND name = %s", [place, name]
            )


async def _delegate_functions(connection: AsyncConnection) -> None:
    # Without force_delegation no call inside a transaction is delegated, and the owner does not see what a login just
    # wrote.
    delegate = "SELECT create_distributed_function(%s, 'whose', colocate_with => %s, force_delegation => true)"
    for (function,) in await (await connection.execute(_FUNCTIONS)).fetchall():
        await connection.execute(delegate, [function, "muniment.tenants"])
        # After a few calls a session makes a generic plan, in which Citus does not find the shard and asks all.
        by_value = "ALTER FUNCTION {} SET plan_cache_mode = force_custom_plan"
        await connection.execute(sql.SQL(by_value).format(sql.SQL(cast("LiteralString", function))))


async def _force_row_security(connection: AsyncConnection, on_progress: Progress) -> None:
    places = await _places(connection, forced=False, distributed=True)
    if not places and await checks.lacks_forced_row_security(connection):
        # It is forced at the coordinator, and not on some shard.
        places = await _places(connection, forced=True, distributed=True)
    for n, place in enumerate(places):
        on_progress(f"row security of {place}", n, len(places))
        await connection.execute(
            sql.SQL("ALTER TABLE muniment.{} FORCE ROW LEVEL SECURITY").format(sql.Identifier(place))
        )


async def _remove_local_rows(connection: AsyncConnection, on_progress: Progress) -> None:
    """Remove the coordinator's own copy of rows that are on the nodes now: no erasure would reach it."""
    tables = await tenant_tables(connection)
    for n, table in enumerate(tables):
        on_progress(f"local rows of {table}", n, len(tables))
        await connection.execute("SELECT truncate_local_data_after_distributing_table(%s)", [f"muniment.{table}"])


async def _let_logins_in(connection: AsyncConnection) -> None:
    async with connection.transaction():
        await connection.execute("DROP TABLE IF EXISTS muniment.keys_to_restore")
        await connection.execute(sql.SQL("GRANT USAGE ON SCHEMA muniment TO {}").format(_LOGINS))
