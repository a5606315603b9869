"""Recall and capture over HTTP against a bare route that runs the same statements, on loopback, connections kept."""

import asyncio
import base64
import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic_core import from_json, to_json

from bench.bare import Script, listening
from bench.furnish import furnish, scope_size
from bench.http_bare import Routes
from bench.measure import Figure, at_least, at_most, in_turns, median_ms
from bench.recall import USERS, questions
from muniment import AsyncFabric, RunContext
from muniment.database.address import Address
from muniment.model.ids import make_id
from muniment.testing import People, TestServer
from muniment.testing.database import MASTER_KEYS

CLIENTS = (4, 16)
BARS = {"recall": 1.5, "capture": 2.0}
# Three times what a server of one process gave on two cores.
RECALLS_BAR = 507.0
# These stand for the idempotency key of a capture and for a word of a query, which are others each time.
_NO_KEY = "key_" + "0" * 28
_NO_WORD = "word_" + "0" * 8
_numbers = count(1)
_MASTER_KEY = base64.b64encode(b"a master key for tests, 32 bytes").decode()


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    tenants: int
    per_tenant: int
    asked: int
    seconds: float


FULL, QUICK = Size(20, 1000, 1200, 3.0), Size(2, 100, 24, 0.5)


@dataclass(frozen=True)
class Call:
    """One request to each side, ready to be sent."""

    ours: bytes
    bare: bytes


class Wire:
    """A connection that is kept; one request after the other."""

    def __init__(self, url: str) -> None:
        self._place = urlsplit(url)

    async def open(self) -> "Wire":
        """Connect."""
        assert self._place.hostname is not None
        self._read, self._write = await asyncio.open_connection(self._place.hostname, self._place.port)
        return self

    async def ask(self, request: bytes) -> bytes:
        """Send it, and give the body of the answer, which must be a good one."""
        self._write.write(request)
        head = await self._read.readuntil(b"\r\n\r\n")
        length = head.lower().split(b"content-length: ", 1)[1].split(b"\r\n", 1)[0]
        body = await self._read.readexactly(int(length))
        assert head.startswith((b"HTTP/1.1 200", b"HTTP/1.1 201")), body
        return body

    async def close(self) -> None:
        """Hang up."""
        self._write.close()
        await self._write.wait_closed()


def request(path: str, body: Any, headers: dict[str, str]) -> bytes:
    """A POST as it goes over the wire."""
    content = to_json(body)
    lines = [f"POST {path} HTTP/1.1", "Host: 127.0.0.1", "Content-Type: application/json"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, f"Content-Length: {len(content)}", "", ""]).encode() + content


@contextmanager
def process(*command: str, **environment: str) -> Generator[str]:
    """A server in a process of its own; gives the one line that it says of itself."""
    env = os.environ | environment
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env) as running:
        try:
            assert running.stdout is not None
            line = running.stdout.readline().strip()
            assert line, f"{command} did not start"
            yield line
        finally:
            running.terminate()


def fresh(sent: bytes) -> bytes:
    """The same request under a key that no other had, and with a query that no other had."""
    keyed = sent.replace(_NO_KEY.encode(), make_id("key", datetime.now(UTC)).encode())
    return keyed.replace(_NO_WORD.encode(), f"word_{next(_numbers):08}".encode())


async def run(server: TestServer, quick: bool) -> list[Figure]:
    """Both servers on one database, asked the same in turns."""
    database = server.clone()
    size = QUICK if quick else FULL
    shape = {"tenants": size.tenants, "per_tenant": size.per_tenant, "users": USERS}
    await furnish(server, database, **shape, vectors=True, terms=True, index=False)
    url = server.url(database)
    address = Address.parse(url, None)
    routes = Routes(address.for_task("recall"), address.for_task("writer"))
    ours = str(Path(sys.executable).with_name("muniment"))
    told = {"MUNIMENT_MASTER_KEY": _MASTER_KEY, "MUNIMENT_RATE": "0", "MUNIMENT_DATABASE_URL": url}
    with (
        tempfile.TemporaryDirectory(prefix="mb") as folder,
        process(ours, "serve", "--port", "0", "--json", **told) as said,
    ):
        place = str(from_json(said)["url"])
        calls = await _heard(url, routes, place, size)
        file = Path(folder, "routes")
        file.write_bytes(pickle.dumps(routes))  # noqa: ASYNC240  nobody waits
        with process(sys.executable, "-m", "bench.http_bare", str(file)) as bare:
            figures = [
                one for verb, made in calls.items() for one in await _side_by_side(verb, place, bare, made, size)
            ]
    server.drop(database)
    return figures


