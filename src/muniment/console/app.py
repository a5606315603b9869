"""The console's routes: signing in and out, static files, and the pages; errors shown as pages."""

import re
from collections.abc import Awaitable, Callable
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import RedirectResponse
from pydantic_core import from_json
from starlette.exceptions import HTTPException

from muniment import __version__
from muniment.console import oidc
from muniment.console.oidc import SignIn
from muniment.console.pages import PAGES
from muniment.console.rendering import HEADERS, menu, page
from muniment.console.sessions import Sessions
from muniment.console.sign_in import CredentialVerifier, safe
from muniment.console.sign_in import router as sign_in_router
from muniment.console.storage_counts import StorageCounts
from muniment.console.visitors import CurrentVisitor, SignedOut, current_visitor
from muniment.errors import MunimentError

OnError = Callable[[Request, Exception], Awaitable[Response]]

PREFIX = "/console"
_CONTENT_TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}

_IMPORT = re.compile(rb'( from "\./[a-z_]+\.js)(";)')

NO_ACCESS = {
    "title": "No access",
    "detail": "The console needs the role reviewer, correction_writer, auditor, privacy_officer, admin or subject; "
    "you have none of them.",
    "code": None,
}

router = APIRouter(prefix=PREFIX, include_in_schema=False)


def add_console(
    app: FastAPI, keeper: CredentialVerifier, secret: bytes, on_error: OnError, *, sign_in: SignIn | None = None
) -> None:
    """Add the console to an app; `secret` encrypts its cookies, `on_error` makes the error responses of the API."""
    app.state.sessions = Sessions(secret)
    app.state.storage_counts = StorageCounts()
    app.state.keeper = keeper
    app.state.sign_in = sign_in
    for one in (router, sign_in_router, oidc.router):
        app.include_router(one)
    for module in PAGES:
        app.include_router(module.router, prefix=PREFIX, include_in_schema=False)
    app.add_api_route("/", redirect_home, methods=["GET", "HEAD"], include_in_schema=False)
    app.add_exception_handler(SignedOut, _signed_out)

    async def error_page(request: Request, error: Exception) -> Response:
        response = await on_error(request, error)
        if not request.scope["path"].startswith(PREFIX) or "text/html" not in request.headers.get("accept", ""):
            return response
        problem: dict[str, Any] = {"request_id": None} | from_json(bytes(response.body))
        try:
            visitor = await current_visitor(request)
        except SignedOut:
            visitor = None
        back = _own_page(request, request.headers.get("referer"))
        return page("problem.html", visitor, status=response.status_code, error=problem, back=back)

    for kind in (MunimentError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, error_page)


def _own_page(request: Request, referer: str | None) -> str | None:
    """The page of the console that led here; None if it was another site's."""
    try:
        where = urlsplit(referer or "")
    except ValueError:
        return None
    if where.netloc != request.headers.get("host"):
        return None
    return safe(where.path + (f"?{where.query}" if where.query else ""))


async def _signed_out(request: Request, error: Exception) -> Response:
    assert isinstance(error, SignedOut)
    if "text/html" not in request.headers.get("accept", "text/html"):
        return Response(status_code=401, headers=HEADERS)
    if request.method == "GET" and request.headers.get("sec-fetch-site") == "cross-site":
        # A link in a web mailbox: the browser keeps the session's cookie back, until a page of ours asks.
        return page("opened.html", None, to=safe(error.next))
    return RedirectResponse(error.sign_in_url, 303, headers=HEADERS)


@router.get("")
async def home(visitor: CurrentVisitor) -> Response:
    """Redirect to the first section that the visitor may see."""
    sections = menu(visitor)
    if not sections:
        return page("problem.html", visitor, status=403, error=NO_ACCESS, back=f"{PREFIX}/signin")
    return RedirectResponse(f"{PREFIX}/{sections[0][0]}", 303, headers=HEADERS)


@router.api_route("/", methods=["GET", "HEAD"])
async def redirect_home() -> Response:
    """Redirect to the console."""
    return RedirectResponse(PREFIX, 307, headers=HEADERS)


@router.get("/static/{name}")
async def static(name: str) -> Response:
    """Serve a static file."""
    kind = _CONTENT_TYPES.get(name.rpartition(".")[2])
    content = _files().get(name) if kind is not None else None
    if content is None:
        return Response(status_code=404, headers=HEADERS)
    return Response(content, media_type=kind, headers={"Cache-Control": "public, max-age=3600"})


@cache
def _files() -> dict[str, bytes]:
    folder = files("muniment.console").joinpath("static")
    # A module's imports get the version too: under another URL a browser would load the module a second time.
    versioned = rb"\1?v=%s\2" % __version__.encode()
    return {one.name: _IMPORT.sub(versioned, one.read_bytes()) for one in folder.iterdir() if one.is_file()}
