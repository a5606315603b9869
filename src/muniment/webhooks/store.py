"""Webhooks in the database: their registration, and the place of each in the tenant's log.

The log itself is the outbox: an event is committed with its change. A webhook has the place of the last event that was
delivered, and the events after it are posted in order. INVARIANT: no event is skipped, as sequence numbers follow the
order of commits, and none is lost, as the place moves only after an answer, by the holder of the lease.
"""

import os
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from muniment.database import cursors
from muniment.database.rows import event_of, fields_of
from muniment.database.sealing import SubjectKey
from muniment.database.storage import Row, Transaction
from muniment.errors import InvalidInput, NotFound, TooLarge
from muniment.model.events import Event, Webhook, WebhookInput
from muniment.model.ids import make_id

MOST = 16
# How long a lease lasts without an answer; longer than one post can take.
LEASE = timedelta(seconds=20)
OLD_SECRET_FOR = timedelta(days=1)
PAGE = 100
# Past the last event of any transaction.
LAST_N = 2**15 - 1

Place = tuple[int, int]


@dataclass(frozen=True)
class Claim:
    """A webhook that one process posts to, for the time of its lease."""

    webhook_id: str
    lease: str
    url: str
    types: frozenset[str]
    place: Place
    tries: int
    _secrets: tuple[tuple[str, datetime | None], ...] = field(repr=False)

    def wants(self, event: Event) -> bool:
        """Whether the webhook is registered for this type of event."""
        return not self.types or event.type in self.types

    def secrets(self, now: datetime) -> list[str]:
        """The secrets that messages are signed with now, the new one first."""
        return [secret for secret, until in self._secrets if until is None or until > now]


async def add(tx: Transaction, key: SubjectKey, by: str, hook: WebhookInput, secret: str) -> Webhook:
    """Register a webhook; it gets the events from now on."""
    if len(await tx.rows("webhook.every", webhook_id=None)) >= MOST:
        raise TooLarge(f"a tenant has at most {MOST}", field="webhooks")
    webhook_id = make_id("whk", tx.now)
    tick = await tx.tick()
    await tx.do(
        "webhook.add",
        webhook_id=webhook_id,
        url=key.seal("webhooks.url", webhook_id, hook.url.encode()),
        types=sorted(hook.types or ()),
        secret=key.seal("webhooks.secret", webhook_id, secret.encode()),
        by=by,
        seq=tick.seq,
        at=tick.at,
        n=LAST_N,
    )
    tx.emit("memory.note", by, about="webhook_added", webhook_id=webhook_id)
    return (await one(tx, key, webhook_id)).model_copy(update={"secret": secret})


async def listed(tx: Transaction, key: SubjectKey | None, count: int, after: str | None) -> list[Webhook]:
    """A page of the webhooks, the oldest first; raises `NotFound` for an `after` that never was one of the tenant's."""
    start = await cursors.page_start(tx, "webhook.place", after)
    return [_webhook(row, key) for row in await tx.rows("webhook.list", count=count, **start)] if key else []


async def one(tx: Transaction, key: SubjectKey, webhook_id: str) -> Webhook:
    """One webhook; raises `NotFound`."""
    return _webhook(_found(await tx.row("webhook.every", webhook_id=webhook_id)), key)


async def remove(tx: Transaction, by: str, webhook_id: str) -> None:
    """Remove a webhook for good; raises `NotFound`."""
    _found(await tx.row("webhook.lock", webhook_id=webhook_id))
    tick = await tx.tick()
    await tx.do("webhook.remove", webhook_id=webhook_id, at=tick.at)
    tx.event_rows.add("webhooks.removed", webhook_id=webhook_id, removed_at=tick.at)
    tx.emit("memory.note", by, about="webhook_removed", webhook_id=webhook_id)


async def rotate(tx: Transaction, key: SubjectKey, by: str, webhook_id: str, secret: str) -> Webhook:
    """Give a webhook a new secret; for a day messages are signed with the old one too. Raises `NotFound`."""
    row = _found(await tx.row("webhook.lock", webhook_id=webhook_id))
    old = key.open("webhooks.secret", webhook_id, row["secret"])
    tick = await tx.tick()
    await tx.do(
        "webhook.rotate",
        webhook_id=webhook_id,
        secret=key.seal("webhooks.secret", webhook_id, secret.encode()),
        old_secret=key.seal("webhooks.old_secret", webhook_id, old),
        until=tick.at + OLD_SECRET_FOR,
    )
    tx.emit("memory.note", by, about="webhook_rotated", webhook_id=webhook_id)
    return _webhook(row, key).model_copy(update={"secret": secret})


