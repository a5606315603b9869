"""The audit chain: sealing and verifying a million events of one tenant."""

import json
import sys
import time
from datetime import timedelta
from typing import Any

from bench.measure import Figure, at_most
from muniment import AsyncFabric
from muniment.testing import People, TestServer
from muniment.testing.database import MASTER_KEYS

EVENTS = 1_000_000
BAR = 60.0


async def run(server: TestServer, quick: bool) -> list[Figure]:
    """Seconds that `verify` takes; beside it how long sealing took."""
    database, people, events = server.clone(), People("tenant_0"), 2000 if quick else EVENTS
    async with AsyncFabric.open(server.url(database), master_keys=MASTER_KEYS) as fabric:
        await fabric.capture(people.run(), kind="message", text="hello", classification="INTERNAL")
        _fill(server, database, people.tenant_id, events)
        print(f"{events} events", file=sys.stderr)
        start = time.perf_counter()
        sealed = await fabric.seal(people.tenant_id)
        sealing = time.perf_counter() - start
        print(f"{sealed} sealed in {sealing:.1f} s", file=sys.stderr)
        start, working = time.perf_counter(), time.process_time()
        found = await fabric.verify(people.auditor)
        verifying, working = time.perf_counter() - start, time.process_time() - working
        assert found.ok, found
        assert found.events == sealed
    server.drop(database)
    return [
        at_most(
            f"verify the audit chain of {found.events:,} events",
            verifying,
            "s",
            BAR,
            "all events",
            f"{found.batches} batches; {working:.1f} s of it in this process; sealing took {sealing:.1f} s",
        )
    ]


def _fill(server: TestServer, database: str, tenant: str, events: int) -> None:
    """Numbers with one event each, as a promotion writes it, around the pipeline."""
    with server.connect(database) as owner:
        owner.execute("SET session_replication_role = replica")
        found: Any = owner.execute("SELECT seq, at FROM tenant_clock WHERE tenant_id = %s", [tenant]).fetchone()
        last, begun = found
        step = timedelta(milliseconds=1)
        with owner.cursor().copy("COPY ticks (tenant_id, seq, at, prev_seq, prev_at, txid) FROM STDIN") as copy:
            for n in range(1, events + 1):
                copy.write_row((tenant, last + n, begun + n * step, last + n - 1, begun + (n - 1) * step, "1"))
        columns = "tenant_id, seq, n, event_id, type, at, actor, body, txid"
        with owner.cursor().copy(f"COPY events ({columns}) FROM STDIN") as copy:
            for n in range(1, events + 1):
                told = {"memory_id": f"pm_{n:028x}", "proposal_id": f"mwp_{n:028x}", "write_class": "preference", "tier": "semantic"}  # fmt: skip
                body = json.dumps(told, separators=(",", ":")).encode()
                copy.write_row((tenant, last + n, 0, f"evt_{n:028x}", "memory.promoted", begun + n * step, "boris", body, "1"))  # fmt: skip
        owner.execute(
            "UPDATE tenant_clock SET seq = %s, at = %s, prev_at = %s WHERE tenant_id = %s",
            [last + events, begun + events * step, begun + (events - 1) * step, tenant],
        )
        owner.execute("RESET session_replication_role")
        owner.execute("VACUUM ANALYZE")
