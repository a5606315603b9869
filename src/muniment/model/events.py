"""Events: every change of state, numbered in its tenant; ids, classes, reasons and counts, never content."""

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from muniment.model.fields import Artifact

EventType = Literal[
    "memory.captured",
    "memory.capture_read",
    "memory.rerun",
    "memory.refused",
    "memory.proposed",
    "memory.reviewed",
    "memory.overridden",
    "memory.promoted",
    "memory.duplicate",
    "memory.retracted",
    "memory.contradiction",
    "memory.contradiction_resolved",
    "memory.correction",
    "memory.consent_granted",
    "memory.consent_revoked",
    "memory.consent_expired",
    "memory.erased",
    "memory.expiring",
    "memory.expired",
    "memory.parked",
    "memory.sla_breached",
    "memory.budget_exceeded",
    "memory.auto_promotion_suspended",
    "memory.note",
    "memory.pack_registered",
    "memory.pack_activated",
    "memory.pack_retired",
    "memory.key_rotated",
    "memory.clock_reset",
    "memory.api_key_created",
    "memory.api_key_revoked",
    "memory.security",
]


class Event(Artifact):
    """One event of a tenant's log; `seq` orders it, `n` numbers the events of one transaction."""

    event_id: str
    tenant_id: str
    seq: int
    n: int
    type: EventType
    at: datetime
    actor: str
    data: dict[str, Any] = Field(default_factory=dict)