async def resume(tx: Transaction, key: SubjectKey, by: str, webhook_id: str) -> Webhook:
    """Let a webhook go on at once with the event it failed at; raises `NotFound`."""
    row = _found(await tx.row("webhook.lock", webhook_id=webhook_id))
    await tx.tick()
    await tx.do("webhook.set_off", webhook_id=webhook_id, seq=row["seq"], n=row["n"])
    tx.emit("memory.note", by, about="webhook_resumed", webhook_id=webhook_id)
    return await one(tx, key, webhook_id)


async def replay(tx: Transaction, key: SubjectKey, by: str, webhook_id: str, after: int) -> Webhook:
    """Deliver again everything after that sequence number; raises `NotFound`, and `InvalidInput` for a later one."""
    _found(await tx.row("webhook.lock", webhook_id=webhook_id))
    tick = await tx.tick()
    if after >= tick.seq:
        raise InvalidInput(f"expected a sequence number below {tick.seq}", field="after")
    await tx.do("webhook.set_off", webhook_id=webhook_id, seq=after, n=LAST_N)
    tx.emit("memory.note", by, about="webhook_replayed", webhook_id=webhook_id, after=after)
    return await one(tx, key, webhook_id)


async def due(tx: Transaction) -> tuple[list[str], datetime | None]:
    """The webhooks that have something to post and are not leased or waiting for a retry; and the `next_time`."""
    rows, times = await tx.gather(("webhook.due", {}), ("webhook.next_time", {}))
    return [row["webhook_id"] for row in rows], times[0]["at"] if times else None


async def claim(tx: Transaction, key: SubjectKey, webhook_id: str) -> Claim | None:
    """Lease a webhook, unless another process did, or it was parked or removed; None then."""
    lease = os.urandom(12).hex()
    row = await tx.row("webhook.claim", webhook_id=webhook_id, lease=lease, until=tx.now + LEASE)
    if row is None:
        return None
    secrets: list[tuple[str, datetime | None]] = [(_opened(row, key, "secret"), None)]
    if row["old_secret"] is not None:
        secrets.append((_opened(row, key, "old_secret"), row["old_secret_until"]))
    place = (row["seq"], row["n"])
    url, types = _opened(row, key, "url"), frozenset(row["types"])
    return Claim(webhook_id, lease, url, types, place, row["tries"], tuple(secrets))


async def events_after(tx: Transaction, place: Place) -> list[Event]:
    """The next events of the log."""
    return [event_of(row) for row in await tx.rows("webhook.next_events", seq=place[0], n=place[1], count=PAGE)]


async def advance(tx: Transaction, claim: Claim, place: Place, to: Place) -> bool:
    """Move the webhook's place and extend the lease; False if the lease or the place is no longer this claim's."""
    moved = await tx.do("webhook.advance", **_from_to(claim, place, to), until=tx.now + LEASE)
    return moved == 1


async def fail(
    tx: Transaction, claim: Claim, place: Place, to: Place, tries: int, reason: str, pause: timedelta | None
) -> bool:
    """Record a failed try and release the lease: until the pause is over, or parked if there is no pause."""
    noted = await tx.do(
        "webhook.fail",
        **_from_to(claim, place, to),
        tries=tries,
        error=reason,
        next_try_at=tx.now + pause if pause is not None else None,
        parked_at=tx.now if pause is None else None,
    )
    if noted and pause is None:
        tx.emit("memory.parked", "auto", webhook_id=claim.webhook_id, reason=reason, tries=tries)
    return noted == 1


async def release_lease(tx: Transaction, claim: Claim) -> None:
    """Release the lease."""
    await tx.do("webhook.let_go", webhook_id=claim.webhook_id, lease=claim.lease)


async def next_time(tx: Transaction) -> datetime | None:
    """The earliest time at which a retry is due or a lease ends."""
    row = await tx.row("webhook.next_time")
    return row["at"] if row is not None else None


def _from_to(claim: Claim, place: Place, to: Place) -> dict[str, object]:
    moving = {"seq": place[0], "n": place[1], "to_seq": to[0], "to_n": to[1]}
    return {"webhook_id": claim.webhook_id, "lease": claim.lease, **moving}


def _found(row: Row | None) -> Row:
    if row is None:
        raise NotFound("no such webhook", field="webhook_id")
    return row


def _opened(row: Row, key: SubjectKey, column: str) -> str:
    return key.open(f"webhooks.{column}", row["webhook_id"], row[column]).decode()


def _webhook(row: Row, key: SubjectKey) -> Webhook:
    state = "parked" if row["parked_at"] is not None else "retrying" if row["tries"] else "active"
    return Webhook(**fields_of(Webhook, row, url=_opened(row, key, "url"), state=state, secret=None))
