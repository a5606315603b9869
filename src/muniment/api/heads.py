"""Heads of requests, within bounds: uvicorn's own protocol lets one be of any length and take any time to arrive."""

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_LIMIT = 64 * 1024
# Seconds that a connection has to say what it wants.
HEAD_WITHIN = 30.0
_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class BoundedHeads(HttpToolsProtocol):
    """One connection; whoever sends too long a head, or none in time, is hung up on."""

    _size = 0
    _reading = False
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        """It is open, and says something soon."""
        super().connection_made(transport)
        self._begin()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is over."""
        self._end()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """A head begins."""
        super().on_message_begin()
        self._begin()

    def on_headers_complete(self) -> None:
        """A head is whole; its body is the door's to bound."""
        self._end()
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        """Some more of it."""
        super().data_received(data)
        if self._reading:
            self._size += len(data)
            if self._size > HEAD_LIMIT and not self.transport.is_closing():
                self.transport.write(_TOO_LARGE)
                self.transport.close()

    def _begin(self) -> None:
        self._reading, self._size = True, 0
        if self._deadline is None:
            self._deadline = self.loop.call_later(HEAD_WITHIN, self._hang_up)

    def _end(self) -> None:
        self._reading = False
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _hang_up(self) -> None:
        self._deadline = None
        if not self.transport.is_closing():
            self.transport.close()
