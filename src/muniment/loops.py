"""The event loop of our own threads and programs (uvloop, where there is one for the platform), and work beside it."""

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import anyio.to_thread
from anyio import CapacityLimiter
from anyio.lowlevel import RunVar

T = TypeVar("T")

# For anyio. Programs that call `AsyncFabric` bring a loop of their own, of either kind.
OPTIONS: dict[str, Any] = {"use_uvloop": sys.platform != "win32"}
# Seconds that the interpreter lets a thread run while the loop's wants to: a fifth of what is usual.
SWITCH_AFTER = 0.001
# Threads of one loop for work that takes long. They share the interpreter with the loop, so that each more of them is
# one more that the loop waits for.
_THREADS = 1
_limiter: RunVar[CapacityLimiter] = RunVar("muniment_threads")


async def in_thread(work: Callable[..., T], *given: Any) -> T:
    """What the work gives, done in a thread beside the loop, one after the other."""
    limiter = _limiter.get(None)
    if limiter is None:
        limiter = CapacityLimiter(_THREADS)
        _limiter.set(limiter)
    return await anyio.to_thread.run_sync(work, *given, limiter=limiter)
