"""The purge: removing deleted content from the files beneath the tables (ERA-3, ERA-6, SCL-6).

After a deletion the bytes are still in the free space of the tables and in the write-ahead log. The tables that hold
content and keys of the tenant are rewritten; then the log is switched and checkpointed until nothing older is left.
Everything here is about one server and its standbys; `purge_nodes` does it on every node of a cluster.

A server that is killed inside a rewrite leaves a file that no table owns. It holds rows of every tenant, no later
rewrite finds it, and PostgreSQL never removes it. INVARIANT: a file counts as unowned only if no table owned it in two
checks, and every transaction that was open at the first had ended by the second: whoever made the file has had the
time to own it. While the file is there, PostgreSQL gives its number to no other table; so the first segment of a file
is removed last.
"""

import re
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any, LiteralString

import anyio
import anyio.to_thread
import psycopg
from psycopg import AsyncConnection, sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from muniment.database.address import Address, servers_of
from muniment.database.home import sync_folder
from muniment.database.partitions import partition_of
from muniment.database.primaries import FOLLOWS
from muniment.errors import PurgeIncomplete

# Every table that holds content, a key or a hash of content that an erasure deletes; a test compares them with the
# catalogue. Of a table that is partitioned by tenant only the tenant's partition is rewritten.
REWRITTEN = (
    *("subjects", "captures", "extractions", "candidates"),
    *("memory_bodies", "memory_words", "memory_terms", "memory_vectors"),
    *("tenant_keys", "audit_keys", "idempotency_keys", "verdicts", "consents", "recalls", "memory_links"),
    *("rejection_marks", "webhooks", "notices", "requests", "api_keys"),
)
# How often, and after how many seconds each, to ask whether what a purge waits for has come.
TRIES, PAUSE = 50, 0.1
# For so many times as long an archive or a standby may make no progress: a standby that was cut off connects again
# after `wal_retrieve_retry_interval`, 5 seconds by default.
STALLED_TRIES = 6
# Checkpoints at most. The first keeps the segments of the one before it, and what a slot had reached when it began.
_CHECKPOINTS = 5
# Segments of the log kept for later use that are written over at most: 64 GiB of them.
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
# Standbys that follow a server, each with a log of its own.
_FOLLOWING: LiteralString = f"SELECT count(*) FROM pg_stat_replication WHERE {FOLLOWS}"  # noqa: S608  a constant
# Where a standby gets its log from; nothing for one that gets none.
_SENDER = "SELECT sender_host, sender_port FROM pg_stat_wal_receiver WHERE sender_host IS NOT NULL"
# Segments before this one that the archive does not have yet: a checkpoint keeps them.
_TO_ARCHIVE = """
SELECT 1 FROM pg_ls_archive_statusdir()
WHERE name ~ '^[0-9A-F]{24}([.]partial)?[.]ready$' AND substr(name, 9, 16) < %s
LIMIT 1
"""
# How far the archive is; nothing where there is none, or where it failed last.
_ARCHIVED = """
SELECT archived_count FROM pg_stat_archiver
WHERE current_setting('archive_mode') <> 'off'
  AND (last_failed_time IS NULL OR last_archived_time > last_failed_time)
"""
# What a standby replayed may be ahead of what it received: the empty rest of a segment is sent but not replayed. The
# server ends the connection of a standby when it removes a segment that it was still sending. A standby that reads from
# an archive has no receiver.
_TAKEN_OVER = "least(pg_last_wal_replay_lsn(), (SELECT flushed_lsn FROM pg_stat_wal_receiver))"
# Slots in use that keep the log from before a position; those that nobody uses do not get on.
_SLOTS_BEHIND = "SELECT 1 FROM pg_replication_slots WHERE active AND restart_lsn < %s::pg_lsn LIMIT 1"
_SLOTS = "SELECT min(restart_lsn)::text FROM pg_replication_slots WHERE active"
_UNUSED_SLOTS = "SELECT slot_name FROM pg_replication_slots WHERE NOT active AND restart_lsn < %s::pg_lsn ORDER BY 1"
# Where the segment begins that is written now.
_BEGIN = """
SELECT ('0/0'::pg_lsn + floor((pg_current_wal_insert_lsn() - '0/0'::pg_lsn) / size) * size)::text
FROM (SELECT pg_size_bytes(current_setting('wal_segment_size')) AS size) segment
"""
_BEHIND: LiteralString = f"SELECT 1 WHERE {_TAKEN_OVER} < %s::pg_lsn"
_POSITION: LiteralString = f"SELECT {_TAKEN_OVER}::text"
_STARTED = "SELECT pg_postmaster_start_time()"
_NOT_STANDBY = (
    "the server that MUNIMENT_REPLICA_URL names is no standby, and not the primary: it is a copy that is not cleared; "
    "name a standby, or leave it out"
)
# Segments, also those that a server left in part when it became the primary, by their number: it goes on in every
# timeline.
_SEGMENTS = "SELECT substr(name, 9, 16) FROM pg_ls_waldir() WHERE name ~ '^[0-9A-F]{24}([.]partial)?$'"


