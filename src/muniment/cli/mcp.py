"""MCP over stdio: the tools of an agent, for the assistant that starts the command; and configuring assistants."""

from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from secrets import token_hex
from typing import TYPE_CHECKING, Annotated

import typer

from muniment.cli import assistants
from muniment.cli.call import Call, user_name
from muniment.cli.command import command, group
from muniment.cli.options import RUN, SPEAKS_FOR, WHERE, flag
from muniment.cli.remote import read_key
from muniment.errors import InvalidInput
from muniment.extras import require

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from muniment.fabric import AsyncFabric
    from muniment.model.context import RunContext

app = typer.Typer()
mcp = group(app, "mcp", serves=True)
assistants.add_commands(mcp)

Personal = Annotated[
    bool,
    flag(
        "--personal",
        "Use the memory of one user that 'muniment add' keeps (tenant local, profile personal), and answer the hooks "
        "of assistants on this home.",
    ),
]


@command(mcp, "serve", options=(*RUN, *SPEAKS_FOR, *WHERE))
def serve(call: Call, personal: Personal = False) -> None:
    """Speak MCP over stdin and stdout, for one run of an agent.

    The tools capture, propose, recall, compile and explain, and with --user my_memory and ask_to_remember; none
    approves, corrects or erases. The options fix the agent, the user, what it may see and what it may speak for; no
    tool takes an argument for these. It ends when stdin ends. A server has the same at /mcp: muniment serve.
    """
    import anyio

    require("mcp", "muniment mcp")
    call = _personal(call) if personal else call
    run = call.run()
    if call.is_remote() and not call.is_agent():
        raise InvalidInput("must be the key of an agent for MCP: muniment key create", field="key")
    own = f"mcp_{token_hex(8)}"
    named = {name: own for name in ("run", "session") if call.options[name] is None}
    run = run.model_copy(update={f"{name}_id": one for name, one in named.items()})
    if call.is_remote():
        anyio.run(_bridge, call, run)
    else:
        anyio.run(_serve, call, run, personal)


def _personal(call: Call) -> Call:
    """The same call on the memory of one user; raises `InvalidInput` for a server or a database that others share."""
    from muniment.home_folder import database_address
    from muniment.memory.opening import PROFILE, TENANT

    if call.is_remote() or database_address(call.options["url"], call.options["home"]) is not None:
        raise InvalidInput(
            "is for a home of one's own: give --home, and neither a server nor a database", field="personal"
        )
    own = {"tenant": TENANT, "user": user_name(), "agent": "assistant", "pack_file": PROFILE}
    return replace(call, options={**call.options, **{n: v for n, v in own.items() if call.options[n] is None}})


async def _serve(call: Call, run: "RunContext", personal: bool) -> None:
    from muniment.home_folder import database_address, home_folder
    from muniment.mcp.opening import OpeningFabric
    from muniment.mcp.over_stdio import serve

    options = call.options
    embedded_in = None if database_address(options["url"], options["home"]) else home_folder(options["home"])
    opening = OpeningFabric(lambda: _opened(call, embedded_in))
    if not personal or embedded_in is None:
        await serve(opening, run, home=embedded_in)
        return
    from muniment.mcp.hook_service import HookService

    await serve(opening, run, home=embedded_in, beside=HookService(embedded_in, opening.get).run)


@asynccontextmanager
async def _opened(call: Call, home: "Path | None") -> "AsyncGenerator[AsyncFabric]":
    """Open the fabric. Its modules are loaded in a thread, for about a second, while the embedded server is started."""
    from anyio.to_thread import run_sync

    from muniment.database import embedded

    if home is not None:
        embedded.release_before_ending()
        if not home.exists():
            call.note(f"creating a database in {home}")
    with embedded.starting(home) if home is not None else nullcontext():
        fabric = await run_sync(_made, call)
        await fabric
    async with fabric:
        yield fabric


def _made(call: Call) -> "AsyncFabric":
    from muniment.fabric import AsyncFabric

    options, settings = call.options, call.settings()
    return AsyncFabric.open(options["url"], pack=options["pack_file"], home=options["home"], embedder=settings.embedder)


async def _bridge(call: Call, run: "RunContext") -> None:
    from muniment.cli.remote import find_address
    from muniment.client.connection import run_header
    from muniment.client.transport import Where
    from muniment.mcp.bridge import Bridge
    from muniment.mcp.over_stdio import answer

    where = Where.gather(find_address(call.options), read_key(call.options["key"]))
    bridge = Bridge(where.url, {"Authorization": f"Bearer {where.key}", **run_header(run)})
    await answer(bridge.server())
