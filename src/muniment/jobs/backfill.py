"""JOB-8: memories follow the ontology, under the verdict of the person who ordered it."""

from muniment.fabric.connect import Opened
from muniment.jobs.job import Done


async def run(opened: Opened, tenant_id: str) -> Done:
    return Done()
