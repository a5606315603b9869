"""The server: answers requests with the tools and the resources, over any transport."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from pydantic_core import to_json

from muniment import __version__
from muniment.errors import MunimentError, StorageError, StorageUnavailable
from muniment.mcp import advice
from muniment.mcp.addresses import JSON, TEMPLATES
from muniment.mcp.caller import ToolContext
from muniment.mcp.tools import INSTRUCTIONS, TOOLS, Tool
from muniment.model.context import RunContext
from muniment.tracing import span

log = logging.getLogger("muniment.mcp")

INTRODUCTION: dict[str, Any] = {
    "name": "muniment",
    "version": __version__,
    "title": "Muniment",
    "description": "A memory fabric in which recall is a privilege.",
    "instructions": INSTRUCTIONS,
}

Context = ServerRequestContext[Any, Any]
Page = types.PaginatedRequestParams | None
# The run that asks, as the transport of the request settled it; known before the fabric is open.
Run = Callable[[Context], RunContext]
# The same with the fabric, which may have to be waited for.
Who = Callable[[Context], Awaitable[ToolContext]]


def make_server(run: Run, who: Who) -> Server[Any]:
    """Make a server of the tools and the resources."""

    async def list_tools(context: Context, _page: Page) -> types.ListToolsResult:
        asking = run(context)
        return types.ListToolsResult(tools=[one for one in _tools() if _is_for(asking, TOOLS[one.name])])

    async def call_tool(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            asking = run(context)
            tools = {name: tool for name, tool in TOOLS.items() if _is_for(asking, tool)}
            tool = tools.get(params.name)
            if tool is None:
                raise MCPError(types.INVALID_PARAMS, f"there is no such tool; there are {', '.join(tools)}")
            with span("mcp.tool", tool=tool.name):
                return await tool.called(await who(context), params.arguments or {})
        except MCPError:
            raise
        except Exception as error:
            return failed(_problem(error))

    async def list_resources(_context: Context, _page: Page) -> types.ListResourcesResult:
        # Which memories there are is for recall to say, under its filters.
        return types.ListResourcesResult(resources=[])

    async def list_templates(_context: Context, _page: Page) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=list(TEMPLATES))

    async def read_resource(context: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        from muniment.mcp import resources

        uri = str(params.uri)
        try:
            with span("mcp.resource"):
                found = await resources.read(await who(context), uri)
        except Exception as error:
            problem = _problem(error)
            code = types.INTERNAL_ERROR if problem["code"] == "internal" else types.INVALID_PARAMS
            raise MCPError(code, advice.in_words(problem), problem) from None
        text = to_json(found, indent=2).decode()
        return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, mime_type=JSON, text=text)])

    server: Server[Any] = Server(
        **INTRODUCTION,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        get_tool_input_schema=lambda name: _schemas().get(name),
    )
    # Its own spans would carry words of the caller's; ours are of names and counts.
    server.middleware.clear()
    return server


def _is_for(run: RunContext, tool: Tool) -> bool:
    """Whether the run has that tool: some need a user whom it acts for."""
    return not tool.for_user or run.user_id is not None


@cache
def _tools() -> tuple[types.Tool, ...]:
    return tuple(tool.listed() for tool in TOOLS.values())


@cache
def _schemas() -> dict[str, dict[str, Any]]:
    return {tool.name: tool.input_schema for tool in _tools()}


def _problem(error: Exception) -> dict[str, object]:
    """An error as the caller gets it: code, field and message, and what to do next; no internals."""
    is_setup = isinstance(error, StorageError) and not isinstance(error, StorageUnavailable)
    if isinstance(error, MunimentError) and not is_setup:
        return advice.problem_of(error)
    if isinstance(error, StorageError):
        log.error("storage", extra={"error": error.code})
        problem = {"code": error.code, "message": "the memory is not set up for this; its log says more"}
    else:
        # INVARIANT: the error's own words stay out of the log; they may quote what a caller sent.
        log.error("unforeseen", extra={"error": type(error).__name__})
        problem = {"code": "internal", "message": "something went wrong here; the log has it"}
    return {**problem, "next": advice.after_error(problem)}


def failed(problem: Mapping[str, object]) -> types.CallToolResult:
    """The result of a tool that failed: the problem in words, and as data."""
    return types.CallToolResult(
        content=[types.TextContent(text=advice.in_words(problem))],
        structured_content={"error": dict(problem)},
        is_error=True,
    )
