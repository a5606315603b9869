"""Sending one mail: by SMTP, over TLS unless the server is on this machine, within a deadline."""

import smtplib
import socket
import ssl
from contextlib import suppress
from datetime import datetime
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime

import anyio.to_thread
from anyio import CapacityLimiter
from anyio.lowlevel import RunVar

from muniment.notices.rules import Message
from muniment.notices.settings import MailServer
from muniment.remote import certificates

DEADLINE = 30.0
# Seconds for the connection, and for each answer of the server.
_WAIT = 10.0
# Threads of one loop that send: they wait, and hold nobody else up.
_THREADS = 4
_limiter: RunVar[CapacityLimiter] = RunVar("muniment_mail_threads")


def mail_of(server: MailServer, to: str, message: Message, message_id: str, at: datetime) -> EmailMessage:
    """The mail. A repeated one has the same `Message-ID`, by which a mailbox can tell."""
    mail = EmailMessage(policy=SMTP)
    mail["From"] = server.sender
    mail["To"] = to
    mail["Subject"] = message.title
    mail["Date"] = format_datetime(at)
    mail["Message-ID"] = f"<{message_id}@{server.sender.partition('@')[2]}>"
    # RFC 3834: no answers of machines to this.
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(message.text)
    return mail


async def send(server: MailServer, mail: EmailMessage) -> str | None:
    """Hand in a mail; None if the server accepted it, else why not: a status or the kind of error."""
    limiter = _limiter.get(None)
    if limiter is None:
        _limiter.set(limiter := CapacityLimiter(_THREADS))
    handing = _HandIn(server, mail)
    with anyio.move_on_after(DEADLINE):
        try:
            return await anyio.to_thread.run_sync(handing.run, abandon_on_cancel=True, limiter=limiter)
        finally:
            # A server that dribbles its answers would keep the thread for ever.
            handing.cut()
    return "timeout"


class _HandIn:
    """One conversation with the server, in a thread."""

    def __init__(self, server: MailServer, mail: EmailMessage) -> None:
        self._server, self._mail = server, mail
        self._smtp: smtplib.SMTP | None = None
        self._cut = False

    def cut(self) -> None:
        """End the connection, whatever it waits for."""
        self._cut = True
        if self._smtp is not None and self._smtp.sock is not None:
            with suppress(OSError):
                self._smtp.sock.shutdown(socket.SHUT_RDWR)

    def run(self) -> str | None:
        """Connect, secure the connection, sign in, hand in."""
        try:
            return self._run()
        except smtplib.SMTPRecipientsRefused:
            return "recipient_refused"
        except smtplib.SMTPAuthenticationError:
            return "login_refused"
        except smtplib.SMTPNotSupportedError:
            return "tls_or_login_not_offered"
        except smtplib.SMTPResponseException as error:
            return str(error.smtp_code)
        except TimeoutError:
            return "timeout"
        except ssl.SSLError:
            return "tls_failed"
        except (smtplib.SMTPException, OSError, ValueError):
            return "connection_failed"

    def _run(self) -> str | None:
        server = self._server
        name = server.sender.partition("@")[2]
        if server.tls == "tls":
            smtp = smtplib.SMTP_SSL(timeout=_WAIT, local_hostname=name, context=certificates())
        else:
            smtp = smtplib.SMTP(timeout=_WAIT, local_hostname=name)
        # Given to the constructor it would connect at once, and could not be cut while it waits for a greeting.
        # Nothing public sets the name that its certificate is checked for.
        smtp._host = server.host  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue]
        self._smtp = smtp
        try:
            smtp.connect(server.host, server.port)
            if self._cut:
                return "timeout"
            if server.tls == "starttls":
                smtp.starttls(context=certificates())
            if server.user is not None:
                smtp.login(server.user, server.password or "")
            smtp.send_message(self._mail)
            # Accepted; how the connection ends does not matter any more.
            with suppress(smtplib.SMTPException, OSError):
                smtp.quit()
        finally:
            smtp.close()
        return None
