"""Other memories and stores, each in an environment of its own, through the same turns and questions.

The modules `*_store`, `contest`, `embedder` and `bench.meter` run inside those environments: what they import of this package, this
file included, needs the standard library alone.
"""

from bench.peers.environments import PEERS
from bench.peers.runner import run

__all__ = ["PEERS", "run"]
