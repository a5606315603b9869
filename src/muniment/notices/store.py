"""Notices in the database: what each person asked for, and the place of each of their channels in the tenant's log.

The log is the outbox, as for webhooks. INVARIANT: nothing is lost, as the place moves only after a message was
accepted, by the holder of the lease; what was accepted without that being noted is sent again.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from muniment.access.roles import ALLOWED
from muniment.database import cursors
from muniment.database.rows import event_of, fields_of
from muniment.database.sealing import SubjectKey
from muniment.database.storage import Row, Transaction
from muniment.errors import NotFound, TooLarge
from muniment.model.context import BUILTIN_ROLES, Principal
from muniment.model.events import Event
from muniment.model.ids import make_id
from muniment.model.names import name_problem
from muniment.model.notices import Alert, AlertKind, Digest, Notice, NoticeChannel
from muniment.notices.rules import (
    Addressed,
    HeldKey,
    Named,
    Schedule,
    Standing,
    alerts_of,
    naming_verdicts,
    sight_is_due,
)

# Settings of one tenant.
MOST = 1000
# How long a lease lasts; longer than one message can take.
LEASE = timedelta(seconds=60)
PAGE = 100
# Past the last event of any transaction.
LAST_N = 2**15 - 1

Place = tuple[int, int]


@dataclass(frozen=True)
class Wishes:
    """What a person is told: these kinds, of these classes (empty: all), as far as these roles may read."""

    person: str
    kinds: tuple[AlertKind, ...]
    classes: tuple[str, ...]
    roles: tuple[str, ...]

    def alerts(self, events: Iterable[Event], named: Named) -> list[Alert]:
        """What of events concerns the person; `named` says whom their verdicts name."""
        kinds, classes, roles = self.kinds, self.classes, self.roles
        return [one for event in events for one in alerts_of(event, kinds, classes, roles, self.person, named)]

    def narrowed(self, roles: Iterable[str]) -> "Wishes":
        """The same as far as these roles may read."""
        return replace(self, roles=tuple(sorted(frozenset(self.roles) & frozenset(roles))))


@dataclass(frozen=True)
class Claim:
    """A channel of a person that one process sends to, for the time of its lease."""

    notice_id: str
    lease: str
    channel: NoticeChannel
    wishes: Wishes
    schedule: Schedule
    digest_at: datetime | None
    seen_at: datetime | None
    seen_roles: frozenset[str] | None
    place: Place
    tries: int
    address: str = field(repr=False)


async def put(
    tx: Transaction,
    key: SubjectKey,
    person: Principal,
    channel: NoticeChannel,
    address: str | None,
    wishes: Wishes,
    schedule: Schedule,
    *,
    by_key: bool,
) -> Notice:
    """Set what a person is told by a channel, in place of what they set before; raises `TooLarge`.

    What was not sent yet under the earlier setting is sent under this one. Unless they came by an API key, they are
    noted as seen.
    """
    former = await tx.row("notice.lock_channel", person=person.id, channel=channel)
    if former is None and len(await tx.rows("notice.every", person=None, notice_id=None)) >= MOST:
        raise TooLarge(f"a tenant has at most {MOST}", field="notices")
    notice_id = make_id("ntc", tx.now)
    tick = await tx.tick()
    if former is not None:
        await _remove(tx, former["notice_id"], tick.at)
    place = (former["seq"], former["n"]) if former is not None else (tick.seq, LAST_N)
    same_digest = former is not None and _schedule(former) == schedule
    await tx.do(
        "notice.add",
        notice_id=notice_id,
        person=person.id,
        channel=channel,
        roles=list(wishes.roles),
        classes=list(wishes.classes),
        kinds=list(wishes.kinds),
        digest=schedule.every,
        daily_at=schedule.at,
        time_zone=schedule.time_zone,
        seq=tick.seq,
        at=tick.at,
        address=key.seal("notices.address", notice_id, address.encode()) if address is not None else None,
        from_seq=place[0],
        from_n=place[1],
        digest_at=former["digest_at"] if former is not None and same_digest else schedule.next_after(tx.now),
        sent_at=former["sent_at"] if former is not None else None,
        seen_at=None if by_key else tx.now,
        seen_roles=None if by_key else _built_in(person),
    )
    tx.emit("memory.note", person.id, about="notice_set", notice_id=notice_id)
    return await one(tx, key, notice_id)


async def listed(
    tx: Transaction, key: SubjectKey | None, person: str | None, count: int, after: str | None, *, asker: str
) -> list[Notice]:
    """A page of the settings of a person, or of all, the oldest first; others' without their addresses."""
    start = await cursors.page_start(tx, "notice.place", after)
    rows = await tx.rows("notice.list", person=person, count=count, **start)
    return [_notice(row, key if row["person"] == asker else None) for row in rows] if key else []


