"""The backfill job (JOB-8): memories follow the ontology, under the verdict of the person who ordered it."""

from muniment.job import JobResult
from muniment.opening import Opened
from muniment.packs import backfill


async def run(opened: Opened, tenant_id: str) -> JobResult:
    """Carry out a part of the order."""
    return JobResult(more=await backfill.work(opened.context, tenant_id))
