"""Signing in and out: a key becomes a session in this browser."""

from typing import Any, Protocol

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from muniment.console.rendering import HEADERS, page
from muniment.console.sent import sent_form
from muniment.console.sessions import COOKIE_LIMIT, Sessions
from muniment.console.visitors import COOKIE, Visiting, foreign, form_of, text_of, told
from muniment.errors import Denied, MunimentError, Unauthenticated
from muniment.model.credential import Credential

PREFIX = "/console"

router = APIRouter(prefix=PREFIX, include_in_schema=False)


class Keeper(Protocol):
    """Says whom a credential stands for."""

    async def check(self, token: str) -> Credential:
        """Of one that was admitted before; raises `Unauthenticated`."""
        ...

    async def admit(self, address: str, token: str) -> Credential:
        """Of one that comes from that address for the first time; raises `RateLimited` for one that guesses."""
        ...


@router.get("/signin")
async def signin(request: Request) -> Response:
    """Where to sign in."""
    return sign_in_page(request, safe(request.query_params.get("next")))


def sign_in_page(request: Request, to: str, problem: str | None = None, status: int = 200) -> Response:
    """The page, with what was wrong the last time."""
    sign_in = request.app.state.sign_in
    oidc: str | None = sign_in.called if sign_in is not None else None
    return page("signin.html", None, status=status, next=to, problem=problem, oidc=oidc)


@router.post("/signin")
async def sign_in(request: Request) -> Response:
    """With an API key, or a token of the issuer's."""
    if foreign(request):
        raise Denied("this form is not from this site; load the page again")
    form = await sent_form(request, fields=10)
    to, token = safe(text_of(form, "next")), text_of(form, "key") or ""
    keeper: Keeper = request.app.state.keeper
    try:
        credential = await keeper.admit(request.client.host if request.client else "nobody", token)
        if credential.principal.kind != "operator":
            raise Unauthenticated("the console is for persons: this credential is an agent's or a service's")
    except MunimentError as error:
        return sign_in_page(request, to, told(error), 401 if isinstance(error, Unauthenticated) else 429)
    return admitted(request, token, to)


def admitted(request: Request, token: str, to: str) -> Response:
    """A visitor with a session that begins now, on the way to where they wanted to go."""
    sessions: Sessions = request.app.state.sessions
    _, cookie = sessions.begin(token, request.app.state.fabric.access.now())
    if len(cookie) > COOKIE_LIMIT:
        return sign_in_page(request, to, "this token is too long for a browser to keep; use an API key", 400)
    response = RedirectResponse(to, 303, headers=HEADERS)
    response.set_cookie(
        COOKIE, cookie, path=PREFIX, httponly=True, samesite="strict", secure=request.scope["scheme"] == "https"
    )
    return response


@router.post("/signout")
async def sign_out(request: Request, visitor: Visiting) -> Response:
    """End the session in this browser."""
    await form_of(request, visitor)
    response = RedirectResponse(f"{PREFIX}/signin", 303, headers=HEADERS)
    response.delete_cookie(COOKIE, path=PREFIX, httponly=True, samesite="strict")
    return response


def safe(to: Any) -> str:
    """Where to go on, if that is a page of the console."""
    if isinstance(to, str) and (to == PREFIX or to.startswith(f"{PREFIX}/")) and "\\" not in to and ".." not in to:
        return to
    return PREFIX