async def purge_problems(conninfo: str) -> list[str]:
    """The settings of the server and missing rights of the login that make a complete purge impossible."""
    async with await AsyncConnection.connect(conninfo, autocommit=True) as connection:
        found: list[str] = []
        if await _value(connection, "SHOW wal_recycle") != "off":
            found.append(RECYCLES)
        if await _value(connection, _MAY) is not True:
            found.append(RIGHTS)
        return found


async def require_possible(conninfo: str) -> None:
    """Raise `PurgeIncomplete` if no purge of this server could be complete (SCL-6)."""
    if found := await purge_problems(conninfo):
        raise PurgeIncomplete("; ".join(found))


async def rewrite(address: Address, tenant_id: str) -> None:
    """Rewrite every table that held content or keys of the tenant, with its indexes and statistics."""
    async with await AsyncConnection.connect(address.for_owner(), autocommit=True) as connection:
        await rewrite_tables(connection, await tables_of(connection, tenant_id))


async def tables_of(connection: AsyncConnection, tenant_id: str) -> list[str]:
    """The tables, or partitions, that hold content and keys of the tenant."""
    return [await partition_of(connection, name, tenant_id) for name in REWRITTEN]


async def rewrite_tables(connection: AsyncConnection, tables: Iterable[str]) -> None:
    """Rewrite these tables on the server of the connection, with their indexes and statistics."""
    await connection.execute("SET lock_timeout = '30s'")
    for table in tables:
        # The rewrite makes a new file; the old one goes at the commit, its pages in the log at the checkpoint.
        await connection.execute(sql.SQL("VACUUM (FULL, ANALYZE) {}").format(sql.Identifier(table)))


async def wait_for_snapshots(conninfo: str) -> None:
    """Wait until every transaction older than now has ended: a rewrite keeps the rows that one could still see.

    Raises `PurgeIncomplete` if one stays open for longer than `TRIES` times `PAUSE` seconds.
    """
    async with await AsyncConnection.connect(conninfo, autocommit=True) as connection:
        this = await _value(connection, "SELECT pg_current_xact_id()::xid::text")
        if not await _ended(connection, _OLDER, this, this, this):
            raise PurgeIncomplete(
                "a transaction from before the erasure is still open, and tables would keep what it can see"
            )


async def _ended(connection: AsyncConnection, query: LiteralString, *arguments: object) -> bool:
    """Wait until the query returns nothing; False if it still returns something after the last try."""
    for _ in range(TRIES):
        if await _value(connection, query, *arguments) is None:
            return True
        await anyio.sleep(PAUSE)
    return False


async def clear_log(conninfo: str, *, named: tuple[str, ...] = ()) -> None:
    """Remove everything from the write-ahead log that was written before now.

    The logs of its standbys are cleared too, each a host of the address, or `named` (SCL-6). Raises `PurgeIncomplete`
    if the login may not, if an archive, a slot or a replica keeps the log, if a standby is not reached, or if one that
    is named is a copy of its own.
    """
    await require_possible(conninfo)
    standbys = await _standbys(servers_of(conninfo), named)
    async with await AsyncConnection.connect(conninfo, autocommit=True) as connection:
        try:
            await _wait_for(standbys, connection)
            last = max([await _last(connection), *[await _last_of(one) for one in standbys]])
            # One renamed while `wal_recycle` was on holds its old content, and is written over.
            for _ in range(MOST_AHEAD):
                if await _segment(connection) > last:
                    break
                await connection.execute("SELECT pg_logical_emit_message(false, 'muniment', '')")
                await _switch(connection, standbys)
            else:
                raise PurgeIncomplete("the server keeps more segments of the write-ahead log than can be written over")
            await _switch(connection, standbys)
            first = await _segment(connection)
            begin = str(await _value(connection, _BEGIN))
            await _wait_until_free(connection, first, begin)
            for standby in standbys:
                async with await AsyncConnection.connect(standby, autocommit=True) as there:
                    await _wait_until_free(there, first, begin)
            await _remove_before(first, begin, connection, standbys)
        except psycopg.errors.InsufficientPrivilege as error:
            raise PurgeIncomplete(RIGHTS) from error


