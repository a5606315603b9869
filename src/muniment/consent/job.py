"""JOB-3: the content of memories whose consent ended is taken away; they have been hidden since then.

Requests that were made longer ago than their answers are kept go too, and who looked at which proposal.
"""

from muniment.consent.verbs import sweep
from muniment.database import idempotency as requests
from muniment.job import Done
from muniment.opening import Opened
from muniment.review import presence as attendances


async def run(opened: Opened, tenant_id: str) -> Done:
    """Every chain of consents that ended, every request that was outlived, everybody who looks no more."""
    swept = await sweep(opened.context, tenant_id)
    async with opened.context.transaction(tenant_id, "jobs") as tx:
        forgotten, gone = await requests.sweep(tx), await attendances.sweep(tx)
    return Done({"consents": swept.consents, "memories": swept.memories, "requests": forgotten, "attendances": gone})
