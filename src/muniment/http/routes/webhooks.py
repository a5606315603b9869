"""Webhooks: where a tenant's events are posted."""

from typing import Annotated

from fastapi import APIRouter, Depends

from muniment.http.bodies import Page, ReplayEventsBody, given, page
from muniment.http.caller import Asking, May
from muniment.http.idempotency import IdempotentRoute
from muniment.http.lists import After, Limit
from muniment.model.webhook import Webhook, WebhookInput

router = APIRouter(prefix="/webhooks", tags=["webhooks"], route_class=IdempotentRoute)

Admin = Annotated[Asking, Depends(May("webhooks"))]


@router.get("")
async def list_(asking: Admin, limit: Limit = 50, after: After = None) -> Page[Webhook]:
    """All, the oldest first, each with its place in the log."""
    found = await asking.fabric.webhooks.list(asking.principal, limit=limit, after=after)
    return page(found, limit, "webhook_id")


@router.post("", status_code=201)
async def add(asking: Admin, body: WebhookInput) -> Webhook:
    """Register one for all events from now on, or for those of some types; its secret is shown this once."""
    return await asking.fabric.webhooks.add(asking.principal, **given(body))


@router.get("/{webhook_id}")
async def get(asking: Admin, webhook_id: str) -> Webhook:
    """One, with its place in the log."""
    return await asking.fabric.webhooks.get(asking.principal, webhook_id)


@router.delete("/{webhook_id}", status_code=204)
async def remove(asking: Admin, webhook_id: str) -> None:
    """Take it away for good, with its secret."""
    await asking.fabric.webhooks.remove(asking.principal, webhook_id)


@router.post("/{webhook_id}/rotate")
async def rotate_secret(asking: Admin, webhook_id: str) -> Webhook:
    """Give it another secret, shown this once."""
    return await asking.fabric.webhooks.rotate_secret(asking.principal, webhook_id)


@router.post("/{webhook_id}/resume")
async def resume(asking: Admin, webhook_id: str) -> Webhook:
    """Let one that is parked, or waits for its next try, go on at once."""
    return await asking.fabric.webhooks.resume(asking.principal, webhook_id)


@router.post("/{webhook_id}/replay")
async def replay(
    asking: Annotated[Asking, Depends(May("webhooks", also="audit"))], webhook_id: str, body: ReplayEventsBody
) -> Webhook:
    """Post events again, from a number of the log on. It takes the role `auditor` too: that is reading the log."""
    return await asking.fabric.webhooks.replay(asking.principal, webhook_id, after=body.after)
