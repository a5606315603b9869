"""Resources: the provenance of a memory, or of what a recall returned, as far as the run may see it now."""

from pydantic import Field

from muniment.errors import NotFound
from muniment.mcp.addresses import IN_RECALL, MEMORY, RECALL
from muniment.mcp.caller import ToolContext
from muniment.model.explanation import Explanation
from muniment.model.fields import Artifact
from muniment.model.promoted import PromotedMemory
from muniment.model.recall import RecallDetails


class MemoryProvenance(Artifact):
    """A memory as a run may see it now, and why it sees, or saw, it."""

    memory: PromotedMemory
    why: Explanation = Field(description="now, or in the recall that was asked about")


async def read(context: ToolContext, uri: str) -> MemoryProvenance | RecallDetails:
    """Read a resource; raises `NotFound` for what the run may not see exactly as for what does not exist."""
    for template in (IN_RECALL, MEMORY):
        found = template.match(uri)
        if found is not None:
            ids = {name: str(value) for name, value in found.items()}
            memory = await context.fabric.get(context.run, ids["memory_id"])
            why = await context.fabric.explain(context.run, memory_id=ids["memory_id"], recall_id=ids.get("recall_id"))
            return MemoryProvenance(memory=memory, why=why)
    recall = RECALL.match(uri)
    if recall is not None:
        return await context.fabric.recalls.get(context.run, str(recall["recall_id"]))
    raise NotFound("there is nothing at this address", field="uri")
