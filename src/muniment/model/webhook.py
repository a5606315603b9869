"""Webhooks: where a tenant's events are posted, the progress of each, and the result of a delivery pass."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from muniment.model.events import EventType
from muniment.model.fields import Artifact

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
