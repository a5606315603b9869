"""Bodies made to take a server's time or memory, and a process that sends them one after the other.

Run as a program it reads its orders from stdin, sends until stdin is closed, and writes how each was answered.
"""

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from threading import Event, Thread
from urllib.parse import urlsplit

MEGABYTE = 1024 * 1024
HEAD = 'pack_meta: {id: acme.support, version: "2.1.0"}\n'
GOOD = {"kind": "statement", "classification": "INTERNAL"}


@dataclass(frozen=True)
class HostileRequest:
    """One request: its name, where it goes, whose key it comes with (`""`: nobody's), and its body."""

    name: str
    path: str
    who: str
    body: bytes
    kind: str = "application/json"
    method: str = "POST"
    head: str = ""


def label(one: HostileRequest) -> str:
    """What it is called among others."""
    return f"{one.method} {one.path[:40]}: {one.name}"


def empty_objects(count: int) -> bytes:
    return b"[" + b",".join([b"{}"] * count) + b"]"


def _captures(**more: object) -> bytes:
    return json.dumps({**GOOD, "text": "x", **more}).encode()


def hostile_bodies() -> Iterator[HostileRequest]:
    """Past the bounds, and as close below them as they can be."""
    many, few = empty_objects(330_000), empty_objects(12_000)
    close = empty_objects(24_000)
    yield HostileRequest("a million bytes of empty objects", "/v1/captures", "agent", b'{"captures": %b}' % many)
    yield HostileRequest("fifteen million", "/v1/captures", "agent", b'{"captures": %b}' % empty_objects(5_200_000))
    yield HostileRequest("as many as pass the scan", "/v1/captures", "agent", b'{"captures": %b}' % close)
    for field in ("evidence_refs", "qualifiers", "payload", "run"):
        for items in (many, close):
            body = b'{"kind": "statement", "classification": "INTERNAL", "text": "x", "%b": %b}'
            yield HostileRequest(f"in {field}", "/v1/captures", "agent", body % (field.encode(), items))
    for field in ("entities", "classes", "tiers"):
        for items in (many, empty_objects(900)):
            body = b'{"run": {"run_id": "r"}, "%b": %b}' % (field.encode(), items)
            yield HostileRequest(f"{field} of a recall", "/v1/recall", "agent", body)
    for count in (90_000, 45_000, 1_500):
        keys = ", ".join(f'"key{n}": 1' for n in range(count))
        for path in ("/v1/captures", "/v1/recall", "/v1/proposals"):
            yield HostileRequest(f"{count} unknown keys", path, "agent", f"{{{keys}}}".encode())
    wrong = dict.fromkeys(("kind", "text", "origin", "subject", "user_id", "run_id", "intent_id", "observed_at"), 5)
    body = json.dumps({"captures": [wrong] * 1000}).encode()
    yield HostileRequest("a thousand captures with eight wrong fields", "/v1/captures", "agent", body)
    yield HostileRequest("a payload of small values", "/v1/captures", "agent", _captures(payload=[[0]] * 9_900))
    yield HostileRequest("deep", "/v1/captures", "agent", b"[" * MEGABYTE)
    yield HostileRequest("a long number", "/v1/captures", "agent", b'{"payload": ' + b"9" * MEGABYTE)
    yield HostileRequest("spaces", "/v1/captures", "agent", b" " * (15 * MEGABYTE) + b"{}")
    long_text = json.dumps({**GOOD, "text": "ж\n" * 8_000_000}, ensure_ascii=False).encode()[: 16 * MEGABYTE - 2]
    yield HostileRequest("one endless text", "/v1/captures", "agent", long_text + b'"}')
    for items in (many, few):
        asked = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "recall", "arguments": '
        yield HostileRequest("arguments of a tool", "/mcp", "agent", asked + b'{"entities": %b}}}' % items)
        yield HostileRequest("unknown parameters", "/mcp", "agent", b'{"jsonrpc": "2.0", "id": 1, "x": %b}' % items)
        yield HostileRequest("a batch", "/mcp", "agent", items)
    keys = ", ".join(f'"key{n}": 1' for n in range(12_000))
    yield HostileRequest("unknown arguments", "/mcp", "agent", asked + b"{%b}}}" % keys.encode())
    packs = {
        "empty objects": HEAD + "roles: [" + "{}," * 330_000 + "]",
        "wrong items": HEAD + "memory_layer: {trust: {floor: [" + "{}," * 19_000 + "]}}",
        "unknown keys": HEAD + "memory_layer:\n" + "".join(f"  k{n}: 1\n" for n in range(19_000)),
        "aliases": HEAD + "a: &a [" + "*a ," * 200_000 + "]",
        "directives": HEAD + "...\n" + "".join(f"%TAG !a{n}! x\n" for n in range(60_000)),
        "line ends": "\n" * (MEGABYTE - 10),
        "deep": "- " * (MEGABYTE // 2 - 10),
        "spaces": HEAD + "a: " + "x " * (MEGABYTE // 2 - 100),
    }
    for name, text in packs.items():
        body = json.dumps({"one": "muniment.builtin@1.3.0", "other": text}).encode()
        yield HostileRequest(f"a pack of {name}", "/v1/packs/compare", "auditor", body)
    form = "application/x-www-form-urlencoded"
    for path in ("/console/signin", "/console/packs", "/console/queue/approve"):
        yield HostileRequest("ampersands", path, "", b"&" * (16 * MEGABYTE), form)
        yield HostileRequest(
            "ampersands without a length", path, "", b"&" * MEGABYTE, form, head="Transfer-Encoding: chunked"
        )
    parts = "multipart/form-data; boundary=x"
    yield HostileRequest("parts", "/console/signin", "", b"--x\r\n" * 6_000, parts)
    yield HostileRequest("a long path", "/v1/" + "a/" * 20_000, "agent", b"{}")
    yield HostileRequest("a long query", "/v1/events?" + "types=x&" * 7_000, "auditor", b"", method="GET")
    yield HostileRequest("many cookies", "/console", "", b"", method="GET", head="Cookie: " + "a=b;" * 12_000)
    yield HostileRequest("the documentation", "/openapi.json", "", b"", method="GET")
    yield HostileRequest("the documentation", "/docs", "", b"", method="GET")
    yield HostileRequest("many headers", "/healthz", "", b"", method="GET", head="\r\n".join(["A: b"] * 8_000))


def heavy_bodies() -> Iterator[HostileRequest]:
    """As long as bodies may be, and good."""
    text = {**GOOD, "text": "ж\n" * 5_000}
    yield HostileRequest(
        "a long batch", "/v1/captures", "agent", json.dumps({"captures": [text] * 800}, ensure_ascii=False).encode()
    )
    payload = {**GOOD, "payload": [[n] for n in range(9_000)]}
    yield HostileRequest("long payloads", "/v1/captures", "agent", json.dumps({"captures": [payload] * 5}).encode())


def send(address: tuple[str, int], one: HostileRequest, key: str) -> int:
    """Send it; the status of the answer, 0 where the server hung up first."""
    head = f"{one.method} {one.path} HTTP/1.1\r\nHost: {address[0]}\r\nConnection: close\r\n"
    head += f"Content-Type: {one.kind}\r\nAccept: application/json\r\n" if one.body else ""
    head += f"Authorization: Bearer {key}\r\n" if key else ""
    chunked = "chunked" in one.head
    head += "" if chunked or not one.body else f"Content-Length: {len(one.body)}\r\n"
    head += f"{one.head}\r\n" if one.head else ""
    body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(one.body), one.body) if chunked else one.body
    answer = b""
    with socket.create_connection(address, timeout=120) as connection:
        try:
            connection.sendall(head.encode("latin-1") + b"\r\n")
            view = memoryview(body)
            for at in range(0, len(view), 256 * 1024):
                connection.sendall(view[at : at + 256 * 1024])
        except OSError:
            pass
        try:
            while part := connection.recv(65536):
                answer += part
        except OSError:
            pass
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/") else 0


class Senders:
    """Processes that send hostile bodies until the `with` ends; `answers` then has what they were answered."""

    def __init__(self, url: str, keys: dict[str, str], *, count: int, heavy: bool = False) -> None:
        self._orders = json.dumps({"url": url, "keys": keys, "heavy": heavy})
        self._count = count
        self._processes: list[subprocess.Popen[str]] = []
        self.answers: list[tuple[str, int]] = []

    def __enter__(self) -> "Senders":
        for place in range(self._count):
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.faults.hostile_requests", str(place), str(self._count)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write(self._orders + "\n")
            process.stdin.flush()
            self._processes.append(process)
        for process in self._processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            result = process.communicate(timeout=300)[0]
            assert process.returncode == 0
            self.answers += [(str(name), int(status)) for name, status in json.loads(result)]


def main() -> None:
    """Send what falls to this process, around and around, until stdin ends; then say how it was answered."""
    place, count = int(sys.argv[1]), int(sys.argv[2])
    orders = json.loads(sys.stdin.readline())
    all_of_them = [*hostile_bodies(), *(heavy_bodies() if orders["heavy"] else ())]
    bodies = all_of_them[place::count]
    at = urlsplit(orders["url"])
    address = (str(at.hostname), int(at.port or 0))
    over = Event()

    def until_stdin_closes() -> None:
        sys.stdin.read()
        over.set()

    Thread(target=until_stdin_closes, daemon=True).start()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    answers: list[tuple[str, int]] = []
    first = True
    while first or not over.is_set():
        for one in bodies:
            answers.append((label(one), send(address, one, orders["keys"].get(one.who, ""))))
            if over.is_set() and not first:
                break
        first = False
    sys.stdout.write(json.dumps(answers))


if __name__ == "__main__":
    main()
