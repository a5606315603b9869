"""The server: the app on a port, the worker beside it if embedded, and a graceful stop."""

import gc
import logging
import sys
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from functools import partial
from socket import socket
from typing import Any, cast

import anyio
import uvicorn
from anyio.abc import TaskGroup

from muniment import loops
from muniment.database.end_signals import ending_signals
from muniment.fabric import AsyncFabric
from muniment.http.app import create_app
from muniment.http.event_stream import Streams
from muniment.http.header_limits import HeaderLimits
from muniment.http.limits import ConcurrencyLimit
from muniment.http.place import Place, Proxies, url_of
from muniment.http.server_metrics import ServerMetrics
from muniment.http.settings import ServerSettings
from muniment.supervisor import Command, Link
from muniment.worker.worker import Worker

log = logging.getLogger("muniment.http")

# Seconds that requests in flight have once the server stops.
GRACE = 30
# Seconds that kept connections have to bring one more request when the process was replaced.
DRAIN = 5.0
# Few: the embedded worker shares its process with the requests.
WORKER_JOBS = 2
# Seconds before a worker that failed is started again.
_RESTART_AFTER = 5.0


async def serve(
    fabric: AsyncFabric,
    place: Place,
    settings: ServerSettings,
    *,
    worker: bool,
    listening: socket | None = None,
    on_ready: Callable[[str], None] | None = None,
    metrics: ServerMetrics | None = None,
    link: Link | None = None,
) -> None:
    """Serve until a signal (`ending_signals`); a second one stops at once. `listening` comes from `listen`.

    `link` leads to the supervisor of several processes; it says which of them runs the worker.
    """
    # A thread that parses a long body must not hold up the event loop for long.
    sys.setswitchinterval(loops.SWITCH_AFTER)
    metrics = metrics or ServerMetrics()
    server = server_on(fabric, place, settings, metrics=metrics, on_ready=on_ready)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_stop_on_signal, server)
        if link is not None:
            tasks.start_soon(link.follow, partial(_on_command, server, tasks, partial(_work, fabric, metrics)))
        if worker:
            tasks.start_soon(_work, fabric, metrics)
        await server.serve([listening] if listening is not None else None)
        tasks.cancel_scope.cancel()


def server_on(
    fabric: AsyncFabric,
    place: Place,
    settings: ServerSettings,
    *,
    metrics: ServerMetrics | None = None,
    on_ready: Callable[[str], None] | None = None,
) -> "_Server":
    """Create the server of an open fabric; it stops once its `should_exit` is set."""
    app = create_app(fabric, settings, metrics=metrics)
    connections = ConcurrencyLimit(
        total=settings.connections, each=settings.connections // 2, exempt=Proxies(place.trusted)
    )
    config = uvicorn.Config(
        app,
        host=place.host,
        port=place.port,
        log_config=None,
        access_log=False,
        server_header=False,
        http=type("BoundHeaderLimits", (HeaderLimits,), {"connection_limit": connections}),
        ws="none",
        lifespan="on",
        # By default uvicorn would trust programs of this machine, and what FORWARDED_ALLOW_IPS names.
        proxy_headers=bool(place.trusted),
        forwarded_allow_ips=list(place.trusted),
        timeout_graceful_shutdown=GRACE,
        timeout_keep_alive=60,
    )
    return _Server(config, cast("Streams", app.state.streams), on_ready)


class _Server(uvicorn.Server):
    """Uvicorn's server, with our own signals; when it stops it ends the event streams first."""

    def __init__(self, config: uvicorn.Config, streams: Streams, on_ready: Callable[[str], None] | None) -> None:
        super().__init__(config)
        self._streams = streams
        self._on_ready = on_ready
        self.is_replaced = False

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        # Uvicorn would raise them again at the end, before the database is released.
        yield

    async def startup(self, sockets: list[socket] | None = None) -> None:
        await super().startup(sockets)
        # These objects stay: a full collection over them would stop every request for a tenth of a second.
        gc.collect()
        gc.freeze()
        if self.started and self._on_ready is not None:
            self._on_ready(url_of(self.servers[0].sockets[0]))

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        log.info("stopping")
        self._streams.stop()
        if self.is_replaced:
            await self._drain()
        await super().shutdown(sockets)

    async def _drain(self) -> None:
        """Accept nothing more, and answer what kept connections still bring: a request may be on its way."""
        for one in self.servers:
            one.close()
        with anyio.move_on_after(DRAIN):
            while self.server_state.connections and not self.force_exit:  # noqa: ASYNC110  uvicorn has no event for it
                await anyio.sleep(0.05)


def _on_command(
    server: _Server, tasks: TaskGroup, work: Callable[[], Coroutine[Any, Any, None]], command: Command
) -> None:
    """Do what the supervisor says."""
    if command == "work":
        tasks.start_soon(work)
    else:
        server.is_replaced = command == "retire"
        server.should_exit = True


async def _stop_on_signal(server: uvicorn.Server) -> None:
    with anyio.open_signal_receiver(*ending_signals()) as signals:
        async for _ in signals:
            server.force_exit = server.should_exit
            server.should_exit = True


async def _work(fabric: AsyncFabric, metrics: ServerMetrics) -> None:
    """Run the worker, and start it again if it fails; the server continues meanwhile."""
    log.info("running the worker")
    while True:
        try:
            await Worker(fabric.opened, concurrency=WORKER_JOBS, on_done=metrics.count_job).forever()
        except Exception as error:
            log.error("the worker failed", extra={"error": type(error).__name__})
        await anyio.sleep(_RESTART_AFTER)
