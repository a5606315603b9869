"""MET-4: promoted memory is looked through for personal data that redaction should have masked."""

from muniment.job import Done
from muniment.metrics.verbs import scan_pii
from muniment.opening import Opened


async def run(opened: Opened, tenant_id: str) -> Done:
    """A bounded part of what was not looked through yet; `metrics` tells what was found."""
    found = await scan_pii(opened.context, tenant_id)
    return Done({"memories": found.scanned, "violations": len(found.found)}, more=not found.done)
