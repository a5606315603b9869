"""JOB-3: the content of memories whose consent ended is taken away; they have been hidden since then."""

from muniment.fabric.connect import Opened
from muniment.fabric.groups import AsyncConsents
from muniment.jobs.job import Done


async def run(opened: Opened, tenant_id: str) -> Done:
    """Every chain of consents that ended."""
    swept = await AsyncConsents(opened.desk).sweep(tenant_id)
    return Done({"consents": swept.consents, "memories": swept.memories})
