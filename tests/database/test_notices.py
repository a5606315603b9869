"""Listening for notices of the database."""

import gc
from time import monotonic

import anyio
from psycopg.conninfo import make_conninfo

from muniment.database.notices import listen
from muniment.testing import TestServer

OPEN = "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s"


def test_a_listener_that_is_cancelled_leaves_no_connection_open(server: TestServer, database: str) -> None:
    place = server.url(database)
    name = "listens-and-is-cancelled"

    async def main() -> None:
        listening = anyio.Event()
        async with anyio.create_task_group() as tasks:
            conninfo = make_conninfo(place, application_name=name)
            tasks.start_soon(listen, conninfo, "muniment_removed", listening.set, lambda _: None)
            await listening.wait()
            tasks.cancel_scope.cancel()

    anyio.run(main)
    # One that were only forgotten would be found by the collector, which warns: an error here.
    gc.collect()
    give_up_at = monotonic() + 10  # The server notices a moment later.
    with server.connect(database) as connection:
        while connection.execute(OPEN, [name]).fetchone() != (0,):
            assert monotonic() < give_up_at
            connection.rollback()
