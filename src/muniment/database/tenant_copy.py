"""Copies all rows of one tenant out of the tables and into them, as they rest, table by table (IMP-3).

Both run as the owner of the tables, in a transaction of that tenant, and hold no more than a block of rows at a time.
Row-level security applies: rows of another tenant can be neither read nor written, and only a transaction that
restores its tenant may write rows as they were.
"""

from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any, LiteralString

import psycopg
from psycopg import sql

from muniment.database.connection import Connection
from muniment.database.storage import Transaction
from muniment.errors import BackupBroken, Conflict

# Tables whose rows are not copied, and why.
LEFT_OUT = {
    "tenant_keys": "wrapped by the master key of one installation: they are wrapped for the receiver instead",
    "index_holders": "which processes hold an index now",
    "attendances": "who has a page open now",
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
_TENANT = "tenant_id = current_setting('muniment.tenant', true)"


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


async def copy_out(connection: Connection, table: Table) -> AsyncIterator[bytes]:
    """Yield the rows of the transaction's tenant, in PostgreSQL's binary COPY format, piece by piece."""
    statement = sql.SQL("COPY (SELECT {} FROM muniment.{} WHERE {}) TO STDOUT (FORMAT binary)").format(
        _names(table.columns), sql.Identifier(table.name), sql.SQL(_TENANT)
    )
    async with connection.cursor() as cursor, cursor.copy(statement) as copy:
        while piece := await copy.read():
            yield bytes(piece)


class CopyIn:
    """Takes the rows of one table and inserts them at the end; one of another tenant, or that breaks a rule, raises."""

    def __init__(self, connection: Connection, table: Table) -> None:
        self._table = table
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
                    sql.Identifier(self._table.name), _names(self._table.columns), values, self._staged
                )
            )
        rows = self._cursor.rowcount
        await self._cursor.execute(sql.SQL("DROP TABLE {}").format(self._staged))
        await self._cursor.close()
        return rows

    def _value(self, column: str) -> sql.Composable:
        changed = _CHANGED.get((self._table.name, column))
        return sql.Identifier(column) if changed is None else sql.SQL(changed)


class _refusing:  # noqa: N801  reads like a function
    """Turns what the database says against a row into the error of a backup; no value of the row is repeated."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def __enter__(self) -> None: ...

    def __exit__(self, _type: object, error: BaseException | None, _trace: object) -> None:
        match error:
            case psycopg.errors.UniqueViolation() if self._table.name in ("tenants", "tenant_clock", "tenant_restores"):
                raise Conflict("there is such a tenant, or somebody restores it now", field="tenant") from error
            case psycopg.errors.IntegrityError() | psycopg.errors.DataError() | psycopg.errors.InsufficientPrivilege():
                raise BackupBroken(
                    f"rows of {self._table.name} break a rule of the database ({type(error).__name__})"
                ) from error
            case _:
                return


@contextmanager
def refusing_where_there() -> Generator[None]:
    """Turn the database's refusal to restore a tenant that is there into `Conflict`."""
    try:
        yield
    except (psycopg.errors.InsufficientPrivilege, psycopg.errors.UniqueViolation) as error:
        raise Conflict(
            "there is such a tenant: a backup is brought in only where there is none", field="tenant"
        ) from error


async def check_references(tx: Transaction) -> None:
    """Check the keys that wait for the end of the transaction now; raises `BackupBroken`."""
    try:
        async with tx.connection.cursor() as cursor:
            await cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
    except psycopg.errors.IntegrityError as error:
        raise BackupBroken("rows refer to others that are not there") from error


async def defer_references(tx: Transaction) -> None:
    """Let rows refer to others that come after them."""
    async with tx.connection.cursor() as cursor:
        await cursor.execute("SET CONSTRAINTS ALL DEFERRED")


def _names(columns: tuple[str, ...]) -> sql.Composed:
    return sql.SQL(", ").join(sql.Identifier(one) for one in columns)
