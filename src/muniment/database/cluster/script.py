"""The script for psql, run once, that does what only a superuser can do for a cluster."""

import re
from collections.abc import Sequence
from typing import LiteralString

from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from muniment.database.address import Address
from muniment.database.transaction import TASKS
from muniment.errors import InvalidInput

_PORT = "5432"
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
# Functions of Citus that copy rows as their caller, under their old names too. Forced row-level security hides all rows
# from the owner of the tables: called by the owner they would lose them, without an error. A superuser may call them.
COPYING = (
    "citus_move_shard_placement",
    "citus_copy_shard_placement",
    "master_move_shard_placement",
    "master_copy_shard_placement",
    "citus_split_shard_by_split_points",
    "isolate_tenant_to_new_shard",
    "rebalance_table_shards",
    "citus_rebalance_start",
    "citus_drain_node",
    "master_drain_node",
    "replicate_table_shards",
    "undistribute_table",
    "alter_distributed_table",
    "create_distributed_table_concurrently",
    "alter_table_set_access_method",
)
# A statement arrives at a node with its values in its text: a node's log would keep what is erased.
SILENT = {
    "log_min_error_statement": "panic",
    "log_statement": "none",
    "log_min_duration_statement": "-1",
    "log_min_duration_sample": "-1",
    "log_transaction_sample_rate": "0",
}
_REVOKE = """
DO $$
DECLARE one regprocedure;
BEGIN
  FOR one IN SELECT oid FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace AND proname = ANY ({}) LOOP
    EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', one);
  END LOOP;
END $$"""


def revocation() -> str:
    """The superuser's statement that revokes functions with which the owner would lose rows."""
    return sql.SQL(_REVOKE.strip()).format(list(COPYING)).as_string(None)


def silence(database: str) -> list[str]:
    """The statements of a superuser that keep a node from logging what the program's statements hold."""
    statement = sql.SQL("ALTER DATABASE {} SET {} = {}")
    return [
        statement.format(sql.Identifier(database), sql.Identifier(name), sql.Literal(value)).as_string(None)
        for name, value in SILENT.items()
    ]


def superuser_script(address: Address, workers: Sequence[str]) -> str:
    """The script for psql, to be run by a superuser from a place that reaches every node.

    `workers` are the hosts of the other nodes, with `:port` where it is not 5432. It holds the passwords of the logins,
    with which the nodes reach each other, where the address has a secret to derive them from.
    """
    owner = conninfo_to_dict(address.for_owner())
    name, role = str(owner.get("dbname") or "muniment"), str(owner.get("user") or "muniment_owner")
    here = _checked(str(owner.get("host") or ""), str(owner.get("port") or _PORT), "url")
    nodes = [here, *(_split(worker) for worker in workers)]
    if not _PLAIN.fullmatch(name):
        raise InvalidInput("expected a database whose name has letters, digits, - and _ only", field="url")
    lines = [
        "-- Run once, as a superuser:  psql -v ON_ERROR_STOP=1 -f FILE  (it connects to each node in turn).",
        "-- Every node needs in postgresql.conf: shared_preload_libraries = 'citus', wal_recycle = off,",
        "-- max_prepared_transactions as high as max_connections; in pg_hba.conf the other nodes; in the .pgpass of",
        f"-- the server's user lines for the superuser and the owner {role}, who log in from node to node too.",
        "-- It holds passwords: delete it afterwards.",
    ]
    for host, port in nodes:
        lines += [
            _connect("postgres", host, port),
            *_node(name, role, (host, port) == here),
        ]
    lines += [_connect(name, *here)]
    lines += [_statement("SELECT citus_set_coordinator_host({}, {})", here[0], int(here[1]))]
    lines += [_statement("SELECT citus_add_node({}, {})", host, int(port)) for host, port in nodes[1:]]
    if address.login_secret is not None:
        lines += [
            "-- How the nodes log in to each other for the program: every login has its password from the master key."
        ]
        for host, port in nodes:
            lines += [_connect(name, host, port)]
            lines += [
                _statement(
                    "INSERT INTO pg_dist_authinfo VALUES (0, {}, {})"
                    " ON CONFLICT (rolename, nodeid) DO UPDATE SET authinfo = excluded.authinfo",
                    f"muniment_{task}",
                    f"password={address.password(task)}",
                )
                for task in TASKS
            ]
    return "\n".join(lines) + "\n"


def _node(name: str, role: str, is_coordinator: bool) -> list[str]:
    made = [
        _statement("SET citus.enable_create_role_propagation = off"),
        _statement("SET citus.enable_create_database_propagation = off"),
    ]
    if not is_coordinator:
        # The coordinator has the database and its owner from deploy/owner.sql.
        role_made = sql.SQL("CREATE ROLE {} LOGIN CREATEROLE NOSUPERUSER NOBYPASSRLS").format(sql.Identifier(role))
        made_for = sql.SQL("CREATE DATABASE {} OWNER {}").format(sql.Identifier(name), sql.Identifier(role))
        made += [
            _unless_there(role_made, "pg_roles", "rolname", role),
            _unless_there(made_for, "pg_database", "datname", name),
            sql.SQL("GRANT pg_checkpoint, pg_monitor TO {};").format(sql.Identifier(role)).as_string(None),
        ]
    made += [f"\\connect -reuse-previous=on 'dbname={name}'", "CREATE EXTENSION IF NOT EXISTS citus;"]
    # Each node by itself: one that is in the cluster already would be refused.
    made += [_statement("SET citus.enable_ddl_propagation = off")]
    made += ["-- Only a superuser moves shards: row-level security applies to the owner, whose move would lose rows."]
    made += [f"{revocation()};"]
    made += [
        "-- On a node a statement's text contains its values, so no statement is logged.",
        *(f"{one};" for one in silence(name)),
    ]
    if not is_coordinator:
        owner = sql.Identifier(role)
        made += [
            "CREATE EXTENSION IF NOT EXISTS vector SCHEMA public;",
            sql.SQL("GRANT EXECUTE ON FUNCTION pg_switch_wal() TO {};").format(owner).as_string(None),
            sql.SQL("GRANT EXECUTE ON FUNCTION pg_ls_dir(text) TO {};").format(owner).as_string(None),
        ]
    return made


def _connect(database: str, host: str, port: str) -> str:
    return f"\\connect -reuse-previous=on 'dbname={database} host={host} port={port}'"


def _unless_there(command: sql.Composed, catalogue: str, column: str, name: str) -> str:
    """A command that psql runs unless the thing is there: the script can be run again."""
    query = sql.SQL("SELECT {} WHERE NOT EXISTS (SELECT FROM {} WHERE {} = {})")
    values = (
        sql.Literal(command.as_string(None)),
        sql.Identifier(catalogue),
        sql.Identifier(column),
        sql.Literal(name),
    )
    return query.format(*values).as_string(None) + " \\gexec"


def _statement(text: LiteralString, *values: str | int) -> str:
    return sql.SQL(text).format(*map(sql.Literal, values)).as_string(None) + ";"


def _split(node: str) -> tuple[str, str]:
    host, _, port = node.partition(":")
    return _checked(host, port or _PORT, "worker")


def _checked(host: str, port: str, field: str) -> tuple[str, str]:
    """A host and a port that stand in a command of psql; raises `InvalidInput`."""
    if not _PLAIN.fullmatch(host) or not port.isdigit():
        raise InvalidInput("expected one host name or IPv4 address, by which the other nodes reach it", field=field)
    return host, port
