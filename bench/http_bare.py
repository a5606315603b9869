"""The bare route: the statements that a verb of ours sends, behind FastAPI and uvicorn alone, in a process of its own.

usage: python -m bench.http_bare FILE   a pickled `Routes`; its address comes as one line once it answers
"""

import asyncio
import pickle
import re
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import uvicorn
import uvloop
from fastapi import FastAPI, Response
from psycopg.rows import dict_row
from psycopg.sql import quote
from psycopg_pool import AsyncConnectionPool
from pydantic_core import to_json

from bench.bare import Script
from muniment.database.connection import Command, Connection
from muniment.database.statements import Statement
from muniment.model.ids import Prefix, make_id

_ID = re.compile(r"(cap|evt|key)_[0-9a-f]{28}")


@dataclass
class Routes:
    """Where the database is for each login, and what was sent and answered for each request, by its number."""

    reader: str
    writer: str
    recalls: list[Script] = field(default_factory=list)
    captures: list[Script] = field(default_factory=list)
    recalled: list[Any] = field(default_factory=list)
    receipts: list[Any] = field(default_factory=list)


async def write(script: Script, connection: Connection) -> None:
    """A capture's statements with their content, under ids and numbers of their own."""
    tick = next(_named(one, given) for trip in script.trips for one, given in trip if one.name == "tenant.record_tick")
    known: dict[Any, Any] = {}

    def own(value: Any) -> Any:
        if isinstance(value, list):
            return [own(one) for one in cast("list[Any]", value)]
        if isinstance(value, str) and (found := _ID.fullmatch(value)) and value not in known:
            known[value] = make_id(cast("Prefix", found[1]), tick["at"])
        return known.get(value, value) if isinstance(value, int | str) or value is tick["at"] else value

    begin: list[Command] = [
        (Statement("begin", "BEGIN"), []),
        (Statement("tenant", f"SET LOCAL muniment.tenant = {quote(script.tenant_id)}", planned_once=False), []),
    ]
    for trip in script.trips:
        commands = list(begin)
        for one, arguments in trip:
            given = [own(value) for value in arguments]
            if one.name == "tenant.record_tick":
                given[one.parameters.index("prev_at")] = known["prev_at"]
            commands.append((one, given))
        replies = await connection.exchange(commands)
        for (one, _), reply in zip(trip, replies[len(begin) :], strict=True):
            if one.name in ("tenant.transaction_id", "pack.hold_in_force"):
                known[tick["txid"]] = reply.rows[0]["txid"]
            elif one.name == "tenant.tick":
                (row,) = reply.rows
                known |= {tick["seq"]: row["seq"], tick["at"]: row["at"], "prev_at": row["prev_at"]}
        begin = []


def _named(one: Any, arguments: Sequence[Any]) -> dict[str, Any]:
    return dict(zip(one.parameters, arguments, strict=True))


def app_of(routes: Routes) -> FastAPI:
    """Two routes: a body is read, the statements are said, an answer of the same size goes out."""
    readers, writers = _pool(routes.reader), _pool(routes.writer)

    @asynccontextmanager
    async def opened(_: FastAPI) -> AsyncGenerator[None]:
        async with readers, writers:
            yield

    app = FastAPI(lifespan=opened)

    @app.post("/recall")
    async def recall(n: int, body: dict[str, Any]) -> Response:
        async with readers.connection() as connection:
            await routes.recalls[n].say(connection)
        return Response(to_json(routes.recalled[n]), media_type="application/json")

    @app.post("/captures", status_code=201)
    async def capture(n: int, body: dict[str, Any]) -> Response:
        async with writers.connection() as connection:
            await write(routes.captures[n], connection)
        return Response(to_json(routes.receipts[n]), 201, media_type="application/json")

    return app


def _pool(login: str) -> AsyncConnectionPool[Connection]:
    given = {"autocommit": True, "row_factory": dict_row}
    return AsyncConnectionPool(login, connection_class=Connection, kwargs=given, min_size=0, max_size=12, open=False)


class _Server(uvicorn.Server):
    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        print(f"http://127.0.0.1:{self.servers[0].sockets[0].getsockname()[1]}", flush=True)


def main(file: Path) -> None:
    """Serve until told to stop."""
    routes: Routes = pickle.loads(file.read_bytes())
    # As `muniment serve` has it, but for what that adds.
    how = {"log_config": None, "access_log": False, "server_header": False, "ws": "none", "timeout_keep_alive": 60}
    server = _Server(uvicorn.Config(app_of(routes), port=0, lifespan="on", **cast("dict[str, Any]", how)))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(server.serve())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
