"""Cleaning what lies beneath: tables rewritten, statistics refreshed, the log of before gone (ERA-3).

After a deletion the bytes are still in free space of the tables and in the write-ahead log. What a tenant's content
and keys lie in is rewritten; then the log is switched and checkpointed until nothing older is left.
"""

from typing import LiteralString, cast

import anyio
import psycopg
from psycopg import AsyncConnection, sql

from muniment.errors import PurgeIncomplete
from muniment.storage.address import Address

# Cut by tenant: only the tenant's part is rewritten.
CUT = ("subjects", "captures", "extractions", "candidates", "memory_bodies", "memory_terms", "memory_vectors")
WHOLE = ("tenant_keys", "verdicts", "consents", "recalls", "memory_links", "rejection_marks", "webhooks", "requests")
_PARTS = 8
SNAPSHOT_TRIES, SNAPSHOT_PAUSE = 50, 0.1
_OLDER = """
SELECT 1 FROM pg_stat_activity
WHERE pid <> pg_backend_pid() AND greatest(age(backend_xmin), age(backend_xid)) > age(%s::xid)
UNION ALL SELECT 1 FROM pg_prepared_xacts WHERE age(transaction) > age(%s::xid)
UNION ALL SELECT 1 FROM pg_replication_slots WHERE age(xmin) > age(%s::xid)
LIMIT 1
"""


async def rewrite(address: Address, tenant_id: str) -> None:
    """Rewrite every table that held content or keys of the tenant, with its indexes and statistics."""
    async with await AsyncConnection.connect(address.for_owner(), autocommit=True) as connection:
        await connection.execute("SET lock_timeout = '30s'")
        for table in [await _part(connection, name, tenant_id) for name in CUT] + list(WHOLE):
            # Rewritten with another file; the old one goes at the commit, its pages from the log at the checkpoint.
            await connection.execute(sql.SQL("VACUUM (FULL, ANALYZE) {}").format(sql.Identifier(table)))


async def _part(connection: AsyncConnection, table: str, tenant_id: str) -> str:
    """The part of a table that a tenant's rows are in."""
    for place in range(_PARTS):
        found = await connection.execute(
            cast("LiteralString", "SELECT satisfies_hash_partition(%s::regclass, %s, %s, %s::text)"),
            [f"muniment.{table}", _PARTS, place, tenant_id],
        )
        row = await found.fetchone()
        if row is not None and row[0]:
            return f"{table}_{place}"
    raise AssertionError(f"{table} has no part for the tenant")


async def outlive_snapshots(conninfo: str) -> None:
    """Wait until nobody's transaction is older than now: a rewrite keeps what an old one could still see.

    Raises `PurgeIncomplete` when one stays for longer than that.
    """
    async with await AsyncConnection.connect(conninfo, autocommit=True) as connection:
        row = await (await connection.execute("SELECT pg_current_xact_id()::xid::text")).fetchone()
        assert row is not None
        for _ in range(SNAPSHOT_TRIES):
            found = await connection.execute(_OLDER, [row[0], row[0], row[0]])
            if await found.fetchone() is None:
                return
            await anyio.sleep(SNAPSHOT_PAUSE)
    raise PurgeIncomplete("a transaction from before the erasure is still open, and tables would keep what it can see")


async def clear_log(conninfo: str) -> None:
    """Let nothing of the write-ahead log be left that was written before now.

    Raises `PurgeIncomplete` when the login may not, or something keeps the log: an archive, a slot, a replica.
    """
    async with await AsyncConnection.connect(conninfo, autocommit=True) as connection:
        try:
            await connection.execute("SELECT pg_switch_wal()")
            first = await _segment(connection)
            # The second writes off the segments that the first still counts as the one before.
            for _ in range(2):
                await connection.execute("CHECKPOINT")
            found = await connection.execute(
                "SELECT name FROM pg_ls_waldir() WHERE name ~ '^[0-9A-F]{24}$' AND name < %s", [first]
            )
            left = [str(row[0]) for row in await found.fetchall()]
        except psycopg.errors.InsufficientPrivilege as error:
            raise PurgeIncomplete(
                "the owner's login may not clear the write-ahead log: grant it pg_checkpoint, pg_monitor and "
                "EXECUTE on pg_switch_wal()"
            ) from error
    if left:
        raise PurgeIncomplete(f"{len(left)} files of the write-ahead log from before are still kept by the server")


async def _segment(connection: AsyncConnection) -> str:
    row = await (await connection.execute("SELECT pg_walfile_name(pg_current_wal_insert_lsn())")).fetchone()
    assert row is not None
    return str(row[0])
