"""JOB-4: captures past the horizon of their kind go to archive files; archives past theirs are dropped."""

import logging

from muniment.archives import verbs as archives
from muniment.job import Done
from muniment.opening import Opened
from muniment.recall.rules import archive_horizon, capture_horizons

log = logging.getLogger("muniment.jobs")

# Files of a run; other tenants' jobs come between.
FILES = 4


async def run(opened: Opened, tenant_id: str) -> Done:
    """A few archives; nothing without a folder to put them in."""
    context = opened.context
    await context.current_pack(tenant_id)
    async with context.transaction(tenant_id, "jobs") as tx:
        packs = await context.packs.within_notice(tx)
    horizons, outlived = capture_horizons(packs), archive_horizon(packs)
    if not context.archives.kept:
        if horizons:
            log.info("captures of tenant %s stay: no folder is set for archives", tenant_id)
        return Done()
    await archives.tidy(context, tenant_id)
    captures = files = 0
    more = bool(horizons)
    while more and files < FILES:
        taken = await archives.compact_some(context, tenant_id, horizons)
        captures, files, more = captures + taken, files + bool(taken), taken > 0
    dropped = await archives.drop_outlived(context, tenant_id, outlived) if outlived is not None else 0
    counts = {"captures": captures, "archives": files, "dropped": dropped}
    return Done(counts, more=more or dropped == archives.DROPPED_AT_ONCE)
