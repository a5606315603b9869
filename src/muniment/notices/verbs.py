"""The verbs of notices: people say what they want to be told, and the program tells them."""

from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Annotated

from anyio import move_on_after
from pydantic import Field

from muniment import outbound
from muniment.access.presented import came_by_key
from muniment.context import FabricContext
from muniment.database.storage import Transaction
from muniment.delivery import DeliveryRound, run_rounds
from muniment.errors import InvalidInput, MunimentError, NotFound, RateLimited
from muniment.model.context import BUILTIN_ROLES, Principal
from muniment.model.events import Event
from muniment.model.fields import Name
from muniment.model.inputs import Listing, VerbInput, Whole
from muniment.model.notices import Alert, Alerts, Digest, Notice, NoticeChannel, NoticeInput, Notified
from muniment.notices import chat, rules
from muniment.notices import store as notices
from muniment.notices.rules import GATHERED_FOR, Message, Schedule
from muniment.notices.store import Claim, Place, Wishes
from muniment.verbs.declaration import verb

# Pages of events that one pass reads for a channel.
_PAGES = 10
_LONGEST_PAUSE = timedelta(days=1)
# Seconds that a call waits at most to note that somebody was here.
_NOTED_WITHIN = 2.0
_NO_MAIL = "this server sends no mail; set MUNIMENT_SMTP_URL"


class NoticeId(VerbInput):
    """A setting."""

    notice_id: Name


@verb("notices.set", right="notices", http="POST /notices", status=201)
async def set_notice(context: FabricContext, person: Principal, request: NoticeInput) -> Notice:
    """Set what the caller is told by a channel, from now on; it replaces what they set for that channel before.

    Alerts and digests hold counts, classes, ids and links, and only of what the caller's roles may read both now and
    when they are sent. Raises `InvalidInput` for an address that nothing may be sent to.
    """
    address = await _checked_address(context, request)
    may = rules.kinds_for(person.roles)
    kinds = may if request.kinds is None else request.kinds
    if kinds - may:
        raise InvalidInput(f"none of your roles may read about {', '.join(sorted(kinds - may))}", field="kinds")
    if request.digest is not None and request.channel == "browser":
        raise InvalidInput("a digest is sent by mail or chat; the browser shows alerts alone", field="digest")
    if not kinds and request.digest is None:
        raise InvalidInput("expected a kind of alert, or a digest", field="kinds")
    roles = tuple(sorted(person.roles & BUILTIN_ROLES))
    wishes = Wishes(person.id, tuple(sorted(kinds)), tuple(sorted(request.classes or ())), roles)
    schedule, by_key = Schedule(request.digest, request.at, request.time_zone), came_by_key(person)
    await context.open_tenant(person.tenant_id)
    async with context.write_once(person.tenant_id, "writer") as tx:
        key = await context.vault.tenant_data_key(tx)
        if not by_key:
            await notices.note_sight(tx, person)
        return await notices.put(tx, key, person, request.channel, address, wishes, schedule, by_key=by_key)


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
        raise InvalidInput(refused.in_words(), field="address") from None
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
    await _note_sight(context, person)
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
        if not came_by_key(person):
            await notices.note_sight(tx, person)
        await notices.remove(tx, person.id, request.notice_id, own=own)


@verb("notices.test", right="notices", effect="pass", http="POST /notices/{notice_id}/test", cli="notices test")
async def test_notice(context: FabricContext, person: Principal, request: NoticeId) -> Notice:
    """Send a test message by a channel of the caller's now. `last_error` is None if it was accepted.

    Raises `NotFound`, and `RateLimited` within a minute of the last message.
    """
    await _note_sight(context, person)
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
    found, seq = list[Alert](), request.after
    async with context.read_only(person.tenant_id) as tx:
        wishes, sight_is_due = await notices.of_channel(tx, person, "browser")
        if wishes is not None:
            found, seq = await _alerts_after(tx, wishes.narrowed(person.roles), seq)
    if sight_is_due and not came_by_key(person):
        await _record_sight(context, person)
    return Alerts(seq=seq, alerts=tuple(found))


async def _alerts_after(tx: Transaction, wishes: Wishes, seq: int) -> tuple[list[Alert], int]:
    """What concerns a person after a sequence number, and the number that was read up to."""
    found: list[Alert] = []
    place: Place = (seq, notices.LAST_N)
    for _ in range(_PAGES):
        events = await notices.events_after(tx, place)
        found += wishes.alerts(events, await notices.named_in(tx, events))
        if events:
            place = (events[-1].seq, events[-1].n)
        if len(events) < notices.PAGE:
            break
    return found, place[0]


async def _note_sight(context: FabricContext, person: Principal) -> None:
    """Note that a person was here, from time to time, unless they came by an API key: those are on record."""
    if came_by_key(person):
        return
    async with context.transaction(person.tenant_id, "auditor") as tx:
        is_due = await notices.is_sight_due(tx, person)
    if is_due:
        await _record_sight(context, person)


