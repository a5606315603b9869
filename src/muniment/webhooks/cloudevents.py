"""Events as CloudEvents 1.0, in JSON."""

from datetime import UTC
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
    """The same as the bytes that are sent and signed."""
    return to_json(cloud_event(event))
