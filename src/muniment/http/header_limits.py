"""Connections and the heads of requests, within bounds: uvicorn's own protocol lets a head be of any length."""

import asyncio
from collections import Counter

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_LIMIT = 64 * 1024
HEADERS_LIMIT = 128
# Seconds that a connection has to say what it wants.
HEAD_WITHIN = 30.0
_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
_TOO_MANY = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class Connections:
    """The connections that are open, of everybody and of each address."""

    def __init__(self, most: int, proxies: frozenset[str] = frozenset()) -> None:
        self._most = most
        self._each = most // 2
        self._proxies = proxies
        self._open = 0
        self._of: Counter[str] = Counter()

    def opened(self, address: str) -> bool:
        """Count one more; whether it may stay."""
        self._open += 1
        self._of[address] += 1
        return self._open <= self._most and (self._of[address] <= self._each or address in self._proxies)

    def closed(self, address: str) -> None:
        """One is over."""
        self._open -= 1
        self._of[address] -= 1
        if not self._of[address]:
            del self._of[address]


class HeaderLimits(HttpToolsProtocol):
    """One connection; whoever sends too long a head, or none in time, is hung up on."""

    # Of one server; where it is None, nobody counts.
    open_ones: Connections | None = None
    _size = 0
    _named = 0
    _headers = 0
    _reading = False
    _deadline: asyncio.TimerHandle | None = None
    _address = ""

    def connection_made(self, transport: asyncio.Transport) -> None:
        """It is open, and says something soon."""
        super().connection_made(transport)
        self._address = self.client[0] if self.client else ""
        self._begin()
        if self.open_ones is not None and not self.open_ones.opened(self._address):
            self._refuse(_TOO_MANY)

    def connection_lost(self, exc: Exception | None) -> None:
        """It is over."""
        self._end()
        if self.open_ones is not None:
            self.open_ones.closed(self._address)
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """A head begins."""
        super().on_message_begin()
        self._begin()

    def on_url(self, url: bytes) -> None:
        """What is asked for, or a part of it."""
        self._named += len(url)
        if self._named <= HEAD_LIMIT:
            super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header; those past the bounds are not kept."""
        self._headers += 1
        self._named += len(name) + len(value)
        if not self._past_bounds():
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """A head is whole; its body is the door's to bound."""
        self._end()
        if self._past_bounds():
            self._refuse(_TOO_LARGE)
        else:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Some of a body; of one whose head was refused none is kept."""
        if not self.transport.is_closing():
            super().on_body(body)

    def on_message_complete(self) -> None:
        """A request is whole."""
        if not self.transport.is_closing():
            super().on_message_complete()

    def data_received(self, data: bytes) -> None:
        """Some more of it."""
        if self.transport.is_closing():
            return
        super().data_received(data)
        if self._reading:
            self._size += len(data)
            if self._size > HEAD_LIMIT:
                self._refuse(_TOO_LARGE)

    def _past_bounds(self) -> bool:
        return self._headers > HEADERS_LIMIT or self._named > HEAD_LIMIT

    def _refuse(self, answer: bytes) -> None:
        if not self.transport.is_closing():
            self.transport.write(answer)
            self.transport.close()

    def _begin(self) -> None:
        self._reading, self._size, self._named, self._headers = True, 0, 0, 0
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
