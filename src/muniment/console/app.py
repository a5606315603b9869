"""The console's own routes: signing in and out, the files beside the pages, and the pages themselves."""

from collections.abc import Awaitable, Callable
from importlib.resources import files
from typing import Any, Protocol

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import RedirectResponse
from pydantic_core import from_json
from starlette.exceptions import HTTPException

from muniment.console.pages import PAGES
from muniment.console.rendering import HEADERS, menu, page
from muniment.console.sessions import COOKIE_LIMIT, Sessions
from muniment.console.visitors import COOKIE, SignedOut, Visiting, form_of, text_of, told, visitor
from muniment.errors import MunimentError, Unauthenticated
from muniment.model.credential import Credential

OnError = Callable[[Request, Exception], Awaitable[Response]]

PREFIX = "/console"
_KINDS = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}

router = APIRouter(prefix=PREFIX, include_in_schema=False)


class Keeper(Protocol):
    """Says whom a credential stands for."""

    async def check(self, token: str) -> Credential:
        """Of one that was admitted before; raises `Unauthenticated`."""
        ...

    async def admit(self, address: str, token: str) -> Credential:
        """Of one that comes from that address for the first time; raises `RateLimited` for one that guesses."""
        ...


def add_console(app: FastAPI, keeper: Keeper, secret: bytes, on_error: OnError) -> None:
    """Put the console into an app; `secret` seals its cookies, `on_error` answers programs."""
    app.state.sessions = Sessions(secret)
    app.state.keeper = keeper
    app.include_router(router)
    for part in PAGES:
        app.include_router(part.router, prefix=PREFIX, include_in_schema=False)
    app.add_exception_handler(SignedOut, _signed_out)

    async def told_as_a_page(request: Request, error: Exception) -> Response:
        answer = await on_error(request, error)
        if not request.url.path.startswith(PREFIX) or "text/html" not in request.headers.get("accept", ""):
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


@router.get("/signin")
async def signin(request: Request) -> Response:
    """Where to sign in."""
    return _signin(request, _safe(request.query_params.get("next")))


def _signin(request: Request, to: str, problem: str | None = None, status: int = 200) -> Response:
    oidc = getattr(request.app.state, "sign_in_with", None)
    return page("signin.html", None, status=status, next=to, problem=problem, oidc=oidc)


@router.post("/signin")
async def sign_in(request: Request) -> Response:
    """With an API key, or a token of the issuer's."""
    form = await request.form(max_files=0, max_fields=10)
    to, token = _safe(text_of(form, "next")), text_of(form, "key") or ""
    keeper: Keeper = request.app.state.keeper
    try:
        credential = await keeper.admit(request.client.host if request.client else "nobody", token)
        if credential.principal.kind != "operator":
            raise Unauthenticated("the console is for persons: this credential is an agent's or a service's")
    except MunimentError as error:
        return _signin(request, to, told(error), 401 if isinstance(error, Unauthenticated) else 429)
    return admitted(request, token, to)


def admitted(request: Request, token: str, to: str) -> Response:
    """A visitor with a session that begins now, on the way to where they wanted to go."""
    sessions: Sessions = request.app.state.sessions
    _, cookie = sessions.begin(token, request.app.state.fabric.doorkeeper.now())
    if len(cookie) > COOKIE_LIMIT:
        return _signin(request, to, "this token is too long for a browser to keep; use an API key", 400)
    response = RedirectResponse(to, 303, headers=HEADERS)
    response.set_cookie(
        COOKIE, cookie, path=PREFIX, httponly=True, samesite="strict", secure=request.url.scheme == "https"
    )
    return response


@router.post("/signout")
async def sign_out(request: Request, visitor: Visiting) -> Response:
    """End the session in this browser."""
    await form_of(request, visitor)
    response = RedirectResponse(f"{PREFIX}/signin", 303, headers=HEADERS)
    response.delete_cookie(COOKIE, path=PREFIX, httponly=True, samesite="strict")
    return response


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
        _FILES.update({one.name: one.read_bytes() for one in folder.iterdir() if one.is_file()})
    return _FILES


_FILES: dict[str, bytes] = {}


def _safe(to: Any) -> str:
    """Where to go on, if that is a page of the console."""
    if isinstance(to, str) and (to == PREFIX or to.startswith(f"{PREFIX}/")) and "\\" not in to and ".." not in to:
        return to
    return PREFIX
