"""Checks every node for what a cluster weakens without an error (SCL-2).

A table's shards are made from its definition at the coordinator. Functions that move shards copy rows as their caller;
forced row security hides every row from the owner, so the copy would be empty. Restrictive policies become permissive
on shards. The setting that keeps samples of content out of the planner's statistics is lost on shards of partitions,
and again when a shard is moved. Statements arrive at a node with their values in the text: its log would keep them. A
role that was on a node before can have more rights there. While any of this is found the program does not serve, and no
erasure gets its receipt.
"""

import asyncio
import json
import logging
from collections.abc import Collection
from typing import Any

from psycopg import AsyncConnection, sql

from muniment.database.cluster.nodes import is_divided
from muniment.database.cluster.script import COPYING, SILENT
from muniment.database.transaction import TASKS

log = logging.getLogger("muniment.cluster")

# The columns whose statistics are switched off at the coordinator, because they hold content: pairs of a table or
# partition and a column.
_UNSAMPLED = """
SELECT json_agg(json_build_array(c.relname, a.attname))
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE c.relnamespace = 'muniment'::regnamespace AND c.relkind IN ('r', 'p') AND a.attnum > 0 AND a.attstattarget = 0
  AND NOT EXISTS (SELECT FROM pg_inherits i WHERE i.inhparent = c.oid)
"""
# The roles to which row-level security applies at the coordinator: the logins, and the owner unless it is a superuser.
_HELD = """
SELECT json_agg(r.rolname) FROM pg_roles r
WHERE (r.rolname = ANY (%s) OR r.oid = (SELECT relowner FROM pg_class WHERE oid = 'muniment.tenants'::regclass))
  AND NOT r.rolsuper AND NOT r.rolbypassrls
"""
# Run on each node: what is wrong with its tables and shards (`places`). A shard has its table's name, `_` and a number.
# One that is being dropped at this moment, because it was moved, has policies without expressions.
_ON_NODE = """
WITH places AS (
  SELECT c.oid, c.relname::text AS name, coalesce(d.logicalrelid::oid, c.oid) AS table_id,
    c.relrowsecurity AND c.relforcerowsecurity AS forced
  FROM pg_class c
  LEFT JOIN LATERAL (SELECT s.logicalrelid FROM pg_dist_shard s JOIN pg_class l ON l.oid = s.logicalrelid
    WHERE l.relnamespace = 'muniment'::regnamespace
      AND s.shardid::text = substring(c.relname::text FROM '_([0-9]+)$')) d ON true
  WHERE c.relnamespace = 'muniment'::regnamespace AND c.relkind IN ('r', 'p')
    AND EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'tenant_id' AND NOT a.attisdropped)
), policies AS (
  SELECT p.polrelid AS place,
    (p.polqual IS NOT NULL AND sees IS NULL) OR (p.polwithcheck IS NOT NULL AND writes IS NULL) AS gone,
    concat_ws(chr(31), p.polname, p.polcmd, p.polroles::regrole[]::text, sees, writes) AS one
  FROM pg_policy p, pg_get_expr(p.polqual, p.polrelid) sees,
    pg_get_expr(p.polwithcheck, p.polrelid) writes
), unsampled AS (
  SELECT one ->> 0 AS place, one ->> 1 AS name FROM json_array_elements({unsampled}::json) one
)
SELECT json_build_object(
  'restrictive', (SELECT count(*) FROM pg_policy p JOIN places c ON c.oid = p.polrelid WHERE NOT p.polpermissive),
  'unforced', (SELECT count(*) FROM places WHERE NOT forced),
  'policies', (SELECT count(*) FROM places c WHERE
    (SELECT array_agg(one ORDER BY one) FROM policies WHERE place = c.oid)
    IS DISTINCT FROM (SELECT array_agg(one ORDER BY one) FROM policies WHERE place = c.table_id)
    AND NOT EXISTS (SELECT FROM policies WHERE place = c.oid AND gone)),
  'unheld', (SELECT coalesce(json_agg(rolname ORDER BY rolname), '[]') FROM pg_roles
    WHERE (rolsuper OR rolbypassrls) AND rolname IN (SELECT json_array_elements_text({held}::json))),
  'logged', (SELECT coalesce(json_agg(name ORDER BY name), '[]') FROM pg_settings
    JOIN json_each_text({silent}::json) wanted ON wanted.key = name WHERE setting <> wanted.value),
  'sampled', (SELECT coalesce(json_agg(json_build_array(c.name, u.name) ORDER BY c.name, u.name), '[]')
    FROM places c JOIN pg_class l ON l.oid = c.table_id AND l.oid <> c.oid JOIN unsampled u ON u.place = l.relname
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = u.name
    WHERE a.attstattarget IS DISTINCT FROM 0))
"""
# The functions that copy only rows that their caller sees, as far as the owner may call them.
_LOSING = """
SELECT DISTINCT p.proname FROM pg_proc p, pg_class c JOIN pg_roles r ON r.oid = c.relowner
WHERE c.oid = 'muniment.tenants'::regclass AND p.pronamespace = 'pg_catalog'::regnamespace AND p.proname = ANY (%s)
  AND NOT r.rolsuper AND NOT r.rolbypassrls AND has_function_privilege(r.oid, p.oid, 'EXECUTE')
ORDER BY 1
"""
_NODES = (
    "SELECT nodename, nodeport FROM pg_dist_node WHERE isactive AND noderole = 'primary' ORDER BY nodename, nodeport"
)
_ON_EACH = """
SELECT r.node_name, r.node_port, r.success, r.result
FROM master_run_on_worker(%s, %s::int[], array_fill(%s::text, ARRAY[%s::int]), true) r
"""
# Sessions that ask at once. Within one session the coordinator connects to the nodes one after the other, so that a few
# silent nodes would take longer than a check may.
_AT_ONCE = 8
# Host and port of a node.
NodeAddress = tuple[str, int]


