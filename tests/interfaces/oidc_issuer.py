"""An issuer of tokens with real keys, and a real server that hands out its public ones."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast

import anyio
import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from muniment.errors import Unauthenticated
from muniment.http.oidc import OidcSettings, TokenVerifier
from muniment.model.api_key import Credential
from muniment.testing import FakeClock

RSA, OTHER_RSA = (rsa.generate_private_key(65537, 2048) for _ in range(2))
EC = ec.generate_private_key(ec.SECP256R1())
ED = ed25519.Ed25519PrivateKey.generate()
PRIVATE: dict[str, Any] = {"rsa": RSA, "ec": EC, "ed": ED, "new": OTHER_RSA}
MADE_BY = {"rsa": "RS256", "ec": "ES256", "ed": "EdDSA", "new": "RS256"}
ISSUER, AUDIENCE = "https://login.example.com/", "muniment"
SAID: dict[str, Any] = {
    "issuer": ISSUER,
    "audience": AUDIENCE,
    "tenant_claim": "org",
    "roles_claim": "groups",
    "role_map": {"leads": "reviewer", "compliance": "auditor", "bots": "agent", "root": "admin"},
}


def public(name: str, **more: Any) -> dict[str, Any]:
    """The public key of that name as JWK."""
    algorithm: Any = RSAAlgorithm if name in ("rsa", "new") else ECAlgorithm if name == "ec" else OKPAlgorithm
    return {**json.loads(algorithm.to_jwk(PRIVATE[name].public_key())), "kid": name, "use": "sig", **more}


class Issuer(ThreadingHTTPServer):
    """On the loopback: hands out its keys until it is told to do something else."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Asked)
        self.keys: list[dict[str, Any]] = [public("rsa"), public("ec"), public("ed")]
        self.asked = 0
        self.status = 200
        self.body: bytes | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/keys"


class _Asked(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        issuer = cast("Issuer", self.server)
        issuer.asked += 1
        body = issuer.body if issuer.body is not None else json.dumps({"keys": issuer.keys}).encode()
        self.send_response(issuer.status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Location", issuer.url)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None: ...


class TokenChecks:
    """The checks of one process, and tokens of that moment."""

    def __init__(self, keys: str, clock: FakeClock, **said: Any) -> None:
        self._clock = clock
        self._tokens = TokenVerifier(OidcSettings(**SAID | {"keys": keys, "allow_private": True} | said), clock)

    def claims(self, **more: Any) -> dict[str, Any]:
        now = int(self._clock.now.timestamp())
        usual = {"iss": ISSUER, "aud": AUDIENCE, "sub": "jane", "org": "acme", "groups": ["leads"], "iat": now}
        return {name: value for name, value in {**usual, "exp": now + 300, **more}.items() if value is not ...}

    def token(self, by: str = "rsa", *, header: dict[str, Any] | None = None, **more: Any) -> str:
        return jwt.encode(
            self.claims(**more), PRIVATE[by], algorithm=MADE_BY[by], headers={"kid": by} if header is None else header
        )

    def check(self, token: Any) -> Credential:
        return anyio.run(self._tokens.check, token)

    def takes(self, token: Any) -> bool:
        try:
            self.check(token)
        except Unauthenticated as error:
            assert (str(error), error.field) == ("the credential is not valid, has expired or was revoked", None)
            assert error.__cause__ is None
            return False
        return True
