"""Dumps the database of an embedded server while it runs, and loads a dump into a new one.

PostgreSQL's own pg_dump and pg_restore do it, as the server's superuser: one snapshot, sealed content as it rests.
Everything here blocks. What goes wrong raises `BackupBroken`; nothing that the programs write is repeated, as their
messages may quote content.
"""

import os
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, LiteralString, NamedTuple

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from muniment.database.home import new_file
from muniment.database.postmaster import client_program
from muniment.errors import BackupBroken

# No samples of columns: they would hold content in the open.
_DUMP = ("--format=custom", "--compress=gzip:1", "--no-statistics")
_LOAD = ("--exit-on-error", "--no-password")


class ArchiveFile(NamedTuple):
    """An archive file that the database tells of, with the digest that it must have."""

    tenant_id: str
    archive_id: str
    revision: int
    digest: bytes


class Snapshot(NamedTuple):
    """One state of the database, which a dump can be made of, and what else belongs to it."""

    name: str
    schema: int
    tenants: tuple[str, ...]
    files: tuple[ArchiveFile, ...]


@contextmanager
def snapshot(conninfo: str, database: str) -> Generator[Snapshot]:
    """Hold one state of the database for as long as the block runs."""
    with psycopg.connect(make_conninfo(conninfo, dbname=database)) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.read_only = True
        (name,) = _one(connection, "SELECT pg_export_snapshot()")
        (schema,) = _one(connection, "SELECT max(version) FROM muniment.schema_migrations")
        tenants = connection.execute("SELECT tenant_id FROM muniment.tenants ORDER BY tenant_id").fetchall()
        files = connection.execute(
            "SELECT tenant_id, archive_id, revision, digest FROM (SELECT DISTINCT ON (tenant_id, archive_id) *"
            " FROM muniment.archive_files ORDER BY tenant_id, archive_id, revision DESC) f WHERE NOT dropped"
        ).fetchall()
        yield Snapshot(name, int(schema), tuple(row[0] for row in tenants), tuple(ArchiveFile(*row) for row in files))


def _one(connection: "psycopg.Connection[tuple[Any, ...]]", statement: LiteralString) -> tuple[str, ...]:
    row = connection.execute(statement).fetchone()
    assert row is not None
    return tuple(str(one) for one in row)


def dump(conninfo: str, database: str, of: Snapshot, file: Path) -> None:
    """Write a dump of that state into a new file, which only its owner can read."""
    with new_file(file) as stream:
        _run(
            "pg_dump", make_conninfo(conninfo, dbname=database), *_DUMP, f"--snapshot={of.name}", output=stream.fileno()
        )


def load(conninfo: str, database: str, owner: str, file: Path) -> None:
    """Replace a database of the server by what a dump holds; its logins have to be there."""
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(database)))
        make = sql.SQL("CREATE DATABASE {} OWNER {}")
        connection.execute(make.format(sql.Identifier(database), sql.Identifier(owner)))
    _run("pg_restore", make_conninfo(conninfo, dbname=database), *_LOAD, str(file))


def _run(program: str, conninfo: str, *arguments: str, output: int = subprocess.DEVNULL) -> None:
    place = conninfo_to_dict(conninfo)
    names = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "dbname": "PGDATABASE"}
    environment = {names[name]: str(value) for name, value in place.items() if name in names and value is not None}
    environment |= {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"}
    command = client_program(program, *arguments)
    if program == "pg_restore":
        command.append(f"--dbname={place['dbname']}")
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.DEVNULL, env=environment, check=False
    )
    if done.returncode != 0:
        raise BackupBroken(f"{program} failed with exit code {done.returncode}")
