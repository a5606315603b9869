"""A script is divided into the statements that PostgreSQL finds in it."""

from psycopg.pq import DiagnosticField

from muniment.database.migrate import migrations
from muniment.database.scripts import statements
from muniment.testing import TestServer

SCRIPT = """
-- A comment; with a semicolon, and don't.
CREATE TABLE one (name text DEFAULT 'a;b''c', "odd;name" text); /* And; another */
CREATE FUNCTION two() RETURNS text LANGUAGE plpgsql AS $body$
BEGIN
  -- Inside; it stays.
  RETURN $$x;y$$;
END $body$;
INSERT INTO one VALUES (E'it\\'s;', ';'), ('\\', 'z');;
SELECT two()
"""


def test_a_semicolon_inside_a_text_a_name_or_a_comment_ends_no_statement(server: TestServer, database: str) -> None:
    found = list(statements(SCRIPT))
    assert [one.split()[0] for one in found] == ["CREATE", "CREATE", "INSERT", "SELECT"]
    with server.connect(database) as connection, connection.transaction(force_rollback=True):
        # As prepared statements: the server refuses several in one.
        answers = [connection.execute(one, prepare=True) for one in found]
        assert answers[-1].fetchone() == ("x;y",)
        rows = connection.execute('SELECT name, "odd;name" FROM one').fetchall()
    assert rows == [("it's;", ";"), ("\\", "z")]


def test_every_migration_is_sent_statement_by_statement(server: TestServer, database: str) -> None:
    """The server takes one statement at a time in that way, and reads it before it looks for the tables."""
    with server.connect(database) as connection:
        for step in migrations():
            for one in statements(step.sql):
                answer = connection.pgconn.prepare(b"", one.encode())
                assert answer.error_field(DiagnosticField.SQLSTATE) != b"42601", (step.name, answer.error_message)
