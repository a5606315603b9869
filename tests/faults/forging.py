"""Rows that a server gave out, inserted once more under the number that they had (SCL-5)."""

from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from psycopg.types.json import Jsonb

# The tables whose rows belong to the transaction that took their number: the column with its mark, and who may insert.
_BOUND = r"""
SELECT DISTINCT p.tablename, substring(p.with_check from '(\w+) = (?:muniment\.)?transaction_mark') AS mark, r.rolname
FROM pg_policies p, LATERAL (
  SELECT rolname FROM pg_roles WHERE rolname LIKE 'muniment%%' AND rolname <> 'muniment_owner'
    AND has_any_column_privilege(rolname, 'muniment.' || p.tablename, 'INSERT') ORDER BY rolname DESC LIMIT 1) r
WHERE p.schemaname = 'muniment' AND p.cmd = 'INSERT' AND p.with_check LIKE '%%transaction_mark()%%' AND p.tablename ~ %s
ORDER BY 1
"""
# What an update alone may set.
_SET_LATER = frozenset({"purged_at"})
# A shard has its table's name, and its number behind it.
_NUMBER = "_[0-9]{5,}$"


def in_tenant(tenant: str) -> str:
    """The settings of a session that works in a tenant; on a cluster, with its node's shards themselves."""
    settings = {
        "search_path": "muniment,public",
        "muniment.tenant": tenant,
        "citus.enable_manual_changes_to_shards": "on",
        "citus.override_table_visibility": "off",
    }
    return " ".join(f"-c {name}={value}" for name, value in settings.items())


def begin_unchecked(superuser: "psycopg.Connection[Any]") -> None:
    """Begin a transaction in which no foreign key is checked, on the node of a cluster either."""
    superuser.execute("BEGIN")
    superuser.execute("SET LOCAL session_replication_role = replica")


def assert_refuses_earlier_numbers(superuser: str, tenant: str, *, shards: bool = False) -> set[str]:
    """Try to insert every row of the tenant again, as the login that may insert there; returns the tables that have rows.

    `shards` for a node of a cluster, of which the shards are tried.
    """
    tried: set[str] = set()
    with psycopg.connect(superuser, options=in_tenant(tenant)) as connection:
        bound = connection.execute(_BOUND, [_NUMBER if shards else ""]).fetchall()
    for table, column, login in bound:
        found = rows(superuser, tenant, table)
        tried |= {table} if found else set()
        place = make_conninfo(superuser, user=login, options=in_tenant(tenant))
        with psycopg.connect(place, autocommit=True) as forger:
            for row in found:
                # With the transaction that the number belonged to, and with one of this server.
                with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
                    insert(forger, table, row)
                with pytest.raises(psycopg.errors.IntegrityError), forger.transaction():
                    own: Any = forger.execute("SELECT transaction_mark()::text").fetchone()
                    insert(forger, table, row | {column: own[0]})
    return tried


def rows(superuser: str, tenant: str, table: str) -> list[dict[str, Any]]:
    """The rows of a tenant as they were inserted: without columns that the server computes, and with no later date."""
    computed = "SELECT array_agg(attname) FROM pg_attribute WHERE attrelid = %s::regclass AND attgenerated <> ''"
    with psycopg.connect(superuser, options=in_tenant(tenant)) as connection:
        (names,) = connection.execute(computed, [table]).fetchone() or ([],)
        found = connection.execute(f"SELECT to_jsonb(t) FROM {table} t WHERE tenant_id = %s".encode(), [tenant])
        given = [{name: one for name, one in row[0].items() if name not in (names or [])} for row in found]
    return [{name: None if name in _SET_LATER else one for name, one in row.items()} for row in given]


def insert(connection: "psycopg.Connection[Any]", table: str, row: dict[str, Any]) -> None:
    """Insert a row into a table, or into a shard of it."""
    names = ", ".join(row)
    text = f"INSERT INTO {table} ({names}) SELECT {names} FROM jsonb_populate_record(NULL::{table}, %s)"
    connection.execute(text.encode(), [Jsonb(row)])