async def problems(connection: AsyncConnection, *, serving: str | None = None) -> list[str]:
    """Describe each promise that the cluster does not keep; an empty list on a single server.

    `serving` is the coordinator's address, given by a process that serves: for it a node that does not answer is no
    problem, because only its tenants are refused (SCL-3).
    """
    if not await is_divided(connection):
        return []
    found = [
        f"the owner of the tables may call {name}(), which would lose rows: revoke it, as the superuser's script does"
        for (name,) in await (await connection.execute(_LOSING, [list(COPYING)])).fetchall()
    ]
    addresses = await _nodes(connection)
    if serving is not None:
        addresses = await _reached(serving, addresses)
    answers = await _answers(connection, addresses)
    silent = [address for address, answer in answers.items() if isinstance(answer, str)]
    # A node that stopped answering after the first test is away too.
    reached = await _reached(serving, silent) if serving is not None else silent
    for address, answer in answers.items():
        node = "{}:{}".format(*address)
        if isinstance(answer, str):
            if address in reached:
                found.append(f"{node}: cannot be checked ({answer})")
            continue
        if answer["restrictive"]:
            found.append(f"{node}: {answer['restrictive']} restrictive policies, which shards have as permissive ones")
        if answer["unforced"]:
            found.append(f"{node}: {answer['unforced']} tables or shards without forced row-level security")
        if answer["policies"]:
            found.append(f"{node}: {answer['policies']} shards with other policies than their table")
        if answer["unheld"]:
            found.append(f"{node}: row-level security does not apply to {', '.join(answer['unheld'])} there")
        if answer["logged"]:
            found.append(
                f"{node}: its log may contain values, because of {', '.join(answer['logged'])}: have a superuser run"
                " the output of muniment db distribute --script"
            )
        if answer["sampled"]:
            found.append(f"{node}: the planner may keep samples of {len(answer['sampled'])} columns with content")
    return found


async def lacks_forced_row_security(connection: AsyncConnection) -> bool:
    """Whether a table or shard on some node has no forced row-level security."""
    answers = (await _answers(connection, await _nodes(connection))).values()
    return any(not isinstance(answer, str) and answer["unforced"] for answer in answers)


