"""The verbs of notices: people say what they want to be told, and the program tells them."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated

from anyio import CancelScope, CapacityLimiter, create_task_group
from pydantic import Field

from muniment import outbound
from muniment.context import FabricContext
from muniment.database.sealing import SubjectKey
from muniment.errors import InvalidInput, MunimentError, NotFound, RateLimited
from muniment.model.context import BUILTIN_ROLES, Principal
from muniment.model.fields import Name
from muniment.model.inputs import Listing, VerbInput, Whole
from muniment.model.notices import Alert, Alerts, Digest, Notice, NoticeChannel, NoticeInput, Notified
from muniment.notices import chat, rules
from muniment.notices import store as notices
from muniment.notices.rules import GATHERED_FOR, Message
from muniment.notices.store import Claim, Place, Wishes
from muniment.verbs.declaration import verb

# Channels of one tenant that are sent to at once.
_AT_ONCE = 4
# Pages of events that one pass reads for a channel.
_PAGES = 10
_LONGEST_PAUSE = timedelta(days=1)
_NO_MAIL = "this server sends no mail; set MUNIMENT_SMTP_URL"
_WHY = {
    "host_not_found": "its host was not found",
    "address_refused": "its host is not on the internet; see MUNIMENT_WEBHOOKS_ALLOW_PRIVATE",
}


class NoticeId(VerbInput):
    """A setting."""

    notice_id: Name


@verb("notices.set", right="notices", http="POST /notices", status=201)
async def set_notice(context: FabricContext, person: Principal, request: NoticeInput) -> Notice:
    """Set what the caller is told by a channel, from now on; it replaces what they set for that channel before.

    Alerts and summaries hold counts, classes, ids and links, and only of what the roles that the caller has now may
    read. Raises `InvalidInput` for an address that nothing may be sent to.
    """
    address = await _checked_address(context, request)
    may = rules.kinds_for(person.roles)
    kinds = may if request.kinds is None else request.kinds
    if kinds - may:
        raise InvalidInput(f"none of your roles may read about {', '.join(sorted(kinds - may))}", field="kinds")
    if request.digest is not None and request.channel == "browser":
        raise InvalidInput("a summary is sent by mail or chat; the browser shows alerts alone", field="digest")
    if not kinds and request.digest is None:
        raise InvalidInput("expected a kind of alert, or a digest", field="kinds")
    roles = tuple(sorted(person.roles & BUILTIN_ROLES))
    wishes = Wishes(tuple(sorted(kinds)), tuple(sorted(request.classes or ())), roles)
    await context.open_tenant(person.tenant_id)
    async with context.write_once(person.tenant_id, "writer") as tx:
        key = await context.vault.tenant_data_key(tx)
        return await notices.put(tx, key, person, request.channel, address, wishes, request.digest)


async def _checked_address(context: FabricContext, request: NoticeInput) -> str | None:
    address = request.address
    if request.channel == "browser":
        if address is not None:
            raise InvalidInput("the browser has no address; leave it out", field="address")
        return None
    if request.channel == "mail":
        if address is None or not rules.is_mail_address(address):
            raise InvalidInput("expected a mail address, such as jane@example.com", field="address")
        if context.notices.mail is None:
            raise InvalidInput(_NO_MAIL, field="channel")
        return address
    if address is None or not address.isascii() or not address.isprintable() or " " in address:
        raise InvalidInput("expected the https address of a webhook", field="address")
    allowed = context.outbox.allow_private
    try:
        outbound.parse(address, allow_private=allowed)
        await outbound.find(address, allow_private=allowed)
    except InvalidInput as error:
        raise InvalidInput(error.message, field="address") from None
    except outbound.Refused as refused:
        raise InvalidInput(_WHY[str(refused)], field="address") from None
    return address


class ListNotices(Listing):
    """Whose settings."""

    everyone: bool = Field(False, description="those of all people, without their addresses; for an admin")


@verb("notices.list", right="notices", http="GET /notices", page_key="notice_id", cli="notices list")
async def list_notices(context: FabricContext, person: Principal, request: ListNotices) -> list[Notice]:
    """List what the caller is told by which channel, the oldest first, each with its last error.

    `after` is the id of the last of the previous page.
    """
    if request.everyone:
        await context.authorise(person, "webhooks")
    async with context.transaction(person.tenant_id, "auditor") as tx:
        key = await context.vault.existing_tenant_data_key(tx)
        whose = None if request.everyone else person.id
        return await notices.listed(tx, key, whose, request.limit, request.after, asker=person.id)


@verb("notices.remove", right="notices", http="DELETE /notices/{notice_id}", status=204, cli="notices remove")
async def remove(context: FabricContext, person: Principal, request: NoticeId) -> None:
    """Remove a setting of the caller's for good, with its address; an admin can remove anybody's.

    Raises `NotFound`.
    """
    own = "admin" not in person.roles
    async with context.write_once(person.tenant_id, "writer") as tx:
        await notices.remove(tx, person.id, request.notice_id, own=own)


@verb("notices.test", right="notices", effect="pass", http="POST /notices/{notice_id}/test", cli="notices test")
async def test_notice(context: FabricContext, person: Principal, request: NoticeId) -> Notice:
    """Send a test message by a channel of the caller's now. `last_error` is None if it was accepted.

    Raises `NotFound`, and `RateLimited` within a minute of the last message.
    """
    async with context.transaction(person.tenant_id, "writer") as tx:
        key = await context.vault.existing_tenant_data_key(tx)
        if key is None:
            raise NotFound("no such notice", field="notice_id")
        setting = await notices.one(tx, key, request.notice_id)
    if setting.person != person.id:
        raise NotFound("no such notice", field="notice_id")
    if setting.channel == "browser":
        raise InvalidInput("a browser is tested on the page /console/notices", field="notice_id")
    now = context.now()
    if setting.sent_at is not None and (left := setting.sent_at + GATHERED_FOR - now) > timedelta(0):
        raise RateLimited("had a message within the last minute", wait=left.total_seconds())
    message = rules.sample_message(person.tenant_id, context.notices.public_url)
    message_id = f"{setting.notice_id}.test.{int(now.timestamp())}"
    error = await _send(context, setting.channel, setting.address or "", message, message_id)
    async with context.transaction(person.tenant_id, "writer") as tx:
        await notices.note_test(tx, request.notice_id, error)
        return await notices.one(tx, key, request.notice_id)


class AlertsAfter(VerbInput):
    """From where on."""

    after: Annotated[int, Whole(0, 2**62)] = Field(description="events after this sequence number")


@verb("notices.alerts", right="notices", http="GET /notices/alerts")
async def alerts(context: FabricContext, person: Principal, request: AlertsAfter) -> Alerts:
    """Read what the caller wants their browser to show, of at most 1000 events after a sequence number.

    Nothing where they did not set the channel `browser`. Only what their roles may read both now and when they set it.
    """
    found: list[Alert] = []
    place: Place = (request.after, notices.LAST_N)
    async with context.read_only(person.tenant_id) as tx:
        wishes = await notices.of_channel(tx, person.id, "browser")
        if wishes is None:
            return Alerts(seq=request.after)
        now = Wishes(wishes.kinds, wishes.classes, tuple(frozenset(wishes.roles) & person.roles))
        for _ in range(_PAGES):
            events = await notices.events_after(tx, place)
            found += [one for event in events for one in now.alerts(event)]
            if events:
                place = (events[-1].seq, events[-1].n)
            if len(events) < notices.PAGE:
                break
    return Alerts(seq=place[0], alerts=tuple(found))


async def _send(
    context: FabricContext, channel: NoticeChannel, address: str, message: Message, message_id: str
) -> str | None:
    """Send a message; None if it was accepted, else why not."""
    if channel == "chat":
        return await chat.send(address, message, allow_private=context.outbox.allow_private)
    server = context.notices.mail
    if server is None:
        return "mail_is_not_set_up"
    from muniment.notices import mail  # With it comes the HTTP client, for its certificates.

    return await mail.send(server, mail.mail_of(server, address, message, message_id, context.now()))


@verb("notices.deliver", right="work", effect="pass", http="POST /work/notify")
async def deliver(context: FabricContext, tenant_id: str) -> Notified:
    """Send the tenant's people the alerts and summaries that are due, at most one message a minute to each channel.

    Safe to run twice, concurrently, or to be killed: one process sends to a channel at a time, and what was accepted
    without that being recorded is sent again.
    """
    async with context.transaction(tenant_id, "jobs") as tx:
        due, next_at = await notices.due(tx)
    if not due or (key := await context.own_key(tenant_id)) is None:
        return Notified(next_at=next_at)
    rounds = [_Round(context, tenant_id, key, one) for one in due]
    limiter = CapacityLimiter(_AT_ONCE)
    async with create_task_group() as group:
        for one in rounds:
            group.start_soon(one.run, limiter)
    for one in rounds:
        if one.error is not None:
            raise one.error
    async with context.transaction(tenant_id, "jobs") as tx:
        next_at = await notices.next_time(tx)
    return Notified(
        sent=sum(one.sent for one in rounds),
        retrying=sum(one.retrying for one in rounds),
        more=any(one.more for one in rounds),
        next_at=next_at,
    )


@dataclass
class _Round:
    """One pass over one channel of a person."""

    context: FabricContext
    tenant_id: str
    key: SubjectKey
    notice_id: str
    sent: bool = False
    retrying: bool = False
    more: bool = False
    error: MunimentError | None = None

    async def run(self, limiter: CapacityLimiter) -> None:
        """Gather what concerns the person and send it; an error of ours stops nobody else's."""
        async with limiter:
            try:
                async with self.context.transaction(self.tenant_id, "jobs") as tx:
                    held = await notices.claim(tx, self.key, self.notice_id)
                if held is not None:
                    await self._run(held)
            except MunimentError as error:
                self.error = error

    async def _run(self, held: Claim) -> None:
        try:
            found, to = await self._gather(held)
            digest_is_due = held.digest_at is not None and held.digest_at <= self.context.now()
            digest = await self._digest(held) if digest_is_due else None
            reason = await self._tell(held, found, digest, to) if found or digest is not None else None
            sent = reason is None and bool(found or digest is not None)
            async with self.context.transaction(self.tenant_id, "jobs") as tx:
                if reason is not None:
                    pause = self.context.outbox.pause(held.tries + 1) or _LONGEST_PAUSE
                    self.retrying, self.more = await notices.fail(tx, held, reason, pause), False
                    return
                digest_at = rules.next_digest(held.digest, tx.now) if digest_is_due else held.digest_at
                self.sent = await notices.settle(tx, held, to, sent=sent, digest_at=digest_at) and sent
                # The rest follows after a minute.
                self.more = self.more and not sent
        finally:
            # Told to end, it still leaves the channel to the next; killed, the lease ends by itself.
            with CancelScope(shield=True):
                async with self.context.transaction(self.tenant_id, "jobs") as tx:
                    await notices.release_lease(tx, held)

    async def _gather(self, held: Claim) -> tuple[list[Alert], Place]:
        """What concerns the person since the last message, and how far that reaches."""
        found: list[Alert] = []
        place = held.place
        async with self.context.transaction(self.tenant_id, "jobs") as tx:
            end = await notices.end_of_log(tx)
            for _ in range(_PAGES):
                events = await notices.events_after(tx, place)
                found += [one for event in events for one in held.wishes.alerts(event)]
                if events:
                    place = (events[-1].seq, events[-1].n)
                if len(events) < notices.PAGE:
                    return found, max(place, end)
        self.more = True
        return found, place

    async def _digest(self, held: Claim) -> Digest | None:
        """What waits; None if nothing does, and then nothing is said."""
        async with self.context.read_only(self.tenant_id) as tx:
            counted = await notices.digest_of(tx, held.wishes)
        return None if counted.empty else counted

    async def _tell(self, held: Claim, found: list[Alert], digest: Digest | None, to: Place) -> str | None:
        message = rules.message_of(self.tenant_id, found, digest, self.context.notices.public_url)
        # The same for what is sent again after the process was killed.
        stamp = f".{int(held.digest_at.timestamp())}" if digest is not None and held.digest_at is not None else ""
        message_id = f"{held.notice_id}.{held.place[0]}.{held.place[1]}{stamp}"
        return await _send(self.context, held.channel, held.address, message, message_id)
