"""Cleaning what lies beneath: tables rewritten, statistics refreshed, the log of before gone (ERA-3, SCL-6).

After a deletion the bytes are still in free space of the tables and in the write-ahead log. What a tenant's content
and keys lie in is rewritten; then the log is switched and checkpointed until nothing older is left.
"""

from typing import LiteralString, cast

import anyio
import psycopg
from psycopg import AsyncConnection, sql

from muniment.database.address import Address
from muniment.errors import PurgeIncomplete

# Every table that holds content, a key or a hash of content that an erasure takes away; a test compares them with the
# catalogue. Of those that are cut by tenant only the tenant's part is rewritten.
REWRITTEN = (
    "subjects",
    "captures",
    "extractions",
    "candidates",
    "memory_bodies",
    "memory_terms",
    "memory_vectors",
    "tenant_keys",
    "audit_keys",
    "idempotency_keys",
    "verdicts",
    "consents",
    "recalls",
    "memory_links",
    "rejection_marks",
    "webhooks",
    "requests",
    "api_keys",
)
_PARTS = 8
SNAPSHOT_TRIES, SNAPSHOT_PAUSE = 50, 0.1
# Segments of the log that were kept for later use, at most: 64 GiB of them.
MOST_AHEAD = 4096
RECYCLES = (
    "wal_recycle is on: a segment of the write-ahead log from before the erasure is renamed and kept; "
    "set wal_recycle = off and reload the server"
)
RIGHTS = (
    "the owner's login may not clear the write-ahead log, or look for files that no table owns: "
    "grant it pg_checkpoint, pg_monitor, EXECUTE on pg_switch_wal() and EXECUTE on pg_ls_dir(text)"
)
_OLDER = """
SELECT 1 FROM pg_stat_activity
WHERE pid <> pg_backend_pid() AND greatest(age(backend_xmin), age(backend_xid)) > age(%s::xid)
UNION ALL SELECT 1 FROM pg_prepared_xacts WHERE age(transaction) > age(%s::xid)
UNION ALL SELECT 1 FROM pg_replication_slots WHERE age(xmin) > age(%s::xid)
LIMIT 1
"""
_MAY = """
SELECT pg_has_role('pg_checkpoint', 'USAGE') AND pg_has_role('pg_monitor', 'USAGE')
  AND has_function_privilege('pg_switch_wal()', 'EXECUTE') AND has_function_privilege('pg_ls_dir(text)', 'EXECUTE')
"""
# Segments, also those that a server left in part when it became the primary.
_SEGMENTS = "SELECT name FROM pg_ls_waldir() WHERE name ~ '^[0-9A-F]{24}([.]partial)?$'"


async def obstacles(conninfo: str) -> list[str]:
    """What of the server's settings and the login's rights keeps a purge from being true; none when all is well."""
    async with await AsyncConnection.connect(conninfo, autocommit=True) as connection:
        found: list[str] = []
        if await _value(connection, "SHOW wal_recycle") != "off":
            found.append(RECYCLES)
        if await _value(connection, _MAY) is not True:
            found.append(RIGHTS)
        return found


async def require_possible(conninfo: str) -> None:
    """Raises `PurgeIncomplete` where no purge of this server could be true (SCL-6)."""
    if found := await obstacles(conninfo):
        raise PurgeIncomplete("; ".join(found))


async def rewrite(address: Address, tenant_id: str) -> None:
    """Rewrite every table that held content or keys of the tenant, with its indexes and statistics."""
    async with await AsyncConnection.connect(address.for_owner(), autocommit=True) as connection:
        await connection.execute("SET lock_timeout = '30s'")
        for table in [await _part(connection, name, tenant_id) for name in REWRITTEN]:
            # Rewritten with another file; the old one goes at the commit, its pages from the log at the checkpoint.
            await connection.execute(sql.SQL("VACUUM (FULL, ANALYZE) {}").format(sql.Identifier(table)))


async def _part(connection: AsyncConnection, table: str, tenant_id: str) -> str:
    """The part of a table that a tenant's rows are in; the table itself where it has no parts."""
    cut = cast("LiteralString", "SELECT relkind = 'p' FROM pg_class WHERE oid = %s::regclass")
    if not await _value(connection, cut, f"muniment.{table}"):
        return table
    for place in range(_PARTS):
        holds = cast("LiteralString", "SELECT satisfies_hash_partition(%s::regclass, %s, %s, %s::text)")
        if await _value(connection, holds, f"muniment.{table}", _PARTS, place, tenant_id):
            return f"{table}_{place}"
    raise AssertionError(f"{table} has no part for the tenant")


async def outlive_snapshots(conninfo: str) -> None:
    """Wait until nobody's transaction is older than now: a rewrite keeps what an old one could still see.

    Raises `PurgeIncomplete` when one stays for longer than that.
    """
    async with await AsyncConnection.connect(conninfo, autocommit=True) as connection:
        this = await _value(connection, "SELECT pg_current_xact_id()::xid::text")
        for _ in range(SNAPSHOT_TRIES):
            if await _value(connection, _OLDER, this, this, this) is None:
                return
            await anyio.sleep(SNAPSHOT_PAUSE)
    raise PurgeIncomplete("a transaction from before the erasure is still open, and tables would keep what it can see")


async def clear_log(conninfo: str) -> None:
    """Let nothing of the write-ahead log be left that was written before now.

    Raises `PurgeIncomplete` when the login may not, or something keeps the log: an archive, a slot, a replica.
    """
    await require_possible(conninfo)
    async with await AsyncConnection.connect(conninfo, autocommit=True) as connection:
        try:
            # From here on the server removes segments and renames none: it reads its settings before a checkpoint.
            await connection.execute("CHECKPOINT")
            await _use_up(connection)
            await connection.execute("SELECT pg_switch_wal()")
            first = await _segment(connection)
            # The second writes off the segments that the first still counts as the one before.
            for _ in range(2):
                await connection.execute("CHECKPOINT")
            left = [name for name in await _segments(connection) if name[:24] < first]
        except psycopg.errors.InsufficientPrivilege as error:
            raise PurgeIncomplete(RIGHTS) from error
    if left:
        raise PurgeIncomplete(f"{len(left)} files of the write-ahead log from before are still kept by the server")


async def _use_up(connection: AsyncConnection) -> None:
    """Go past the segments that lie ahead: one that was renamed for later use, while `wal_recycle` was on, holds what
    it held before. Written over to its end by the switch it is a segment from before like any other.
    """
    last = max(await _segments(connection), default="")
    for _ in range(MOST_AHEAD):
        if await _segment(connection) > last:
            return
        await connection.execute("SELECT pg_logical_emit_message(false, 'muniment', '')")
        await connection.execute("SELECT pg_switch_wal()")
    raise PurgeIncomplete("the server keeps more segments of the write-ahead log than can be written over")


async def _segments(connection: AsyncConnection) -> list[str]:
    return [str(row[0]) for row in await (await connection.execute(_SEGMENTS)).fetchall()]


async def _segment(connection: AsyncConnection) -> str:
    return str(await _value(connection, "SELECT pg_walfile_name(pg_current_wal_insert_lsn())"))


async def _value(connection: AsyncConnection, query: LiteralString, *arguments: object) -> object:
    row = await (await connection.execute(query, arguments or None)).fetchone()
    return row[0] if row is not None else None
