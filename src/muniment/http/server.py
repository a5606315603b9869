"""Serving: the app on a port, the worker beside it where it is embedded, and a stop that finishes what is in flight."""

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
from muniment.http.header_limits import Connections, HeaderLimits
from muniment.http.server_metrics import ServerMetrics
from muniment.http.settings import ServerSettings
from muniment.worker.worker import Worker

log = logging.getLogger("muniment.http")

PORT = 8600
# Seconds that requests in flight have once the server is told to stop.
GRACE = 30
# The worker inside shares its process with the requests.
WORKERS_JOBS = 2
# Seconds before a worker that fell over is started again.
_AGAIN = 5.0


@dataclass(frozen=True)
class Place:
    """Where it listens, and the proxies whose word on their clients it takes: addresses, with commas; none if empty."""

    host: str = "127.0.0.1"
    port: int = PORT
    proxies: str = ""

    @property
    def trusted(self) -> tuple[str, ...]:
        """The proxies, one by one."""
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
    """Serve until told to stop by a signal (`ending_signals`); told again, at once. `listening` comes from `listen`."""
    # A thread that parses a long body is not to make the loop wait for long.
    sys.setswitchinterval(loops.SWITCH_AFTER)
    meters = ServerMetrics()
    server = server_on(fabric, place, settings, meters=meters, on_ready=on_ready)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_told_to_stop, server)
        if worker:
            tasks.start_soon(_work, fabric, meters)
        await server.serve([listening] if listening is not None else None)
        tasks.cancel_scope.cancel()


def listen(place: Place) -> socket:
    """Take the port, before anything else is begun; raises `InvalidInput` where it is not to be had."""
    try:
        return create_server((place.host, place.port), family=AF_INET6 if ":" in place.host else AF_INET)
    except (OSError, UnicodeError) as error:
        number = getattr(error, "errno", None) or 0
        if number <= 0 or number == EADDRNOTAVAIL:
            # Below zero are the resolver's own: nobody knows the name.
            raise InvalidInput(f"expected an address of this machine, got {place.host}", field="host") from None
        why = os.strerror(number).lower()
        raise InvalidInput(f"cannot listen on {place.host} port {place.port}: {why}", field="port") from None


def server_on(
    fabric: AsyncFabric,
    place: Place,
    settings: ServerSettings,
    *,
    meters: ServerMetrics | None = None,
    on_ready: Callable[[str], None] | None = None,
) -> uvicorn.Server:
    """The server of an open fabric; it stops once its `should_exit` is set."""
    app = create_app(fabric, settings, meters=meters)
    heads = type("Heads", (HeaderLimits,), {"open_ones": Connections(settings.connections, frozenset(place.trusted))})
    config = uvicorn.Config(
        app,
        host=place.host,
        port=place.port,
        log_config=None,
        access_log=False,
        server_header=False,
        http=heads,
        ws="none",
        lifespan="on",
        # Uvicorn itself would take the word of this machine's own programs, and that of FORWARDED_ALLOW_IPS.
        proxy_headers=bool(place.trusted),
        forwarded_allow_ips=list(place.trusted),
        timeout_graceful_shutdown=GRACE,
        timeout_keep_alive=60,
    )
    return _Server(config, cast("Streams", app.state.streams), on_ready)


class _Server(uvicorn.Server):
    """Uvicorn's, with our own signals, and the streams ended first when it stops."""

    def __init__(self, config: uvicorn.Config, streams: Streams, on_ready: Callable[[str], None] | None) -> None:
        super().__init__(config)
        self._streams = streams
        self._on_ready = on_ready

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        # Its own would raise them once more at the end, before the database is given back.
        yield

    async def startup(self, sockets: list[socket] | None = None) -> None:
        await super().startup(sockets)
        # What is here stays: a collection that went through all of it would hold up everybody for a tenth of a second.
        gc.collect()
        gc.freeze()
        if self.started and self._on_ready is not None:
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            self._on_ready(f"http://{f'[{host}]' if ':' in host else host}:{port}")

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        log.info("stopping")
        self._streams.stop()
        await super().shutdown(sockets)


async def _told_to_stop(server: uvicorn.Server) -> None:
    with anyio.open_signal_receiver(*ending_signals()) as signals:
        async for _ in signals:
            server.force_exit = server.should_exit
            server.should_exit = True


async def _work(fabric: AsyncFabric, meters: ServerMetrics) -> None:
    """The worker, started again should it fall over: the server goes on without it meanwhile."""
    while True:
        try:
            await Worker(fabric.opened, concurrency=WORKERS_JOBS, on_done=meters.worked).forever()
        except Exception as error:
            log.error("the worker fell over", extra={"error": type(error).__name__})  # noqa: TRY400  not with its words
        await anyio.sleep(_AGAIN)