async def one(tx: Transaction, key: SubjectKey | None, notice_id: str) -> Notice:
    """One setting; without the key, without its address. Raises `NotFound`."""
    return _notice(found(await tx.row("notice.every", person=None, notice_id=notice_id)), key)


async def of_channel(tx: Transaction, person: Principal, channel: NoticeChannel) -> tuple[Wishes | None, bool]:
    """What a person is told by a channel, None where they did not set it; and whether a sight of them is due."""
    rows = await tx.rows("notice.every", person=person.id, notice_id=None)
    wishes = next((_wishes(row) for row in rows if row["channel"] == channel), None)
    return wishes, _is_sight_due(rows, person, tx.now)


async def is_sight_due(tx: Transaction, person: Principal) -> bool:
    """Whether it is to be noted that the person, who came without an API key, was here."""
    return _is_sight_due(await tx.rows("notice.every", person=person.id, notice_id=None), person, tx.now)


def _is_sight_due(rows: Iterable[Row], person: Principal, now: datetime) -> bool:
    roles = _built_in(person)
    return any(sight_is_due(row["seen_at"], row["seen_roles"], roles, now) for row in rows)


async def note_sight(tx: Transaction, person: Principal) -> None:
    """Note in all settings of a person that they were here without an API key, and with which roles."""
    await tx.do("notice.seen", person=person.id, roles=_built_in(person))


async def standing_of(tx: Transaction, held: Claim) -> Standing:
    """What is known of the person of a claim: their API keys, and when they were last seen without one."""
    person = held.wishes.person
    # A key under a name that is refused is not accepted.
    rows = await tx.rows("notice.keys", person=person) if name_problem(person) is None else []
    keys = (HeldKey(frozenset(row["roles"]), row["created_at"], row["expires_at"], row["revoked_at"]) for row in rows)
    return Standing(tuple(keys), held.seen_at, held.seen_roles)


async def remove(tx: Transaction, by: str, notice_id: str, *, own: bool) -> None:
    """Remove a setting for good, with its address; with `own`, only the caller's. Raises `NotFound`."""
    row = found(await tx.row("notice.lock", notice_id=notice_id))
    if own and row["person"] != by:
        raise NotFound("no such notice", field="notice_id")
    tick = await tx.tick()
    await _remove(tx, notice_id, tick.at)
    tx.emit("memory.note", by, about="notice_removed", notice_id=notice_id)


async def _remove(tx: Transaction, notice_id: str, at: datetime) -> None:
    await tx.do("notice.remove", notice_id=notice_id, at=at)
    tx.event_rows.add("notices.removed", notice_id=notice_id, removed_at=at)


async def due(tx: Transaction) -> tuple[list[str], datetime | None]:
    """The settings to look at now, and when there is something to do next."""
    rows, times = await tx.gather(("notice.due", {}), ("notice.next_time", {}))
    return [row["notice_id"] for row in rows], times[0]["at"] if times else None


async def next_time(tx: Transaction) -> datetime | None:
    """The earliest time at which there is something to do again."""
    row = await tx.row("notice.next_time")
    return row["at"] if row is not None else None


async def claim(tx: Transaction, key: SubjectKey, notice_id: str) -> Claim | None:
    """Lease a setting, unless another process did, it waits, or it was removed; None then."""
    lease = os.urandom(12).hex()
    row = await tx.row("notice.claim", notice_id=notice_id, lease=lease, until=tx.now + LEASE)
    if row is None:
        return None
    return Claim(
        notice_id,
        lease,
        row["channel"],
        _wishes(row),
        _schedule(row),
        row["digest_at"],
        row["seen_at"],
        frozenset(row["seen_roles"]) if row["seen_roles"] is not None else None,
        (row["seq"], row["n"]),
        row["tries"],
        _address(row, key) or "",
    )


