"""Hostile bodies from several connections at a real server: whoever else asks is answered at once, and memory stays.

Of the time that an answer takes only that counts which the server itself spent computing meanwhile: on a busy machine it
waits for the others too. A program beside it that does nothing else than answer shows how long.
"""

import socket
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest

from muniment import Fabric
from muniment.testing import People
from tests.faults.hostile_requests import MEGABYTE, Senders, hostile_bodies, label
from tests.faults.load import Serving, token

SECONDS = 4.0
EVERY = 0.005
BAR = 0.050
ROUNDS = 3
# What parsing may hold at the same time: a few of the longest bodies, each several times (as bytes, as text, as values).
MEMORY = 300 * MEGABYTE

_CONTROL = """
import asyncio
async def answer(reader, writer):
    while await reader.readuntil(b"\\r\\n\\r\\n"):
        writer.write(b"HTTP/1.1 200 Yes\\r\\ncontent-length: 2\\r\\n\\r\\nok")
async def main():
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
"""


class Control(NamedTuple):
    """A process that answers every request at once."""

    pid: int
    port: int


@contextmanager
def control() -> Generator[Control]:
    """Start one, and end it."""
    with subprocess.Popen(
        [sys.executable, "-c", _CONTROL], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            assert process.stdout is not None
            yield Control(process.pid, int(process.stdout.readline()))
        finally:
            process.kill()


class Asking:
    """Asks a process for `/healthz` at a steady rate; `spent` is what it computed meanwhile, or less if it was faster."""

    def __init__(self, address: tuple[str, int], pid: int) -> None:
        self._pid = pid
        self._connection = socket.create_connection(address, timeout=60)
        self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.waited: list[float] = []
        self.spent: list[float] = []

    def ask(self) -> None:
        began, before = time.perf_counter(), computed(self._pid)
        self._connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: here\r\n\r\n")
        answer = b""
        while b"ok" not in answer:
            part = self._connection.recv(65536)
            assert part, "the server hung up"
            answer += part
        waited = time.perf_counter() - began
        spent = min(waited, computed(self._pid) - before)
        # What would have been asked meanwhile would have waited too.
        for late in range(int(waited / EVERY) + 1):
            self.waited.append(waited - late * EVERY)
            self.spent.append(max(0.0, spent - late * EVERY))

    def close(self) -> None:
        self._connection.close()


def computed(pid: int) -> float:
    """Seconds that all threads of a process have computed."""
    nanoseconds = 0
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):
            nanoseconds += int((thread / "schedstat").read_text().split()[0])
    return nanoseconds / 1e9


def percentile(seconds: list[float], share: float) -> float:
    return sorted(seconds)[int(len(seconds) * share)]


def asked_for(server: Serving, beside: Control, seconds: float) -> tuple[Asking, Asking]:
    """Both asked in turn, for so long."""
    place = urlsplit(server.url)
    one = Asking((str(place.hostname), int(place.port or 0)), server.pid)
    other = Asking(("127.0.0.1", beside.port), beside.pid)
    with closing(one), closing(other):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            one.ask()
            other.ask()
            time.sleep(EVERY)
    return one, other


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.rule("ISO-6")
def test_hostile_bodies_hold_up_nobody_and_fill_no_memory(new_home: Path) -> None:
    people = People("tenant_a")
    with Fabric.open(home=new_home) as local:
        server = Serving("--home", new_home, "--no-worker", MUNIMENT_MASTER_KEY="")
        with server.running(), control() as beside:
            keys = {"agent": token(local, people.run()), "auditor": token(local, people.auditor)}
            before, result, answers = server.resident(), "", set[tuple[str, int]]()
            for _ in range(ROUNDS):
                with Senders(server.url, keys, count=3) as senders:
                    measured, idle = asked_for(server, beside, SECONDS)
                answers |= set(senders.answers)
                high, noise = percentile(measured.spent, 0.99), percentile(idle.waited, 0.99)
                result = (
                    f"{len(senders.answers)} hostile bodies; /healthz: median {ms(percentile(measured.waited, 0.5))},"
                    f" 99th percentile {ms(percentile(measured.waited, 0.99))}, of which the server computed {ms(high)};"
                    f" a program that only answers: {ms(noise)};"
                    f" memory from {before / MEGABYTE:.0f} MB to {server.most_resident() / MEGABYTE:.0f} MB at most"
                )
                print(f"\n{result}")
                if high < BAR and percentile(measured.waited, 0.5) < BAR + 3 * noise:
                    break
            else:
                pytest.fail(result)
            assert server.most_resident() - before < MEMORY, result
            assert {name for name, status in answers if status >= 500} == set()
            assert {name for name, _ in answers} == {label(one) for one in hostile_bodies()}
            assert server.stop() == 0


def ms(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms"
