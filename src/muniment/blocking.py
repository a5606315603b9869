"""Running the coroutines of an asynchronous fabric, or client, from any thread."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

from anyio.from_thread import BlockingPortal, start_blocking_portal

from muniment import loops
from muniment.errors import InvalidInput

if TYPE_CHECKING:
    from muniment.fabric import AsyncFabric

_P = ParamSpec("_P")
_T = TypeVar("_T")


def wait_for(portal: BlockingPortal, call: Callable[[], Awaitable[_T]]) -> _T:
    """Wait for a call on the event loop; Ctrl-C, or a signal that ends the program, cancels the call too."""
    future = portal.start_task_soon(call)
    try:
        return future.result()
    except (KeyboardInterrupt, SystemExit):
        future.cancel()
        raise


class BlockingGroup:
    """A group of verbs that block."""

    def __init__(self, portal: BlockingPortal, group: Any) -> None:
        self._portal = portal
        self._group = group

    def _wait(self, method: Callable[_P, Awaitable[_T]], /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        return wait_for(self._portal, partial(method, *args, **kwargs))


class BlockingLifecycle:
    """A blocking fabric, or client, without its verbs: an asynchronous one on an event loop of its own."""

    def __init__(
        self, portal: BlockingPortal, running: AbstractContextManager[BlockingPortal], fabric: "AsyncFabric"
    ) -> None:
        self._portal = portal
        self._running = running
        self._fabric = fabric
        self._closed = False
        loops.close_at_exit(self)

    @classmethod
    def _started(cls, fabric: "AsyncFabric") -> Self:
        """Open it on an event loop of its own."""
        running = start_blocking_portal(backend_options=loops.OPTIONS)
        portal = running.__enter__()
        try:
            wait_for(portal, fabric.__aenter__)
        except BaseException:
            running.__exit__(None, None, None)
            raise
        return cls(portal, running, fabric)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections, and end the event loop; closing again does nothing."""
        if not self._closed:
            try:
                self._wait(self._fabric.close)
            finally:
                self._closed = True
                self._running.__exit__(None, None, None)

    def _wait(self, method: Callable[_P, Awaitable[_T]], /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        if self._closed:
            raise InvalidInput("the fabric is not open")
        return wait_for(self._portal, partial(method, *args, **kwargs))
