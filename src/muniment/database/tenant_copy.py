"""Copies all rows of one tenant out of the tables and into them, as they rest, table by table (IMP-3).

Both run as the owner of the tables, in a transaction of that tenant, and hold no more than a block of rows at a time.
Row-level security applies: rows of another tenant can be neither read nor written, and only a transaction that
restores its tenant may write rows as they were.

On a cluster rows are copied in on the tenant's node, into its shards: the coordinator would bring them there by COPY,
which row-level security refuses; and it defers no foreign key on the node.
"""

from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any, LiteralString

import psycopg
from psycopg import sql

from muniment.database.begin import restoring_statement
from muniment.database.connection import Connection
from muniment.database.statements import Statement
from muniment.database.storage import Transaction
from muniment.errors import BackupBroken, Conflict

# Tables whose rows are not copied, and why.
LEFT_OUT = {
    "tenant_keys": "wrapped by the master key of one installation: they are wrapped for the receiver instead",
    "index_holders": "which processes hold an index now",
    "presence": "who has a page open now",
}
# What a column becomes in the installation that it is copied into.
_CHANGED: dict[tuple[str, str], LiteralString] = {
    # Two installations must not call the same address: an admin resumes what shall be called from here.
    ("webhooks", "parked_at"): "CASE WHEN removed_at IS NULL THEN coalesce(parked_at, statement_timestamp()) END",
    ("webhooks", "lease"): "NULL",
    ("webhooks", "leased_until"): "NULL",
    # People are told from here on; the lease was another installation's.
    ("notices", "lease"): "NULL",
    ("notices", "leased_until"): "NULL",
}
# A restore begins with rows of these: one that is there already is another restore's, or the tenant's own.
_MADE_BY_A_RESTORE = ("tenants", "tenant_clock", "tenant_restores")
_DEFERRED = Statement("deferred", "SET CONSTRAINTS ALL DEFERRED")
# A node of a cluster refuses to write to a shard under its own name otherwise.
_INTO_SHARDS = Statement("into shards", "SET LOCAL citus.enable_manual_changes_to_shards = on")


@dataclass(frozen=True)
class Table:
    """A table with the columns that its rows are copied with: all but those that the database computes."""

    name: str
    columns: tuple[str, ...]


async def tables(tx: Transaction) -> list[Table]:
    """List the tables of tenants, each after those that its rows refer to."""
    columns = await tx.rows("copying.columns")
    found: dict[str, list[str]] = {}
    for row in columns:
        found.setdefault(row["place"], []).append(row["name"])
    before: dict[str, set[str]] = {name: set() for name in found}
    for row in await tx.rows("copying.references"):
        before[row["place"]].add(row["parent"])
    try:
        order = list(TopologicalSorter(before).static_order())
    except CycleError as error:  # pragma: no cover, a test compares the keys of the schema
        raise AssertionError("foreign keys in a circle must be deferrable") from error
    return [Table(name, tuple(found[name])) for name in order if name not in LEFT_OUT]


async def places(tx: Transaction) -> dict[str, str]:
    """The tables under other names where the transaction writes: on a node of a cluster, the tenant's shards.

    It is asked once the transaction has written, from when on the shards cannot be moved. Raises `Conflict` if they
    were moved to another node before.
    """
    if not tx.connection.of_cluster:
        return {}
    shards = await tx.rows("copying.shards")
    if not all(row["here"] for row in shards):
        raise Conflict("the tenant's place on the cluster was moved at this moment; try again", field="tenant")
    await tx.connection.exchange([(_INTO_SHARDS, [])])
    return {row["place"]: row["shard"].removeprefix("muniment.") for row in shards}


async def copy_out(tx: Transaction, table: Table) -> AsyncIterator[bytes]:
    """Yield the rows of the transaction's tenant, in PostgreSQL's binary COPY format, piece by piece."""
    # The tenant's name itself: by a setting a cluster would not know the shard.
    statement = sql.SQL("COPY (SELECT {} FROM muniment.{} WHERE tenant_id = {}) TO STDOUT (FORMAT binary)").format(
        _names(table.columns), sql.Identifier(table.name), sql.Literal(tx.tenant_id)
    )
    async with tx.connection.cursor() as cursor, cursor.copy(statement) as copy:
        while piece := await copy.read():
            yield bytes(piece)


