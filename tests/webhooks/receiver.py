"""A server on this machine that webhooks are posted to, a fabric that may post there, and events for it."""

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from muniment import Fabric
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS

MESSAGE: dict[str, Any] = {"kind": "message", "text": "hello", "classification": "INTERNAL"}


@dataclass
class Receiver:
    """A server that keeps what it was sent and answers as it is told."""

    url: str = ""
    got: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    answer: Callable[[int], int | tuple[int, dict[str, str]]] = lambda _: 204
    stall: threading.Event | None = None
    socket: Any = None
    reached: threading.Event = field(default_factory=threading.Event)

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, body in self.got]

    @property
    def sequences(self) -> list[str]:
        return [one["sequence"] for one in self.events]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            with lock:
                receiver.got.append(({name.lower(): value for name, value in self.headers.items()}, body))
                answer = receiver.answer(len(receiver.got))
            receiver.reached.set()
            if receiver.stall is not None:
                receiver.stall.wait(5)
            status, headers = answer if isinstance(answer, tuple) else (answer, {})
            self.send_response(status)
            for name, value in {"Content-Length": "0", **headers}.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    receiver.socket = server
    running = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    running.start()
    receiver.url = f"http://localhost:{server.server_port}/hook?key=k"
    yield receiver
    if receiver.stall is not None:
        receiver.stall.set()
    server.shutdown()
    running.join()
    server.server_close()


@pytest.fixture
def fabric(server: TestServer, database: str, clock: FakeClock) -> Iterator[Fabric]:
    """One that may post to this machine."""
    with Fabric.open(server.url(database), clock=clock, master_keys=MASTER_KEYS, private_webhooks=True) as opened:
        yield opened


def written(fabric: Fabric, people: People, count: int = 1) -> None:
    for _ in range(count):
        fabric.capture(people.run(), **MESSAGE)


def log_after(fabric: Fabric, people: People, seq: int) -> list[str]:
    return [f"{one.seq:019d}.{one.n:05d}" for one in fabric.events(people.auditor, after=seq, limit=1000)]
