"""Watches the socket of a connection in the event loop, for what reads and writes through libpq itself."""

import asyncio
import select
from collections.abc import Callable


class SocketWatch:
    """Calls functions when a socket can be read or written, until `stop`.

    INVARIANT: `stop` is called in the same step of the event loop in which libpq reports the end of the connection.
    libpq has closed the socket then, and the next connection may get its number. The event loop would take the two for
    one, and never wake what waits for the new one.
    INVARIANT: what is called reads until `has_more` is false. An event loop of libuv reports the last words of a server
    that died and the end of its stream in one call, and then never calls again.
    """

    def __init__(self, number: int) -> None:
        self._number = number
        self._loop = asyncio.get_running_loop()
        self._reads = self._writes = False

    def start_reading(self, read: Callable[[], None]) -> None:
        """Call `read` whenever something has arrived."""
        self._loop.add_reader(self._number, read)
        self._reads = True

    def start_writing(self, write: Callable[[], None]) -> None:
        """Call `write` whenever there is room to send."""
        self._loop.add_writer(self._number, write)
        self._writes = True

    def has_more(self) -> bool:
        """Whether something has arrived that was not read, or the stream has ended."""
        poll = select.poll()
        poll.register(self._number, select.POLLIN)
        return bool(poll.poll(0))

    def stop_writing(self) -> None:
        """Call `write` no more."""
        if self._writes:
            self._writes = False
            self._loop.remove_writer(self._number)

    def stop(self) -> None:
        """Watch the socket no more; does nothing the second time."""
        self.stop_writing()
        if self._reads:
            self._reads = False
            self._loop.remove_reader(self._number)
