"""MCP over stdio: the tools of an agent, for the assistant that starts the command."""

from secrets import token_hex
from typing import TYPE_CHECKING

import typer

from muniment.cli.call import Call
from muniment.cli.command import command
from muniment.cli.options import RUN, SPEAKS_FOR, WHERE
from muniment.cli.remote import read_key
from muniment.errors import InvalidInput
from muniment.extras import require
from muniment.model.context import RunContext

if TYPE_CHECKING:
    from muniment.client import AsyncClient
    from muniment.fabric import AsyncFabric

app = typer.Typer()


@command(app, "mcp", options=(*RUN, *SPEAKS_FOR, *WHERE))
def mcp(call: Call) -> None:
    """Speak MCP over stdin and stdout, for one run of an agent.

    The tools capture, propose, recall, compile and explain, and with --user my_memory and ask_to_remember; none
    approves, corrects or erases. The options fix the agent, the user, what it may see and what it may speak for; no
    tool takes an argument for these. It ends when stdin ends. A server has the same at /mcp: muniment serve.
    """
    import anyio

    require("mcp", "muniment mcp")
    run = call.run()
    if call.is_remote() and not call.is_agent():
        raise InvalidInput("must be the key of an agent for MCP: muniment key create", field="key")
    if call.options["run"] is None:
        run = run.model_copy(update={"run_id": f"mcp_{token_hex(8)}"})
    anyio.run(_serve, call, run)


async def _serve(call: Call, run: RunContext) -> None:
    from muniment.mcp.over_stdio import serve

    async with _open(call) as fabric:
        await serve(fabric, run, call.options["server"] if call.is_remote() else None)


def _open(call: Call) -> "AsyncFabric | AsyncClient":
    options = call.options
    if call.is_remote():
        from muniment.client import AsyncClient

        return AsyncClient.open(options["server"], read_key(options["key"]))
    from muniment.fabric import AsyncFabric

    settings = call.settings()
    call.note_new(settings)
    return AsyncFabric.open(options["url"], pack=options["pack_file"], home=options["home"], embedder=settings.embedder)
