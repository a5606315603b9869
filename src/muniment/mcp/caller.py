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
    # The address of the server, if there is one: its console is where a person signs in.
    server: str | None = None

    def page_of_person(self, proposal_id: str | None = None) -> str | None:
        """Return the address where the run's user sees what is held about them; it asks them to sign in (SUB-5)."""
        if self.server is None:
            return None
        return f"{self.server.rstrip('/')}/console/me" + (f"?proposal={proposal_id}" if proposal_id is not None else "")
