"""Which events concern a person, and the words of a message: counts, classes, ids and links, nothing that was said."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from typing import Any, cast

from muniment.access.roles import ALLOWED
from muniment.model.events import Event
from muniment.model.notices import DAILY_AT, Alert, AlertKind, Digest, DigestEvery
from muniment.model.zones import UTC_NAME, next_hour_in, next_midnight_in, next_time_in, zone_here

# Who may be told about what: those who may read about it in the console.
MAY_READ: dict[AlertKind, frozenset[str]] = {
    "overdue": frozenset(ALLOWED["read_queue"]),
    "low_trust": frozenset(ALLOWED["read_queue"]),
    "sensitive": frozenset(ALLOWED["read_queue"]),
    "contradiction": frozenset(ALLOWED["read_queue"]),
    # Who corrects memories is told how many contradict each other, and reads of none.
    "contradiction_backlog": frozenset(ALLOWED["read_queue"] | ALLOWED["correct"]),
    "budget": frozenset(ALLOWED["read_work"]),
    "parked": frozenset(ALLOWED["read_work"]),
    "erasure_request": frozenset(ALLOWED["read_erasures"]),
    "purge_waits": frozenset(ALLOWED["read_erasures"]),
    "mention": frozenset(ALLOWED["read_queue"]),
    "assignment": frozenset(ALLOWED["read_queue"]),
    "pack_registered": frozenset(ALLOWED["packs"]),
}
WORDS: dict[AlertKind, str] = {
    "overdue": "overdue",
    "low_trust": "low trust",
    "sensitive": "sensitive",
    "contradiction": "contradicts a memory",
    "contradiction_backlog": "many open contradictions",
    "budget": "budget near or over its limit",
    "parked": "capture or webhook given up",
    "erasure_request": "request for erasure",
    "purge_waits": "purge after an erasure waits",
    "mention": "mentions you",
    "assignment": "assigned to you",
    "pack_registered": "pack registered",
}
# Lines of one message; the rest is counted.
MOST_LINES = 20
# At most one message in this time to each channel of a person.
GATHERED_FOR = timedelta(minutes=1)
# Who came without an API key is taken for who they were for so long; a key lasts as long by default.
SEEN_FOR = timedelta(days=90)
# That they were here is noted again after this time.
SEEN_EVERY = timedelta(days=1)

# Reasons for which a proposal is told of, the gravest first: it is told once.
_REASONS: tuple[AlertKind, ...] = ("low_trust", "sensitive", "contradiction")
_NOTES: dict[str, AlertKind] = {
    "erasure_requested": "erasure_request",
    "purge_waits": "purge_waits",
    "contradiction_backlog": "contradiction_backlog",
}
_PAGES: dict[AlertKind, str] = {
    "contradiction_backlog": "/console/contradictions",
    "budget": "/console/metrics",
    "parked": "/console/metrics/work",
    "pack_registered": "/console/packs",
    "erasure_request": "/console/erasures",
    "purge_waits": "/console/erasures",
}
_READERS = frozenset(ALLOWED["read_queue"] | ALLOWED["read_work"] | ALLOWED["read_erasures"] | ALLOWED["packs"])
# What may stand in a message and in a link: our own ids and the names of classes, whatever an event holds.
_SAFE = re.compile(r"[A-Za-z0-9_.-]{1,128}")
# A mail address as a header and an SMTP command can carry it: no space, no line end, no quotes, no brackets.
_MAIL = re.compile(
    r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*"
    r"@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?)(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*"
)
_MAIL_LENGTH, _LOCAL_LENGTH = 254, 64


@dataclass(frozen=True)
class Addressed:
    """Whom a verdict names, and the class of its proposal. No event holds the names: they could be anything."""

    write_class: str
    mentions: tuple[str, ...] = ()
    assignee: str | None = None

    def kind_for(self, person: str) -> AlertKind | None:
        """Why a person is told of it."""
        return "mention" if person in self.mentions else "assignment" if person == self.assignee else None


# By the id of a verdict: whom it names.
Named = Mapping[str, Addressed]


@dataclass(frozen=True)
class Schedule:
    """When digests are sent: how often, at which time of the day, and in which time zone."""

    every: DigestEvery | None = None
    at: str = DAILY_AT
    time_zone: str = UTC_NAME

    def next_after(self, now: datetime) -> datetime | None:
        """When the next digest is due: as the clock of the zone shows the next full hour, or the time of the day."""
        if self.every is None:
            return None
        zone = zone_here(self.time_zone)
        if self.every == "hourly":
            return next_hour_in(zone, now)
        return next_time_in(zone, time.fromisoformat(self.at), now)

    def may_be_next(self, at: datetime, now: datetime) -> bool:
        """Whether the next digest can be due then; one farther ahead was put there by a clock that was wrong."""
        return at - now <= (timedelta(hours=3) if self.every == "hourly" else timedelta(days=3))

    def end_of_day(self, now: datetime) -> datetime:
        """When the person's day ends."""
        return next_midnight_in(zone_here(self.time_zone), now)


