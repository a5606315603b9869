"""The backfill job (JOB-8): memories follow the ontology, under the verdict of the person who ordered it."""

from muniment.job import Done
from muniment.opening import Opened
from muniment.packs import backfill


async def run(opened: Opened, tenant_id: str) -> Done:
    """Carry out a part of the order."""
    return Done(more=await backfill.work(opened.context, tenant_id))
