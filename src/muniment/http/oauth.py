"""Where a client of MCP finds the issuer to sign in with: the metadata of a protected resource (RFC 9728).

Only a server that accepts the tokens of an issuer has it. It needs no credential, and says nothing of any tenant.
"""

from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Scope

from muniment.mcp import PATH

_METADATA = "/.well-known/oauth-protected-resource"


def metadata_routes(issuer: str) -> list[Route]:
    """The routes of the metadata: for the tools, and for clients that look for the server's own."""

    async def metadata(request: Request) -> Response:
        shown = {
            "resource": _address(request.scope, PATH),
            "authorization_servers": [issuer],
            "bearer_methods_supported": ["header"],
            "resource_name": "Muniment",
        }
        return Response(to_json(shown), media_type="application/json")

    return [Route(path, metadata, methods=("GET",), include_in_schema=False) for path in (_METADATA + PATH, _METADATA)]


def name_metadata(response: Response, scope: Scope) -> None:
    """Say in an answer that asks for a token where the metadata is; other answers stay as they are."""
    if scope["path"] == PATH and "www-authenticate" in response.headers:
        where = _address(scope, _METADATA + PATH)
        response.headers["www-authenticate"] = f'{response.headers["www-authenticate"]}, resource_metadata="{where}"'


def _address(scope: Scope, path: str) -> str:
    return f"{str(Request(scope).base_url).rstrip('/')}{path}"
