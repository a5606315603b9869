"""JOB-4: captures past the horizon of their kind go to archive files; archives past theirs are dropped."""

import logging

from muniment.fabric import archives
from muniment.fabric.connect import Opened
from muniment.jobs.job import Done

log = logging.getLogger("muniment.jobs")

# Files of a run; other tenants' jobs come between.
FILES = 4


async def run(opened: Opened, tenant_id: str) -> Done:
    """A few archives; nothing without a folder to put them in."""
    desk = opened.desk
    retention = (await desk.pack_of_tenant(tenant_id)).memory_layer.retention
    horizons = {kind: age for kind, age in retention.captures.items() if age is not None}
    if not desk.archives.kept:
        if horizons:
            log.info("captures of tenant %s stay: no folder is set for archives", tenant_id)
        return Done()
    await archives.tidy(desk, tenant_id)
    captures = files = 0
    more = bool(horizons)
    while more and files < FILES:
        taken = await archives.compact_some(desk, tenant_id, horizons)
        captures, files, more = captures + taken, files + bool(taken), taken > 0
    dropped = await archives.drop_outlived(desk, tenant_id, retention.archives) if retention.archives else 0
    counts = {"captures": captures, "archives": files, "dropped": dropped}
    return Done(counts, more=more or dropped == archives.DROPPED_AT_ONCE)
