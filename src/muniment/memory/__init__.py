"""The short way to memory (MEM-1 to MEM-5): `Memory` (blocking) and `AsyncMemory`, on a home of one's own or a server.

Every call goes through the verbs of the fabric, which is the attribute `fabric`. Each name is imported when it is first
used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from muniment.memory.asynchronous import AsyncMemory
    from muniment.memory.results import Added, Asked, Context, Kept, NotKept, Waiting, Why
    from muniment.memory.sync import Memory

__all__ = ["Added", "Asked", "AsyncMemory", "Context", "Kept", "Memory", "NotKept", "Waiting", "Why"]

_ELSEWHERE = {"AsyncMemory": "asynchronous", "Memory": "sync"}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_ELSEWHERE.get(name, 'results')}"), name)
