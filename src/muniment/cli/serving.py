"""Serve: the HTTP door, with the worker inside where the database is embedded."""

import sys
from typing import Annotated

import anyio
import typer

from muniment.cli.asking import PACK, PLACE, Call, verb
from muniment.cli.output import note

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
            help="Proxies whose word on their clients is taken, with commas.",
        ),
    ] = "127.0.0.1",
    log_format: Annotated[
        str | None,
        typer.Option("--log", metavar="json|text", envvar="MUNIMENT_LOG", help="Logs; text on a terminal, else JSON."),
    ] = None,
) -> None:
    """Serve the HTTP interface: /v1 for programs, /mcp for assistants, /docs to read; /healthz, /readyz and /metrics.

    Whoever asks needs a key: muniment key create. Told to end (Ctrl-C, SIGTERM) it answers what is in flight first.
    """
    # Most of a second to import, which only those pay who serve.
    from muniment.api import logs
    from muniment.api.serving import Place
    from muniment.api.settings import ServerSettings

    if log_format not in (None, "json", "text"):
        raise typer.BadParameter("json or text", param_hint="--log")
    logs.set_up(log_format)
    settings = ServerSettings.gather()
    options = {"use_uvloop": sys.platform != "win32"}
    anyio.run(_serve, call, Place(host, port, proxies), settings, worker, backend_options=options)


async def _serve(call: Call, place: "Place", settings: "ServerSettings", worker: bool | None) -> None:  # noqa: F821
    from muniment.api.serving import serve
    from muniment.fabric import AsyncFabric

    told = call.settings()
    async with AsyncFabric(told, None) as fabric:
        inside = worker if worker is not None else told.url is None
        await serve(fabric, place, settings, worker=inside, on_ready=lambda url: _tell(url, inside))


def _tell(url: str, worker: bool) -> None:
    note(f"serving at {url}, {'with' if worker else 'without'} the worker; {url}/docs to read, Ctrl-C ends it")
