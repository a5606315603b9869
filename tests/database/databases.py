"""Databases of their own, at any step of the schema."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch
from uuid import uuid4

from psycopg import sql

from muniment.database.address import Address
from muniment.database.migrate import FIRST_RELEASE, migrate, migrations, read_migrations
from muniment.opening import OWNER
from muniment.testing import TestServer


@contextmanager
def empty_database(server: TestServer) -> Generator[str]:
    """A database with nothing in it but the extension, owned by an ordinary role."""
    name = f"empty_{uuid4().hex}"
    with server.connect("postgres") as connection:
        connection.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(sql.Identifier(name), sql.Identifier(OWNER)))
    with server.connect(name) as connection:
        connection.execute("CREATE EXTENSION vector SCHEMA public")
    try:
        yield name
    finally:
        server.drop(name)


@contextmanager
def new_database(server: TestServer) -> Generator[str]:
    """A database as this program makes it."""
    with empty_database(server) as name:
        asyncio.run(migrate(Address.parse(server.url(name), None)))
        yield name


def migrate_to(server: TestServer, database: str, version: int) -> tuple[str, ...]:
    """Bring it to that version as the program of that version would have, and give the steps taken."""
    done = _migrate_to_first_release(server, database, version)
    if version <= FIRST_RELEASE:
        return done
    known = tuple(step for step in migrations() if step.version <= version)
    with patch("muniment.database.migrate.migrations", lambda: known):
        return (*done, *asyncio.run(migrate(Address.parse(server.url(database), None))))


def _migrate_to_first_release(server: TestServer, database: str, version: int) -> tuple[str, ...]:
    """Up to version 20: the steps of release 0.1.0, which the program does not have any more."""
    done: list[str] = []
    with server.connect(database, OWNER) as owner:
        owner.execute("CREATE SCHEMA IF NOT EXISTS muniment")
        owner.execute(
            "CREATE TABLE IF NOT EXISTS schema_migrations (version int PRIMARY KEY, name text NOT NULL,"
            " digest text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())"
        )
        applied = {row[0] for row in owner.execute("SELECT version FROM schema_migrations").fetchall()}
        for step in read_migrations(Path(__file__).parent / "schema_0_1_0"):
            if step.version <= version and step.version not in applied:
                with owner.transaction():
                    owner.execute(step.sql.encode())
                    owner.execute(
                        "INSERT INTO schema_migrations (version, name, digest) VALUES (%s, %s, %s)",
                        [step.version, step.name, step.digest],
                    )
                done.append(f"{step.version:04d}_{step.name}")
    return tuple(done)
