"""Signatures of what is posted, in the form of Standard Webhooks: any of its libraries checks them."""

import base64
import hmac
import os
from collections.abc import Iterable
from datetime import datetime
from hashlib import sha256

SECRET_PREFIX = "whsec_"  # noqa: S105  what a secret begins with, not one
SECRET_BYTES = 32


def new_secret() -> str:
    """A fresh secret as it is shown, once."""
    return SECRET_PREFIX + base64.b64encode(os.urandom(SECRET_BYTES)).decode()


def signed(secrets: Iterable[str], message_id: str, at: datetime, body: bytes) -> dict[str, str]:
    """The headers of one message: a signature with each secret, so that one can be changed without losing any."""
    stamp = str(int(at.timestamp()))
    content = b".".join((message_id.encode(), stamp.encode(), body))
    signatures = [_signature(secret, content) for secret in secrets]
    return {"webhook-id": message_id, "webhook-timestamp": stamp, "webhook-signature": " ".join(signatures)}


def _signature(secret: str, content: bytes) -> str:
    key = base64.b64decode(secret.removeprefix(SECRET_PREFIX))
    return f"v1,{base64.b64encode(hmac.digest(key, content, sha256)).decode()}"
