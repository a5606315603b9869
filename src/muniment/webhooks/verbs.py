"""Webhooks: an admin registers them, the program posts to them."""

from collections.abc import Iterable
from dataclasses import dataclass

from anyio import CancelScope, CapacityLimiter, create_task_group

from muniment import outbound
from muniment.context import FabricContext
from muniment.database.sealing import SubjectKey
from muniment.errors import InvalidInput, MunimentError, NotFound
from muniment.model.context import Asker
from muniment.model.events import Event, EventType
from muniment.model.fields import build
from muniment.model.webhook import Deliveries, Webhook, WebhookInput
from muniment.verbs import arguments as checks
from muniment.verbs.arguments import whole_number
from muniment.webhooks import store as webhooks
from muniment.webhooks.messages import CONTENT_TYPE, encoded, new_secret, signed
from muniment.webhooks.sending import Sender
from muniment.webhooks.store import Claim, Place

# Webhooks of one tenant that are posted to at once.
_AT_ONCE = 4
_WHY = {
    "host_not_found": "its host was not found",
    "address_refused": "its host is not on the internet; see MUNIMENT_WEBHOOKS_ALLOW_PRIVATE",
}


class AsyncWebhooks:
    """The webhooks of a tenant: its events are posted to each of them, in order, at least once."""

    def __init__(self, context: FabricContext) -> None:
        self._context = context

    async def add(self, asker: Asker, *, url: str, types: Iterable[EventType] | None = None) -> Webhook:
        """Register one for all events from now on, or for those of some types; its secret is shown this once.

        Raises `InvalidInput` for an address that may not be posted to.
        """
        given = build(WebhookInput, {"url": url, "types": types})
        admin = await self._context.authorise(asker, "webhooks")
        allowed = self._context.outbox.allow_private
        outbound.parse(given.url, allow_private=allowed)
        try:
            await outbound.find(given.url, allow_private=allowed)
        except outbound.Refused as refused:
            raise InvalidInput(_WHY[str(refused)], field="url") from None
        await self._context.open_tenant(admin.tenant_id)
        async with self._context.write_once(admin.tenant_id, "writer") as tx:
            key = await self._context.vault.comparing(tx)
            return await webhooks.add(tx, key, admin.id, given, new_secret())

    async def list(self, asker: Asker, *, limit: int = 50, after: str | None = None) -> list[Webhook]:
        """All, the oldest first, each with its place in the log.

        `after` is the id of the last of the page before.
        """
        count, last = checks.page(limit, after)
        admin = await self._context.authorise(asker, "webhooks")
        async with self._context.transaction(admin.tenant_id, "auditor") as tx:
            key = await self._context.vault.known_comparing(tx)
            return await webhooks.listed(tx, key, count, last)

    async def get(self, asker: Asker, webhook_id: str) -> Webhook:
        """One; raises `NotFound`."""
        checks.name(webhook_id, "webhook_id")
        admin = await self._context.authorise(asker, "webhooks")
        async with self._context.transaction(admin.tenant_id, "auditor") as tx:
            key = await self._context.vault.known_comparing(tx)
            if key is None:
                raise NotFound("no such webhook", field="webhook_id")
            return await webhooks.one(tx, key, webhook_id)

    async def remove(self, asker: Asker, webhook_id: str) -> None:
        """Take it away for good, with its secret; raises `NotFound`."""
        checks.name(webhook_id, "webhook_id")
        admin = await self._context.authorise(asker, "webhooks")
        async with self._context.write_once(admin.tenant_id, "writer") as tx:
            await webhooks.remove(tx, admin.id, webhook_id)

    async def rotate_secret(self, asker: Asker, webhook_id: str) -> Webhook:
        """Give it another secret, shown this once; messages carry a signature of the old one too for a day."""
        checks.name(webhook_id, "webhook_id")
        admin = await self._context.authorise(asker, "webhooks")
        async with self._context.write_once(admin.tenant_id, "writer") as tx:
            key = await self._context.vault.comparing(tx)
            return await webhooks.rotate(tx, key, admin.id, webhook_id, new_secret())

    async def resume(self, asker: Asker, webhook_id: str) -> Webhook:
        """Let one that is parked, or waits for its next try, go on at once, with the event it stands at."""
        checks.name(webhook_id, "webhook_id")
        admin = await self._context.authorise(asker, "webhooks")
        async with self._context.write_once(admin.tenant_id, "writer") as tx:
            key = await self._context.vault.comparing(tx)
            return await webhooks.resume(tx, key, admin.id, webhook_id)

    async def replay(self, asker: Asker, webhook_id: str, *, after: int) -> Webhook:
        """Post again everything after that number of the log; 0 is its beginning.

        It takes the right to read the log too: what was written before the webhook was there goes out with it.
        """
        checks.name(webhook_id, "webhook_id")
        start = whole_number(after, "after", least=0, most=2**62)
        admin = await self._context.authorise(asker, "webhooks")
        await self._context.authorise(asker, "audit")
        async with self._context.write_once(admin.tenant_id, "writer") as tx:
            key = await self._context.vault.comparing(tx)
            return await webhooks.replay(tx, key, admin.id, webhook_id, start)

    async def deliver(self, tenant_id: str, *, max_events: int = 1000) -> Deliveries:
        """Post to each of the tenant's webhooks what it lacks, at most so many events each.

        Safe to run twice, at once, or to be killed: one posts to a webhook at a time, and what was posted without its
        answer being noted is posted again.
        """
        checks.tenant(tenant_id, "tenant_id")
        most = whole_number(max_events, "max_events", least=1, most=1_000_000)
        async with self._context.transaction(tenant_id, "jobs") as tx:
            due, next_at = await webhooks.due(tx)
        if not due or (key := await self._context.own_key(tenant_id)) is None:
            return Deliveries(next_at=next_at)
        rounds = [_Round(self._context, tenant_id, key, one, most) for one in due]
        limiter = CapacityLimiter(_AT_ONCE)
        async with create_task_group() as group:
            for one in rounds:
                group.start_soon(one.run, limiter)
        for one in rounds:
            if one.error is not None:
                raise one.error
        async with self._context.transaction(tenant_id, "jobs") as tx:
            next_at = await webhooks.next_time(tx)
        return Deliveries(
            delivered=sum(one.delivered for one in rounds),
            retrying=sum(one.retrying for one in rounds),
            parked=sum(one.parked for one in rounds),
            more=any(one.more for one in rounds),
            next_at=next_at,
        )


