"""Notices: what a person is told outside the console, by mail, in a chat or by the browser; never content."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from muniment.model.fields import Artifact, WriteClass
from muniment.model.zones import UTC_NAME, TimeOfDay, ZoneName

NoticeChannel = Literal["mail", "chat", "browser"]
AlertKind = Literal[
    "overdue", "low_trust", "sensitive", "contradiction", "contradiction_backlog", "budget", "parked",
    "erasure_request", "purge_waits", "mention", "assignment", "pack_registered",
]  # fmt: skip
DigestEvery = Literal["hourly", "daily"]
# When a daily digest goes out, unless a person chose another time.
DAILY_AT = "07:00"


class NoticeInput(Artifact):
    """How a person wants to be told. One setting for each channel: another one replaces it."""

    channel: NoticeChannel
    address: Annotated[str, Field(strict=True, min_length=1, max_length=2048)] | None = Field(
        None, description="a mail address, or the https address of a Slack-compatible webhook; none for the browser"
    )
    classes: Annotated[frozenset[WriteClass], Field(fail_fast=True)] | None = Field(
        None, description="only about these classes; by default about all"
    )
    kinds: Annotated[frozenset[AlertKind], Field(fail_fast=True)] | None = Field(
        None, description="the kinds of alert; by default every kind that the caller's roles may read about"
    )
    digest: DigestEvery | None = Field(None, description="how often a digest of what waits is sent; never by default")
    at: TimeOfDay = Field(DAILY_AT, description="the time of the day at which a daily digest is sent")
    time_zone: ZoneName = Field(UTC_NAME, description="the time zone of that time, and of the day in a digest")


class Notice(Artifact):
    """A person's setting for one channel. `address` is shown to that person alone."""

    notice_id: str
    tenant_id: str
    person: str
    channel: NoticeChannel
    address: str | None = None
    roles: tuple[str, ...] = Field(description="the roles that the person had when they set it")
    classes: tuple[WriteClass, ...] = Field(default=(), description="empty for all classes")
    kinds: tuple[AlertKind, ...] = ()
    digest: DigestEvery | None = None
    at: str = Field(default=DAILY_AT, description="the time of the day at which a daily digest is sent")
    time_zone: str = Field(default=UTC_NAME, description="the time zone of that time, and of the day in a digest")
    created_at: datetime
    seen_at: datetime | None = Field(
        default=None,
        description="when the person was last seen without an API key, such as with a token; none: by API keys alone",
    )
    digest_at: datetime | None = Field(default=None, description="when the next digest is due")
    sent_at: datetime | None = Field(default=None, description="when the last message was accepted")
    tries: int = 0
    next_try_at: datetime | None = None
    last_error: str | None = Field(default=None, description="a status or a short reason, never the answer itself")


class Alert(Artifact):
    """One thing to be told: its kind, its class and its id, and the console page where it is."""

    kind: AlertKind
    at: datetime
    write_class: str | None = None
    item_id: str | None = None
    path: str = Field(description="a page of the console, such as /console/queue/mwp_1")


class Alerts(Artifact):
    """What concerns the caller after a sequence number, and the number that was read up to."""

    seq: int
    alerts: tuple[Alert, ...] = ()


class Digest(Artifact):
    """What waits for a person: counts alone."""

    open: int = 0
    by_class: dict[str, int] = Field(default_factory=dict[str, int])
    overdue: int = 0
    due_today: int = 0
    contradictions: int = 0
    erasure_requests: int = 0

    @property
    def empty(self) -> bool:
        """Whether nothing waits."""
        return not (self.open or self.contradictions or self.erasure_requests)


class Notified(Artifact):
    """The result of a pass: messages that were accepted, settings to try again; `next_at` is when one is due next."""

    sent: int = 0
    retrying: int = 0
    more: bool = False
    next_at: datetime | None = None
