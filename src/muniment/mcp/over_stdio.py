"""Over stdio: one client and one run, from the first line of stdin to its end."""

import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import anyio
import anyio.lowlevel
from mcp.server.stdio import stdio_server

from muniment.mcp.caller import ToolContext
from muniment.mcp.opening import OpeningFabric
from muniment.mcp.server import Context, make_server
from muniment.model.context import RunContext

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

_STDIN = 0
_AT_ONCE = 64 * 1024
# Seconds that a database may take to be opened, or to fail, after stdin ended.
_OPENS_WITHIN = 20.0


async def serve(
    opening: OpeningFabric, run: RunContext, *, home: Path | None = None, beside: Callable[[], Any] | None = None
) -> None:
    """Answer what comes on stdin, on stdout, until stdin ends. Whatever else is printed meanwhile goes to stderr.

    The fabric is opened meanwhile. `beside` runs as long as that, if it is given. Raises why the fabric could not be
    opened, at the end.
    """

    async def who(_context: Context) -> ToolContext:
        return ToolContext(await opening.get(), run, home=home)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(opening.run)
        if beside is not None:
            tasks.start_soon(beside)
        await answer(make_server(lambda _context: run, who))
        await opening.end(_OPENS_WITHIN)
        tasks.cancel_scope.cancel()
    if opening.error is not None:
        raise opening.error


async def answer(server: "Server[Any]") -> None:
    """Answer as that server, until stdin ends."""
    # The library reads stdin in a thread that cannot be cancelled: the process would not end.
    lines = cast("anyio.AsyncFile[str]", _lines())
    async with stdio_server(stdin=lines) as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


async def _lines() -> AsyncIterator[str]:
    rest = b""
    while chunk := await _chunk():
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line.decode("utf-8", "replace")
    if rest:
        yield rest.decode("utf-8", "replace")


async def _chunk() -> bytes:
    try:
        await anyio.wait_readable(_STDIN)
    except PermissionError:
        # A file, or nothing at all: there is nothing to wait for.
        await anyio.lowlevel.checkpoint()
    return os.read(_STDIN, _AT_ONCE)
