"""Signing in at an OIDC issuer: the authorization code flow with PKCE; the token that comes back is the credential."""

import os
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from hashlib import sha256
from typing import Any, cast
from urllib.parse import urlencode, urlsplit

import httpx2
from anyio import fail_after
from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse
from pydantic_core import from_json

from muniment.console.rendering import HEADERS, page
from muniment.console.sessions import Sessions
from muniment.console.sign_in import Keeper, admitted, safe, sign_in_page
from muniment.errors import InvalidInput, MunimentError, Unauthenticated
from muniment.outbound import Refused, refuses_literally
from muniment.remote import bounded, guarded

COOKIE = "muniment_signin"
PLACE = "/console/signin"
LASTS = timedelta(minutes=10)
ANSWER_WITHIN = 10.0
_ANSWER_LIMIT = 256 * 1024
_AS_JSON = {"Accept": "application/json", "Accept-Encoding": "identity"}
_NAMES = (
    "MUNIMENT_OIDC_CLIENT_ID",
    "MUNIMENT_OIDC_AUTHORIZE_URL",
    "MUNIMENT_OIDC_TOKEN_URL",
    "MUNIMENT_PUBLIC_URL",
)

router = APIRouter(prefix=PLACE, include_in_schema=False)


@dataclass(frozen=True)
class SignIn:
    """Where people sign in, and as whose client."""

    client_id: str
    authorize_url: str
    token_url: str
    public_url: str
    client_secret: str | None = field(default=None, repr=False)
    scope: str = "openid"
    allow_private: bool = False

    @property
    def called(self) -> str:
        """The issuer as the sign-in page calls it."""
        return urlsplit(self.authorize_url).hostname or "your organisation"

    @property
    def back(self) -> str:
        """Where the issuer sends people back to; it must be registered there."""
        return f"{self.public_url}{PLACE}/callback"

    @classmethod
    def gather(cls, given: Mapping[str, str], *, allow_private: bool = False) -> "SignIn | None":
        """From the environment; None where no client is set. Raises `InvalidInput` for a part of what it takes.

        `allow_private` lets the issuer be on an address that is not on the internet.
        """
        said = {name: given.get(name, "").strip().rstrip("/") for name in _NAMES}
        if not any(said[name] for name in _NAMES[:3]):
            return None
        for name, value in said.items():
            if not value:
                raise InvalidInput("is required for signing in at the issuer", field=name)
            if name.endswith("_URL") and not _is_safe(value):
                raise InvalidInput("expected an https address", field=name)
        if not allow_private and refuses_literally(said["MUNIMENT_OIDC_TOKEN_URL"]):
            raise InvalidInput(
                "is no public address; MUNIMENT_OIDC_ALLOW_PRIVATE=1 allows it", field="MUNIMENT_OIDC_TOKEN_URL"
            )
        client_id, authorize_url, token_url, public_url = said.values()
        return cls(
            client_id,
            authorize_url,
            token_url,
            public_url,
            client_secret=given.get("MUNIMENT_OIDC_CLIENT_SECRET", "").strip() or None,
            scope=given.get("MUNIMENT_OIDC_SCOPE", "").strip() or "openid",
            allow_private=allow_private,
        )


@router.get("/oidc")
async def begin(request: Request) -> Response:
    """On the way to the issuer; what must come back with them is sealed in a cookie."""
    sign_in = _of(request)
    sessions: Sessions = request.app.state.sessions
    state, verifier = os.urandom(16).hex(), urlsafe_b64encode(os.urandom(48)).decode().rstrip("=")
    challenge = urlsafe_b64encode(sha256(verifier.encode()).digest()).decode().rstrip("=")
    to = request.query_params.get("next") or "/console"
    now = request.app.state.fabric.access.now()
    _, cookie = sessions.begin(f"{state}\n{verifier}\n{to}", now, LASTS, purpose=COOKIE)
    asked = {
        "response_type": "code",
        "client_id": sign_in.client_id,
        "redirect_uri": sign_in.back,
        "scope": sign_in.scope,
        "state": state,
        "code_challenge": challenge,
        "code_challenge_method": "S256",
    }
    sign = "&" if "?" in sign_in.authorize_url else "?"
    response = RedirectResponse(f"{sign_in.authorize_url}{sign}{urlencode(asked)}", 303, headers=HEADERS)
    # Lax: they come back from another site.
    response.set_cookie(
        COOKIE,
        cookie,
        path=PLACE,
        max_age=int(LASTS.total_seconds()),
        httponly=True,
        samesite="lax",
        secure=sign_in.public_url.startswith("https"),
    )
    return response


