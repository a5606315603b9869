"""Muniment: a memory fabric for AI agents in which recall is a privilege."""

from muniment.errors import MunimentError
from muniment.fabric import AsyncFabric
from muniment.model.candidate import Refusal
from muniment.model.context import Principal, RunContext
from muniment.model.proposal import Proposal, Submission
from muniment.model.recall import Recall
from muniment.pack import Pack, builtin_pack, load_pack
from muniment.policy.assertion import Judge, Judgement
from muniment.sync import Fabric

__version__ = "0.1.0"

__all__ = [
    "AsyncFabric",
    "Fabric",
    "Judge",
    "Judgement",
    "MunimentError",
    "Pack",
    "Principal",
    "Proposal",
    "Recall",
    "Refusal",
    "RunContext",
    "Submission",
    "__version__",
    "builtin_pack",
    "load_pack",
]
