"""Sessions: a visitor's credential, encrypted in a cookie. Servers keep no session state."""

import hmac
import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from datetime import UTC, datetime, timedelta
from hashlib import sha256

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from pydantic import BaseModel, ConfigDict, ValidationError

LASTS = timedelta(hours=12)
# Browsers drop longer cookies.
COOKIE_LIMIT = 4000
_NONCE = 12
_BOUND = b"muniment/console/"
_SESSION = "session"


class Session(BaseModel):
    """What a cookie holds: the credential used to sign in, which is checked again on every request."""

    model_config = ConfigDict(frozen=True)

    token: str
    ends_at: datetime
    salt: str


class Sessions:
    """Encrypts and decrypts cookies with a secret that all servers of one database share."""

    def __init__(self, secret: bytes) -> None:
        self._cipher = AESGCM(hmac.digest(secret, _BOUND + _SESSION.encode(), sha256))
        self._secret = hmac.digest(secret, b"muniment/console/forms", sha256)

    def begin(
        self, token: str, now: datetime, lasts: timedelta = LASTS, *, purpose: str = _SESSION
    ) -> tuple[Session, str]:
        """Start a session for a credential; return it and its cookie, which opens only for the same purpose."""
        session = Session(token=token, ends_at=now.astimezone(UTC) + lasts, salt=os.urandom(16).hex())
        nonce = os.urandom(_NONCE)
        content = session.model_dump_json().encode()
        return session, encode_base64(nonce + self._cipher.encrypt(nonce, content, _BOUND + purpose.encode()))

    def open(self, cookie: str | None, now: datetime, *, purpose: str = _SESSION) -> Session | None:
        """Return the session in a cookie; None if the cookie is forged, was changed, or has ended."""
        if not cookie or len(cookie) > 2 * COOKIE_LIMIT:
            return None
        try:
            sealed = urlsafe_b64decode(cookie + "=" * (-len(cookie) % 4))
            if encode_base64(sealed) != cookie:
                # The decoder skips characters outside its alphabet.
                return None
            opened = self._cipher.decrypt(sealed[:_NONCE], sealed[_NONCE:], _BOUND + purpose.encode())
            session = Session.model_validate_json(opened)
        except (Error, InvalidTag, ValidationError, ValueError):
            return None
        return session if session.ends_at > now else None

    def form_token(self, session: Session) -> str:
        """The token that every form of the session carries, so that another site cannot submit one."""
        return hmac.new(self._secret, f"{session.salt}\0{session.token}".encode(), sha256).hexdigest()

    def is_form_token(self, session: Session, token: str | None) -> bool:
        """Whether a token is the session's form token."""
        return token is not None and hmac.compare_digest(self.form_token(session).encode(), token.encode())


def encode_base64(sealed: bytes) -> str:
    """Encode bytes for a URL or a cookie, without padding."""
    return urlsafe_b64encode(sealed).decode().rstrip("=")
