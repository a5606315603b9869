"""The archiving job (JOB-4): captures past the horizon of their kind go to archive files; old archives are dropped."""

import logging

from muniment.archives import verbs as archives
from muniment.job import JobResult
from muniment.opening import Opened
from muniment.pack.combined import archive_horizon, capture_horizons

log = logging.getLogger("muniment.jobs")

# Files of one run, so that other tenants' jobs come in between.
FILES = 4


async def run(opened: Opened, tenant_id: str) -> JobResult:
    """Write a few archives; does nothing without a folder for them."""
    context = opened.context
    await context.current_pack(tenant_id)
    async with context.transaction(tenant_id, "jobs") as tx:
        packs = await context.packs.within_notice(tx)
    horizons, outlived = capture_horizons(packs), archive_horizon(packs)
    if not context.archives.kept:
        if horizons:
            log.info("captures of tenant %s are not archived: MUNIMENT_ARCHIVES is not set", tenant_id)
        return JobResult()
    await archives.tidy(context, tenant_id)
    captures = files = 0
    more = bool(horizons)
    while more and files < FILES:
        taken = await archives.compact_some(context, tenant_id, horizons)
        captures, files, more = captures + taken, files + bool(taken), taken > 0
    dropped = await archives.drop_outlived(context, tenant_id, outlived) if outlived is not None else 0
    counts = {"captures": captures, "archives": files, "dropped": dropped}
    return JobResult(counts, more=more or dropped == archives.DROPPED_AT_ONCE)
