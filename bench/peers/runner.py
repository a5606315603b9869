"""Starts a peer in its own environment, hands it the job and reads its result."""

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from bench.meter import Cost
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


def run(name: str, job: Mapping[str, object]) -> Row:
    """One of `PEERS` through the job of `bench.locomo.as_job`; whatever goes wrong is the row's `error`.

    The job says where its `postgres` is and under which process that runs (`postmaster`); only langgraph needs it.
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
        found = json.loads(done.stdout.strip().rpartition("\n")[2])
        costs = {key: Cost(**found.pop(key)) for key in ("add", "batch", "search") if found[key] is not None}
        return Row(peer.title, **{**found, **costs})
    except subprocess.CalledProcessError as error:
        return Row(peer.title, error=_why(error)[:200])
    except Exception as error:
        # A peer that fails is a line of the report, never the end of it.
        return Row(peer.title, error=f"{type(error).__name__}: {error}"[:200])


def _why(error: subprocess.CalledProcessError) -> str:
    """The last line of what it said that names an error; pip and the peers warn before and after it."""
    said = [line.strip() for line in (error.stderr or error.stdout or "").splitlines() if line.strip()]
    named = [line for line in said if "error" in line.lower()]
    return (named or said or [str(error)])[-1]
