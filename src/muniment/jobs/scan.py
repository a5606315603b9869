"""MET-4: promoted memory is looked through for personal data that redaction should have masked."""

from muniment.fabric.connect import Opened
from muniment.fabric.metrics import scan_for_pii
from muniment.jobs.job import Done


async def run(opened: Opened, tenant_id: str) -> Done:
    """A bounded part of what was not looked through yet; `metrics` tells what was found."""
    found = await scan_for_pii(opened.desk, tenant_id)
    return Done({"memories": found.scanned, "violations": len(found.found)}, more=not found.done)
