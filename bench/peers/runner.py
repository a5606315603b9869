"""Starts a peer in its own environment, hands it the job and reads its result."""

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from bench.peers.environments import PEERS, python_of
from bench.picture import Row

TIMEOUT_SECONDS = 1800

_ROOT = Path(__file__).parents[2]
# No peer shall call home; none needs a key.
_QUIET = {
    "MEM0_TELEMETRY": "False",
    "ANONYMIZED_TELEMETRY": "False",
    "LANGSMITH_TRACING": "false",
    "HF_HUB_OFFLINE": "1",
    "PYTHONPATH": "",
}


@dataclass(frozen=True)
class PeerResult:
    """What a peer reached, or why it could not; without an error all figures are there but the batches."""

    name: str
    version: str = ""
    turns: int = 0
    adds_per_second: float | None = None
    add_median_ms: float | None = None
    batch_adds_per_second: float | None = None
    n: int = 0
    search_median_ms: float | None = None
    search_p95_ms: float | None = None
    recall_at_10: float | None = None
    peak_memory_mb: float | None = None
    disk_mb: float | None = None
    error: str | None = None

    def row(self) -> Row:
        """Its line of the table and the picture."""
        return Row(
            name=self.name,
            version=self.version,
            adds_per_second=self.adds_per_second,
            batch_adds_per_second=self.batch_adds_per_second,
            search_median_ms=self.search_median_ms,
            search_p95_ms=self.search_p95_ms,
            recall_at_10=self.recall_at_10,
            memory_mb=self.peak_memory_mb,
            disk_mb=self.disk_mb,
            error=self.error,
        )


def run(name: str, job: Mapping[str, object]) -> PeerResult:
    """One of `PEERS` through the job of `bench.locomo.as_job`; whatever goes wrong is the result's `error`.

    The job may say `rounds`, how often all questions are asked; langgraph needs its `postgres`.
    """
    peer = PEERS[name]
    try:
        python = python_of(name)
        with tempfile.TemporaryDirectory(prefix="mb") as folder:
            done = subprocess.run(
                [str(python), "-m", peer.module],
                input=json.dumps(job),
                env={**os.environ, **_QUIET, "MEM0_DIR": folder},
                cwd=_ROOT,
                check=True,
                capture_output=True,
                text=True,
                timeout=TIMEOUT_SECONDS,
            )
        told = json.loads(done.stdout.strip().rpartition("\n")[2])
        known = {field.name for field in fields(PeerResult)} - {"name", "error"}
        return PeerResult(name=peer.title, **{key: value for key, value in told.items() if key in known})
    except subprocess.CalledProcessError as error:
        return PeerResult(name=peer.title, error=_why(error)[:200])
    except Exception as error:
        # A peer that fails is a line of the report, never the end of it.
        return PeerResult(name=peer.title, error=f"{type(error).__name__}: {error}"[:200])


def _why(error: subprocess.CalledProcessError) -> str:
    """The last line of what it said that names an error; pip and the peers warn before and after it."""
    said = [line.strip() for line in (error.stderr or error.stdout or "").splitlines() if line.strip()]
    named = [line for line in said if "error" in line.lower()]
    return (named or said or [str(error)])[-1]
