"""Files of a database that no table owns: what a server that was killed inside a table rewrite left (ERA-6).

Such a file holds rows of every tenant, no later rewrite finds it, and PostgreSQL never removes it.

INVARIANT: a file is taken for unowned only if it was so in two looks, and every transaction that was open at the first
look had ended by the second: whoever made the file has had the time to own it. While it lies there PostgreSQL gives its
number to no other table, because it looks for the file; so the first part of a file goes last.
"""

import os
import re
from pathlib import Path, PurePosixPath

import anyio
import anyio.to_thread
import psycopg
from psycopg import AsyncConnection

from muniment.errors import PurgeIncomplete

TRIES, PAUSE = 50, 0.1
_RELATION = re.compile(r"(?:t\d+_)?(\d+)(_(?:fsm|vm|init))?(\.\d+)?")
_NAMED = 5
# Mapped tables of the catalogue, indexes and toast tables included.
_OWNED = "SELECT pg_relation_filenode(oid) FROM pg_class"


async def find(conninfo: str) -> list[str]:
    """The unowned files of the database that `conninfo` names, relative to the server's data folder.

    Raises `PurgeIncomplete` where the login may not look, or a transaction stays open for longer than that.
    """
    async with await AsyncConnection.connect(conninfo, autocommit=True) as connection:
        try:
            # An emptied first file of a table that was dropped stays until the next checkpoint.
            await connection.execute("CHECKPOINT")
            first = await _look(connection)
            if not first:
                return []
            await _outlive_transactions(connection)
            await connection.execute("CHECKPOINT")
            return sorted(first & await _look(connection))
        except psycopg.errors.InsufficientPrivilege as error:
            raise PurgeIncomplete(
                "the owner's login may not look for files that no table owns: grant it pg_checkpoint, pg_monitor and "
                "EXECUTE on pg_ls_dir(text)"
            ) from error


async def _look(connection: AsyncConnection) -> set[str]:
    found = await (await connection.execute("SELECT pg_relation_filepath('pg_catalog.pg_class')")).fetchone()
    assert found is not None
    folder = str(PurePosixPath(str(found[0])).parent)
    # Files first, owners after: whatever was committed in between is owned.
    names = [str(row[0]) for row in await (await connection.execute("SELECT pg_ls_dir(%s)", [folder])).fetchall()]
    owned = {str(row[0]) for row in await (await connection.execute(_OWNED)).fetchall()}
    matched = ((name, _RELATION.fullmatch(name)) for name in names)
    return {f"{folder}/{name}" for name, number in matched if number is not None and number[1] not in owned}


async def _outlive_transactions(connection: AsyncConnection) -> None:
    row = await (await connection.execute("SELECT clock_timestamp()")).fetchone()
    assert row is not None
    for _ in range(TRIES):
        found = await connection.execute(
            "SELECT 1 FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND xact_start <= %s LIMIT 1", [row[0]]
        )
        if await found.fetchone() is None:
            return
        await anyio.sleep(PAUSE)
    raise PurgeIncomplete("files may be left that no table owns, and a transaction that is open may have made them")


async def clear(conninfo: str, data: Path | None) -> int:
    """Remove them from that data folder; how many there were. Without a folder, of a server elsewhere, raises
    `PurgeIncomplete` if there are any: whoever runs that server removes them."""
    found = await find(conninfo)
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
        opened = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
