"""Which events concern a person, and the words of a message: counts, classes, ids and links, nothing that was said."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from muniment.access.roles import ALLOWED
from muniment.model.events import Event
from muniment.model.notices import Alert, AlertKind, Digest, DigestEvery

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
}
WORDS: dict[AlertKind, str] = {
    "overdue": "overdue",
    "low_trust": "low trust",
    "sensitive": "sensitive",
    "contradiction": "contradicts a memory",
    "contradiction_backlog": "many open contradictions",
    "budget": "budget near or over its limit",
    "parked": "parked",
    "erasure_request": "request for erasure",
    "purge_waits": "purge waits",
}
# Lines of one message; the rest is counted.
MOST_LINES = 20
# At most one message in this time to each channel of a person.
GATHERED_FOR = timedelta(minutes=1)
# The hour of the day, in UTC, of a daily summary.
DAILY_AT = 7

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
    "erasure_request": "/console/erasures",
    "purge_waits": "/console/erasures",
}
_READERS = frozenset(ALLOWED["read_queue"] | ALLOWED["read_work"] | ALLOWED["read_erasures"])
# What may stand in a message and in a link: our own ids and the names of classes, whatever an event holds.
_SAFE = re.compile(r"[A-Za-z0-9_.-]{1,128}")
# A mail address as a header and an SMTP command can carry it: no space, no line end, no quotes, no brackets.
_MAIL = re.compile(
    r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*"
    r"@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?)(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*"
)
_MAIL_LENGTH, _LOCAL_LENGTH = 254, 64


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


def alerts_of(event: Event, kinds: Iterable[AlertKind], classes: Iterable[str], roles: Iterable[str]) -> list[Alert]:
    """What of an event concerns a person with these wishes and roles; no classes mean all of them."""
    wanted, chosen = kinds_for(roles) & frozenset(kinds), frozenset(classes)
    # Who reads none of the pages is led to the start.
    opens = bool(_READERS & frozenset(roles))
    found = (_alert(event, item, wanted, opens=opens) for item in event.items)
    return [one for one in found if one is not None and _of_class(one, chosen)]


def _of_class(alert: Alert, chosen: frozenset[str]) -> bool:
    return not chosen or alert.write_class is None or alert.write_class in chosen


def _alert(event: Event, item: Mapping[str, Any], wanted: frozenset[AlertKind], *, opens: bool) -> Alert | None:
    kind, item_id, write_class = _kind(event.type, item, wanted), None, None
    if kind is None or kind not in wanted:
        return None
    if kind in ("overdue", *_REASONS):
        item_id, write_class = _safe(item.get("proposal_id")), _safe(item.get("write_class"))
    elif kind == "budget":
        write_class = _safe(str(item.get("budget", "")).partition("/")[2])
    elif kind == "parked":
        item_id = _safe(item.get("capture_id") or item.get("webhook_id"))
    elif kind == "erasure_request":
        item_id = _safe(item.get("request_id"))
    path = _PAGES.get(kind) or (f"/console/queue/{item_id}" if item_id else "/console/queue")
    return Alert(kind=kind, at=event.at, write_class=write_class, item_id=item_id, path=path if opens else "/console")


def _kind(of: str, item: Mapping[str, Any], wanted: frozenset[AlertKind]) -> AlertKind | None:
    match of:
        case "memory.sla_breached":
            return "overdue"
        case "memory.proposed":
            reasons = cast("list[str]", item.get("reasons") or [])
            return next((one for one in _REASONS if one in reasons and one in wanted), None)
        case "memory.budget_exceeded":
            return "budget"
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
    text = "This is a test. Alerts and summaries will arrive here."
    return Message(f"Muniment {tenant_id}: test", (text,), f"{public_url}/console/notices")


def short_text(alerts: Iterable[Alert]) -> str:
    """How many alerts of which kind, in one line."""
    counts = Counter(one.kind for one in alerts)
    return ", ".join(f"{counts[kind]} {word}" for kind, word in WORDS.items() if counts[kind])


def _alert_lines(alerts: list[Alert], public_url: str) -> list[str]:
    lines = [short_text(alerts), ""]
    for one in alerts[:MOST_LINES]:
        what = " ".join(part for part in (one.write_class, one.item_id) if part)
        lines.append(f"{WORDS[one.kind]}: {what or 'see'} {public_url}{one.path}")
    if len(alerts) > MOST_LINES:
        lines.append(f"and {len(alerts) - MOST_LINES} more")
    return lines


def _digest_title(digest: Digest) -> str:
    return f"{digest.open} open, {digest.overdue} overdue"


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


def next_digest(every: DigestEvery | None, now: datetime) -> datetime | None:
    """When the next summary is due: at the next full hour, or at the next morning, in UTC."""
    if every is None:
        return None
    hour = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    if every == "hourly":
        return hour + timedelta(hours=1)
    today = hour.replace(hour=DAILY_AT)
    return today if today > now else today + timedelta(days=1)


def _counted(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"
