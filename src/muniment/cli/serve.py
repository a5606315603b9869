"""Serve: the HTTP server, with the worker inside if the database is embedded."""

import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Callable, Generator
from dataclasses import replace
from functools import partial
from pathlib import Path
from socket import socket
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from muniment import __version__
from muniment.cli.call import Call
from muniment.cli.command import command
from muniment.cli.options import PACK, PLACE, flag
from muniment.cli.output import OutputClosed, OutputFailed, Screen
from muniment.extras import require

if TYPE_CHECKING:
    from muniment.http.place import Place
    from muniment.http.process import ServerProcess
    from muniment.settings import OpenOptions, Settings
    from muniment.supervisor import Beside

app = typer.Typer()
# Serves on a socket, and reports the address once it answers.
Run = Callable[[socket, Callable[[str], None]], None]


@command(app, "serve", options=(*PLACE, *PACK))
def serve(
    call: Call,
    host: Annotated[str, flag("--host ADDRESS", "The address to listen on.", envvar="MUNIMENT_HOST")] = "127.0.0.1",
    port: Annotated[
        int, flag("--port PORT", "The port; 0 for any free one.", envvar="MUNIMENT_PORT", min=0, max=65535)
    ] = 8600,
    worker: Annotated[
        bool | None, flag("--worker/--no-worker", "Run the jobs inside; by default only if the database is embedded.")
    ] = None,
    workers: Annotated[
        int | None,
        flag(
            "--workers N",
            "Server processes that share the port; by default one per core, and one if the database is embedded.",
            envvar="MUNIMENT_WORKERS",
            min=1,
            max=512,
        ),
    ] = None,
    proxies: Annotated[
        str,
        flag(
            "--proxies ADDRESSES",
            "Addresses or networks of proxies whose forwarded headers are trusted, by commas; by default none.",
            envvar="MUNIMENT_PROXIES",
        ),
    ] = "",
    activate: Annotated[
        bool, flag("--activate", "Put the pack file in force in every tenant, unless that needs a second person.")
    ] = False,
    demo: Annotated[
        bool,
        flag(
            "--demo",
            "Fill the tenant 'demo' with sixty days of a shop, and show a key for each role on the terminal; without a "
            "terminal the keys are in a file that only you can read.",
        ),
    ] = False,
    log: Annotated[
        Literal["json", "text"] | None,
        flag(
            "--log", "The format of the log on stderr; by default text on a terminal, else JSON.", envvar="MUNIMENT_LOG"
        ),
    ] = None,
) -> None:
    """Serve the HTTP API, MCP and the console.

    The API is at /v1, MCP at /mcp, the console at /console, the documentation at /docs; beside them /healthz, /readyz
    and /metrics. Requests need a key: muniment key create. On Ctrl-C or SIGTERM it finishes the requests in progress; a
    second signal ends it at once. With several processes, SIGHUP replaces them one by one, and one that dies is
    replaced. With --json its address is written as one line once it answers.
    """
    require("server", "muniment serve")
    from muniment.http import logs
    from muniment.http.place import Place, listen
    from muniment.http.process import ServerProcess
    from muniment.supervisor import core_count

    place, settings = Place(host, port, proxies), call.settings()
    options: OpenOptions = {
        "pack": call.options["pack_file"],
        "activate": activate,
        "home": call.options["home"],
        "embedder": settings.embedder,
    }
    inside = worker if worker is not None else settings.url is None
    count = workers or (1 if settings.url is None else core_count())
    url = call.options["url"]
    if count == 1:
        run = _in_this_process(url, options, place, inside)
    else:
        each = ServerProcess(url, options, place, count, log)
        run = partial(_supervise, each, inside, settings.readers is not None)
    with listen(place) as listening:
        call.note_new(settings)
        call.note_broken_readers(settings)
        keys = _prepare_demo(call, settings) if demo else None
        logs.set_up(log)
        report = partial(_report, call, inside, count, keys)
        run(listening, report)


