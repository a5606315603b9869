"""Problem details (RFC 9457): every error in one shape, with its stable code, without a stack trace."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from http import HTTPStatus
from math import ceil
from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import iter_route_contexts
from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import ErrorDetails, to_json
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import compile_path

from muniment.errors import InvalidInput, MunimentError, RateLimited, TooLarge, Unauthenticated
from muniment.mcp import PATH as MCP_PATH
from muniment.mcp import advice
from muniment.model.fields import as_invalid_input

CONTENT_TYPE = "application/problem+json"
# The codes of each status; a code that is not listed is an internal error.
_CODES = {
    401: "unauthenticated",
    403: "denied role_missing pin_refused second_person_required self_approval",
    404: "not_found",
    405: "method_not_allowed",
    409: "conflict already_decided idempotency_conflict request_repeated consent_changed key_rotated "
    "pack_changed pack_immutable not_promotable left_out moment_ambiguous",
    410: "history_collected",
    412: "version_conflict",
    413: "too_large",
    415: "unsupported_media_type",
    422: "invalid_input unknown_classification pack_invalid",
    429: "rate_limited",
    500: "archive_broken backup_broken seal_broken internal",
    502: "extractor_failed",
    503: "clock_ahead embedder_unavailable readers_unavailable storage_unavailable schema_missing schema_newer "
    "key_unavailable package_missing purge_incomplete",
}
STATUS: dict[str, int] = {code: status for status, codes in _CODES.items() for code in codes.split()}
# Errors in the configuration of the server: callers get only the code.
_SETUP_ERRORS = frozenset(
    {
        "schema_missing",
        "schema_newer",
        "key_unavailable",
        "archive_broken",
        "backup_broken",
        "package_missing",
        "purge_incomplete",
    }
)
_TITLES = {code: code.replace("_", " ").capitalize() for code in STATUS}
_RPC_SERVER_ERROR = -32000
# Seconds after which an unavailable server is worth another try.
_RETRY_AFTER = 1


class Problem(BaseModel):
    """The answer to a refused or failed request."""

    model_config = ConfigDict(extra="allow")

    type: str = Field(description="`urn:muniment:problem:` and the code")
    title: str
    status: int
    detail: str = Field(description="what was expected, for a person to read")
    code: str = Field(description="stable from release to release; see the list of error codes")
    field: str | None = Field(default=None, description="the input at fault, if there is one")
    request_id: str | None = Field(default=None, description="what the server's log calls this request")


def answer(
    code: str, detail: str, *, request_id: str | None, headers: Mapping[str, str] | None = None, **more: Any
) -> Response:
    """Make the response for an error code."""
    status = STATUS[code]
    shown = {"type": f"urn:muniment:problem:{code}", "title": _TITLES[code], "status": status, "detail": detail}
    shown |= {"code": code, **more, "request_id": request_id}
    body = to_json({name: value for name, value in shown.items() if value is not None})
    return Response(body, status, headers, CONTENT_TYPE)


def of(error: MunimentError, request_id: str | None) -> Response:
    """Make the response for one of our errors."""
    code = error.code if error.code in STATUS else "internal"
    detail = "the server is not set up for this; its log says more" if code in _SETUP_ERRORS else error.message
    headers: dict[str, str] = {}
    if isinstance(error, RateLimited):
        headers["Retry-After"] = str(max(1, ceil(error.wait)))
    elif STATUS[code] == HTTPStatus.SERVICE_UNAVAILABLE:
        headers["Retry-After"] = str(_RETRY_AFTER)
    elif isinstance(error, Unauthenticated):
        headers["WWW-Authenticate"] = 'Bearer realm="muniment"'
    more = {name: value for name, value in error.as_dict().items() if name not in ("code", "message")}
    return answer(code, detail, request_id=request_id, headers=headers, **more)


def as_rpc(error: MunimentError, request_id: str | None) -> Response:
    """Make the response for one of our errors as an error of JSON-RPC, which clients of MCP show to their model."""
    plain = of(error, request_id)
    detail = "the server is not set up for this; its log says more" if error.code in _SETUP_ERRORS else error.message
    problem = advice.problem_of(error) | {"message": detail, "request_id": request_id}
    shown = {"code": _RPC_SERVER_ERROR, "message": advice.in_words(problem), "data": problem}
    headers = {name: value for name, value in plain.headers.items() if name in ("retry-after", "www-authenticate")}
    body = to_json({"jsonrpc": "2.0", "id": None, "error": shown})
    return Response(body, plain.status_code, headers, "application/json")


def shown(error: MunimentError, path: str, request_id: str | None) -> Response:
    """Make the response for one of our errors as the clients of that path read it."""
    return as_rpc(error, request_id) if path == MCP_PATH else of(error, request_id)


def internal(request_id: str | None) -> Response:
    """The answer to an unexpected error: the log shows where it happened, under the request's id."""
    return answer("internal", "something went wrong here; the server's log has it", request_id=request_id)


async def on_error(request: Request, error: Exception) -> Response:
    """Make the response for what a route raised; FastAPI calls it."""
    number = request_id(request.scope)
    match error:
        case MunimentError():
            return shown(error, request.scope["path"], number)
        case RequestValidationError(body=bytes(body)) if body:
            # A body of another media type is not parsed.
            return answer(
                "unsupported_media_type", "expected application/json", request_id=number, field="Content-Type"
            )
        case RequestValidationError():
            return of(invalid(error.errors()), number)
        case HTTPException(status_code=404):
            return answer("not_found", "page not found", request_id=number)
        case HTTPException(status_code=405):
            allow = {"Allow": ", ".join(methods_at(request))}
            return answer(
                "method_not_allowed", "this address does not take that method", request_id=number, headers=allow
            )
        case HTTPException(__cause__=MunimentError() as cause):
            # The middleware refused the body while FastAPI was reading it.
            return of(cause, number)
        case HTTPException(__cause__=ClientDisconnect()):
            return of(InvalidInput("broke off", field="body"), number)
        case HTTPException():
            return answer("invalid_input", "the body cannot be read as JSON in UTF-8", request_id=number, field="body")
        case _:
            raise error


def methods_at(request: Request) -> list[str]:
    """All methods of a path, which several routes may share."""
    found: set[str] = set()
    for route in iter_route_contexts(request.app.routes):
        if _pattern(str(route.path)).match(request.scope["path"]):
            found |= set(getattr(route, "methods", None) or ())
    return sorted(found)


@cache
def _pattern(path: str) -> re.Pattern[str]:
    return compile_path(path)[0]


def invalid(errors: Sequence[Any]) -> InvalidInput | TooLarge:
    """The first error of a request, with its field and what was expected."""
    first: ErrorDetails = min(errors, key=lambda one: one["type"] != "extra_forbidden")
    if first["type"] == "json_invalid":
        return InvalidInput("is not JSON", field="body")
    where, *path = first["loc"]
    # For a union of models pydantic puts the name of the member first, in capitals.
    inside = tuple(part for part in path if not (isinstance(part, str) and part.isupper()))
    problem = as_invalid_input(first, inside, within="" if inside else str(where))
    if problem.field is None:
        # The name of a header is not that of a field; a key that the caller wrote is not repeated.
        problem.field = str(path[0]) if where == "header" and path else str(where)
    return problem


def unknown_parameter(name: str) -> InvalidInput:
    """The error for a parameter of a query that the route does not take."""
    return invalid([{"type": "extra_forbidden", "loc": ("query", name), "msg": "", "input": None}])


def request_id(scope: Any) -> str | None:
    """The id of a request, as its answer and the log show it."""
    return scope.get("state", {}).get("request_id")
