"""A fresh database for a peer on the embedded server that Muniment uses, with the same durable settings."""

from collections.abc import Generator
from contextlib import contextmanager
from uuid import uuid4

from psycopg import sql
from psycopg.conninfo import make_conninfo

from muniment.testing import TestServer


@contextmanager
def fresh_database(server: TestServer) -> Generator[str]:
    """The address of an empty database with pgvector, as superuser; it is dropped in the end."""
    name = f"peer_{uuid4().hex}"
    with server.connect("postgres") as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    try:
        with server.connect(name) as connection:
            connection.execute("CREATE EXTENSION vector SCHEMA public")
        yield make_conninfo(server.conninfo, dbname=name)
    finally:
        server.drop(name)