@dataclass(frozen=True)
class HeldKey:
    """An API key of a person: what it allows, and from when until when."""

    roles: frozenset[str]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None

    def is_live(self, now: datetime) -> bool:
        """Whether it is accepted now. What was revoked stays so, also where the clock was put back."""
        return self.revoked_at is None and (self.expires_at is None or self.expires_at > now)

    def was_live(self, then: datetime) -> bool:
        """Whether it was accepted at the time of an event."""
        ends = [at for at in (self.expires_at, self.revoked_at) if at is not None]
        return self.created_at <= then and all(at > then for at in ends)


@dataclass(frozen=True)
class Standing:
    """What is known of a person who is not here: their API keys, and when they were last seen without one.

    `seen_roles` are those that they had then; None for a setting from before that was noted.
    """

    keys: tuple[HeldKey, ...]
    seen_at: datetime | None
    seen_roles: frozenset[str] | None

    def roles_now(self, roles: Iterable[str], now: datetime) -> frozenset[str]:
        """The roles that they still have, of those that they had when they made the setting."""
        held = frozenset(roles)
        return held & (self._by_keys(now) | self._seen(held, now))

    def roles_for(self, roles: Iterable[str], now: datetime, then: datetime) -> frozenset[str]:
        """The roles by which they are told of an event: those that they still have, and had at that time."""
        held = frozenset(roles)
        then_by_keys = frozenset(role for key in self.keys if key.was_live(then) for role in key.roles)
        return self.roles_now(roles, now) & (then_by_keys | self._seen(held, now))

    def objection(self, roles: Iterable[str], now: datetime) -> str | None:
        """Why nothing may be sent to them; None if something may."""
        held = frozenset(roles)
        if self.roles_now(held, now):
            return None
        if self._by_keys(now) or self._seen(held, now):
            return "role_missing"
        return "no_valid_key" if self.seen_at is None or (self.seen_roles is None and self.keys) else "not_seen"

    def _by_keys(self, now: datetime) -> frozenset[str]:
        return frozenset(role for key in self.keys if key.is_live(now) for role in key.roles)

    def _seen(self, held: frozenset[str], now: datetime) -> frozenset[str]:
        # A time far ahead is that of a clock that was wrong.
        if self.seen_at is None or abs(now - self.seen_at) >= SEEN_FOR:
            return frozenset()
        if self.seen_roles is None:
            # Nobody knows how they came then: their keys count, if they ever had one.
            return frozenset() if self.keys else held
        return self.seen_roles


def sight_is_due(
    seen_at: datetime | None, seen_roles: Iterable[str] | None, roles: Iterable[str], now: datetime
) -> bool:
    """Whether it is to be noted that a person was here without an API key, with these roles."""
    if seen_at is None or seen_roles is None or frozenset(seen_roles) != frozenset(roles):
        return True
    return abs(now - seen_at) >= SEEN_EVERY


@dataclass(frozen=True)
class Message:
    """What is sent: a title, lines of text, and the page that it leads to."""

    title: str
    lines: tuple[str, ...]
    link: str

    @property
    def text(self) -> str:
        """The lines, and the link at the end."""
        return "\n".join((*self.lines, "", self.link))


def is_mail_address(text: str) -> bool:
    """Whether mail can be sent there, and nothing else said with it."""
    return len(text) <= _MAIL_LENGTH and len(text.partition("@")[0]) <= _LOCAL_LENGTH and bool(_MAIL.fullmatch(text))


def kinds_for(roles: Iterable[str]) -> frozenset[AlertKind]:
    """The kinds of alert that somebody with these roles may be told of."""
    held = frozenset(roles)
    return frozenset(kind for kind, needed in MAY_READ.items() if needed & held)


def naming_verdicts(events: Iterable[Event]) -> list[str]:
    """The verdicts of events that may name somebody: comments and assignments."""
    items = (item for event in events if event.type == "memory.reviewed" for item in event.items)
    return [str(item["verdict_id"]) for item in items if item.get("action") in ("comment", "assign")]


def alerts_of(
    event: Event,
    kinds: Iterable[AlertKind],
    classes: Iterable[str],
    roles: Iterable[str],
    person: str,
    named: Named,
) -> list[Alert]:
    """What of an event concerns a person with these wishes and roles; no classes mean all of them.

    `named` says whom the verdicts of the event name. Nobody is told of what they did themselves.
    """
    wanted, chosen = kinds_for(roles) & frozenset(kinds), frozenset(classes)
    held = frozenset(roles)
    if event.actor == person:
        return []
    found = list[Alert]()
    for item in event.items:
        verdict = named.get(str(item.get("verdict_id")))
        if verdict is not None and (kind := verdict.kind_for(person)) is not None:
            item = {**item, "named_as": kind, "write_class": verdict.write_class}
        alert = _alert(event, item, wanted, held)
        if alert is not None and _of_class(alert, chosen):
            found.append(alert)
    return found


