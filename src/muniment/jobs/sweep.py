"""JOB-3: the content of memories whose consent ended is taken away; they have been hidden since then.

Requests that were made longer ago than their answers are kept go too, and who looked at which proposal.
"""

from muniment.fabric.connect import Opened
from muniment.fabric.groups import AsyncConsents
from muniment.governance import attendances, requests
from muniment.jobs.job import Done


async def run(opened: Opened, tenant_id: str) -> Done:
    """Every chain of consents that ended, every request that was outlived, everybody who looks no more."""
    swept = await AsyncConsents(opened.desk).sweep(tenant_id)
    async with opened.desk.transaction(tenant_id, "jobs") as tx:
        forgotten, gone = await requests.sweep(tx), await attendances.sweep(tx)
    return Done({"consents": swept.consents, "memories": swept.memories, "requests": forgotten, "attendances": gone})
