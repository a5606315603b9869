"""The job queue's own tables: procrastinate's, in a schema of their own, as its package has them.

How far they are stands in the comment of the schema: the name of the last of procrastinate's migrations.
"""

from pathlib import Path
from typing import Any, LiteralString, cast

from psycopg import AsyncConnection, sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from muniment.storage.address import Address

SCHEMA = "procrastinate"
_GRANTS = (
    "USAGE ON SCHEMA {}",
    "SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {}",
    "USAGE ON ALL SEQUENCES IN SCHEMA {}",
    "EXECUTE ON ALL FUNCTIONS IN SCHEMA {}",
)


def queue_address(address: Address) -> str:
    """The queue's tables, as the jobs' login."""
    place: dict[str, Any] = dict(conninfo_to_dict(address.for_task("jobs")))
    return make_conninfo(**(place | {"options": f"-c search_path={SCHEMA}", "application_name": "muniment-worker"}))


async def migrate(connection: AsyncConnection) -> None:
    """Create them, or bring them to the installed version; by the owner, who lets the jobs' login work in them."""
    # A tenth of a second to import, which only those pay who migrate.
    from procrastinate.schema import SchemaManager

    steps = _steps(SchemaManager.get_migrations_path())
    level, latest = await _level(connection), max(steps)
    if level == latest:
        return
    async with connection.transaction():
        await _execute(connection, "CREATE SCHEMA IF NOT EXISTS {}")
        await _execute(connection, "SET LOCAL search_path = {}")
        if level is None:
            await connection.execute(SchemaManager.get_schema())
        else:
            for name in sorted(name for name in steps if name > level):
                await connection.execute(cast("LiteralString", steps[name].read_text("utf-8")))
        for grant in _GRANTS:
            await _execute(connection, f"GRANT {grant} TO muniment_jobs")
        comment = sql.SQL("COMMENT ON SCHEMA {} IS {}").format(sql.Identifier(SCHEMA), sql.Literal(latest))
        await connection.execute(comment)


def _steps(folder: str) -> dict[str, Path]:
    return {one.stem: one for one in Path(folder).glob("*.sql")}


async def _execute(connection: AsyncConnection, statement: str) -> None:
    await connection.execute(sql.SQL(cast("LiteralString", statement)).format(sql.Identifier(SCHEMA)))


async def _level(connection: AsyncConnection) -> str | None:
    """The migration they are at; None when they are not there."""
    found = await connection.execute(
        "SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = %s", [SCHEMA]
    )
    row = await found.fetchone()
    return str(row[0]) if row is not None and row[0] is not None else None
