"""Muniment: a memory fabric for AI agents in which recall is a privilege.

Each name is imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from muniment.errors import MunimentError
    from muniment.fabric import AsyncFabric
    from muniment.language.assertion import Judge, Judgement
    from muniment.memory import AsyncMemory, Memory
    from muniment.model.candidate import Refusal
    from muniment.model.context import Principal, RunContext
    from muniment.model.proposal import Proposal, Submission
    from muniment.model.recall import Recall
    from muniment.pack import Pack, builtin_pack, load_pack
    from muniment.sync import Fabric

__version__ = "0.1.0"

__all__ = [
    "AsyncFabric",
    "AsyncMemory",
    "Fabric",
    "Judge",
    "Judgement",
    "Memory",
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

# Modules that are attributes of the package.
_MODULES = ("client", "errors", "model", "pack", "testing")
_NAMES = {
    "AsyncFabric": "fabric",
    "AsyncMemory": "memory",
    "Fabric": "sync",
    "Judge": "language.assertion",
    "Judgement": "language.assertion",
    "Memory": "memory",
    "MunimentError": "errors",
    "Pack": "pack",
    "Principal": "model.context",
    "Proposal": "model.proposal",
    "Recall": "model.recall",
    "Refusal": "model.candidate",
    "RunContext": "model.context",
    "Submission": "model.proposal",
    "builtin_pack": "pack",
    "load_pack": "pack",
}


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"{__name__}.{_NAMES[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