async def _record_sight(context: FabricContext, person: Principal) -> None:
    # What they asked for is answered whether or not this can be noted now.
    with suppress(MunimentError), move_on_after(_NOTED_WITHIN):
        async with context.transaction(person.tenant_id, "writer") as tx:
            await notices.note_sight(tx, person)


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
    """Send the tenant's people the alerts and digests that are due, at most one message a minute to each channel.

    Safe to run twice, concurrently, or to be killed: one process sends to a channel at a time, and what was accepted
    without that being recorded is sent again.
    """
    async with context.transaction(tenant_id, "jobs") as tx:
        due, next_at = await notices.due(tx)
    if not due or (key := await context.own_key(tenant_id)) is None:
        return Notified(next_at=next_at)
    rounds = [_Round(context, tenant_id, key, one) for one in due]
    await run_rounds(rounds)
    async with context.transaction(tenant_id, "jobs") as tx:
        next_at = await notices.next_time(tx)
    return Notified(
        sent=sum(one.sent for one in rounds),
        retrying=sum(one.retrying for one in rounds),
        more=any(one.more for one in rounds),
        next_at=next_at,
    )


@dataclass
class _Round(DeliveryRound[Claim]):
    """One pass over one channel of a person."""

    notice_id: str
    sent: bool = False
    retrying: bool = False
    more: bool = False

    async def claim(self, tx: Transaction) -> Claim | None:
        """Claim what is due."""
        return await notices.claim(tx, self.key, self.notice_id)

    async def release(self, tx: Transaction, held: Claim) -> None:
        """Give the lease back."""
        await notices.release_lease(tx, held)

    async def send(self, held: Claim) -> None:
        """Gather what concerns the person and send it, as far as they may still read it."""
        events, to = await self._events(held)
        gathered = await self._gather(held, events)
        found, digest = gathered.alerts, gathered.digest
        something = bool(found or digest is not None)
        reason = await self._tell(held, found, digest) if something else None
        sent = something and reason is None
        async with self.context.transaction(self.tenant_id, "jobs") as tx:
            if reason is not None:
                pause = self.context.outbox.pause(held.tries + 1) or _LONGEST_PAUSE
                self.retrying, self.more = await notices.fail(tx, held, reason, pause), False
                return
            keeps = held.digest_at is not None and held.schedule.may_be_next(held.digest_at, tx.now)
            digest_at = held.digest_at if keeps and not gathered.digest_is_due else held.schedule.next_after(tx.now)
            objection = gathered.objection
            settled = await notices.settle(tx, held, to, sent=sent, digest_at=digest_at, objection=objection)
            self.sent = settled and sent
            # The rest follows after a minute.
            self.more = self.more and not sent

    async def _events(self, held: Claim) -> tuple[list[Event], Place]:
        """What happened since the last message, and how far that reaches."""
        found: list[Event] = []
        place = held.place
        async with self.context.transaction(self.tenant_id, "jobs") as tx:
            end = await notices.end_of_log(tx)
            for _ in range(_PAGES):
                events = await notices.events_after(tx, place)
                found += events
                if events:
                    place = (events[-1].seq, events[-1].n)
                if len(events) < notices.PAGE:
                    place = max(place, end)
                    break
            else:
                self.more = True
        return found, place

    async def _gather(self, held: Claim, events: list[Event]) -> "_Gathered":
        """What of it concerns the person, and what waits for them; nothing where they may read nothing any more.

        In one transaction with the look at their keys, and as an auditor: the login of the jobs reads neither these nor
        whom a verdict names.
        """
        roles = held.wishes.roles
        async with self.context.read_only(self.tenant_id) as tx:
            now = tx.now
            digest_is_due = held.digest_at is not None and held.digest_at <= now
            standing = await notices.standing_of(tx, held)
            objection = standing.objection(roles, now)
            if objection is not None:
                return _Gathered(digest_is_due, objection)
            named = await notices.named_in(tx, events)
            alerts: list[Alert] = []
            for event in events:
                then = held.wishes.narrowed(standing.roles_for(roles, now, event.at))
                alerts += then.alerts([event], named)
            wishes = held.wishes.narrowed(standing.roles_now(roles, now))
            digest = await notices.digest_of(tx, wishes, held.schedule) if digest_is_due else None
        # Nothing is said where nothing waits.
        return _Gathered(digest_is_due, None, alerts, digest if digest is not None and not digest.empty else None)

    async def _tell(self, held: Claim, found: list[Alert], digest: Digest | None) -> str | None:
        """Send one message with all of it; None if it was accepted, else why not."""
        message = rules.message_of(self.tenant_id, found, digest, self.context.notices.public_url)
        # The same for what is sent again after the process was killed.
        stamp = f".{int(held.digest_at.timestamp())}" if digest is not None and held.digest_at is not None else ""
        message_id = f"{held.notice_id}.{held.place[0]}.{held.place[1]}{stamp}"
        return await _send(self.context, held.channel, held.address, message, message_id)


@dataclass(frozen=True)
class _Gathered:
    """What is to be sent, or why nothing may be."""

    digest_is_due: bool
    objection: str | None
    alerts: list[Alert] = field(default_factory=list[Alert])
    digest: Digest | None = None
