"""JOB-8: memories follow the ontology, under the verdict of the person who ordered it."""

from muniment.fabric import backfill
from muniment.fabric.connect import Opened
from muniment.jobs.job import Done


async def run(opened: Opened, tenant_id: str) -> Done:
    """Some of what was ordered."""
    return Done(more=await backfill.work(opened.desk, tenant_id))
