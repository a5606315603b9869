"""Who calls a tool: a run, on an open fabric; and where its user sees what is held about them."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from muniment.model.context import RunContext

if TYPE_CHECKING:
    from muniment.fabric import AsyncFabric
    from muniment.pack import Pack


@dataclass(frozen=True)
class ToolContext:
    """The fabric and the run of one request. No argument of a tool changes either."""

    fabric: "AsyncFabric"
    run: RunContext
    # The address of the server, if there is one: its console is where a person signs in.
    server: str | None = None
    # The folder of the embedded database, if it is one: whoever holds it decides on the command line (MEM-5).
    home: Path | None = None

    async def pack(self) -> "Pack":
        """The pack in force in the run's tenant."""
        return await self.fabric.opened.context.pack_for(self.run)

    async def user_entity(self) -> str | None:
        """The CEID of the run's user, in the namespace of the pack; None without a user or where no CEID holds it."""
        from muniment.capture.rules import user_subject

        return user_subject(self.run.user_id, await self.pack()) if self.run.user_id is not None else None

    def page_of_person(self, proposal_id: str | None = None) -> str | None:
        """Return the address where the run's user sees what is held about them; it asks them to sign in (SUB-5)."""
        if self.server is None:
            return None
        return f"{self.server.rstrip('/')}/console/me" + (f"?proposal={proposal_id}" if proposal_id is not None else "")

    def where(self, act: str, proposal_id: str | None = None) -> str:
        """Say where the user themselves does something: at an address, or by a command of theirs."""
        address = self.page_of_person(proposal_id)
        if address is not None:
            return f"at {address}, where they sign in"
        words = ["muniment", "me", *act.split(), *([proposal_id] if proposal_id is not None else [])]
        if self.home is not None:
            words += ["--home", str(self.home), "--tenant", self.run.tenant_id]
        if self.run.user_id is not None:
            words += ["--as", self.run.user_id]
        return f"in a terminal: {shlex.join(words)}"
