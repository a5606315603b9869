"""A virtual environment for each peer, installed from PyPI with its versions pinned, and kept until the pins change."""

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parents[1] / ".peers"
# What the built-in embedder reads its table with, the same for all.
EMBEDDER = ("numpy==2.4.6", "safetensors==0.8.0", "tokenizers==0.23.3", "wordllama==0.4.0.post1")


@dataclass(frozen=True)
class Peer:
    """A contestant: what the report calls it, the module that plays it, the packages it needs."""

    title: str
    module: str
    pins: tuple[str, ...]


PEERS = {
    "langgraph": Peer(
        "LangGraph PostgresStore",
        "bench.peers.langgraph_store",
        (
            "langgraph-checkpoint-postgres==3.2.0",
            "langgraph-checkpoint==4.3.1",
            "psycopg[binary,pool]==3.3.8",
        ),
    ),
    "mem0": Peer("mem0, infer=False", "bench.peers.mem0_store", ("mem0ai==2.2.1", "qdrant-client==1.20.0")),
    "chroma": Peer("Chroma", "bench.peers.chroma_store", ("chromadb==1.5.9",)),
    "inspeximus": Peer("inspeximus", "bench.peers.inspeximus_store", ("inspeximus==3.23.1",)),
}


def python_of(name: str) -> Path:
    """The interpreter of that peer's environment, which is made when it is not there as pinned.

    Raises CalledProcessError with what pip said when something cannot be installed.
    """
    home = FOLDER / name
    python, stamp = home / "bin" / "python", home / "pins.txt"
    pins = [*PEERS[name].pins, *EMBEDDER]
    wanted = "\n".join([f"# Python {sys.version.split()[0]}", *pins, ""])
    if not (stamp.is_file() and stamp.read_text() == wanted):
        shutil.rmtree(home, ignore_errors=True)
        print(f"installing {PEERS[name].title} (once) ...", file=sys.stderr)
        _call([sys.executable, "-m", "venv", str(home)])
        _call([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *pins])
        # Last, so that half an environment is never taken for a whole one.
        stamp.write_text(wanted)
    return python


def _call(command: list[str]) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=900)
