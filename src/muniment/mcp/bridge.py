"""Before a server: requests on stdio are passed on to the server's own `/mcp`, under the key, for the run.

The server answers them: what it offers, what it refuses, and the address where a person decides are its own to say.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar, cast
from uuid import uuid4

import anyio
import httpx2
import mcp_types as types
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types.version import LATEST_MODERN_VERSION

from muniment.errors import RateLimited, ServerUnavailable, StorageUnavailable
from muniment.mcp import advice
from muniment.mcp.server import INTRODUCTION, Context, Page, failed
from muniment.remote import CONNECT_WITHIN

T = TypeVar("T")

# Seconds to be answered; and before each further try of what the server could not answer.
_WITHIN = 30.0
_PAUSES = (0.1, 0.4, 1.6)
_LONGEST_PAUSE = 10.0
_WORTH_ANOTHER = (RateLimited.code, StorageUnavailable.code, ServerUnavailable.code)
# Errors that say what was wrong with a request; and what is raised where no answer comes.
_OF_THE_REQUEST = (types.INVALID_PARAMS, types.INVALID_REQUEST, types.METHOD_NOT_FOUND)
_OF_THE_WIRE = (httpx2.HTTPError, OSError, anyio.ClosedResourceError, anyio.BrokenResourceError)
# Tools that write: tried again under the same key, they write once.
_WRITES = ("capture", "propose", "ask_to_remember")


class Bridge:
    """The tools and resources of a server, as one that answers on stdio."""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        self._url = f"{url.rstrip('/')}/mcp"
        self._headers = dict(headers)

    @asynccontextmanager
    async def _client(self) -> AsyncGenerator[Client]:
        # The server keeps no sessions: each request has a client of its own, so that none is left that broke.
        timeout = httpx2.Timeout(_WITHIN, connect=CONNECT_WITHIN)
        async with httpx2.AsyncClient(headers=self._headers, timeout=timeout, follow_redirects=False) as http:
            wire = streamable_http_client(self._url, http_client=http)
            async with Client(wire, mode=LATEST_MODERN_VERSION, cache=None) as client:
                yield client

    async def _ask(self, ask: Callable[[Client], Awaitable[T]]) -> T:
        """Ask the server, and again if it is away; raises `MCPError`, where it can with the problem as its data."""
        for pause in (*_PAUSES, None):
            try:
                return await self._asked_once(ask)
            except MCPError as error:
                problem = _problem_of(error)
                if pause is None or problem is None or problem.get("code") not in _WORTH_ANOTHER:
                    raise
                await anyio.sleep(max(pause, min(float(problem.get("wait", 0)), _LONGEST_PAUSE)))
        raise AssertionError("the last try returns or raises")

    async def _asked_once(self, ask: Callable[[Client], Awaitable[T]]) -> T:
        try:
            async with self._client() as client:
                return await ask(client)
        except MCPError as error:
            if error.data is None and error.code not in _OF_THE_REQUEST:
                raise _away() from None
            raise
        except BaseExceptionGroup as group:
            # The library's own tasks raise in groups.
            if group.subgroup(_OF_THE_WIRE) is None:
                raise
            raise _away() from None
        except _OF_THE_WIRE:
            raise _away() from None

    def server(self) -> Server[Any]:
        """A server that passes every request on."""

        async def list_tools(_context: Context, _page: Page) -> types.ListToolsResult:
            return await self._ask(lambda client: client.list_tools())

        async def call_tool(_context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
            arguments = dict(params.arguments or {})
            if params.name in _WRITES and arguments.get("idempotency_key") is None:
                arguments["idempotency_key"] = uuid4().hex
            try:
                return await self._ask(lambda client: client.call_tool(params.name, arguments))
            except MCPError as error:
                problem = _problem_of(error)
                if problem is None:
                    raise
                return failed(problem)

        async def list_resources(_context: Context, _page: Page) -> types.ListResourcesResult:
            return await self._ask(lambda client: client.list_resources())

        async def list_templates(_context: Context, _page: Page) -> types.ListResourceTemplatesResult:
            return await self._ask(lambda client: client.list_resource_templates())

        async def read_resource(_context: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
            return await self._ask(lambda client: client.read_resource(str(params.uri)))

        made: Server[Any] = Server(
            **INTRODUCTION,
            on_list_tools=list_tools,
            on_call_tool=call_tool,
            on_list_resources=list_resources,
            on_list_resource_templates=list_templates,
            on_read_resource=read_resource,
        )
        made.middleware.clear()
        return made


def _problem_of(error: MCPError) -> Mapping[str, Any] | None:
    """What the server said was wrong, as data; None if it said none."""
    return cast("Mapping[str, Any]", error.data) if isinstance(error.data, Mapping) else None


def _away() -> MCPError:
    problem = advice.problem_of(ServerUnavailable("the server cannot be reached, or does not answer as one"))
    return MCPError(types.INTERNAL_ERROR, advice.in_words(problem), problem)
