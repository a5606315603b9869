"""Listening for notices of the database."""

import gc

import anyio
import psycopg

from muniment.database.notices import listen
from muniment.testing import TestServer


def test_a_listener_that_is_cancelled_leaves_no_connection_open(server: TestServer, database: str) -> None:
    place = server.url(database)
    name = "listens-and-is-cancelled"

    async def main() -> None:
        listening = anyio.Event()
        async with anyio.create_task_group() as tasks:
            conninfo = psycopg.conninfo.make_conninfo(place, application_name=name)
            tasks.start_soon(listen, conninfo, "muniment_removed", listening.set, lambda _: None)
            await listening.wait()
            tasks.cancel_scope.cancel()

    anyio.run(main)
    # One that were only forgotten would be found by the collector, which warns: an error here.
    gc.collect()
    with server.connect(database) as connection:
        row = connection.execute("SELECT count(*) FROM pg_stat_activity WHERE application_name = %s", [name]).fetchone()
    assert row == (0,)
