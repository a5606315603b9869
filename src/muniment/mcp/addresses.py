"""The addresses of resources: the provenance of a memory, of all that a recall returned, and of one memory in it."""

from mcp.shared.uri_template import UriTemplate

MEMORY = UriTemplate.parse("muniment://memories/{memory_id}")
RECALL = UriTemplate.parse("muniment://recalls/{recall_id}")
IN_RECALL = UriTemplate.parse("muniment://recalls/{recall_id}/memories/{memory_id}")


def memory(memory_id: str) -> str:
    """The address of a memory's provenance."""
    return MEMORY.expand({"memory_id": memory_id})
