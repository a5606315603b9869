"""The addresses of resources: a memory's papers, those of all that a recall returned, and of one in it."""

from mcp.shared.uri_template import UriTemplate

MEMORY = UriTemplate.parse("muniment://memories/{memory_id}")
RECALL = UriTemplate.parse("muniment://recalls/{recall_id}")
IN_RECALL = UriTemplate.parse("muniment://recalls/{recall_id}/memories/{memory_id}")


def memory(memory_id: str) -> str:
    """Where a memory's papers are read."""
    return MEMORY.expand({"memory_id": memory_id})
