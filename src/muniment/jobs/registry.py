"""Every job there is, by its name in the pack's schedule."""

from muniment.jobs import (
    alert,
    backfill,
    budget,
    calibrate,
    compact,
    consolidate,
    deliver,
    embed,
    expire,
    purge,
    sample,
    scan,
    seal,
    sweep,
)
from muniment.jobs.job import Job

JOBS: dict[str, Job] = {
    job.name: job
    for job in (
        Job("consolidate", "JOB-1", consolidate.run, follows_log=True),
        Job("expire", "JOB-2", expire.run),
        Job("sweep", "JOB-3", sweep.run),
        Job("compact", "JOB-4", compact.run),
        Job("calibrate", "JOB-5", calibrate.run),
        Job("sample", "JOB-6", sample.run),
        Job("alert", "JOB-7", alert.run),
        Job("backfill", "JOB-8", backfill.run),
        Job("seal", "JOB-9", seal.run, follows_log=True),
        Job("budget", "JOB-10", budget.run),
        Job("embed", "JOB-11", embed.run),
        Job("deliver", "EVT-1", deliver.run, follows_log=True),
        Job("purge", "ERA-3", purge.run),
        Job("scan", "MET-4", scan.run),
    )
}