async def repair(connection: AsyncConnection, *, serving: str | None = None) -> int:
    """Switch off the planner's samples of columns with content and remove those taken; return for how many columns.

    It runs as the owner of the tables. What a node refuses is logged and stays a problem. All other problems need a
    person. `serving` is as for `problems`.
    """
    if not await is_divided(connection):
        return 0
    repaired, addresses = 0, await _nodes(connection)
    if serving is not None:
        addresses = await _reached(serving, addresses)
    for address, answer in (await _answers(connection, addresses)).items():
        if not isinstance(answer, str) and answer["sampled"]:
            refusal = await _run(connection, address, _without_samples(answer["sampled"]))
            if refusal is None:
                repaired += len(answer["sampled"])
            else:
                log.warning("%s:%s: samples of columns with content cannot be switched off (%s)", *address, refusal)
    return repaired


def _without_samples(columns: list[tuple[str, str]]) -> str:
    """The statement that switches off samples of these columns of shards and removes those that were taken."""
    each = [
        sql.SQL(
            "ALTER TABLE muniment.{shard} ALTER COLUMN {column} SET STATISTICS 0;"
            " PERFORM pg_clear_attribute_stats('muniment', {shard_name}, {column_name}, false);"
        ).format(
            shard=sql.Identifier(shard),
            column=sql.Identifier(column),
            shard_name=sql.Literal(shard),
            column_name=sql.Literal(column),
        )
        for shard, column in columns
    ]
    block = sql.SQL("BEGIN {} END").format(sql.SQL(" ").join(each)).as_string(None)
    return sql.SQL("DO {}").format(sql.Literal(block)).as_string(None)


async def _nodes(connection: AsyncConnection) -> list[NodeAddress]:
    """The active nodes, the coordinator among them."""
    return [(str(host), int(port)) for host, port in await (await connection.execute(_NODES)).fetchall()]


async def _answers(
    connection: AsyncConnection, addresses: Collection[NodeAddress]
) -> dict[NodeAddress, dict[str, Any] | str]:
    """What the check found on each of these nodes, or why the node did not answer."""
    if not addresses:
        return {}
    row = await (await connection.execute(_UNSAMPLED)).fetchone()
    unsampled = json.dumps(row[0] if row is not None and row[0] is not None else [])
    row = await (await connection.execute(_HELD, [[f"muniment_{task}" for task in TASKS]])).fetchone()
    held = json.dumps(row[0] if row is not None and row[0] is not None else [])
    values = {"unsampled": unsampled, "held": held, "silent": json.dumps(SILENT)}
    query = sql.SQL(_ON_NODE).format(**{name: sql.Literal(text) for name, text in values.items()}).as_string(connection)
    hosts, ports = [host for host, _ in addresses], [port for _, port in addresses]
    rows = await (await connection.execute(_ON_EACH, [hosts, ports, query, len(addresses)])).fetchall()
    return {
        (str(host), int(port)): json.loads(result) if success else str(result) for host, port, success, result in rows
    }


async def _reached(coordinator: str, addresses: Collection[NodeAddress]) -> list[NodeAddress]:
    """Those of the nodes that the coordinator can connect to."""
    found: list[NodeAddress] = []
    waiting = iter(addresses)

    async def look() -> None:
        async with await AsyncConnection.connect(coordinator, autocommit=True) as connection:
            for address in waiting:
                reply = await connection.execute("SELECT citus_check_connection_to_node(%s, %s::int)", address)
                row = await reply.fetchone()
                if row and row[0]:
                    found.append(address)

    await asyncio.gather(*(look() for _ in range(min(len(addresses), _AT_ONCE))))
    return found


async def _run(connection: AsyncConnection, address: NodeAddress, statement: str) -> str | None:
    """Run a statement on a node; return why it failed, or None."""
    row = await (
        await connection.execute(
            "SELECT success, result FROM master_run_on_worker(ARRAY[%s], ARRAY[%s::int], ARRAY[%s], false)",
            [*address, statement],
        )
    ).fetchone()
    return None if row is not None and row[0] else str(row[1] if row is not None else "no answer")
