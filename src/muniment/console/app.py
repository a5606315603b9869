"""The console's own routes: signing in and out, the files beside the pages, and the pages themselves."""

import re
from collections.abc import Awaitable, Callable
from importlib.resources import files

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import RedirectResponse
from pydantic_core import from_json
from starlette.exceptions import HTTPException

from muniment import __version__
from muniment.console import oidc, signing_in
from muniment.console.oidc import SignIn
from muniment.console.pages import PAGES
from muniment.console.rendering import HEADERS, menu, page
from muniment.console.sessions import Sessions
from muniment.console.signing_in import Keeper
from muniment.console.visitors import SignedOut, Visiting, visitor
from muniment.errors import MunimentError

OnError = Callable[[Request, Exception], Awaitable[Response]]

PREFIX = "/console"
_KINDS = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}

_IMPORT = re.compile(rb'( from "\./[a-z_]+\.js)(";)')

router = APIRouter(prefix=PREFIX, include_in_schema=False)


def add_console(
    app: FastAPI, keeper: Keeper, secret: bytes, on_error: OnError, *, sign_in: SignIn | None = None
) -> None:
    """Put the console into an app; `secret` seals its cookies, `on_error` answers programs."""
    app.state.sessions = Sessions(secret)
    app.state.keeper = keeper
    app.state.sign_in = sign_in
    for part in (router, signing_in.router, oidc.router):
        app.include_router(part)
    for part in PAGES:
        app.include_router(part.router, prefix=PREFIX, include_in_schema=False)
    app.add_api_route("/", with_a_slash, methods=["GET", "HEAD"], include_in_schema=False)
    app.add_exception_handler(SignedOut, _signed_out)

    async def told_as_a_page(request: Request, error: Exception) -> Response:
        answer = await on_error(request, error)
        if not request.scope["path"].startswith(PREFIX) or "text/html" not in request.headers.get("accept", ""):
            return answer
        problem = from_json(bytes(answer.body))
        try:
            looking = await visitor(request)
        except SignedOut:
            looking = None
        return page(
            "problem.html",
            looking,
            status=answer.status_code,
            title=problem["title"],
            detail=problem["detail"],
            code=problem["code"],
            request_id=problem.get("request_id"),
            back=request.headers.get("referer"),
        )

    for kind in (MunimentError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, told_as_a_page)


async def _signed_out(request: Request, error: Exception) -> Response:
    assert isinstance(error, SignedOut)
    if "text/html" not in request.headers.get("accept", "text/html"):
        return Response(status_code=401, headers=HEADERS)
    return RedirectResponse(error.address, 303, headers=HEADERS)


@router.get("")
async def home(visitor: Visiting) -> Response:
    """The first part that the visitor may see."""
    parts = menu(visitor)
    if not parts:
        return page(
            "problem.html",
            visitor,
            status=403,
            title="Nothing to see here",
            detail="This credential has no role that the console shows anything to: it takes reviewer, auditor, "
            "privacy_officer or admin.",
            code=None,
            request_id=None,
            back="/console/signin",
        )
    return RedirectResponse(f"{PREFIX}/{parts[0][0]}", 303, headers=HEADERS)


@router.api_route("/", methods=["GET", "HEAD"])
async def with_a_slash() -> Response:
    """The same address as people also write it."""
    return RedirectResponse(PREFIX, 307, headers=HEADERS)


@router.get("/static/{name}")
async def static(name: str) -> Response:
    """A file beside the pages."""
    kind = _KINDS.get(name.rpartition(".")[2])
    content = _files().get(name) if kind is not None else None
    if content is None:
        return Response(status_code=404, headers=HEADERS)
    return Response(content, media_type=kind, headers={"Cache-Control": "public, max-age=3600"})


def _files() -> dict[str, bytes]:
    if not _FILES:
        folder = files("muniment.console").joinpath("static")
        _FILES.update({one.name: _addressed(one.read_bytes()) for one in folder.iterdir() if one.is_file()})
    return _FILES


def _addressed(content: bytes) -> bytes:
    """A module's imports under the addresses that pages use: by another it would be another module, run twice."""
    return _IMPORT.sub(rb"\1?v=%s\2" % __version__.encode(), content)


_FILES: dict[str, bytes] = {}
