"""A language model server on the loopback: it gives prepared answers and records the requests."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any, ClassVar

import pytest

KEY = "sk-very-secret-0815"


def answer(*facts: dict[str, Any]) -> bytes:
    return completion(json.dumps({"facts": list(facts)}))


def completion(content: str) -> bytes:
    return json.dumps({"choices": [{"message": {"role": "assistant", "content": content}}]}).encode()


class Server(BaseHTTPRequestHandler):
    """Answers from a list, the last for ever; None never answers."""

    answers: ClassVar[list[tuple[int, bytes] | None]] = []
    asked: ClassVar[list[dict[str, Any]]] = []
    headers_seen: ClassVar[list[Any]] = []
    over: ClassVar[Event] = Event()
    retry_after: ClassVar[str] = "0"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.asked.append(json.loads(body) | {"path": self.path})
        self.headers_seen.append(self.headers)
        given = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if given is None:
            self.over.wait(10)
            return
        status, content = given
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Retry-After", self.retry_after)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None: ...


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("NO_PROXY", "*")
    Server.answers, Server.asked, Server.headers_seen = [], [], []
    Server.over.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    place = f"http://127.0.0.1:{server.server_port}/v1"
    named = {"url": place, "key": KEY, "allow_private": True}
    monkeypatch.setenv("MUNIMENT_MODELS", json.dumps({"small": named, "tiny": named}))
    yield place
    Server.over.set()
    server.shutdown()
    server.server_close()
    thread.join()


def says(*given: bytes | tuple[int, bytes] | None) -> None:
    Server.answers = [(200, one) if isinstance(one, bytes) else one for one in given]