@router.get("/callback")
async def callback(request: Request) -> Response:
    """Back from the issuer: the code is changed for a token, and that for a session."""
    try:
        token, to = await _token(request)
    except MunimentError as error:
        return sign_in_page(request, "/console", error.message, 401)
    # A page in between: a cookie that is strict is not sent along with what another site began.
    response = admitted(request, token, safe(to))
    if response.status_code == 303:
        arrived = page("arrived.html", None, to=safe(to))
        arrived.raw_headers.extend(header for header in response.raw_headers if header[0] == b"set-cookie")
        response = arrived
    response.delete_cookie(COOKIE, path=PLACE, httponly=True, samesite="lax")
    return response


async def _token(request: Request) -> tuple[str, str]:
    sign_in = _of(request)
    sessions: Sessions = request.app.state.sessions
    keeper: Keeper = request.app.state.keeper
    now = request.app.state.fabric.access.now()
    kept = sessions.open(request.cookies.get(COOKIE), now, purpose=COOKIE)
    if kept is None or kept.token.count("\n") != 2:
        raise Unauthenticated("this sign-in took too long, or was not begun in this browser: begin anew")
    state, verifier, to = kept.token.split("\n")
    given = request.query_params
    if given.get("state") != state or not given.get("code"):
        raise Unauthenticated("the issuer did not sign you in")
    answer = await _exchanged(sign_in, given["code"], verifier)
    for name in ("id_token", "access_token"):
        token = answer.get(name)
        # A key of our own is nothing that an issuer has to give.
        if isinstance(token, str) and not token.startswith("mun_"):
            try:
                credential = await keeper.check(token)
            except Unauthenticated:
                continue
            if credential.principal.kind != "operator":
                raise Unauthenticated("the console is for persons: this account is an agent's or a service's")
            return token, to
    raise Unauthenticated("the issuer's token is not one that this server takes: see its audience and claims")


async def _exchanged(sign_in: SignIn, code: str, verifier: str) -> dict[str, Any]:
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": sign_in.back,
        "client_id": sign_in.client_id,
        "code_verifier": verifier,
    }
    if sign_in.client_secret is not None:
        form["client_secret"] = sign_in.client_secret
    try:
        with fail_after(ANSWER_WITHIN):
            async with (
                httpx2.AsyncClient(
                    timeout=ANSWER_WITHIN, follow_redirects=False, **guarded(allow_private=sign_in.allow_private)
                ) as client,
                client.stream("POST", sign_in.token_url, data=form, headers=_AS_JSON) as answer,
            ):
                body = await bounded(answer, _ANSWER_LIMIT) if answer.is_success else None
        told = from_json(body) if body is not None else None
    except (httpx2.HTTPError, Refused, ValueError, TimeoutError):
        told = None
    if not isinstance(told, dict):
        raise Unauthenticated("the issuer does not answer, or not as one")
    return cast("dict[str, Any]", told)


def _of(request: Request) -> SignIn:
    sign_in: SignIn | None = request.app.state.sign_in
    if sign_in is None:
        raise InvalidInput("no issuer is set up to sign in at", field="oidc")
    return sign_in


def _is_safe(url: str) -> bool:
    place = urlsplit(url)
    return place.scheme == "https" or (place.scheme == "http" and place.hostname in ("127.0.0.1", "localhost", "::1"))
