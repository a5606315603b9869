"""The job `notify`: sends people the alerts and digests that they asked for."""

from muniment.job import JobResult
from muniment.notices.verbs import deliver
from muniment.opening import Opened


async def run(opened: Opened, tenant_id: str) -> JobResult:
    """One message at most to each channel of each person."""
    done = await deliver(opened.context, tenant_id)
    return JobResult({"sent": done.sent, "retrying": done.retrying}, done.more, done.next_at)
