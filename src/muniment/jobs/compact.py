"""JOB-4: captures past the horizon of their kind go to archive files."""

from muniment.fabric.connect import Opened
from muniment.jobs.job import Done


async def run(opened: Opened, tenant_id: str) -> Done:
    return Done()
