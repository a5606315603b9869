"""The server: the app on a port, the worker beside it if embedded, and a graceful stop."""

import gc
import logging
import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from errno import EADDRNOTAVAIL
from socket import AF_INET, AF_INET6, create_server, socket
from typing import cast

import anyio
import uvicorn

from muniment import loops
from muniment.database.end_signals import ending_signals
from muniment.errors import InvalidInput
from muniment.fabric import AsyncFabric
from muniment.http.app import create_app
from muniment.http.event_stream import Streams
from muniment.http.header_limits import HeaderLimits
from muniment.http.limits import ConcurrencyLimit
from muniment.http.server_metrics import ServerMetrics
from muniment.http.settings import ServerSettings
from muniment.worker.worker import Worker

log = logging.getLogger("muniment.http")

PORT = 8600
# Seconds that requests in flight have once the server stops.
GRACE = 30
# Few: the embedded worker shares its process with the requests.
WORKER_JOBS = 2
# Seconds before a worker that failed is started again.
_RESTART_AFTER = 5.0


@dataclass(frozen=True)
class Place:
    """Where the server listens, and the addresses of trusted proxies, separated by commas."""

    host: str = "127.0.0.1"
    port: int = PORT
    proxies: str = ""

    @property
    def trusted(self) -> tuple[str, ...]:
        """The addresses of the trusted proxies."""
        return tuple(one.strip() for one in self.proxies.split(",") if one.strip())


async def serve(
    fabric: AsyncFabric,
    place: Place,
    settings: ServerSettings,
    *,
    worker: bool,
    listening: socket | None = None,
    on_ready: Callable[[str], None] | None = None,
) -> None:
    """Serve until a signal (`ending_signals`); a second one stops at once. `listening` comes from `listen`."""
    # A thread that parses a long body must not hold up the event loop for long.
    sys.setswitchinterval(loops.SWITCH_AFTER)
    metrics = ServerMetrics()
    server = server_on(fabric, place, settings, metrics=metrics, on_ready=on_ready)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_stop_on_signal, server)
        if worker:
            tasks.start_soon(_work, fabric, metrics)
        await server.serve([listening] if listening is not None else None)
        tasks.cancel_scope.cancel()


def listen(place: Place) -> socket:
    """Open the port, before anything else starts; raises `InvalidInput` if it cannot be opened."""
    try:
        return create_server((place.host, place.port), family=AF_INET6 if ":" in place.host else AF_INET)
    except (OSError, UnicodeError) as error:
        number = getattr(error, "errno", None) or 0
        if number <= 0 or number == EADDRNOTAVAIL:
            # Numbers below zero are the resolver's: the name is unknown.
            raise InvalidInput(f"expected an address of this machine, got {place.host}", field="host") from None
        why = os.strerror(number).lower()
        raise InvalidInput(f"cannot listen on {place.host} port {place.port}: {why}", field="port") from None


def server_on(
    fabric: AsyncFabric,
    place: Place,
    settings: ServerSettings,
    *,
    metrics: ServerMetrics | None = None,
    on_ready: Callable[[str], None] | None = None,
) -> uvicorn.Server:
    """Create the server of an open fabric; it stops once its `should_exit` is set."""
    app = create_app(fabric, settings, metrics=metrics)
    connections = ConcurrencyLimit(
        total=settings.connections, each=settings.connections // 2, exempt=frozenset(place.trusted)
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
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            self._on_ready(f"http://{f'[{host}]' if ':' in host else host}:{port}")

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        log.info("stopping")
        self._streams.stop()
        await super().shutdown(sockets)


async def _stop_on_signal(server: uvicorn.Server) -> None:
    with anyio.open_signal_receiver(*ending_signals()) as signals:
        async for _ in signals:
            server.force_exit = server.should_exit
            server.should_exit = True


async def _work(fabric: AsyncFabric, metrics: ServerMetrics) -> None:
    """Run the worker, and start it again if it fails; the server continues meanwhile."""
    while True:
        try:
            await Worker(fabric.opened, concurrency=WORKER_JOBS, on_done=metrics.count_job).forever()
        except Exception as error:
            log.error("the worker failed", extra={"error": type(error).__name__})  # noqa: TRY400  not with its words
        await anyio.sleep(_RESTART_AFTER)
