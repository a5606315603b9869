"""Over stdio: one client and one run, from the first line of stdin to its end."""

import os
from collections.abc import AsyncIterator
from typing import cast

import anyio
import anyio.lowlevel
from mcp.server.stdio import stdio_server

from muniment.client import AsyncClient
from muniment.fabric import AsyncFabric
from muniment.mcp.caller import ToolContext
from muniment.mcp.server import make_server
from muniment.model.context import RunContext

_STDIN = 0
_AT_ONCE = 64 * 1024


async def serve(fabric: AsyncFabric | AsyncClient, run: RunContext, server: str | None = None) -> None:
    """Answer what comes on stdin, on stdout, until stdin ends. Whatever else is printed meanwhile goes to stderr.

    `server` is the address of the server that the client asks.
    """
    context = ToolContext(fabric, run, server)
    tools = make_server(lambda _context: context)
    # The library reads stdin in a thread that cannot be cancelled: the process would not end.
    lines = cast("anyio.AsyncFile[str]", _lines())
    async with stdio_server(stdin=lines) as (incoming, outgoing):
        await tools.run(incoming, outgoing, tools.create_initialization_options())


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
