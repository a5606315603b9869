"""Rows written by hand, in transactions that take a tick of their own."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb

from tests.security.catalogue import Connection


@dataclass(frozen=True)
class Tick:
    """A number of the tenant's, with the transaction that took it."""

    seq: int
    at: datetime
    txid: str

    def stamp(self, time: str) -> dict[str, Any]:
        """As columns of a row; the time's column has a name of its own in each table."""
        return {"seq": self.seq, time: self.at.isoformat(), "txid": self.txid}


def mark(connection: Connection, tenant: str) -> str:
    """The mark of the open transaction: on a cluster that on the tenant's node, which a statement about it reaches."""
    row: Any = connection.execute(
        "SELECT muniment.transaction_mark()::text FROM tenant_clock WHERE tenant_id = %s", [tenant]
    ).fetchone()
    return str(row[0])


def tick(connection: Connection, tenant: str) -> Tick:
    """Take the tenant's next number within the transaction that is open."""
    row: Any = connection.execute(
        "UPDATE tenant_clock SET seq = seq + 1, prev_at = at WHERE tenant_id = %s RETURNING seq, at", [tenant]
    ).fetchone()
    (seq, at), txid = row, mark(connection, tenant)
    connection.execute(
        "INSERT INTO ticks (tenant_id, seq, at, prev_seq, prev_at, txid, visible_seq) VALUES (%s, %s, %s, %s, %s, %s, %s)",
        [tenant, seq, at, seq - 1, at, txid, seq],
    )
    return Tick(seq, at, txid)


def old_tick(connection: Connection, tenant: str) -> Tick:
    """The last number that somebody else took."""
    row: Any = connection.execute(
        "SELECT seq, at, txid::text FROM ticks WHERE tenant_id = %s ORDER BY seq DESC LIMIT 1", [tenant]
    ).fetchone()
    return Tick(*row)


def insert(connection: Connection, table: str, row: Mapping[str, Any]) -> None:
    """Insert the columns given, as the login of the connection."""
    values = ", ".join(f"(jsonb_populate_record(NULL::{table}, %(row)s)).{column}" for column in row)
    connection.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({values})", {"row": Jsonb(dict(row))})


def one(owner: Connection, table: str, **where: Any) -> dict[str, Any]:
    """A row as it stands, without what the database computes itself; a copy of a candidate states no fact of its own."""
    conditions = " AND ".join(f"{column} = %s" for column in where)
    found: Any = owner.execute(f"SELECT to_jsonb(t) FROM {table} t WHERE {conditions}", [*where.values()]).fetchone()
    computed = owner.execute(
        "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attgenerated <> ''", [table]
    ).fetchall()
    return {column: value for column, value in found[0].items() if (column,) not in computed and column != "fact"}
