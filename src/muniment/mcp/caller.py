"""Who asks, and what is asked: an open fabric, or a client of a server, and the run that the door settled."""

from dataclasses import dataclass

from muniment.client import AsyncClient
from muniment.fabric import AsyncFabric
from muniment.model.context import RunContext


@dataclass(frozen=True)
class Asked:
    """One request's fabric and run. Nothing that a model says changes either."""

    fabric: AsyncFabric | AsyncClient
    run: RunContext
