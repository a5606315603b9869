"""Event loops: uvloop for our own threads and programs, one thread for long work, and closing at exit."""

import atexit
import threading
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from typing import Any, Protocol, TypeVar
from weakref import WeakSet

import anyio.to_thread
from anyio import CapacityLimiter
from anyio.lowlevel import RunVar, checkpoint

T = TypeVar("T")

# For anyio. Programs that call `AsyncFabric` bring a loop of their own.
OPTIONS: dict[str, Any] = {"use_uvloop": find_spec("uvloop") is not None}

# Seconds that a thread may hold the interpreter while the event loop waits for it: a fifth of the default.
SWITCH_AFTER = 0.001
# Threads of one loop for long work. They share the interpreter with the loop, which waits for each of them in turn.
_THREADS = 1
_limiter: RunVar[CapacityLimiter] = RunVar("muniment_threads")
_WORKER = "AnyIO worker thread"


async def give_way() -> None:
    """Let every other task run, and those that they wake, before long work goes on with its next part.

    Parts of long work are ready at every turn of the loop. Two turns leave every second one to calls that wait for an
    answer (ISO-3), and cost a few microseconds where there are none.
    """
    await checkpoint()
    await checkpoint()


class Closable(Protocol):
    """Something that runs an event loop in a thread."""

    def close(self) -> None:
        """End the loop; may be called again."""


_open: "WeakSet[Closable]" = WeakSet()
_closer: threading.Thread | None = None
# Seconds that the end of the program waits until everything is closed.
_CLOSED_WITHIN = 15.0


def close_at_exit(one: Closable) -> None:
    """Close it when the program ends, in case the program does not.

    The interpreter waits for the threads that a loop keeps for blocking calls, and these end only with the loop: a
    program that forgot to close would never end.
    """
    global _closer
    _open.add(one)
    if _closer is None:
        # Runs before what is registered already, which takes the server away (`database.embedded`).
        atexit.register(_wait_until_closed)
    if _closer is None or not _closer.is_alive():
        _closer = threading.Thread(target=_close_all, name="muniment-close-at-exit", daemon=True)
        _closer.start()


def _close_all() -> None:
    """Close all when no thread of the program is left; `atexit` would run only after the threads that we must end."""
    threading.main_thread().join()
    while others := _program_threads():
        for thread in others:
            thread.join()
    for one in list(_open):
        with suppress(Exception):
            one.close()


def _wait_until_closed() -> None:
    """Let the thread that closes all finish: the interpreter does not wait for it, nor for the loops' own threads."""
    if _closer is not None:
        _closer.join(_CLOSED_WITHIN)


def _program_threads() -> list[threading.Thread]:
    others = (thread for thread in threading.enumerate() if thread is not threading.main_thread())
    return [one for one in others if one.is_alive() and not one.daemon and not one.name.startswith(_WORKER)]


async def in_thread(work: Callable[..., T], *args: Any) -> T:
    """Run the function in a thread of the loop, one call after the other, and return its result."""
    limiter = _limiter.get(None)
    if limiter is None:
        limiter = CapacityLimiter(_THREADS)
        _limiter.set(limiter)
    return await anyio.to_thread.run_sync(work, *args, limiter=limiter)
