"""Every job there is, by its name in the pack's schedule."""

from datetime import timedelta

from muniment.archives import job as compact
from muniment.audit import job as seal
from muniment.candidates import calibrate_job as calibrate
from muniment.candidates import verbs as candidates
from muniment.consent import job as sweep
from muniment.erasure import job as purge
from muniment.job import Job
from muniment.metrics import job as metrics
from muniment.notices import job as notify
from muniment.packs import job as backfill
from muniment.promotion import budget_job as budget
from muniment.promotion import expire_job as expire
from muniment.promotion import reindex_job as embed
from muniment.review import job as sample
from muniment.webhooks import job as deliver

# For jobs whose work begins with an event: in a tenant without new events they look only in case something was missed.
_DAY = timedelta(days=1)

JOBS: dict[str, Job] = {
    job.name: job
    for job in (
        Job("consolidate", "JOB-1", candidates.run_job, follows_log=True, run_briefly=candidates.run_job_briefly),
        Job("expire", "JOB-2", expire.run),
        Job("sweep", "JOB-3", sweep.run),
        Job("compact", "JOB-4", compact.run),
        Job("calibrate", "JOB-5", calibrate.run),
        Job("sample", "JOB-6", sample.run, longest_pause=_DAY),
        Job("alert", "JOB-7", metrics.alert),
        Job("backfill", "JOB-8", backfill.run, longest_pause=_DAY),
        Job("seal", "JOB-9", seal.run, follows_log=True),
        Job("budget", "JOB-10", budget.run),
        Job("embed", "JOB-11", embed.run),
        Job("deliver", "EVT-1", deliver.run, follows_log=True),
        Job("notify", "EVT-2", notify.run, follows_log=True),
        Job("purge", "ERA-3", purge.run, longest_pause=_DAY),
        Job("scan", "MET-4", metrics.scan, longest_pause=_DAY),
    )
}
