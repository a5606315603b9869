"""Events: every change of state, numbered in its tenant, never with content; and the webhooks they are posted to."""

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from muniment.model.fields import Artifact

EventType = Literal[
    "memory.captured", "memory.capture_read", "memory.rerun", "memory.refused", "memory.proposed",
    "memory.reviewed", "memory.overridden", "memory.promoted", "memory.duplicate", "memory.retracted",
    "memory.contradiction", "memory.contradiction_resolved", "memory.correction", "memory.consent_granted",
    "memory.consent_revoked", "memory.consent_expired", "memory.erased", "memory.expiring", "memory.expired",
    "memory.parked", "memory.sla_breached", "memory.budget_exceeded", "memory.auto_promotion_suspended",
    "memory.note", "memory.session_ended", "memory.pack_registered", "memory.pack_activated", "memory.pack_retired",
    "memory.confirmed", "memory.consent_requested", "memory.imported", "memory.exported", "memory.restored",
    "memory.key_rotated", "memory.clock_reset",
    "memory.api_key_created", "memory.api_key_revoked",
    "memory.security",
]  # fmt: skip

# The one field of `data` where an event has several items.
ITEMS = "items"


class Event(Artifact):
    """One event of a tenant's log; `seq` orders it, `n` numbers the events of one transaction.

    What happened several times in a transaction is one event, with a list `items` in `data`.
    """

    event_id: str
    tenant_id: str
    seq: int
    n: int
    type: EventType
    at: datetime
    actor: str
    data: dict[str, Any] = Field(
        default_factory=dict, description="ids, classes, reasons and counts; or `items`, a list of such objects"
    )

    @property
    def items(self) -> tuple[dict[str, Any], ...]:
        """What happened: the items of an event that has several, otherwise its data as the only one."""
        return tuple(self.data[ITEMS]) if ITEMS in self.data else (self.data,)

    def only(self, wanted: Callable[[dict[str, Any]], bool]) -> "Event | None":
        """The event with only those of its items; None if there are none."""
        items = [one for one in self.items if wanted(one)]
        if not items or len(items) == len(self.items):
            return self if items else None
        return self.model_copy(update={"data": items[0] if len(items) == 1 else {ITEMS: items}})


WebhookState = Literal["active", "retrying", "parked"]
Url = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=2048, pattern=r"^[!-~]+$")]


class WebhookInput(Artifact):
    """A webhook as an admin registers it; without `types` it gets every event."""

    url: Url
    types: Annotated[frozenset[EventType], Field(min_length=1, fail_fast=True)] | None = None


class Webhook(Artifact):
    """A webhook with its position in the log: `seq` and `n` of the last event that was delivered.

    `secret` is there once, when it was made.
    """

    webhook_id: str
    tenant_id: str
    url: str
    types: tuple[EventType, ...] = Field(default=(), description="empty for all types")
    created_at: datetime
    created_by: str
    seq: int
    n: int
    state: WebhookState
    tries: int = 0
    next_try_at: datetime | None = None
    parked_at: datetime | None = None
    last_error: str | None = Field(default=None, description="a status or a short reason, never the body of the answer")
    secret: str | None = Field(default=None, repr=False)


class Deliveries(Artifact):
    """The result of a delivery pass: events delivered, webhooks to retry, webhooks parked.

    `more` says that there is more to post at once; `next_at` when the next try is due, at the earliest.
    """

    delivered: int = 0
    retrying: int = 0
    parked: int = 0
    more: bool = False
    next_at: datetime | None = None
