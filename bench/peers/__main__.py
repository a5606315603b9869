"""python -m bench.peers [name ...]: the peers alone, as a table; for trying a new pin or a new contestant."""

import os
import sys
import tempfile
from pathlib import Path

from bench import locomo
from bench.measure import postmaster
from bench.peers import PEERS, run
from bench.peers.database import fresh_database
from bench.picture import table
from muniment.testing import TestServer

conversations = locomo.load()
if conversations is None:
    sys.exit(f"LoCoMo is not at {locomo.place()}: set MUNIMENT_BENCH_DATA")
job = locomo.as_job(conversations)
with tempfile.TemporaryDirectory(prefix="mb") as folder, TestServer(Path(folder) / "home", durable=True) as server:
    results = []
    for name in sys.argv[1:] or PEERS:
        with fresh_database(server) as postgres:
            results.append(run(name, {**job, "postgres": postgres, "postmaster": postmaster(server)}))
print(table(results))
print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
