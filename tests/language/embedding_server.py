"""A server of embeddings on the loopback, and embedders that ask it."""

import json
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any, NamedTuple, cast

import pytest

from muniment.errors import EmbedderUnavailable
from muniment.language.embedding.http import HttpEmbedder
from tests.language.embedding_texts import SECRET_TEXT, vector


class Request(NamedTuple):
    """What was sent."""

    path: str
    sent: Any
    headers: dict[str, str]
    client: Any


class Asked(BaseHTTPRequestHandler):
    """A connection with the request at hand, and the ways to answer it."""

    protocol_version = "HTTP/1.1"
    sent: Any

    @property
    def remote(self) -> "Remote":
        return cast("Remote", self.server)

    def do_POST(self) -> None:
        self.sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.remote.asked.append(Request(self.path, self.sent, dict(self.headers), self.client_address))
        self.remote.answer(self)

    def do_GET(self) -> None:
        raise AssertionError("nobody should follow here")

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def give(self, body: bytes | str, status: int = 200, **headers: str) -> None:
        raw = body.encode() if isinstance(body, str) else body
        self.send_response(status)
        for name, value in {"Content-Length": str(len(raw)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(raw)

    def data(self) -> list[dict[str, Any]]:
        return [
            {"object": "embedding", "index": index, "embedding": vector(text)}
            for index, text in enumerate(self.sent["input"])
        ]

    def give_data(self, data: Any) -> None:
        self.give(json.dumps({"object": "list", "data": data}))


class Remote(ThreadingHTTPServer):
    """On the loopback; answers right until told otherwise."""

    daemon_threads = True
    # the listener's default of 5 would turn away a burst of threads
    request_queue_size = 64

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Asked)
        self.asked: list[Request] = []
        self.answer: Callable[[Asked], None] = lambda asked: asked.give_data(asked.data())
        self.over = Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Whoever goes away early is no news."""


@pytest.fixture
def remote(monkeypatch: pytest.MonkeyPatch) -> Iterator[Remote]:
    for name in ("http_proxy", "https_proxy", "all_proxy", "MUNIMENT_EMBEDDER_KEY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    with Remote() as running:
        thread = Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.over.set()
        running.shutdown()
        thread.join()


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("muniment.language.embedding.http.PAUSES", (0.0, 0.0))


def at(remote: Remote, **options: Any) -> HttpEmbedder:
    return HttpEmbedder(remote.url, **{"model": "m", "dimensions": 3, "allow_private": True} | options)


def refused(remote: Remote, texts: list[str] | None = None, **options: Any) -> str:
    with pytest.raises(EmbedderUnavailable) as raised:
        at(remote, **options).embed([SECRET_TEXT] if texts is None else texts)
    assert raised.value.__context__ is None
    assert "Jane" not in str(raised.value)
    return str(raised.value)


def with_status(status: int, **headers: str) -> Callable[[Asked], None]:
    return lambda asked: asked.give("Jane", status, **{"Retry_After": "0"} | headers)
