"""What a promoted memory costs PostgreSQL: its processor time, its write-ahead log, its disk. Run: python -m bench.ledger

Processor time and bytes, not wall time: they say the same on a busy machine.
"""

import asyncio
import os
import random
import tempfile
from pathlib import Path

from bench.furnish import WORDS
from muniment import AsyncFabric, load_pack
from muniment.testing import People, TestServer
from muniment.testing.database import MASTER_KEYS

BATCHES, AT_ONCE, USERS = 5, 500, 20
# Texts of few words are not to be compared with each other.
PACK = load_pack(
    'pack_meta: {id: bench.ledger, version: "1.0.0"}\n'
    "memory_layer: {contradiction: {embedders: {wordllama-256@1: {similarity: 0.99, duplicate_similarity: 0.99}}}}"
)


async def run(server: TestServer, *, analysed: bool) -> str:
    """Capture, consolidate and approve in batches; the first warms up and does not count.

    What the planner knows of the tables is either nothing, as in a database that was just made, or taken after the first
    batch: it decides whether the plans of foreign keys are kept.
    """
    database = server.clone()
    chance, people = random.Random(5), People("bench")
    async with AsyncFabric.open(server.url(database), master_keys=MASTER_KEYS, pack=PACK) as fabric:

        async def batch() -> int:
            items = [
                {
                    "kind": "statement",
                    "classification": "INTERNAL",
                    "user_id": f"user_{n % USERS}",
                    "text": " ".join(chance.choices(WORDS, k=14)),
                }
                for n in range(AT_ONCE)
            ]
            await fabric.capture_many(people.service, items)
            done = await fabric.consolidate(people.tenant_id)
            outcomes = await fabric.queue.approve_many(people.reviewer, done.proposals)
            return sum(one.memory_id is not None for one in outcomes)

        await batch()
        with server.connect(database) as owner:
            if analysed:
                owner.execute("VACUUM ANALYZE")
            owner.execute("CHECKPOINT")
            (before,) = owner.execute("SELECT pg_current_wal_insert_lsn()::text").fetchall()
            (size,) = owner.execute("SELECT pg_database_size(current_database())").fetchall()
            worked = server_seconds(server.home)
            count = sum([await batch() for _ in range(BATCHES - 1)])
            worked = server_seconds(server.home) - worked
            (log,) = owner.execute(
                "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), %s::pg_lsn)::float8,"
                " pg_database_size(current_database()) - %s",
                [before[0], size[0]],
            ).fetchall()
    server.drop(database)
    per = [1000 * worked / count, *(float(str(one)) / 1024 / count for one in log)]
    known = "analysed" if analysed else "as new"
    return f"{known}: {count} memories; each {per[0]:.2f} ms of PostgreSQL, {per[1]:.1f} KB of log, {per[2]:.1f} KB of disk"


def server_seconds(home: Path) -> float:
    """The processor time of the server and of all its processes, also those that have ended."""
    postmaster = int((home / "data" / "postmaster.pid").read_text().split()[0])
    ticks = sum(_stat(postmaster)[11:15])
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                stat = _stat(int(entry.name))
            except OSError:
                continue
            if stat[1] == postmaster:
                ticks += sum(stat[11:13])
    return ticks / os.sysconf("SC_CLK_TCK")


def _stat(process: int) -> list[int]:
    """The fields of a process from its state on, the state as 0."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return [0, *(int(one) for one in fields[1:])]


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="mb") as folder, TestServer(Path(folder) / "home", durable=True) as server:
        with server.connect("postgres") as owner:
            owner.execute("ALTER SYSTEM SET autovacuum = off")
            owner.execute("SELECT pg_reload_conf()")
        for analysed in (False, True):
            print(asyncio.run(run(server, analysed=analysed)))


if __name__ == "__main__":
    main()
