"""JOB-9: events are sealed in hash-chained batches (AUD-2)."""

from muniment.fabric import verification
from muniment.fabric.connect import Opened
from muniment.jobs.job import Done


async def run(opened: Opened, tenant_id: str) -> Done:
    """All that is not sealed yet."""
    return Done({"events": await verification.seal(opened.desk, tenant_id)})
