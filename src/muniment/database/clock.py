"""How far ahead of the database's own clock a tenant may be dated: a setting that its owner makes (AUD-5)."""

from datetime import timedelta
from typing import Any

import psycopg
from psycopg import AsyncConnection, sql

# What a home is created with.
BOUND = timedelta(minutes=5)


async def set_bound(conninfo: str, bound: timedelta | None) -> None:
    """Set it as the owner of the schema, or a superuser; None for no bound, as homes for tests have it."""
    given = sql.SQL("NULL::interval") if bound is None else sql.SQL("interval {}").format(sql.Literal(str(bound)))
    async with await AsyncConnection.connect(conninfo, autocommit=True) as connection:
        await connection.execute(
            sql.SQL(
                "CREATE OR REPLACE FUNCTION muniment.clock_bound() RETURNS interval"
                " LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN {}"
            ).format(given)
        )


async def read_bound(connection: AsyncConnection[Any]) -> timedelta | None:
    """The bound of this database; None where there is none, or where the schema is too old to have one."""
    try:
        row = await (await connection.execute("SELECT muniment.clock_bound()")).fetchone()
    except (psycopg.errors.UndefinedFunction, psycopg.errors.InvalidSchemaName):
        return None
    return row[0] if row is not None else None