async def _standbys(hosts: Iterable[str], named: Iterable[str]) -> Collection[str]:
    """The standbys among the hosts of the address, and those that are `named` beside it.

    A `named` one may have become the primary of the address. Raises `PurgeIncomplete` for a server that is not
    reached or keeps old segments, for a second server that is not a standby, and if one of these servers has, or
    follows, a standby that is not among them: each has a log of its own.
    """
    # By the start of the server: one that is named twice counts once.
    standbys: dict[object, str] = {}
    primaries: set[object] = set()
    following: dict[object, int] = {}
    senders: dict[object, str] = {}
    for place, may_be_primary in (*((host, True) for host in hosts), *((one, False) for one in named)):
        try:
            async with await AsyncConnection.connect(place, autocommit=True) as connection:
                started = await _value(connection, _STARTED)
                following[started] = int(str(await _value(connection, _FOLLOWING)))
                if await _value(connection, "SELECT pg_is_in_recovery()"):
                    await require_possible(place)
                    standbys[started] = place
                    if (sender := await (await connection.execute(_SENDER)).fetchone()) is not None:
                        senders[started] = _at(place, *sender)
                elif may_be_primary:
                    primaries.add(started)
                elif started not in primaries:
                    raise PurgeIncomplete(_NOT_STANDBY)
        except psycopg.OperationalError as error:
            raise PurgeIncomplete("a server that the address names does not answer: its log is not cleared") from error
    if len(primaries) > 1:
        raise PurgeIncomplete("of the servers that the address names, more than one is no standby of another")
    for place in senders.values():
        # A sender that only the standby reaches cannot be asked; it counts as named.
        with suppress(psycopg.OperationalError):
            async with await AsyncConnection.connect(place, autocommit=True) as connection:
                if await _value(connection, _STARTED) not in following:
                    raise PurgeIncomplete(
                        "a standby follows a server that the address does not name: name it as a host"
                    )
    # A standby may be followed too. Each standby is counted at the one server that it follows.
    if (unnamed := sum(following.values()) - len(senders)) > 0:
        raise PurgeIncomplete(
            f"{unnamed} standbys follow the primary, or another standby, that the address does not name: "
            "name every one of them as a host, a cluster's in pg_dist_node, so that their logs are cleared too"
        )
    return standbys.values()


def _at(place: str, host: str, port: int) -> str:
    """This address with the host and the port of another server."""
    there: dict[str, Any] = {name: value for name, value in conninfo_to_dict(place).items() if name != "hostaddr"}
    own: dict[str, Any] = {"host": host, "port": port, "connect_timeout": 5, "target_session_attrs": "any"}
    return make_conninfo(**(there | own))


async def _switch(connection: AsyncConnection, standbys: Iterable[str]) -> None:
    """Go on to the next segment, with the standbys: a checkpoint removes also what one of them still needs."""
    await connection.execute("SELECT pg_switch_wal()")
    await _wait_for(standbys, connection)


async def _wait_for(standbys: Iterable[str], primary: AsyncConnection) -> None:
    """Wait until the standbys have taken over what the log of the primary holds now, as long as they get on."""
    reached = await _reached(primary)
    for place in standbys:
        async with await AsyncConnection.connect(place, autocommit=True) as connection:
            if not await _caught_up(connection, _BEHIND, reached, progress=_POSITION):
                raise PurgeIncomplete("a standby has not taken over the purge yet")


async def _wait_until_free(connection: AsyncConnection, first: str, begin: str) -> None:
    """Wait until the archive, and slots in use, have what is before the segment `first`, as long as they get on."""
    await _caught_up(connection, _TO_ARCHIVE, first, progress=_ARCHIVED)
    await _caught_up(connection, _SLOTS_BEHIND, begin, progress=_SLOTS)


async def _caught_up(
    connection: AsyncConnection, behind: LiteralString, until: str, *, progress: LiteralString
) -> bool:
    """Wait until the query `behind` returns nothing; False if `progress` is NULL or stays the same for too long."""
    before, tries = await _value(connection, progress), STALLED_TRIES
    while before is not None and tries:
        if await _ended(connection, behind, until):
            return True
        now = await _value(connection, progress)
        tries = STALLED_TRIES if now != before else tries - 1
        before = now
    return False


async def _remove_before(first: str, begin: str, connection: AsyncConnection, standbys: Collection[str]) -> None:
    """Run checkpoints until no server has a segment from before `first`, which begins at `begin`.

    A standby runs one after each of the primary's: it has nothing to remove until then. Raises `PurgeIncomplete` if one
    is left after the last.
    """
    kept = ""
    for _ in range(_CHECKPOINTS):
        kept = await _kept_after_checkpoint(connection, first, begin, "the server")
        await _wait_for(standbys, connection)
        for standby in standbys:
            async with await AsyncConnection.connect(standby, autocommit=True) as there:
                kept = await _kept_after_checkpoint(there, first, begin, "a standby") or kept
        if not kept:
            return
    raise PurgeIncomplete(kept)


