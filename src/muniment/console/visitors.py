"""Visitors: who is signed in, what they may do, and forms that are really theirs."""

import hmac
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated, cast
from urllib.parse import quote, urlsplit

from fastapi import Depends, Request
from starlette.datastructures import FormData

from muniment.access.roles import Verb, may
from muniment.console.sent import sent_form
from muniment.console.sessions import Session, Sessions
from muniment.errors import Denied, MunimentError, Unauthenticated
from muniment.fabric import AsyncFabric
from muniment.model.context import Principal
from muniment.model.credential import Credential

COOKIE = "muniment_session"
FORM_TOKEN = "form_token"  # noqa: S105  the name of a field
SAID = "said"
_MARK = 32


class SignedOut(Exception):
    """Nobody is signed in; `next` is where they wanted to go."""

    def __init__(self, to: str) -> None:
        super().__init__()
        self.next = to

    @property
    def address(self) -> str:
        """Where to sign in, and then go on."""
        return f"/console/signin?next={quote(self.next, safe='')}"


@dataclass(frozen=True)
class Visitor:
    """Who is looking at a page."""

    fabric: AsyncFabric
    credential: Credential
    session: Session
    form_token: str
    said: str | None = None

    @property
    def principal(self) -> Principal:
        """Whose credential it is."""
        return self.credential.principal

    def may(self, verb: Verb) -> bool:
        """Whether to show what takes that verb; the fabric decides once more when it is done."""
        return may(self.principal, verb).passed


async def visitor(request: Request) -> Visitor:
    """Who is signed in, looked at anew with every request; raises `SignedOut`."""
    sessions = cast("Sessions", request.app.state.sessions)
    fabric = cast("AsyncFabric", request.app.state.fabric)
    check = cast("Callable[[str], Awaitable[Credential]]", request.app.state.keeper.check)
    session = sessions.open(request.cookies.get(COOKIE), fabric.access.now())
    if session is None:
        raise SignedOut(_wanted(request))
    try:
        credential = await check(session.token)
    except Unauthenticated:
        raise SignedOut(_wanted(request)) from None
    request.scope.setdefault("state", {})["credential"] = credential
    form_token = sessions.form_token(session)
    return Visitor(fabric, credential, session, form_token, _said(request, form_token))


Visiting = Annotated[Visitor, Depends(visitor)]


class Allowed:
    """A dependency: a visitor who may do that; whoever may not is written down in the log and told so."""

    def __init__(self, verb: Verb) -> None:
        self.verb: Verb = verb

    async def __call__(self, visitor: Visiting) -> Visitor:
        """The visitor; raises `SignedOut`, `RoleMissing`."""
        await visitor.fabric.access.allow(visitor.principal, self.verb)
        return visitor


async def form_of(request: Request, visitor: Visitor) -> FormData:
    """The form that a visitor sent, if it is one of ours; raises `Denied` for another site's."""
    form = await sent_form(request, fields=2000)
    sessions = cast("Sessions", request.app.state.sessions)
    given = form.get(FORM_TOKEN)
    if not sessions.is_form_token(visitor.session, given if isinstance(given, str) else None) or foreign(request):
        raise Denied("this form is not from this session; load the page again")
    return form


def text_of(form: FormData, name: str) -> str | None:
    """A field of a form, None if it was left empty."""
    value = form.get(name)
    return value.strip() or None if isinstance(value, str) else None


def foreign(request: Request) -> bool:
    """Whether the browser says that the form is on another site's page."""
    origin = request.headers.get("origin")
    if origin is None:
        return False
    try:
        return urlsplit(origin).netloc != request.headers.get("host")
    except ValueError:
        # What is no address is not ours either.
        return True


def vouched(form_token: str, said: str) -> str:
    """What a deed came to, as it stands in an address: with a mark that only the session it was done in can make."""
    return hmac.new(form_token.encode(), said.encode(), sha256).hexdigest()[:_MARK] + said


def _said(request: Request, form_token: str) -> str | None:
    """What the address says that a deed came to; None for words that the session does not vouch for."""
    given = request.query_params.get(SAID, "")
    said = given[_MARK:]
    return said if said and hmac.compare_digest(vouched(form_token, said).encode(), given.encode()) else None


def _wanted(request: Request) -> str:
    if request.method != "GET":
        return "/console"
    query = request.scope["query_string"].decode("latin-1")
    return request.scope["path"] + (f"?{query}" if query else "")


def told(error: MunimentError) -> str:
    """An error as a person reads it."""
    return f"{error.field}: {error.message}" if error.field else error.message
