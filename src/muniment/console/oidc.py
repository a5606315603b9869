"""Signing in at an OpenID Connect issuer: the authorization code flow with PKCE; its token becomes the credential."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from hashlib import sha256
from typing import Any, cast
from urllib.parse import urlencode, urlsplit

import httpx2
from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse
from pydantic_core import from_json

from muniment.console.rendering import HEADERS, page
from muniment.console.sessions import Sessions, encode_base64
from muniment.console.sign_in import CredentialVerifier, admitted, is_person, note_arrival, safe, sign_in_page
from muniment.errors import InvalidInput, MunimentError, Unauthenticated
from muniment.outbound import Refused, is_private_host, is_secure
from muniment.remote import fetch

COOKIE = "muniment_signin"
PREFIX = "/console/signin"
LASTS = timedelta(minutes=10)
ANSWER_WITHIN = 10.0
_ANSWER_LIMIT = 256 * 1024
_REQUIRED = (
    "MUNIMENT_OIDC_CLIENT_ID",
    "MUNIMENT_OIDC_AUTHORIZE_URL",
    "MUNIMENT_OIDC_TOKEN_URL",
    "MUNIMENT_PUBLIC_URL",
)

router = APIRouter(prefix=PREFIX, include_in_schema=False)


@dataclass(frozen=True)
class SignIn:
    """The issuer's addresses for signing in, and the client that the console is there."""

    client_id: str
    authorize_url: str
    token_url: str
    public_url: str
    client_secret: str | None = field(default=None, repr=False)
    scope: str = "openid"
    allow_private: bool = False

    @property
    def called(self) -> str:
        """The name of the issuer on the sign-in page."""
        return urlsplit(self.authorize_url).hostname or "your organisation"

    @property
    def redirect_uri(self) -> str:
        """The address to which the issuer sends people back; it must be registered there."""
        return f"{self.public_url}{PREFIX}/callback"

    @classmethod
    def gather(cls, env: Mapping[str, str], *, allow_private: bool = False) -> "SignIn | None":
        """Read the settings from the environment; None where no client is set. Raises `InvalidInput`.

        `allow_private` allows an issuer on a private address.
        """
        values = {name: env.get(name, "").strip().rstrip("/") for name in _REQUIRED}
        if not any(values[name] for name in _REQUIRED[:3]):
            return None
        for name, value in values.items():
            if not value:
                raise InvalidInput("is required for signing in at the issuer", field=name)
            if name.endswith("_URL") and not is_secure(value):
                raise InvalidInput("expected an https address", field=name)
        if not allow_private and is_private_host(values["MUNIMENT_OIDC_TOKEN_URL"]):
            raise InvalidInput(
                "is no public address; MUNIMENT_OIDC_ALLOW_PRIVATE=1 allows it", field="MUNIMENT_OIDC_TOKEN_URL"
            )
        return cls(
            *values.values(),
            client_secret=env.get("MUNIMENT_OIDC_CLIENT_SECRET", "").strip() or None,
            scope=env.get("MUNIMENT_OIDC_SCOPE", "").strip() or "openid",
            allow_private=allow_private,
        )


@router.get("/oidc")
async def begin(request: Request) -> Response:
    """Send the visitor to the issuer; state, verifier and the page to go on to are sealed in a cookie."""
    sign_in = _settings(request)
    sessions: Sessions = request.app.state.sessions
    state, verifier = os.urandom(16).hex(), encode_base64(os.urandom(48))
    to = request.query_params.get("next") or "/console"
    now = request.app.state.fabric.access.now()
    _, cookie = sessions.begin(f"{state}\n{verifier}\n{to}", now, LASTS, purpose=COOKIE)
    query = {
        "response_type": "code",
        "client_id": sign_in.client_id,
        "redirect_uri": sign_in.redirect_uri,
        "scope": sign_in.scope,
        "state": state,
        "code_challenge": encode_base64(sha256(verifier.encode()).digest()),
        "code_challenge_method": "S256",
    }
    separator = "&" if "?" in sign_in.authorize_url else "?"
    response = RedirectResponse(f"{sign_in.authorize_url}{separator}{urlencode(query)}", 303, headers=HEADERS)
    # Lax: the visitor comes back from another site.
    response.set_cookie(
        COOKIE,
        cookie,
        path=PREFIX,
        max_age=int(LASTS.total_seconds()),
        httponly=True,
        samesite="lax",
        secure=sign_in.public_url.startswith("https"),
    )
    return response


@router.get("/callback")
async def callback(request: Request) -> Response:
    """Exchange the issuer's code for a token, and begin a session with it."""
    try:
        token, to = await _token(request)
    except MunimentError as error:
        return sign_in_page(request, "/console", error.message, 401)
    response = admitted(request, token, safe(to))
    if response.status_code == 303:
        # A page in between: the session's cookie is strict, and not sent with a redirect that another site began.
        arrived = page("arrived.html", None, to=safe(to))
        arrived.raw_headers.extend(header for header in response.raw_headers if header[0] == b"set-cookie")
        response = arrived
    response.delete_cookie(COOKIE, path=PREFIX, httponly=True, samesite="lax")
    return response


async def _token(request: Request) -> tuple[str, str]:
    """A token that this server accepts, and the page to go on to; raises `Unauthenticated`."""
    sign_in = _settings(request)
    sessions: Sessions = request.app.state.sessions
    keeper: CredentialVerifier = request.app.state.keeper
    now = request.app.state.fabric.access.now()
    begun = sessions.open(request.cookies.get(COOKIE), now, purpose=COOKIE)
    if begun is None or begun.token.count("\n") != 2:
        raise Unauthenticated("this sign-in took too long, or was not started in this browser: start again")
    state, verifier, to = begun.token.split("\n")
    query = request.query_params
    if query.get("state") != state or not query.get("code"):
        raise Unauthenticated("the issuer did not sign you in")
    answer = await _exchange(sign_in, query["code"], verifier)
    for name in ("id_token", "access_token"):
        token = answer.get(name)
        # An API key of this server is nothing that an issuer can give.
        if isinstance(token, str) and not token.startswith("mun_"):
            try:
                credential = await keeper.check(token)
            except Unauthenticated:
                continue
            if not is_person(credential):
                raise Unauthenticated("the console is for persons: this account is an agent's or a service's")
            await note_arrival(request, credential)
            return token, to
    raise Unauthenticated("this server does not accept the issuer's token: check its audience and claims")


async def _exchange(sign_in: SignIn, code: str, verifier: str) -> dict[str, Any]:
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": sign_in.redirect_uri,
        "client_id": sign_in.client_id,
        "code_verifier": verifier,
    }
    if sign_in.client_secret is not None:
        form["client_secret"] = sign_in.client_secret
    try:
        body = await fetch(
            "POST",
            sign_in.token_url,
            form=form,
            limit=_ANSWER_LIMIT,
            within=ANSWER_WITHIN,
            allow_private=sign_in.allow_private,
        )
        answer = from_json(body) if body is not None else None
    except (httpx2.HTTPError, Refused, ValueError, TimeoutError):
        answer = None
    if not isinstance(answer, dict):
        raise Unauthenticated("the issuer did not answer with a token")
    return cast("dict[str, Any]", answer)


def _settings(request: Request) -> SignIn:
    sign_in: SignIn | None = request.app.state.sign_in
    if sign_in is None:
        raise InvalidInput("no issuer is set up for signing in", field="oidc")
    return sign_in