async def _kept_after_checkpoint(connection: AsyncConnection, first: str, begin: str, server: str) -> str:
    """What to say of the segments from before `first` that the server keeps after a checkpoint; empty without any."""
    await connection.execute("CHECKPOINT")
    if not (left := [name for name in await _values(connection, _SEGMENTS) if name < first]):
        return ""
    why = "wal_keep_size, a replication slot or an archive_command that fails"
    if unused := await _values(connection, _UNUSED_SLOTS, begin):
        why += f"; replication slots that nobody uses: {', '.join(unused)}"
    return f"{len(left)} old files of the write-ahead log are still kept by {server}, for example because of {why}"


async def _last(connection: AsyncConnection) -> str:
    """The last segment that a server keeps; it makes every later one anew, while `wal_recycle` is off."""
    # From here on the server removes segments instead of renaming them: a checkpoint reads the settings.
    await connection.execute("CHECKPOINT")
    return max(await _values(connection, _SEGMENTS), default="")


async def _last_of(place: str) -> str:
    async with await AsyncConnection.connect(place, autocommit=True) as connection:
        return await _last(connection)


async def _reached(connection: AsyncConnection) -> str:
    return str(await _value(connection, "SELECT pg_current_wal_flush_lsn()"))


async def _segment(connection: AsyncConnection) -> str:
    return str(await _value(connection, "SELECT substr(pg_walfile_name(pg_current_wal_insert_lsn()), 9, 16)"))


async def _values(connection: AsyncConnection, query: LiteralString, *arguments: object) -> list[str]:
    return [str(row[0]) for row in await (await connection.execute(query, arguments or None)).fetchall()]


async def _value(connection: AsyncConnection, query: LiteralString, *arguments: object) -> object:
    row = await (await connection.execute(query, arguments or None)).fetchone()
    return row[0] if row is not None else None


_RELATION = re.compile(r"(?:t\d+_)?(\d+)(_(?:fsm|vm|init))?(\.\d+)?")
# Files that an error names.
_NAMED = 5


async def unowned_files(conninfo: str) -> list[str]:
    """The files of the database that no table owns, relative to the server's data folder.

    Raises `PurgeIncomplete` if the login may not look for them, or a transaction stays open for too long.
    """
    async with await AsyncConnection.connect(conninfo, autocommit=True) as connection:
        try:
            # The emptied first file of a dropped table stays until the next checkpoint.
            await connection.execute("CHECKPOINT")
            first = await _files_without_table(connection)
            if not first:
                return []
            now = await _value(connection, "SELECT clock_timestamp()")
            started = "SELECT 1 FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND xact_start <= %s LIMIT 1"
            if not await _ended(connection, started, now):
                raise PurgeIncomplete(
                    "files may be left that no table owns, and a transaction that is open may have made them"
                )
            await connection.execute("CHECKPOINT")
            return sorted(first & await _files_without_table(connection))
        except psycopg.errors.InsufficientPrivilege as error:
            raise PurgeIncomplete(
                "the owner's login may not look for files that no table owns: grant it pg_checkpoint, pg_monitor and "
                "EXECUTE on pg_ls_dir(text)"
            ) from error


async def _files_without_table(connection: AsyncConnection) -> set[str]:
    # A node of a cluster leaves its shards out of pg_class otherwise. Elsewhere nobody knows the setting.
    await connection.execute("SET citus.override_table_visibility = off")
    path = await _value(connection, "SELECT pg_relation_filepath('pg_catalog.pg_class')")
    folder = str(PurePosixPath(str(path)).parent)
    # Files first, owners after: a file whose table was committed in between is owned. Indexes and toast tables count.
    names = await _values(connection, "SELECT pg_ls_dir(%s)", folder)
    owned = set(await _values(connection, "SELECT pg_relation_filenode(oid) FROM pg_class"))
    matched = ((name, _RELATION.fullmatch(name)) for name in names)
    return {f"{folder}/{name}" for name, number in matched if number is not None and number[1] not in owned}


async def remove_unowned_files(conninfo: str, data: Path | None) -> int:
    """Remove the unowned files from that data folder, and return how many there were.

    Without a folder, for a server elsewhere, raises `PurgeIncomplete` if there are any: its operator removes them.
    """
    found = await unowned_files(conninfo)
    if found and data is None:
        some = ", ".join(found[:_NAMED]) + (" and others" if len(found) > _NAMED else "")
        raise PurgeIncomplete(
            f"{len(found)} files that no table owns are left by a server that was killed: {some}; "
            "the guide to running in production says how to remove them"
        )
    if found and data is not None:
        await anyio.to_thread.run_sync(_remove, data, found)
    return len(found)


def _remove(data: Path, files: list[str]) -> None:
    # Forks and later segments first: the number is free for another table once the first file is gone.
    for name in sorted(files, key=lambda name: Path(name).name.isdecimal()):
        (data / name).unlink(missing_ok=True)
    for folder in {(data / name).parent for name in files}:
        sync_folder(folder)
