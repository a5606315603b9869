"""Mcp: the tools of an agent over stdio, for the assistant that starts us."""

from secrets import token_hex
from typing import TYPE_CHECKING

import anyio
import typer

from muniment.cli.asking import Call, verb
from muniment.cli.options import RUN, SPEAKS_FOR, WHERE
from muniment.cli.server import read_key
from muniment.errors import InvalidInput
from muniment.model.context import RunContext

if TYPE_CHECKING:
    from muniment.client import AsyncClient
    from muniment.fabric import AsyncFabric

app = typer.Typer()


@verb(
    app,
    "mcp",
    panel="Run it",
    options=(*RUN, *SPEAKS_FOR, *WHERE),
    example="muniment mcp --agent desk_bot --user cust_8861 --channel app_chat",
)
def mcp(call: Call) -> None:
    """Speak MCP over stdin and stdout: capture, propose, recall, compile and explain, for one run.

    Who asks, for whom, what it may see and what it may speak for is settled here; no tool takes an argument for it.
    Nothing here approves, corrects or erases. It ends with its stdin. A server has the same at /mcp: muniment serve.
    """
    run = call.run()
    if call.is_remote() and not call.is_agent():
        raise InvalidInput("MCP is for agents, and the key is of somebody else: muniment key create", field="key")
    if call.given["run"] is None:
        run = run.model_copy(update={"run_id": f"mcp_{token_hex(8)}"})
    anyio.run(_serve, call, run)


async def _serve(call: Call, run: RunContext) -> None:
    # Most of a second to import, which only those pay who speak it.
    from muniment.mcp.over_stdio import serve

    async with _fabric(call) as fabric:
        await serve(fabric, run)


def _fabric(call: Call) -> "AsyncFabric | AsyncClient":
    given = call.given
    if call.is_remote():
        from muniment.client import AsyncClient

        return AsyncClient.open(given["server"], read_key(given["key"]))
    from muniment.fabric import AsyncFabric

    settings = call.settings()
    call.note_new(settings)
    return AsyncFabric.open(given["url"], pack=given["pack_file"], home=given["home"], embedder=settings.embedder)
