"""What the server says of itself: the OpenAPI document, and a page to read it by, without a line from elsewhere."""

from collections.abc import Iterator
from html import escape
from json import dumps
from typing import Any, cast

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi
from fastapi.responses import HTMLResponse
from fastapi.routing import APIRoute
from pydantic import TypeAdapter
from pydantic_core import to_json

from muniment.access.roles import ALLOWED, PERSONS_ONLY
from muniment.http.caller import IDEMPOTENCY_HEADER, KEY_SAID, KeyText
from muniment.http.idempotency import verb_of
from muniment.http.problems import Problem
from muniment.loops import in_thread

OVERVIEW = (
    "A memory fabric for AI agents in which recall is a privilege. Tenant and kind of principal come only from "
    "the credential. Errors are problem+json with stable codes. Writes accept an `Idempotency-Key`; lists return "
    "`next`, which is the `after` of the following page."
)
_KEY: dict[str, Any] = {
    "name": IDEMPOTENCY_HEADER,
    "in": "header",
    "required": False,
    "schema": TypeAdapter(KeyText).json_schema(),
    "description": KEY_SAID,
}

router = APIRouter(include_in_schema=False)


def routes_of(part: Any) -> Iterator[APIRoute]:
    """The routes of one part of `/v1`."""
    yield from cast("list[APIRoute]", part.router.routes)


def openapi(app: FastAPI, parts: tuple[Any, ...]) -> dict[str, Any]:
    """The document: FastAPI's, with the verb and the roles of each route, and the key that writes take."""
    document = get_openapi(
        title=app.title, version=app.version, openapi_version="3.1.0", description=OVERVIEW, routes=app.routes
    )
    for route in (route for part in parts for route in routes_of(part)):
        for method in route.methods or ():
            _tell(document["paths"][route.path][method.lower()], route, method)
    schemas: dict[str, Any] = document["components"]["schemas"]
    _require_what_is_sent(document["paths"], schemas)
    schemas[Problem.__name__] = Problem.model_json_schema()
    return _readable(document)


def _require_what_is_sent(paths: dict[str, Any], schemas: dict[str, Any]) -> None:
    """Mark every field of an answer as required: what has a default is sent too. Types of requests stay as they are."""
    operations = [operation for methods in paths.values() for operation in methods.values()]
    taken = _reached([[one.get("parameters"), one.get("requestBody")] for one in operations], schemas)
    sent = _reached([one["responses"] for one in operations], schemas)
    for name in sent - taken:
        if properties := schemas[name].get("properties"):
            schemas[name]["required"] = list(properties)


def _reached(value: Any, schemas: dict[str, Any]) -> set[str]:
    """The names of the schemas that something refers to, by way of others too."""
    found: set[str] = set()
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, list):
            waiting += cast("list[Any]", one)
        elif isinstance(one, dict):
            schema = cast("dict[str, Any]", one)
            name = str(schema.get("$ref", "")).rpartition("/")[2]
            # `Problem` is added when all others are known; it refers to no other.
            if name not in found and name in schemas:
                found.add(name)
                waiting.append(schemas[name])
            waiting += schema.values()
    return found


def _tell(operation: dict[str, Any], route: APIRoute, method: str) -> None:
    may = verb_of(route)
    also = may.verb.also_right if may.verb is not None else None
    operation["x-verbs"] = may.rights
    operation["x-roles"] = sorted({role for right in may.rights for role in ALLOWED[right]})
    operation["x-roles-also"] = sorted(ALLOWED[also]) if also is not None else []
    operation["x-persons-only"] = bool(may.rights) and all(right in PERSONS_ONLY for right in may.rights)
    parameters = operation.setdefault("parameters", [])
    if method != "GET" and may.writes and all(one["name"] != IDEMPOTENCY_HEADER for one in parameters):
        parameters.append(_KEY)


def _readable(value: Any) -> Any:
    """Patterns as ECMAScript writes them; ours are written for pydantic's own engine."""
    if isinstance(value, dict):
        schema = cast("dict[str, Any]", value)
        return {
            name: one.replace(r"\x{2028}", r"\u2028").replace(r"\x{2029}", r"\u2029")
            if name == "pattern" and isinstance(one, str)
            else _readable(one)
            for name, one in schema.items()
        }
    if isinstance(value, list):
        return [_readable(one) for one in cast("list[Any]", value)]
    return value


@router.get("/openapi.json")
async def document(request: Request) -> Response:
    """The document itself."""
    return Response(to_json(await _document(request.app)), media_type="application/json")


@router.get("/docs")
async def page(request: Request) -> HTMLResponse:
    """The document as a page."""
    body = _page(await _document(request.app))
    return HTMLResponse(body, headers={"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"})


async def _document(app: FastAPI) -> dict[str, Any]:
    """The document; it takes a second to make, so this is done once, in a thread."""
    return app.openapi_schema or await in_thread(app.openapi)


def _page(document: dict[str, Any]) -> str:
    sections = "".join(
        _section(path, method, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    )
    return _PAGE.format(title=escape(document["info"]["title"]), overview=escape(OVERVIEW), sections=sections)


def _section(path: str, method: str, operation: dict[str, Any]) -> str:
    rows = "".join(
        f"<tr><td><code>{escape(one['name'])}</code></td><td>{escape(one['in'])}</td>"
        f"<td>{escape(one.get('description', ''))}</td></tr>"
        for one in operation.get("parameters", ())
    )
    roles = " or ".join(operation.get("x-roles", ())) or "any valid credential"
    also = " or ".join(operation.get("x-roles-also", ()))
    roles += f"; also needs {also}" if also else ""
    body = operation.get("requestBody")
    schema = dumps(body["content"], indent=2) if body else ""
    return (
        f'<section id="{escape(operation["operationId"])}"><h2><code>{method.upper()} {escape(path)}</code></h2>'
        f"<p>{escape(operation.get('description', ''))}</p><p>For: {escape(roles)}</p>"
        + (f"<table><thead><tr><th>parameter</th><th>in</th><th>what</th></tr></thead>{rows}</table>" if rows else "")
        + (f"<details><summary>body</summary><pre>{escape(schema)}</pre></details>" if schema else "")
        + "</section>"
    )


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}: the HTTP interface</title>
<style>
:root {{ color-scheme: light dark }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 56rem; margin: 2rem auto; padding: 0 1rem }}
h2 {{ font-size: 1rem; border-top: 1px solid; padding-top: 1rem }}
table {{ border-collapse: collapse; width: 100% }} td, th {{ text-align: left; padding: .2rem .6rem .2rem 0 }}
pre {{ overflow: auto }}
</style></head>
<body><h1>{title}</h1><p>{overview}</p><p>The whole document: <a href="openapi.json">openapi.json</a> (OpenAPI 3.1).</p>
{sections}</body></html>
"""
