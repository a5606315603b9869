"""Databases of their own, at any step of the schema."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from unittest.mock import patch
from uuid import uuid4

from psycopg import sql

from muniment.database.address import Address
from muniment.database.migrate import migrate, migrations
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


def migrate_to(server: TestServer, database: str, version: int) -> tuple[str, ...]:
    """Bring it to that version as the program of that version would have, and give the steps taken."""
    known = tuple(step for step in migrations() if step.version <= version)
    with patch("muniment.database.migrate.migrations", lambda: known):
        return asyncio.run(migrate(Address.parse(server.url(database), None)))
