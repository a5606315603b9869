"""Serve: the HTTP door, with the worker inside where the database is embedded."""

import contextlib
import json
import sys
from pathlib import Path
from socket import socket
from typing import TYPE_CHECKING, Annotated, Literal

import anyio
import typer

from muniment import __version__, loops
from muniment.cli.asking import Call, verb
from muniment.cli.options import PACK, PLACE
from muniment.cli.output import OutputClosed, OutputFailed, Screen, progress
from muniment.fabric import AsyncFabric
from muniment.settings import Settings
from muniment.sync import Fabric

if TYPE_CHECKING:
    from muniment.http.server import Place
    from muniment.http.settings import ServerSettings

app = typer.Typer()
_PANEL = "Run it"


@verb(app, "serve", panel=_PANEL, options=(*PLACE, *PACK), example="muniment serve --port 8600")
def serve(
    call: Call,
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", envvar="MUNIMENT_HOST", help="Where to listen.")
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option("--port", metavar="PORT", envvar="MUNIMENT_PORT", min=0, max=65535, help="0 takes any free one."),
    ] = 8600,
    worker: Annotated[
        bool | None,
        typer.Option(
            "--worker/--no-worker",
            help="Run the jobs inside; without a word only where the database is embedded.",
        ),
    ] = None,
    proxies: Annotated[
        str,
        typer.Option(
            "--proxies",
            metavar="ADDRESSES",
            envvar="MUNIMENT_PROXIES",
            help="Proxies whose word on their clients is taken, with commas; none when not said.",
        ),
    ] = "",
    activate: Annotated[
        bool,
        typer.Option(
            "--activate",
            help="Put the pack file in force in every tenant that is under another; not where that takes two people.",
        ),
    ] = False,
    demo: Annotated[
        bool,
        typer.Option(
            "--demo",
            help="Fill the tenant 'demo' with sixty days of a shop, and show a key for each role on the terminal; "
            "without one they are in a file that only you can read.",
        ),
    ] = False,
    log: Annotated[
        Literal["json", "text"] | None,
        typer.Option("--log", envvar="MUNIMENT_LOG", help="How it logs, on stderr; text on a terminal, else JSON."),
    ] = None,
) -> None:
    """Serve /v1 for programs, /mcp for assistants, /console for people; /docs to read, /healthz, /readyz and /metrics.

    Whoever asks needs a key: muniment key create. Told to end (Ctrl-C, SIGTERM) it answers what is in flight first, and
    told again it ends at once. With --json its address comes as one line once it answers.
    """
    # Most of a second to import, which only those pay who serve.
    from muniment.http import logs, traces
    from muniment.http.server import Place, listen
    from muniment.http.settings import ServerSettings

    place, told = Place(host, port, proxies), ServerSettings.gather()
    settings = call.settings()
    # A model is not to be loaded twice.
    fabric = AsyncFabric.open(
        call.given["url"],
        pack=call.given["pack_file"],
        activate=activate,
        home=call.given["home"],
        embedder=settings.embedder,
    )
    inside = worker if worker is not None else settings.url is None
    with listen(place) as listening:
        call.note_new(settings)
        keys = _furnish(call, settings) if demo else None
        logs.set_up(log)
        traces.set_up(__version__)
        anyio.run(_serve, call, fabric, place, told, inside, listening, keys, backend_options=loops.OPTIONS)


def _furnish(call: Call, settings: Settings) -> Path | None:
    """Tell the story where it was not told yet, and hand out the keys: the file they are in, if nobody looks on.

    What a program collects from stdout or stderr may be kept as a log, and no log may hold a key.
    """
    from muniment.cli import lively

    home = settings.home if settings.url is None else None
    with Fabric.open(settings.url, home=home) as fabric:
        there = lively.is_told(fabric)
    if not there:
        with progress("telling sixty days of a shop", lively.DAYS, as_json=call.as_json) as steps:
            lively.tell(home, settings.url, steps.at)
    with Fabric.open(settings.url, home=home) as fabric:
        lines = lively.told_of(lively.keys_of(fabric))
    if sys.stderr.isatty() and not call.as_json:
        call.note("keys of the tenant 'demo', good for a day; sign in to /console with any of a person's:")
        for line in lines:
            call.note(f"  {line}")
        return None
    kept = lively.kept(lines, settings.home)
    call.note(f"keys of the tenant 'demo', good for a day, are in {kept}, which only you can read")
    return kept


async def _serve(
    call: Call,
    fabric: AsyncFabric,
    place: "Place",
    settings: "ServerSettings",
    worker: bool,
    listening: socket,
    keys: Path | None,
) -> None:
    from muniment.http.server import serve

    def tell(url: str) -> None:
        if call.as_json:
            # Whoever wanted to know may be gone; the server is there all the same.
            with contextlib.suppress(OutputClosed, OutputFailed):
                Screen().write(json.dumps({"url": url} | ({"demo_keys": str(keys)} if keys else {})) + "\n")
        jobs = "with" if worker else "without"
        call.note(f"serving at {url}, {jobs} the worker; Ctrl-C ends it")
        call.note(f"for people: {url}/console; to read: {url}/docs")

    async with fabric:
        await serve(fabric, place, settings, worker=worker, listening=listening, on_ready=tell)