def _of_class(alert: Alert, chosen: frozenset[str]) -> bool:
    return not chosen or alert.write_class is None or alert.write_class in chosen


def _alert(event: Event, item: Mapping[str, Any], wanted: frozenset[AlertKind], roles: frozenset[str]) -> Alert | None:
    kind, item_id, write_class = _kind(event.type, item, wanted), None, None
    if kind is None or kind not in wanted:
        return None
    is_webhook = kind == "parked" and "webhook_id" in item
    if is_webhook and not ALLOWED["webhooks"] & roles:
        return None
    if kind in ("overdue", "mention", "assignment", *_REASONS):
        item_id, write_class = _safe(item.get("proposal_id")), _safe(item.get("write_class"))
    elif kind == "budget":
        write_class = _safe(str(item.get("budget", "")).partition("/")[2])
    elif kind == "parked":
        item_id = _safe(item.get("capture_id") or item.get("webhook_id"))
    elif kind == "erasure_request":
        item_id = _safe(item.get("request_id"))
    path = _PAGES.get(kind) or (f"/console/queue/{item_id}" if item_id else "/console/queue")
    # Who reads none of the pages is led to the start.
    path = "/console/admin/webhooks" if is_webhook else path if _READERS & roles else "/console"
    return Alert(kind=kind, at=event.at, write_class=write_class, item_id=item_id, path=path)


def _kind(of: str, item: Mapping[str, Any], wanted: frozenset[AlertKind]) -> AlertKind | None:
    match of:
        case "memory.sla_breached":
            return "overdue"
        case "memory.proposed":
            reasons = cast("list[str]", item.get("reasons") or [])
            return next((one for one in _REASONS if one in reasons and one in wanted), None)
        case "memory.reviewed":
            return cast("AlertKind | None", item.get("named_as"))
        case "memory.budget_exceeded":
            return "budget"
        case "memory.pack_registered":
            return "pack_registered"
        case "memory.parked":
            return "parked"
        case "memory.note":
            return _NOTES.get(str(item.get("about")))
        case _:
            return None


def _safe(value: object) -> str | None:
    return value if isinstance(value, str) and _SAFE.fullmatch(value) else None


def message_of(tenant_id: str, alerts: Iterable[Alert], digest: Digest | None, public_url: str) -> Message:
    """One message with all of it. Links lead to pages of the console, which asks for a sign-in first."""
    told = list(alerts)
    titles = [_counted(len(told), "alert")] if told else []
    lines = _alert_lines(told, public_url) if told else []
    if digest is not None:
        titles.append(_digest_title(digest))
        lines += ["", *_digest_lines(digest)] if lines else _digest_lines(digest)
    path = _link_of(told, digest)
    return Message(f"Muniment {tenant_id}: {'; '.join(titles)}", tuple(lines), f"{public_url}{path}")


def sample_message(tenant_id: str, public_url: str) -> Message:
    """The message of a test."""
    text = "This is a test. Alerts and digests will arrive here."
    return Message(f"Muniment {tenant_id}: test", (text,), f"{public_url}/console/notices")


def short_text(alerts: Iterable[Alert]) -> str:
    """How many alerts there are of each kind, in one line."""
    counts = Counter(one.kind for one in alerts)
    return ", ".join(f"{word}: {counts[kind]}" for kind, word in WORDS.items() if counts[kind])


def _alert_lines(alerts: list[Alert], public_url: str) -> list[str]:
    lines = [short_text(alerts), ""]
    for one in alerts[:MOST_LINES]:
        what = " ".join(part for part in (one.write_class, one.item_id) if part)
        lines.append(f"{WORDS[one.kind]}: {what or 'see'} {public_url}{one.path}")
    if len(alerts) > MOST_LINES:
        lines.append(f"and {len(alerts) - MOST_LINES} more")
    return lines


def _digest_title(digest: Digest) -> str:
    # Who reads no queue is told of contradictions or of requests alone.
    return f"{digest.open} open, {digest.overdue} overdue" if digest.open else ", ".join(_digest_lines(digest))


def _digest_lines(digest: Digest) -> list[str]:
    by_class = ", ".join(f"{name} {count}" for name, count in sorted(digest.by_class.items()))
    lines = [
        f"open proposals: {digest.open}" + (f" ({by_class})" if by_class else ""),
        f"overdue: {digest.overdue}",
        f"due today: {digest.due_today}",
        f"open contradictions: {digest.contradictions}",
        f"requests for erasure: {digest.erasure_requests}",
    ]
    return [one for one in lines if not one.endswith(": 0")]


def _link_of(alerts: list[Alert], digest: Digest | None) -> str:
    paths = {one.path for one in alerts}
    return paths.pop() if len(paths) == 1 and digest is None else "/console"


def _counted(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"
