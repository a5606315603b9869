"""Limits on connections and on the heads of requests.

Why uvicorn's own do not suffice: docs/adr/0045-own-limits-on-connections-and-headers.md.
"""

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from muniment.http.limits import ConcurrencyLimit

HEAD_LIMIT = 64 * 1024
HEADERS_LIMIT = 128
# Seconds within which a connection must have sent the head of a request.
HEAD_WITHIN = 30.0
_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
_TOO_MANY = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class HeaderLimits(HttpToolsProtocol):
    """One connection; it is closed if a head is too long, has too many headers, or does not arrive in time."""

    # INVARIANT: set by a subclass for each server.
    connection_limit: ConcurrencyLimit
    _address = ""
    _is_counted = False
    _deadline: asyncio.TimerHandle | None = None
    _reads_head = False
    # Bytes that arrived while a head was read, bytes of its parsed parts, and how many headers it has.
    _received = 0
    _parsed = 0
    _headers = 0

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Count the connection, and wait for its first head."""
        super().connection_made(transport)
        self._address = self.client[0] if self.client else ""
        self._begin_head()
        self._is_counted = self.connection_limit.add(self._address)
        if not self._is_counted:
            self._refuse(_TOO_MANY)

    def connection_lost(self, exc: Exception | None) -> None:
        """Count the connection no longer."""
        self._end_head()
        if self._is_counted:
            self.connection_limit.remove(self._address)
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """Begin the head of a request."""
        super().on_message_begin()
        self._begin_head()

    def on_url(self, url: bytes) -> None:
        """Take a part of the URL, if the head is within its limits."""
        self._parsed += len(url)
        if self._is_within_limits():
            super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header, if the head is within its limits."""
        self._headers += 1
        self._parsed += len(name) + len(value)
        if self._is_within_limits():
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Pass on a head that is within its limits; the middleware bounds the body."""
        self._end_head()
        if self._is_within_limits():
            super().on_headers_complete()
        else:
            self._refuse(_TOO_LARGE)

    def on_body(self, body: bytes) -> None:
        """Take a part of the body, unless the request was refused."""
        if not self.transport.is_closing():
            super().on_body(body)

    def on_message_complete(self) -> None:
        """End the request, unless it was refused."""
        if not self.transport.is_closing():
            super().on_message_complete()

    def data_received(self, data: bytes) -> None:
        """Parse what has arrived."""
        if self.transport.is_closing():
            return
        super().data_received(data)
        if self._reads_head:
            self._received += len(data)
            if self._received > HEAD_LIMIT:
                self._refuse(_TOO_LARGE)

    def _is_within_limits(self) -> bool:
        return self._headers <= HEADERS_LIMIT and self._parsed <= HEAD_LIMIT

    def _refuse(self, answer: bytes) -> None:
        if not self.transport.is_closing():
            self.transport.write(answer)
            self.transport.close()

    def _begin_head(self) -> None:
        self._reads_head, self._received, self._parsed, self._headers = True, 0, 0, 0
        if self._deadline is None:
            self._deadline = self.loop.call_later(HEAD_WITHIN, self._refuse, b"")

    def _end_head(self) -> None:
        self._reads_head = False
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
