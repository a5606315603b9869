"""Other memories and stores, each in an environment of its own, through the same turns and questions.

The modules `*_store`, `contest` and `embedder` run inside those environments: what they import of this package, this
file included, needs the standard library alone.
"""

from bench.peers.environments import PEERS
from bench.peers.runner import PeerResult, run

__all__ = ["PEERS", "PeerResult", "run"]
