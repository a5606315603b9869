"""The partitions of the tables that are divided by tenant."""

from psycopg import AsyncConnection

# All of these tables have as many, and a tenant's rows are in those of the same number.
PARTITIONS = 8
_HOLDS = """
SELECT p.relname FROM pg_class t JOIN pg_inherits i ON i.inhparent = t.oid JOIN pg_class p ON p.oid = i.inhrelid,
  generate_series(0, %(count)s - 1) n
WHERE t.oid = %(table)s::regclass AND p.relname = t.relname || '_' || n
  AND satisfies_hash_partition(t.oid, %(count)s, n, %(tenant_id)s::text)
"""


async def partition_of(connection: AsyncConnection, table: str, tenant_id: str) -> str:
    """The name of the partition that holds a tenant's rows; the table's own if it is not partitioned."""
    kind = "SELECT relkind = 'p' FROM pg_class WHERE oid = %s::regclass"
    row = await (await connection.execute(kind, [f"muniment.{table}"])).fetchone()
    if row is None or not row[0]:
        return table
    values = {"table": f"muniment.{table}", "count": PARTITIONS, "tenant_id": tenant_id}
    row = await (await connection.execute(_HOLDS, values)).fetchone()
    assert row is not None, f"{table} has no partition for the tenant"
    return str(row[0])
