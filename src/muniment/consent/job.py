"""JOB-3: remove the content of memories whose consent ended; they have been hidden since then.

It also deletes expired idempotency records, and the presence of reviewers who left.
"""

from muniment.access import idempotency as requests
from muniment.consent.verbs import sweep
from muniment.job import JobResult
from muniment.opening import Opened
from muniment.review.team_store import sweep_presence


async def run(opened: Opened, tenant_id: str) -> JobResult:
    """Sweep ended consents, expired requests and past presence."""
    swept = await sweep(opened.context, tenant_id)
    async with opened.context.transaction(tenant_id, "jobs") as tx:
        forgotten, gone = await requests.sweep(tx), await sweep_presence(tx)
    return JobResult({"consents": swept.consents, "memories": swept.memories, "requests": forgotten, "presence": gone})