async def events_after(tx: Transaction, place: Place) -> list[Event]:
    """The next events of the log."""
    return [event_of(row) for row in await tx.rows("webhook.next_events", seq=place[0], n=place[1], count=PAGE)]


async def named_in(tx: Transaction, events: Iterable[Event]) -> Named:
    """Whom the comments and the assignments among events name."""
    verdicts = naming_verdicts(events)
    rows = await tx.rows("notice.named", verdict_ids=verdicts) if verdicts else []
    return {row["verdict_id"]: Addressed(row["class"], tuple(row["mentions"] or ()), row["assignee"]) for row in rows}


async def end_of_log(tx: Transaction) -> Place:
    """The end of the log: whatever is written from now on has a later place. Read it before the events."""
    row = await tx.row("notice.end_of_log")
    return (row["seq"], LAST_N) if row is not None else (0, 0)


async def digest_of(tx: Transaction, wishes: Wishes, schedule: Schedule) -> Digest:
    """Count what waits for a person: of their classes, and of what their roles may read; today is their day."""
    roles = frozenset(wishes.roles)
    counts: dict[str, object] = {}
    if roles & ALLOWED["read_queue"]:
        rows = await tx.rows("notice.waiting", classes=list(wishes.classes), tomorrow=schedule.end_of_day(tx.now))
        counts |= {name: sum(row[name] for row in rows) for name in ("open", "overdue", "due_today")}
        counts["by_class"] = {row["class"]: row["open"] for row in rows}
    if roles & (ALLOWED["read_queue"] | ALLOWED["correct"]):
        (row,) = await tx.rows("notice.contradictions")
        counts["contradictions"] = row["open"]
    if roles & ALLOWED["read_erasures"]:
        (row,) = await tx.rows("notice.erasure_requests")
        counts["erasure_requests"] = row["open"]
    return Digest.model_validate(counts)


async def settle(
    tx: Transaction, held: Claim, to: Place, *, sent: bool, digest_at: datetime | None, objection: str | None
) -> bool:
    """Move the place and end the lease; False if the lease or the place is no longer this claim's.

    `objection` says why nothing may be sent to the person.
    """
    moving = {"seq": held.place[0], "n": held.place[1], "to_seq": to[0], "to_n": to[1]}
    which = {"notice_id": held.notice_id, "lease": held.lease}
    how = {"digest_at": digest_at, "sent_at": tx.now if sent else None, "error": objection}
    return await tx.do("notice.settle", **which, **moving, **how) == 1


async def fail(tx: Transaction, held: Claim, reason: str, pause: timedelta) -> bool:
    """Record a failed try and end the lease; what was to be said waits until the pause is over."""
    which = {"notice_id": held.notice_id, "lease": held.lease}
    return await tx.do("notice.fail", **which, tries=held.tries + 1, error=reason, next_try_at=tx.now + pause) == 1


async def release_lease(tx: Transaction, held: Claim) -> None:
    """End the lease, if it still is this claim's."""
    await tx.do("notice.let_go", notice_id=held.notice_id, lease=held.lease)


async def note_test(tx: Transaction, notice_id: str, error: str | None) -> None:
    """Record how a test went."""
    await tx.do("notice.tested", notice_id=notice_id, error=error)


def found(row: Row | None) -> Row:
    """The row; raises `NotFound`."""
    if row is None:
        raise NotFound("no such notice", field="notice_id")
    return row


def _wishes(row: Row) -> Wishes:
    return Wishes(row["person"], tuple(row["kinds"]), tuple(row["classes"]), tuple(row["roles"]))


def _schedule(row: Row) -> Schedule:
    return Schedule(row["digest"], row["at"], row["time_zone"])


def _built_in(person: Principal) -> list[str]:
    return sorted(person.roles & BUILTIN_ROLES)


def _address(row: Row, key: SubjectKey) -> str | None:
    return key.open("notices.address", row["notice_id"], row["address"]).decode() if row["address"] else None


def _notice(row: Row, key: SubjectKey | None) -> Notice:
    return Notice(**fields_of(Notice, row, address=_address(row, key) if key is not None else None))