class CopyIn:
    """Takes the rows of one table and inserts them at the end; one of another tenant, or that breaks a rule, raises."""

    def __init__(self, connection: Connection, table: Table, place: str) -> None:
        self._table = table
        # The table's own name, or that of its shard.
        self._place = place
        self._cursor = connection.cursor()
        self._staged = sql.Identifier(f"restored_{table.name}")
        self._copying: Any = None

    async def begin(self) -> None:
        """Make the place where the rows arrive: COPY is not possible into a table with row-level security."""
        own = sql.Identifier(self._table.name)
        make = sql.SQL("CREATE TEMP TABLE {} (LIKE muniment.{}) ON COMMIT DROP").format(self._staged, own)
        await self._cursor.execute(make)
        into = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT binary)").format(self._staged, _names(self._table.columns))
        self._copying = self._cursor.copy(into)
        self._copy = await self._copying.__aenter__()

    async def add(self, piece: bytes) -> None:
        """Take the next piece of the rows."""
        await self._copy.write(piece)

    async def finish(self) -> int:
        """Insert the rows, all in one statement, so that they may refer to each other; returns how many."""
        with _refusing(self._table):
            await self._copying.__aexit__(None, None, None)
            values = sql.SQL(", ").join(self._value(name) for name in self._table.columns)
            await self._cursor.execute(
                sql.SQL("INSERT INTO muniment.{} ({}) SELECT {} FROM {}").format(
                    sql.Identifier(self._place), _names(self._table.columns), values, self._staged
                )
            )
        rows = self._cursor.rowcount
        await self._cursor.execute(sql.SQL("DROP TABLE {}").format(self._staged))
        await self._cursor.close()
        return rows

    def _value(self, column: str) -> sql.Composable:
        changed = _CHANGED.get((self._table.name, column))
        return sql.Identifier(column) if changed is None else sql.SQL(changed)


@contextmanager
def _refusing(table: Table) -> Generator[None]:
    """Turn what the database says against a row into the error of a backup; no value of the row is repeated."""
    try:
        yield
    except (psycopg.errors.IntegrityError, psycopg.errors.DataError, psycopg.errors.InsufficientPrivilege) as error:
        if isinstance(error, psycopg.errors.UniqueViolation) and table.name in _MADE_BY_A_RESTORE:
            raise Conflict(
                "this database has a tenant of that name, or somebody restores it now", field="tenant"
            ) from error
        raise BackupBroken(f"rows of {table.name} break a rule of the database ({type(error).__name__})") from error


async def begin_restore(tx: Transaction, backup_id: str, by: str, digest: bytes) -> None:
    """Let the transaction write rows of its tenant as they were, and record that; raises `Conflict` if it is there.

    Of two that restore it at once, or beside its first capture, the keys of `tenants` and `tenant_clock` let one pass.
    """
    if await tx.row("copying.there") is not None:
        raise Conflict(
            "this database has a tenant of that name: a backup is brought in only where there is none", field="tenant"
        )
    await tx.connection.exchange([(restoring_statement(tx.tenant_id), []), (_DEFERRED, [])])
    await tx.do("copying.begin_restore", backup_id=backup_id, at=tx.now, by=by, digest=digest)


async def check_references(tx: Transaction) -> None:
    """Check the keys that wait for the end of the transaction now; raises `BackupBroken`."""
    try:
        async with tx.connection.cursor() as cursor:
            await cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
    except psycopg.errors.IntegrityError as error:
        raise BackupBroken("rows refer to others that are not there") from error


def _names(columns: tuple[str, ...]) -> sql.Composed:
    return sql.SQL(", ").join(sql.Identifier(one) for one in columns)
