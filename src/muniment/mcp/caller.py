"""Who calls a tool: a run, on an open fabric or on a client of a server."""

from dataclasses import dataclass

from muniment.client import AsyncClient
from muniment.fabric import AsyncFabric
from muniment.model.context import RunContext


@dataclass(frozen=True)
class ToolContext:
    """The fabric and the run of one request. No argument of a tool changes either."""

    fabric: AsyncFabric | AsyncClient
    run: RunContext
