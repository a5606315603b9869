"""Sessions: a visitor's credential, sealed into a cookie. Nothing is kept on the server, so that any server will do."""

import hmac
import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from pydantic import BaseModel, ValidationError

LASTS = timedelta(hours=12)
# Browsers keep no longer cookies.
COOKIE_LIMIT = 4000
_NONCE = 12
_BOUND = b"muniment/console/"
_SESSION = "session"


class _Sealed(BaseModel):
    token: str
    ends_at: datetime
    salt: str


@dataclass(frozen=True)
class Session:
    """What a cookie stands for: the credential that was signed in with, asked anew with every request."""

    token: str
    ends_at: datetime
    salt: str


class Sessions:
    """Seals and opens cookies under a secret that all servers of one database share."""

    def __init__(self, secret: bytes) -> None:
        self._cipher = AESGCM(hmac.digest(secret, _BOUND + _SESSION.encode(), sha256))
        self._secret = hmac.digest(secret, b"muniment/console/forms", sha256)

    def begin(
        self, token: str, now: datetime, lasts: timedelta = LASTS, *, purpose: str = _SESSION
    ) -> tuple[Session, str]:
        """A session for that credential, and the cookie that says so; it opens for the same purpose alone."""
        session = Session(token, now.astimezone(UTC) + lasts, os.urandom(16).hex())
        nonce = os.urandom(_NONCE)
        content = _Sealed(token=session.token, ends_at=session.ends_at, salt=session.salt).model_dump_json().encode()
        return session, _spelled(nonce + self._cipher.encrypt(nonce, content, _BOUND + purpose.encode()))

    def open(self, cookie: str | None, now: datetime, *, purpose: str = _SESSION) -> Session | None:
        """The session that a cookie stands for; None if it is none of ours, was changed, or is over."""
        if not cookie or len(cookie) > 2 * COOKIE_LIMIT:
            return None
        try:
            sealed = urlsafe_b64decode(cookie + "=" * (-len(cookie) % 4))
            if _spelled(sealed) != cookie:
                # Letters that are none of its alphabet are passed over in decoding.
                return None
            opened = self._cipher.decrypt(sealed[:_NONCE], sealed[_NONCE:], _BOUND + purpose.encode())
            content = _Sealed.model_validate_json(opened)
        except (Error, InvalidTag, ValidationError, ValueError):
            return None
        if content.ends_at <= now:
            return None
        return Session(content.token, content.ends_at, content.salt)

    def form_token(self, session: Session) -> str:
        """What every form of the session carries, so that no other site can send one in its name."""
        return hmac.new(self._secret, f"{session.salt}\0{session.token}".encode(), sha256).hexdigest()

    def is_form_token(self, session: Session, given: str | None) -> bool:
        """Whether a form is one of ours."""
        return given is not None and hmac.compare_digest(self.form_token(session).encode(), given.encode())


def _spelled(sealed: bytes) -> str:
    return urlsafe_b64encode(sealed).decode().rstrip("=")
