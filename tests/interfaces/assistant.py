"""An assistant: the SDK's own MCP client, made to wait, over stdio or over HTTP."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from typing import Any, Self

import anyio
import httpx2
from anyio.from_thread import start_blocking_portal
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent, TextResourceContents, Tool
from pydantic_core import from_json


class Assistant:
    """A connected client; `with` connects it. `make` gives it, in its own loop."""

    def __init__(self, make: Callable[[], AbstractAsyncContextManager[Client]]) -> None:
        self._make = make
        self._open = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as opened:
            self._portal = opened.enter_context(start_blocking_portal())
            self.client = opened.enter_context(self._portal.wrap_async_context_manager(self._make()))
            self._open = opened.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def tools(self) -> dict[str, Tool]:
        return {tool.name: tool for tool in self._portal.call(self.client.list_tools).tools}

    def templates(self) -> list[str]:
        return [one.uri_template for one in self._portal.call(self.client.list_resource_templates).resource_templates]

    def call(self, tool: str, **arguments: Any) -> CallToolResult:
        """What the tool answers, error or not."""
        return self._portal.call(self.client.call_tool, tool, arguments)

    def ask(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The data that a tool gives that must work."""
        answer = self.call(tool, **arguments)
        assert not answer.is_error, said(answer)
        return answer.structured_content

    def error(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The error that a tool gives that must not work."""
        answer = self.call(tool, **arguments)
        assert answer.is_error, answer.structured_content
        error = answer.structured_content["error"]
        assert said(answer).startswith(error["code"])
        return error

    def read(self, uri: str) -> dict[str, Any]:
        """What is at an address."""
        (content,) = self._portal.call(self.client.read_resource, uri).contents
        assert isinstance(content, TextResourceContents)
        return from_json(content.text)

    def all_at_once(self, tool: str, many: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """As many calls, none of which waits for another; their data in the same order."""
        return self._portal.call(self._all, tool, many)

    async def _all(self, tool: str, many: list[dict[str, Any]]) -> list[dict[str, Any]]:
        found: dict[int, CallToolResult] = {}

        async def one(place: int, arguments: dict[str, Any]) -> None:
            found[place] = await self.client.call_tool(tool, arguments)

        async with anyio.create_task_group() as tasks:
            for place, arguments in enumerate(many):
                tasks.start_soon(one, place, arguments)
        assert not any(answer.is_error for answer in found.values())
        return [found[place].structured_content for place in range(len(many))]


def over_http(url: str, key: str | None, *, run: str | None = None, mode: str = "auto") -> Assistant:
    """At a server's address, under a key, in a run as the header tells of it."""
    headers = {"Authorization": f"Bearer {key}"} if key is not None else {}
    if run is not None:
        headers["Muniment-Run"] = run

    @asynccontextmanager
    async def connected() -> AsyncGenerator[Client]:
        async with (
            httpx2.AsyncClient(headers=headers, timeout=30) as http,
            Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=mode) as client,
        ):
            yield client

    return Assistant(connected)


def said(answer: CallToolResult) -> str:
    """The words of an answer."""
    (content,) = answer.content
    assert isinstance(content, TextContent)
    return content.text
