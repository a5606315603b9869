"""Signing in and out: an API key or a token becomes a session in this browser."""

from contextlib import suppress
from typing import Any, Protocol

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from muniment.access.roles import may
from muniment.console.forms import is_cross_site, parse_form, read_form, text_field
from muniment.console.rendering import HEADERS, page
from muniment.console.sessions import COOKIE_LIMIT, Sessions
from muniment.console.visitors import COOKIE, CurrentVisitor, error_text
from muniment.errors import Denied, MunimentError, Unauthenticated
from muniment.fabric import AsyncFabric
from muniment.model.api_key import Credential

PREFIX = "/console"

router = APIRouter(prefix=PREFIX, include_in_schema=False)


class CredentialVerifier(Protocol):
    """Verifies credentials."""

    async def check(self, token: str) -> Credential:
        """Return the credential of a token that was admitted before; raises `Unauthenticated`."""
        ...

    async def admit(self, address: str, token: str) -> Credential:
        """Return the credential of a new token from that address; raises `Unauthenticated`, `RateLimited`."""
        ...


@router.get("/signin")
async def signin(request: Request) -> Response:
    """The sign-in page."""
    return sign_in_page(request, safe(request.query_params.get("next")))


def sign_in_page(request: Request, to: str, problem: str | None = None, status: int = 200) -> Response:
    """The sign-in page, with the problem of the last attempt."""
    sign_in = request.app.state.sign_in
    oidc: str | None = sign_in.called if sign_in is not None else None
    return page("signin.html", None, status=status, next=to, problem=problem, oidc=oidc)


@router.post("/signin")
async def sign_in(request: Request) -> Response:
    """Sign in with an API key, or with a token of the OIDC issuer."""
    if is_cross_site(request):
        raise Denied("this form is not from this site; load the page again")
    form = await parse_form(request, fields=10)
    to, token = safe(text_field(form, "next")), text_field(form, "key") or ""
    keeper: CredentialVerifier = request.app.state.keeper
    try:
        credential = await keeper.admit(request.client.host if request.client else "nobody", token)
        if not is_person(credential):
            raise Unauthenticated("the console is for people: this credential belongs to an agent or a service")
    except MunimentError as error:
        return sign_in_page(request, to, error_text(error), 401 if isinstance(error, Unauthenticated) else 429)
    await note_arrival(request, credential)
    return admitted(request, token, to)


async def note_arrival(request: Request, credential: Credential) -> None:
    """Have it noted that a person was here: notices go to whoever has not been for long, but has a key."""
    fabric: AsyncFabric = request.app.state.fabric
    if may(credential.principal, "notices").passed:
        # What cannot be noted now is noted by a later page.
        with suppress(MunimentError):
            await fabric.notices.list(credential.principal, limit=1)


def is_person(credential: Credential) -> bool:
    """Whether a credential is a person's: an operator's, or that of an end user who may see what is held about them."""
    principal = credential.principal
    return principal.kind == "operator" or (principal.kind == "end_user" and "subject" in principal.roles)


def admitted(request: Request, token: str, to: str) -> Response:
    """Start the session and redirect to the page that was asked for."""
    sessions: Sessions = request.app.state.sessions
    _, cookie = sessions.begin(token, request.app.state.fabric.access.now())
    if len(cookie) > COOKIE_LIMIT:
        return sign_in_page(request, to, "this token is too long for a browser cookie; use an API key", 400)
    response = RedirectResponse(to, 303, headers=HEADERS)
    response.set_cookie(
        COOKIE, cookie, path=PREFIX, httponly=True, samesite="strict", secure=request.scope["scheme"] == "https"
    )
    return response


@router.post("/signout")
async def sign_out(request: Request, visitor: CurrentVisitor) -> Response:
    """End the session in this browser."""
    await read_form(request, visitor)
    response = RedirectResponse(f"{PREFIX}/signin", 303, headers=HEADERS)
    response.delete_cookie(COOKIE, path=PREFIX, httponly=True, samesite="strict")
    return response


def safe(to: Any) -> str:
    """A redirect target if it is a page of the console, else the console itself."""
    if isinstance(to, str) and (to == PREFIX or to.startswith(f"{PREFIX}/")) and "\\" not in to and ".." not in to:
        return to
    return PREFIX
