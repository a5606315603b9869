"""The verbs of webhooks: an admin registers them, the program posts events to them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from muniment import outbound
from muniment.context import FabricContext
from muniment.database.storage import Transaction
from muniment.delivery import DeliveryRound, run_rounds
from muniment.errors import InvalidInput, NotFound
from muniment.model.context import Principal
from muniment.model.events import Deliveries, Event, Webhook, WebhookInput
from muniment.model.fields import Name
from muniment.model.inputs import Listing, Passed, VerbInput, Whole
from muniment.verbs.declaration import verb
from muniment.webhooks import store as webhooks
from muniment.webhooks.messages import CONTENT_TYPE, encoded, new_secret, signed
from muniment.webhooks.store import Claim, Place

if TYPE_CHECKING:
    from muniment.webhooks.sending import Sender


class WebhookId(VerbInput):
    """A webhook."""

    webhook_id: Name


@verb("webhooks.add", right="webhooks", http="POST /webhooks", status=201)
async def add(context: FabricContext, admin: Principal, request: WebhookInput) -> Webhook:
    """Register a webhook for all events from now on, or for those of some types. Its secret is shown this once.

    Raises `InvalidInput` for an address that may not be posted to.
    """
    allowed = context.outbox.allow_private
    outbound.parse(request.url, allow_private=allowed)
    try:
        await outbound.find(request.url, allow_private=allowed)
    except outbound.Refused as refused:
        raise InvalidInput(refused.in_words(), field="url") from None
    await context.open_tenant(admin.tenant_id)
    async with context.write_once(admin.tenant_id, "writer") as tx:
        key = await context.vault.tenant_data_key(tx)
        return await webhooks.add(tx, key, admin.id, request, new_secret())


@verb("webhooks.list", right="webhooks", http="GET /webhooks", page_key="webhook_id", cli="webhook list")
async def list_webhooks(context: FabricContext, admin: Principal, request: Listing) -> list[Webhook]:
    """List the webhooks, the oldest first, each with its position in the event log and its last error.

    `after` is the id of the last of the previous page.
    """
    async with context.transaction(admin.tenant_id, "auditor") as tx:
        key = await context.vault.existing_tenant_data_key(tx)
        return await webhooks.listed(tx, key, request.limit, request.after)


@verb("webhooks.get", right="webhooks", http="GET /webhooks/{webhook_id}")
async def get_webhook(context: FabricContext, admin: Principal, request: WebhookId) -> Webhook:
    """Read a webhook with its position in the log; raises `NotFound`."""
    async with context.transaction(admin.tenant_id, "auditor") as tx:
        key = await context.vault.existing_tenant_data_key(tx)
        if key is None:
            raise NotFound("no such webhook", field="webhook_id")
        return await webhooks.one(tx, key, request.webhook_id)


@verb("webhooks.remove", right="webhooks", http="DELETE /webhooks/{webhook_id}", status=204, cli="webhook remove")
async def remove(context: FabricContext, admin: Principal, request: WebhookId) -> None:
    """Remove a webhook for good, with its secret; raises `NotFound`."""
    async with context.write_once(admin.tenant_id, "writer") as tx:
        await webhooks.remove(tx, admin.id, request.webhook_id)


@verb("webhooks.rotate_secret", right="webhooks", http="POST /webhooks/{webhook_id}/rotate", cli="webhook rotate")
async def rotate_secret(context: FabricContext, admin: Principal, request: WebhookId) -> Webhook:
    """Replace the secret of a webhook. The new one is shown once; the old one still signs for a day."""
    async with context.write_once(admin.tenant_id, "writer") as tx:
        key = await context.vault.tenant_data_key(tx)
        return await webhooks.rotate(tx, key, admin.id, request.webhook_id, new_secret())


@verb("webhooks.resume", right="webhooks", http="POST /webhooks/{webhook_id}/resume", cli="webhook resume")
async def resume(context: FabricContext, admin: Principal, request: WebhookId) -> Webhook:
    """Resume a webhook that is parked, or waits for its next try, at the event that failed."""
    async with context.write_once(admin.tenant_id, "writer") as tx:
        key = await context.vault.tenant_data_key(tx)
        return await webhooks.resume(tx, key, admin.id, request.webhook_id)


class ReplayEvents(WebhookId):
    """From where on events are posted again."""

    after: Annotated[int, Whole(0, 2**62)] = Field(description="events after this sequence number; 0 for all")


@verb(
    "webhooks.replay",
    right="webhooks",
    also_right="audit",
    http="POST /webhooks/{webhook_id}/replay",
    cli="webhook replay",
)
async def replay(context: FabricContext, admin: Principal, request: ReplayEvents) -> Webhook:
    """Post the events after a sequence number to a webhook again.

    It takes the right to read the log too, since events from before the webhook was registered go out.
    """
    async with context.write_once(admin.tenant_id, "writer") as tx:
        key = await context.vault.tenant_data_key(tx)
        return await webhooks.replay(tx, key, admin.id, request.webhook_id, request.after)


class Deliver(VerbInput):
    """How much to deliver."""

    # A request does not take as long as a pass of the worker may.
    max_events: Annotated[int, Whole(1, 1_000_000), Passed(int, body=Annotated[int, Field(ge=1, le=10_000)])] = Field(
        1000, description="the number of events at most"
    )


@verb("webhooks.deliver", right="work", effect="pass", http="POST /work/deliver")
async def deliver(context: FabricContext, tenant_id: str, request: Deliver) -> Deliveries:
    """Post to each of the tenant's webhooks the events it has not received yet, at most `max_events` each.

    Safe to run twice, concurrently, or to be killed: one process posts to a webhook at a time, and what was posted
    without its answer being recorded is posted again.
    """
    async with context.transaction(tenant_id, "jobs") as tx:
        due, next_at = await webhooks.due(tx)
    if not due or (key := await context.own_key(tenant_id)) is None:
        return Deliveries(next_at=next_at)
    rounds = [_Round(context, tenant_id, key, one, request.max_events) for one in due]
    await run_rounds(rounds)
    async with context.transaction(tenant_id, "jobs") as tx:
        next_at = await webhooks.next_time(tx)
    return Deliveries(
        delivered=sum(one.delivered for one in rounds),
        retrying=sum(one.retrying for one in rounds),
        parked=sum(one.parked for one in rounds),
        more=any(one.more for one in rounds),
        next_at=next_at,
    )


@dataclass
class _Round(DeliveryRound[Claim]):
    """One pass over one webhook."""

    webhook_id: str
    most: int
    delivered: int = 0
    retrying: bool = False
    parked: bool = False
    more: bool = False

    async def claim(self, tx: Transaction) -> Claim | None:
        """Claim what is due."""
        return await webhooks.claim(tx, self.key, self.webhook_id)

    async def release(self, tx: Transaction, held: Claim) -> None:
        """Give the lease back."""
        await webhooks.release_lease(tx, held)

    async def send(self, held: Claim) -> None:
        """Post until nothing is left, it fails, or it was enough."""
        from muniment.webhooks.sending import Sender  # The HTTP client takes a while to import.

        async with Sender(held.url, allow_private=self.context.outbox.allow_private) as sender:
            await self._post_all(held, sender)

    async def _post_all(self, held: Claim, sender: "Sender") -> None:
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

    async def _post(self, held: Claim, sender: "Sender", event: Event, place: Place, passed: Place, tries: int) -> bool:
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
