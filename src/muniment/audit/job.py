"""The sealing job (JOB-9): seal events in hash-chained batches (AUD-2), and list rows without an event (AUD-4)."""

from datetime import timedelta

from muniment.audit import verbs as verification
from muniment.job import JobResult
from muniment.opening import Opened

# A recall does not move the log, so the job runs after this time even if nothing else happens.
LOOK_AGAIN = timedelta(hours=1)


async def run(opened: Opened, tenant_id: str) -> JobResult:
    """Seal everything that is not sealed yet."""
    sealed = await verification.seal(opened.context, tenant_id)
    return JobResult({"events": sealed}, next_at=opened.context.now() + LOOK_AGAIN)