def _in_this_process(url: str | None, options: "OpenOptions", place: "Place", worker: bool) -> Run:
    """Check the settings; returns what serves in this process."""
    import anyio

    from muniment import loops
    from muniment.fabric import AsyncFabric
    from muniment.http import traces
    from muniment.http.server import serve
    from muniment.http.settings import ServerSettings

    settings, fabric = ServerSettings.gather(), AsyncFabric.open(url, **options)

    async def serve_fabric(listening: socket, report: Callable[[str], None]) -> None:
        async with fabric:
            await serve(fabric, place, settings, worker=worker, listening=listening, on_ready=report)

    def run(listening: socket, report: Callable[[str], None]) -> None:
        traces.set_up(__version__)
        anyio.run(serve_fabric, listening, report, backend_options=loops.OPTIONS)

    return run


def _supervise(
    each: "ServerProcess", worker: bool, reads: bool, listening: socket, report: Callable[[str], None]
) -> None:
    """Serve in several processes that share the port; `reads`: one more process runs the trained readers."""
    from muniment.http import metrics_folder
    from muniment.http.place import url_of
    from muniment.supervisor import Supervisor

    url = url_of(listening)
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="muniment-metrics-")))
        os.environ[metrics_folder.VARIABLE] = str(folder)
        each, beside = stack.enter_context(_with_readers(each)) if reads else (each, None)
        code = Supervisor(
            each.run,
            (folder, listening),
            each.processes,
            beside=beside,
            has_worker=worker,
            on_ready=lambda: report(url),
            # Otherwise clients would wait for an answer from a port on which nobody accepts.
            on_stop=listening.close,
            on_end=partial(metrics_folder.forget_process, folder),
        ).run()
    if code:
        raise typer.Exit(code)


@contextlib.contextmanager
def _with_readers(each: "ServerProcess") -> Generator[tuple["ServerProcess", "Beside"]]:
    """The processes with the address of a readers' process, and that one."""
    from muniment.http.readers_process import NAME, ReadersProcess
    from muniment.language.readers.frames import listening_socket
    from muniment.supervisor import Beside

    with listening_socket() as (reading, path):
        yield replace(each, readers=path), Beside(NAME, ReadersProcess(each.log).run, (reading,))


def _report(call: Call, worker: bool, processes: int, keys: Path | None, url: str) -> None:
    """Write where the server answers."""
    if call.as_json:
        # The server runs on if the reader has gone.
        with contextlib.suppress(OutputClosed, OutputFailed):
            Screen().write(json.dumps({"url": url} | ({"demo_keys": str(keys)} if keys else {})) + "\n")
    jobs = "worker included" if worker else "without a worker"
    many = f" in {processes} processes" if processes > 1 else ""
    call.note(f"serving at {url}{many}, {jobs}; press Ctrl-C to stop")
    call.note(f"console: {url}/console")
    call.note(f"documentation: {url}/docs")


def _prepare_demo(call: Call, settings: "Settings") -> Path | None:
    """Fill the demo tenant if it is not complete, and hand out its keys; return the file that has them, if one has.

    Output that is not a terminal may be kept as a log, and no log may hold a key.
    """
    from muniment import demo

    home = settings.home if settings.url is None else None
    with call.progress("creating demo data (60 days of a shop)", demo.DAYS) as steps:
        demo.play(home, settings.url, lambda day: steps.update(f"day {day + 1}", day))
    lines = demo.create_keys(home, settings.url)
    if sys.stderr.isatty() and not call.as_json:
        demo.delete_keys(settings.home)
        call.note(
            "keys of the tenant 'demo', valid for a day; sign in to /console with any that is not marked API only:"
        )
        for line in lines:
            call.note(f"  {line}", wrap=False)
        return None
    file = demo.write_keys(lines, settings.home)
    call.note(f"the keys of the tenant 'demo', valid for a day, are in {file}, which only you can read")
    return file
