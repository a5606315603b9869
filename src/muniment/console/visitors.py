"""Visitors: the signed-in person behind a request, what they may do, and the notice shown to them after an action."""

import hmac
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated, cast
from urllib.parse import quote, unquote

from fastapi import Depends, Request
from pydantic import TypeAdapter, ValidationError

from muniment.access.roles import Right, may
from muniment.console.sessions import Session, Sessions
from muniment.errors import MunimentError, Unauthenticated
from muniment.fabric import AsyncFabric
from muniment.model.api_key import Credential
from muniment.model.context import Principal
from muniment.model.zones import UTC_NAME, ZoneName

COOKIE = "muniment_session"
# The viewer's time zone, as the script of the pages names it.
ZONE = "muniment_zone"
NOTICE = "notice"
_SIGNATURE_LENGTH = 32
_ZONES: TypeAdapter[str] = TypeAdapter(ZoneName)


class SignedOut(Exception):
    """Nobody is signed in; `next` is the page they asked for."""

    def __init__(self, to: str) -> None:
        super().__init__()
        self.next = to

    @property
    def sign_in_url(self) -> str:
        """The sign-in page, which leads on to `next`."""
        return f"/console/signin?next={quote(self.next, safe='')}"


@dataclass(frozen=True)
class Visitor:
    """The person who is looking at a page."""

    fabric: AsyncFabric
    credential: Credential
    session: Session
    form_token: str
    notice: str | None = None
    # The time zone in which their days begin; UTC without script.
    zone: str = UTC_NAME

    @property
    def principal(self) -> Principal:
        """The principal of the credential."""
        return self.credential.principal

    def may(self, verb: Right) -> bool:
        """Whether to show what needs that verb; the fabric checks again when it is called."""
        return may(self.principal, verb).passed


async def current_visitor(request: Request) -> Visitor:
    """Return who is signed in, checking their credential on every request; raises `SignedOut`."""
    sessions = cast("Sessions", request.app.state.sessions)
    fabric = cast("AsyncFabric", request.app.state.fabric)
    check = cast("Callable[[str], Awaitable[Credential]]", request.app.state.keeper.check)
    session = sessions.open(request.cookies.get(COOKIE), fabric.access.now())
    if session is None:
        raise SignedOut(_requested_url(request))
    try:
        credential = await check(session.token)
    except Unauthenticated:
        raise SignedOut(_requested_url(request)) from None
    request.scope.setdefault("state", {})["credential"] = credential
    form_token = sessions.form_token(session)
    return Visitor(fabric, credential, session, form_token, _verified_notice(request, form_token), _zone(request))


CurrentVisitor = Annotated[Visitor, Depends(current_visitor)]


class Requires:
    """A dependency that lets in visitors who may use a verb; a refusal is recorded in the log."""

    def __init__(self, verb: Right) -> None:
        self.verb: Right = verb

    async def __call__(self, visitor: CurrentVisitor) -> Visitor:
        """Return the visitor; raises `SignedOut`, `RoleMissing`."""
        await visitor.fabric.access.allow(visitor.principal, self.verb)
        return visitor


def sign_notice(form_token: str, notice: str) -> str:
    """Prefix a notice with a signature that only this session can make, so that no link can forge one."""
    return hmac.new(form_token.encode(), notice.encode(), sha256).hexdigest()[:_SIGNATURE_LENGTH] + notice


def _verified_notice(request: Request, form_token: str) -> str | None:
    """Return the notice in the address; None if this session did not sign it."""
    signed = request.query_params.get(NOTICE, "")
    notice = signed[_SIGNATURE_LENGTH:]
    return notice if notice and hmac.compare_digest(sign_notice(form_token, notice).encode(), signed.encode()) else None


def _zone(request: Request) -> str:
    """Return the time zone that the browser names; UTC where there is none that is known."""
    try:
        return _ZONES.validate_python(unquote(request.cookies.get(ZONE, "")))
    except ValidationError:
        return UTC_NAME


def _requested_url(request: Request) -> str:
    if request.method != "GET":
        return "/console"
    query = request.scope["query_string"].decode("latin-1")
    return request.scope["path"] + (f"?{query}" if query else "")


def error_text(error: MunimentError) -> str:
    """An error in one line for a person: its field, then its message."""
    return f"{error.field}: {error.message}" if error.field else error.message