async def _heard(url: str, routes: Routes, place: str, size: Size) -> dict[str, list[Call]]:
    """The requests; and, into `routes`, what the fabric sends for each of them and what our server answers."""
    asked = questions(size.asked, size.tenants)
    made: dict[str, list[Call]] = {"recall": [], "capture": []}
    wire = await Wire(place).open()
    async with AsyncFabric.open(url, master_keys=MASTER_KEYS) as fabric:

        async def captured(who: RunContext, query: str) -> object:
            return await fabric.capture(who, **_capture(query), idempotency_key=make_id("key", datetime.now(UTC)))

        tokens = {who.tenant_id: await _token(fabric, who) for who, _ in asked}
        for who, query in asked:  # keys and packs are known from here on
            await fabric.recall(who, query)
            await captured(who, query)
        for n, (who, query) in enumerate(asked):
            recalling, capturing = _calls(n, who, query, tokens[who.tenant_id])
            made["recall"].append(recalling)
            made["capture"].append(capturing)
            routes.recalled.append(from_json(await wire.ask(recalling.ours)))
            routes.receipts.append(from_json(await wire.ask(fresh(capturing.ours))))
            routes.recalls.append(await _script(fabric.recall(who, query)))
            routes.captures.append(await _script(captured(who, query)))
    await wire.close()
    return made


def _calls(n: int, who: RunContext, query: str, token: str) -> tuple[Call, Call]:
    """A recall and a capture of one run."""
    run_ = who.model_dump(mode="json", exclude={"tenant_id", "agent_id"}, exclude_defaults=True)
    recall, capture = {"run": run_, "query": f"{query} {_NO_WORD}"}, {"run": run_, **_capture(query)}
    bearer, key = {"Authorization": f"Bearer {token}"}, {"Idempotency-Key": _NO_KEY}
    return (
        Call(request("/v1/recall", recall, bearer), request(f"/recall?n={n}", recall, {})),
        Call(request("/v1/captures", capture, bearer | key), request(f"/captures?n={n}", capture, key)),
    )


async def _script(call: Awaitable[object]) -> Script:
    """What one call sends."""
    scripts: list[Script] = []
    with listening(scripts):
        await call
    (script,) = (one for one in scripts if one.is_a_call)
    return script


async def _side_by_side(verb: str, ours: str, bare: str, calls: list[Call], size: Size) -> list[Figure]:
    near, far = await Wire(bare).open(), await Wire(ours).open()
    times = await in_turns(
        size.asked - size.asked // 6,
        size.asked // 6,
        ours=lambda n: far.ask(fresh(calls[n].ours)),
        bare=lambda n: near.ask(fresh(calls[n].bare)),
    )
    for wire in (near, far):
        await wire.close()
    rates = {
        clients: (
            await _rate(ours, [one.ours for one in calls], clients, size.seconds),
            await _rate(bare, [one.bare for one in calls], clients, size.seconds),
        )
        for clients in CLIENTS
    }
    mine, its = median_ms(times["ours"]), median_ms(times["bare"])
    at_once = "; ".join(
        f"{clients} clients {many:,.0f} a second against {others:,.0f}" for clients, (many, others) in rates.items()
    )
    detail = (
        f"{mine:.2f} ms against {its:.2f} ms, 99th percentile {_high_ms(times['ours']):.2f} against"
        f" {_high_ms(times['bare']):.2f}; {at_once}"
    )
    print(f"{verb} over HTTP: {detail}", file=sys.stderr)
    ratio = mine / its
    scope = f"{scope_size(size.per_tenant, USERS):,}"
    what = f"{verb} over HTTP against a bare route with the same SQL"
    found = [at_most(what, ratio, "times its median", BARS[verb], scope, detail)]
    if verb == "recall":
        many = f"{CLIENTS[0]} clients with a connection each, {os.cpu_count()} cores, {size.seconds:.0f} s"
        found.append(at_least("recalls a second over HTTP", rates[CLIENTS[0]][0], "a second", RECALLS_BAR, scope, many))
    return found


async def _rate(url: str, requests: list[bytes], clients: int, seconds: float) -> float:
    """Requests a second with so many clients, each with a connection of its own."""
    wires = [await Wire(url).open() for _ in range(clients)]
    for wire in wires:
        await wire.ask(fresh(requests[0]))
    began = time.perf_counter()

    async def ask(first: int, wire: Wire) -> int:
        asked = 0
        while time.perf_counter() - began < seconds:
            await wire.ask(fresh(requests[(first * len(requests) // clients + asked) % len(requests)]))
            asked += 1
        return asked

    total = sum(await asyncio.gather(*(ask(n, wire) for n, wire in enumerate(wires))))
    taken = time.perf_counter() - began
    for wire in wires:
        await wire.close()
    return total / taken


def _high_ms(times: list[float]) -> float:
    return sorted(times)[int(len(times) * 0.99)] * 1000


def _capture(text: str) -> dict[str, Any]:
    return {"kind": "statement", "text": f"They said {text}.", "classification": "INTERNAL", "origin": "channel:chat"}


async def _token(fabric: AsyncFabric, who: RunContext) -> str:
    people = People(who.tenant_id)
    made = await fabric.keys.create(
        people.admin,
        principal_id=who.agent_id,
        kind="agent",
        roles={"agent"},
        clearance=who.classification_allowed,
        speaks_for=who.speaks_for,
    )
    assert made.token is not None
    return made.token
