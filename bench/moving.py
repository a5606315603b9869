"""Bringing and taking: an import of mem0's memories, and a tenant exported and restored in bounded memory."""

import base64
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from bench.furnish import WORDS
from bench.measure import Figure, at_most
from muniment import AsyncFabric, load_pack
from muniment.testing import People, TestServer
from muniment.testing.database import MASTER_KEYS
from muniment.transfer.sources import mem0

ITEMS = 5_000
# Of the tenant that is moved: a few, and ten times as many, for what memory depends on.
FEW, MANY = 10_000, 100_000
SECONDS, MEGABYTES = 60.0, 300.0
USERS = 200
PACK = """
pack_meta: {id: bench.moving, version: "1.0.0"}
memory_layer:
  imports: {trust: 0.9, confidence: 0.95}
  classes: {statement: {approval: auto, auto_promotion: {threshold: 0.90}}}
  proven_sources: [{vouched: "import:mem0", extractors: [direct@1], declared_by: ada, reason: "a measurement"}]
"""
_KEY = base64.b64encode(b"a master key for tests, 32 bytes").decode()


class _Ran(NamedTuple):
    seconds: float
    megabytes: float
    shown: Any


class _Moved(NamedTuple):
    memories: int
    written: _Ran
    restored: _Ran
    size: int


async def run(server: TestServer, quick: bool) -> list[Figure]:
    """Seconds of an import, and the most memory that the commands took which move a tenant."""
    figures = [await _importing(server, 200 if quick else ITEMS)]
    moved = [await _moving(server, count) for count in ((100, 200) if quick else (FEW, MANY))]
    small, large = moved
    for what, few, many in (
        ("export", small.written, large.written),
        ("restore", small.restored, large.restored),
    ):
        told = f"{few.megabytes:.0f} MB at {small.memories}; {many.seconds:.1f} s, a file of {large.size / 1e6:.0f} MB"
        what = f"{what} of a tenant, peak memory"
        figures.append(at_most(what, many.megabytes, "MB", MEGABYTES, str(large.memories), told))
    return figures


def memories(count: int) -> list[dict[str, Any]]:
    """What mem0's `get_all` would return."""
    drawn = Random(7)
    return [
        {
            "id": f"mem_{number}",
            "memory": f"Case {number}: the {' '.join(drawn.sample(WORDS, 6))}.",
            "user_id": f"user_{number % USERS}",
            "created_at": "2026-01-02T03:04:05.000000-08:00",
            "metadata": {"category": drawn.choice(WORDS)},
        }
        for number in range(count)
    ]


async def _imported(fabric: AsyncFabric, people: People, count: int) -> int:
    """Import and consolidate as the command does; returns how many were promoted."""
    items = [one.item for one in mem0.items(memories(count)) if isinstance(one.item, dict)]
    for first in range(0, count, 5000):
        await fabric.imports.run(people.admin, "mem0", items[first : first + 5000])
    return len((await fabric.consolidate(people.tenant_id)).promoted)


async def _importing(server: TestServer, count: int) -> Figure:
    database, people = server.clone(), People("tenant_0")
    async with AsyncFabric.open(server.url(database), master_keys=MASTER_KEYS, pack=load_pack(PACK)) as fabric:
        began = time.perf_counter()
        promoted = await _imported(fabric, people, count)
        seconds = time.perf_counter() - began
    server.drop(database)
    detail = f"captured, through the gates and compared; {promoted} promoted by policy"
    return at_most(f"import of {count} memories of mem0", seconds, "s", SECONDS, f"{count // USERS} each", detail)


async def _moving(server: TestServer, count: int) -> _Moved:
    here, there, people = server.clone(), server.clone(), People("tenant_0")
    async with AsyncFabric.open(server.url(here), master_keys=MASTER_KEYS, pack=load_pack(PACK)) as fabric:
        assert await _imported(fabric, people, count) > count * 0.9
    with tempfile.TemporaryDirectory() as folder:
        file, key = Path(folder) / "tenant.backup", Path(folder) / "receiver.key"
        to = _muniment("export", "key", str(key)).shown["public_key"]
        tenant = ("--tenant", people.tenant_id)
        written = _muniment("export", "tenant", str(file), "--to", to, *tenant, "--url", server.url(here))
        keys = ("--secret-key", str(key), "--signed-by", written.shown["signed_by"])
        restored = _muniment("restore", str(file), *keys, *tenant, "--url", server.url(there))
        assert restored.shown["rows"] == written.shown["rows"]
        size = file.stat().st_size
    for database in (here, there):
        server.drop(database)
    return _Moved(written.shown["memories"], written, restored, size)


def _muniment(*arguments: str) -> _Ran:
    """Run a command; its seconds, the most memory that it took, and what it showed."""
    environment = os.environ | {"MUNIMENT_MASTER_KEY": _KEY}
    began, most = time.perf_counter(), 0
    with tempfile.TemporaryFile() as shown:
        command = [sys.executable, "-m", "muniment", *arguments, "--json"]
        process = subprocess.Popen(command, stdout=shown, env=environment)
        while process.poll() is None:
            most = max(most, _peak(process.pid))
            time.sleep(0.02)
        seconds = time.perf_counter() - began
        shown.seek(0)
        assert process.returncode == 0, f"muniment {arguments[0]} failed"
        return _Ran(seconds, most / 1024, json.loads(shown.read()))


def _peak(pid: int) -> int:
    """The most kilobytes that a process held so far; a parent's count is not part of it, as it is in `wait4`."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1])
    return 0
