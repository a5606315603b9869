"""JOB-9: events are sealed in hash-chained batches (AUD-2), and rows without an event are digested (AUD-4)."""

from datetime import timedelta

from muniment.audit import verbs as verification
from muniment.job import Done
from muniment.opening import Opened

# A recall does not move the log: it is looked for after so long, whatever else happens.
LOOK_AGAIN = timedelta(hours=1)


async def run(opened: Opened, tenant_id: str) -> Done:
    """All that is not sealed yet."""
    sealed = await verification.seal(opened.context, tenant_id)
    return Done({"events": sealed}, next_at=opened.context.now() + LOOK_AGAIN)
