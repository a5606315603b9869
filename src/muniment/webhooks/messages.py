"""The messages of webhooks: events as CloudEvents 1.0 in JSON, signed in the form of Standard Webhooks."""

import base64
import hmac
import os
from collections.abc import Iterable
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any
from urllib.parse import quote

from pydantic_core import to_json

from muniment.model.events import Event

CONTENT_TYPE = "application/cloudevents+json"
# What an event is about, the closest first.
_SUBJECTS = ("memory_id", "proposal_id", "contradiction_id", "consent_id", "erasure_id", "capture_id", "key_id")


def cloud_event(event: Event) -> dict[str, Any]:
    """The event in structured mode. `sequence` sorts as text in the order of the tenant's log."""
    subject = next((event.data[name] for name in _SUBJECTS if isinstance(event.data.get(name), str)), None)
    return {
        "specversion": "1.0",
        "id": event.event_id,
        "source": f"/muniment/{quote(event.tenant_id, safe='')}",
        "type": event.type,
        **({"subject": subject} if subject else {}),
        "time": event.at.astimezone(UTC).isoformat().replace("+00:00", "Z"),
        "sequence": f"{event.seq:019d}.{event.n:05d}",
        "actor": event.actor,
        "datacontenttype": "application/json",
        "data": event.data,
    }


def encoded(event: Event) -> bytes:
    """The CloudEvent as the bytes that are sent and signed."""
    return to_json(cloud_event(event))


KEY_PREFIX = "whsec_"
SECRET_BYTES = 32


def new_secret() -> str:
    """A new secret in the form in which it is shown once."""
    return KEY_PREFIX + base64.b64encode(os.urandom(SECRET_BYTES)).decode()


def signed(secrets: Iterable[str], message_id: str, at: datetime, body: bytes) -> dict[str, str]:
    """The headers of a message, with a signature for each secret, so that a secret can be changed without a gap."""
    stamp = str(int(at.timestamp()))
    content = b".".join((message_id.encode(), stamp.encode(), body))
    signatures = [_signature(secret, content) for secret in secrets]
    return {"webhook-id": message_id, "webhook-timestamp": stamp, "webhook-signature": " ".join(signatures)}


def _signature(secret: str, content: bytes) -> str:
    key = base64.b64decode(secret.removeprefix(KEY_PREFIX))
    return f"v1,{base64.b64encode(hmac.digest(key, content, sha256)).decode()}"
