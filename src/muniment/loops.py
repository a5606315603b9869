"""The event loop of our own threads and programs (uvloop where the platform has one), work beside it, and its end."""

import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol, TypeVar
from weakref import WeakSet

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
_WORKER = "AnyIO worker thread"


class Closable(Protocol):
    """What runs an event loop in a thread."""

    def close(self) -> None:
        """End it; may be called again."""


_open: "WeakSet[Closable]" = WeakSet()
_closer: threading.Thread | None = None


def close_at_exit(one: Closable) -> None:
    """Close it when the program ends, in case the program does not.

    The threads that a loop keeps for blocking calls are waited for by the interpreter, and end with the loop only: a
    program that forgot to close would never end.
    """
    global _closer
    _open.add(one)
    if _closer is None or not _closer.is_alive():
        _closer = threading.Thread(target=_close_all, name="muniment-close-at-exit", daemon=True)
        _closer.start()


def _close_all() -> None:
    """Wait until no thread of the program's own is left; `atexit` would be called after those that we wait for."""
    threading.main_thread().join()
    while (others := _threads_of_the_program()) != []:
        for thread in others:
            thread.join()
    for one in list(_open):
        # The loop ends whatever went wrong.
        with suppress(Exception):
            one.close()


def _threads_of_the_program() -> list[threading.Thread]:
    return [
        thread
        for thread in threading.enumerate()
        if thread.is_alive()
        and not thread.daemon
        and thread is not threading.main_thread()
        and not thread.name.startswith(_WORKER)
    ]


async def in_thread(work: Callable[..., T], *given: Any) -> T:
    """What the work gives, done in a thread beside the loop, one after the other."""
    limiter = _limiter.get(None)
    if limiter is None:
        limiter = CapacityLimiter(_THREADS)
        _limiter.set(limiter)
    return await anyio.to_thread.run_sync(work, *given, limiter=limiter)