@dataclass
class _Round:
    """One pass over one webhook."""

    context: FabricContext
    tenant_id: str
    key: SubjectKey
    webhook_id: str
    most: int
    delivered: int = 0
    retrying: bool = False
    parked: bool = False
    more: bool = False
    error: MunimentError | None = None

    async def run(self, limiter: CapacityLimiter) -> None:
        """Post until nothing is left, it fails, or it was enough; an error of ours stops no other webhook."""
        async with limiter:
            try:
                async with self.context.transaction(self.tenant_id, "jobs") as tx:
                    held = await webhooks.claim(tx, self.key, self.webhook_id)
                if held is not None:
                    await self._run(held)
            except MunimentError as error:
                self.error = error

    async def _run(self, held: Claim) -> None:
        try:
            async with Sender(held.url, allow_private=self.context.outbox.allow_private) as sender:
                await self._post_all(held, sender)
        finally:
            # Told to end, it still leaves the webhook to the next; killed, the lease ends by itself.
            with CancelScope(shield=True):
                async with self.context.transaction(self.tenant_id, "jobs") as tx:
                    await webhooks.let_go(tx, held)

    async def _post_all(self, held: Claim, sender: Sender) -> None:
        place, tries = held.place, held.tries
        while True:
            async with self.context.transaction(self.tenant_id, "jobs") as tx:
                events = await webhooks.events_after(tx, place)
            if not events:
                return
            passed = place
            for event in events:
                if held.wants(event):
                    if self.delivered >= self.most:
                        self.more = True
                        return
                    if not await self._post(held, sender, event, place, passed, tries):
                        return
                    place, tries = (event.seq, event.n), 0
                passed = (event.seq, event.n)
            if passed != place:
                async with self.context.transaction(self.tenant_id, "jobs") as tx:
                    if not await webhooks.advance(tx, held, place, passed):
                        return
                place = passed

    async def _post(self, held: Claim, sender: Sender, event: Event, place: Place, passed: Place, tries: int) -> bool:
        """Post one event and note how that went; whether to go on."""
        body, now = encoded(event), self.context.now()
        headers = signed(held.secrets(now), event.event_id, now, body) | {"Content-Type": CONTENT_TYPE}
        reason = await sender.post(body, headers)
        async with self.context.transaction(self.tenant_id, "jobs") as tx:
            if reason is None:
                noted = await webhooks.advance(tx, held, place, (event.seq, event.n))
                self.delivered += noted
                return noted
            pause = self.context.outbox.pause(tries + 1)
            if await webhooks.fail(tx, held, place, passed, tries + 1, reason, pause):
                self.retrying, self.parked = pause is not None, pause is None
            return False
