"""Over streamable HTTP: every request for itself, with its credential and the run in its header.

There are no sessions, so that any server behind a balancer answers any request.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from secrets import token_hex
from typing import Any, cast
from urllib.parse import urlsplit

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from muniment.errors import Denied, TooLarge, Unauthenticated
from muniment.fabric import AsyncFabric
from muniment.mcp.caller import ToolContext
from muniment.mcp.server import Context, make_server
from muniment.model.api_key import Credential
from muniment.model.context import RUN_HEADER, RUN_LIMIT, Run, RunContext

# There is no stream to be opened by GET, and no session to be ended by DELETE.
METHODS = ("POST",)
_THIS_MACHINE = frozenset({"localhost", "127.0.0.1", "::1"})

# Parses the run in the header; raises `InvalidInput`.
RunOf = Callable[[str | None], Run | None]


class McpOverHttp:
    """ASGI: answers MCP at one address, behind middleware that has checked the credential."""

    def __init__(self, fabric: AsyncFabric, *, run_of: RunOf, body_limit: int) -> None:
        self._fabric = fabric
        self._run_of = run_of
        self._requests = StreamableHTTPSessionManager(
            make_server(_run_of_request, self._who),
            json_response=True,
            stateless=True,
            max_request_body_size=body_limit,
        )

    @asynccontextmanager
    async def running(self, _app: Any = None) -> AsyncGenerator[None]:
        """What answers requests, as long as the app is up; once."""
        async with self._requests.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request; raises what the app makes problems of for who may not ask, or not so."""
        headers = Headers(scope=scope)
        _from_no_page(headers.get("origin"))
        scope["state"]["run"] = await self._run(scope["state"].get("credential"), headers)
        await self._requests.handle_request(scope, receive, send)

    async def _run(self, credential: Credential | None, headers: Headers) -> RunContext:
        """The run that asks. Tenant and agent are the credential's, and it bounds user and labels."""
        if credential is None:
            raise Unauthenticated("send an API key or token in the header Authorization: Bearer ...")
        access, principal = self._fabric.access, credential.principal
        await access.allow(principal, "recall")
        if principal.kind != "agent":
            raise Denied(f"MCP is for agents; this credential is of kind {principal.kind}")
        header = headers.get(RUN_HEADER)
        if header is not None and len(header) > RUN_LIMIT:
            raise TooLarge(f"is longer than {RUN_LIMIT} characters", field="run")
        return await access.run(credential, self._run_of(header) or _run_by_default(credential))

    async def _who(self, context: Context) -> ToolContext:
        request = cast("Request", context.request)
        return ToolContext(self._fabric, _run_of_request(context), str(request.base_url))


def _run_of_request(context: Context) -> RunContext:
    return cast("RunContext", cast("Request", context.request).scope["state"]["run"])


def _run_by_default(credential: Credential) -> Run:
    """The run of a request that does not describe one: each is its own.

    Those for one user under one key share a session, and with it the working tier, although the server keeps none.
    """
    run_id = f"mcp_{token_hex(8)}"
    if credential.user_id is None:
        return Run(run_id=run_id)
    return Run(run_id=run_id, session_id=f"mcp_{credential.key_id or credential.principal.id}")


def _from_no_page(origin: str | None) -> None:
    """Raises `Denied` for what a web page sent, unless it is one of this machine's own.

    A page whose name was turned to this machine's address (DNS rebinding) gives itself away by its origin, which
    browsers send with every POST.
    """
    if origin is None:
        return
    try:
        host = urlsplit(origin).hostname
    except ValueError:
        host = None
    if host not in _THIS_MACHINE:
        raise Denied("web pages may not ask", field="Origin")
