"""The settings of notices: the mail server, the sender, and the server's own address for links."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

from muniment.errors import InvalidInput
from muniment.notices.rules import is_mail_address
from muniment.outbound import is_loopback, is_secure

URL_VARIABLE = "MUNIMENT_SMTP_URL"
LOGIN_VARIABLE = "MUNIMENT_SMTP_PASSWORD"
FILE_VARIABLE = "MUNIMENT_SMTP_PASSWORD_FILE"
FROM_VARIABLE = "MUNIMENT_MAIL_FROM"
PUBLIC_VARIABLE = "MUNIMENT_PUBLIC_URL"
_PORTS = {"smtp": 587, "smtps": 465}
_WANTED = "expected smtp://host:587 or smtps://user@host:465"
_OTHERS_MAY = 0o077

Tls = Literal["tls", "starttls", "none"]


@dataclass(frozen=True)
class MailServer:
    """Where mail is handed in, and who sends it. Without TLS only on this machine."""

    host: str
    port: int
    tls: Tls
    sender: str
    user: str | None = None
    password: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class NoticeSettings:
    """`public_url` is the server's own address as browsers see it, without a slash at the end; or empty."""

    mail: MailServer | None = None
    public_url: str = ""

    @classmethod
    def gather(cls) -> "NoticeSettings":
        """The settings of the environment; raises `InvalidInput`."""
        public = os.environ.get(PUBLIC_VARIABLE, "").strip().rstrip("/")
        if public and not is_secure(public):
            raise InvalidInput("expected an https address", field=PUBLIC_VARIABLE)
        url = os.environ.get(URL_VARIABLE, "").strip()
        return cls(_mail_server(url) if url else None, public)


def _mail_server(url: str) -> MailServer:
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError:
        raise InvalidInput(_WANTED, field=URL_VARIABLE) from None
    if not parts.hostname or not port or parts.path not in ("", "/") or parts.query or parts.fragment:
        raise InvalidInput(_WANTED, field=URL_VARIABLE)
    if parts.password is not None:
        raise InvalidInput(f"holds a password; put it into {FILE_VARIABLE}", field=URL_VARIABLE)
    sender = os.environ.get(FROM_VARIABLE, "").strip()
    if not is_mail_address(sender):
        raise InvalidInput("expected the mail address that notices come from", field=FROM_VARIABLE)
    user = unquote(parts.username) if parts.username else None
    password = _password()
    if (user is None) != (password is None):
        raise InvalidInput(f"a user in {URL_VARIABLE} and a password go together", field=LOGIN_VARIABLE)
    plain: Tls = "none" if is_loopback(url) else "starttls"
    return MailServer(parts.hostname, port, "tls" if parts.scheme == "smtps" else plain, sender, user, password)


def _password() -> str | None:
    if given := os.environ.get(LOGIN_VARIABLE, ""):
        return given
    if not (path := os.environ.get(FILE_VARIABLE, "").strip()):
        return None
    try:
        if Path(path).stat().st_mode & _OTHERS_MAY:
            raise InvalidInput("others can read this file; set its mode to 600", field=FILE_VARIABLE)
        return Path(path).read_text(encoding="utf-8").strip() or None
    except (OSError, UnicodeDecodeError):
        raise InvalidInput("cannot be read", field=FILE_VARIABLE) from None
