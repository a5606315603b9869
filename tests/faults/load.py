"""A server as a process, API keys, and clients that load it with captures, recalls and approvals."""

import base64
import contextlib
import os
import random
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import anyio
from pydantic_core import from_json

from muniment import Fabric
from muniment.client import AsyncClient
from muniment.model.context import Asker, RunContext
from muniment.testing import People
from tests.server_thread import EVERY_LABEL

MUNIMENT = str(Path(sys.executable).with_name("muniment"))
MASTER_KEY = base64.b64encode(b"a master key for tests, 32 bytes").decode()
USERS = 5
WORDS = """
order parcel window invoice refund address morning evening courier garden phone letter river stone bread copper ladder
engine candle mirror basket doctor teacher painter sailor farmer lawyer baker tailor mountain valley desert island
harbour station airport library museum theatre hospital market kitchen cellar apple orange lemon cherry pepper onion
guitar violin piano trumpet chess tennis football hockey cycling swimming meeting contract payment delivery warranty
""".split()  # noqa: SIM905  a list of them would take a page

T = TypeVar("T")


class Command:
    """`muniment ...` as a process that runs until it is told to end, or killed."""

    def __init__(self, *arguments: object, **environment: str) -> None:
        self._command = [MUNIMENT, *(str(one) for one in arguments)]
        self._environment = os.environ | {"MUNIMENT_MASTER_KEY": MASTER_KEY, "MUNIMENT_RATE": "0"} | environment
        self._process: subprocess.Popen[str] | None = None
        # The file that its log is appended to, if any.
        self.log: Path | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start it."""
        with Path(self.log or os.devnull).open("a") as log:
            self._process = subprocess.Popen(
                self._command, stdout=subprocess.PIPE, stderr=log, text=True, env=self._environment
            )

    def line(self) -> str:
        """The next line it writes."""
        assert self._process is not None and self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, f"it ended with {self._process.wait()}"
        return line

    def kill(self) -> None:
        """End it as a power cut would, and wait until it is gone."""
        self.end(signal.SIGKILL)

    def stop(self) -> int:
        """Tell it to end, and wait until it has; how it ended."""
        return self.end(signal.SIGTERM)

    def end(self, how: signal.Signals) -> int:
        """Send it that signal, and wait until it is gone; how it ended."""
        assert self._process is not None
        self._process.send_signal(how)
        self._process.communicate(timeout=60)
        return self._process.returncode

    @contextmanager
    def running(self) -> Generator[None]:
        """Started now, and killed at the end if it is still there."""
        self.start()
        try:
            yield
        finally:
            self.kill()


class Serving(Command):
    """`muniment serve` on the loopback; started again it is at the same place."""

    def __init__(self, *arguments: object, **environment: str) -> None:
        super().__init__("serve", "--json", *arguments, **environment)
        self.url = ""

    def start(self) -> None:
        port = self.url.rpartition(":")[2] or "0"
        self._environment["MUNIMENT_PORT"] = port
        super().start()
        self.url = str(from_json(self.line())["url"])

    def resident(self) -> int:
        """Bytes of memory that the process has."""
        return self._memory("VmRSS:")

    def most_resident(self) -> int:
        """Bytes of memory that it had at most."""
        return self._memory("VmHWM:")

    def _memory(self, name: str) -> int:
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith(name):
                return int(line.split()[1]) * 1024
        raise AssertionError(f"no {name}")


def token(local: Fabric, asker: Asker) -> str:
    """A key for that asker, made beside the server."""
    principal = asker.principal if isinstance(asker, RunContext) else asker
    made = local.keys.create(
        People(principal.tenant_id).admin,
        principal_id=principal.id,
        kind=principal.kind,
        roles=principal.roles,
        clearance=EVERY_LABEL if "agent" in principal.roles else None,
        speaks_for=principal.speaks_for,
    )
    assert made.token is not None
    return made.token


@dataclass
class Measured:
    """What the clients of a load did, and how long each call took."""

    seconds: list[float] = field(default_factory=list)
    # By tenant.
    acknowledged: dict[str, list[str]] = field(default_factory=dict)
    approved: int = 0
    recalled: int = 0

    async def timed(self, call: Awaitable[T]) -> T:
        """Its answer; how long it took is kept."""
        began = time.perf_counter()
        answer = await call
        self.seconds.append(time.perf_counter() - began)
        return answer

    def figures(self, taken: float) -> str:
        """Requests a second, median and 99th percentile."""
        high = sorted(self.seconds)[int(len(self.seconds) * 0.99)]
        median = statistics.median(self.seconds)
        each = f"median {median * 1000:.1f} ms, 99th percentile {high * 1000:.1f} ms"
        return f"{len(self.seconds):,} requests, {len(self.seconds) / taken:,.0f} a second, {each}"


async def agent(client: AsyncClient, people: People, seed: int, until: float, measured: Measured) -> None:
    """Captures, now and then several at once, and recalls."""
    chance = random.Random(seed)
    kept = measured.acknowledged.setdefault(people.tenant_id, [])
    turn = 0
    while time.monotonic() < until:
        turn += 1
        run = people.run(f"user_{chance.randrange(USERS)}", run_id=f"run_{seed}_{turn}")
        if turn % 3 == 0:
            await measured.timed(client.recall(run, " ".join(chance.choices(WORDS, k=4))))
            measured.recalled += 1
        elif turn % 10 == 1:
            many = await measured.timed(client.capture_many(run, [statement(chance) for _ in range(4)]))
            kept += [one.capture_id for one in many]
        else:
            kept.append((await measured.timed(client.capture(run, **statement(chance)))).capture_id)


def statement(chance: random.Random) -> dict[str, Any]:
    """Something that is unlike whatever else is said."""
    text = f"{' '.join(chance.choices(WORDS, k=9))}."
    return {"kind": "statement", "text": text, "classification": "INTERNAL"}


async def reviewer(client: AsyncClient, people: People, until: float, measured: Measured) -> None:
    """Approves what waits, one by one."""
    while time.monotonic() < until:
        for item in await measured.timed(client.queue.list(people.reviewer, limit=5)):
            done = await measured.timed(client.queue.approve(people.reviewer, item.proposal_id))
            measured.approved += done.status == "promoted"
        # A person takes a while.
        await anyio.sleep(0.05)


@asynccontextmanager
async def clients(url: str, tokens: list[str], **how: Any) -> AsyncGenerator[list[AsyncClient]]:
    """A client for each of them."""
    async with contextlib.AsyncExitStack() as stack:
        yield [await stack.enter_async_context(AsyncClient.open(url, one, **how)) for one in tokens]
