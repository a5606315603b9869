"""EVT-1: events go to the tenant's webhooks, in their order."""

from muniment.job import JobResult
from muniment.opening import Opened
from muniment.webhooks.verbs import deliver


async def run(opened: Opened, tenant_id: str) -> JobResult:
    """A bounded number of events to each."""
    sent = await deliver(opened.context, tenant_id)
    counts = {"delivered": sent.delivered, "retrying": sent.retrying, "parked": sent.parked}
    return JobResult(counts, sent.more, sent.next_at)
