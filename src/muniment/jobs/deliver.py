"""EVT-1: events go to the tenant's webhooks, in their order."""

from muniment.fabric.connect import Opened
from muniment.fabric.webhooks import AsyncWebhooks
from muniment.jobs.job import Done


async def run(opened: Opened, tenant_id: str) -> Done:
    """A bounded number of events to each."""
    sent = await AsyncWebhooks(opened.desk).deliver(tenant_id)
    counts = {"delivered": sent.delivered, "retrying": sent.retrying, "parked": sent.parked}
    return Done(counts, sent.more, sent.next_at)
