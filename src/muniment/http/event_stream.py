"""Server-sent events: a stream of CloudEvents that resumes where it broke off."""

import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from math import inf
from time import monotonic

import anyio
from fastapi.responses import StreamingResponse

from muniment.errors import InvalidInput, MunimentError, RateLimited
from muniment.http.caller import Asking
from muniment.http.limits import ConcurrencyLimit
from muniment.http.server_metrics import ServerMetrics
from muniment.model.api_key import Credential
from muniment.model.events import Event
from muniment.standby_reads import on_primary
from muniment.webhooks.messages import encoded

CheckAgain = Callable[[], Awaitable[Credential]]

STREAM = "text/event-stream"
# Seconds between two reads of the log.
LOOK_EVERY = 0.5
# Seconds after which a silent stream sends a comment.
ALIVE_EVERY = 15.0
# Milliseconds after which a client reconnects.
COME_BACK = 2000
PAGE = 100
_MOST = 2**62
_ID = re.compile(r"(\d{1,19})\.(\d{1,5})")


class Streams:
    """The open streams of a server, at most `most` of one principal."""

    def __init__(self, metrics: ServerMetrics, most: int) -> None:
        self._metrics = metrics
        self._limit = ConcurrencyLimit(total=inf, each=most)
        self._stopping = anyio.Event()

    @property
    def stopping(self) -> bool:
        """Whether the server is about to stop."""
        return self._stopping.is_set()

    def stop(self) -> None:
        """End all streams: a server that stops waits for what is in flight."""
        self._stopping.set()

    def open(self, asking: Asking, after: int | None, last: str | None, check_again: CheckAgain) -> StreamingResponse:
        """Stream the events after a number, or after the last event that the reader received; else the whole log.

        Raises `InvalidInput`, and `RateLimited` for a principal who has too many streams open.
        """
        reader = f"{asking.tenant_id}\0{asking.principal.id}"
        if not self._limit.has_room(reader):
            raise RateLimited("has too many event streams open", wait=ALIVE_EVERY)
        start = _start(after, last)
        return StreamingResponse(self._stream(asking, start, reader, check_again), media_type=STREAM)

    async def _stream(
        self, asking: Asking, start: tuple[int, int], reader: str, check_again: CheckAgain
    ) -> AsyncGenerator[bytes]:
        # Counted here and not in `open`: a stream whose client has gone is never begun, and never ended.
        is_counted = self._limit.add(reader)
        try:
            with self._metrics.stream():
                yield f"retry: {COME_BACK}\n\n".encode()
                if not is_counted:
                    yield f": {RateLimited.code}\n\n".encode()
                    return
                async for chunk in self._events(asking, *start, check_again):
                    yield chunk
        finally:
            if is_counted:
                self._limit.remove(reader)

    async def _events(self, asking: Asking, seq: int, n: int, check_again: CheckAgain) -> AsyncGenerator[bytes]:
        # A page ends with a whole transaction, but the reader may have received only part of one: it is read again.
        sent_at = monotonic()
        while not self._stopping.is_set():
            try:
                after = max(0, seq - 1) if n >= 0 else seq
                # Whoever follows the log wants to know of an event at once.
                with on_primary():
                    found = await asking.fabric.events(asking.principal, after=after, limit=PAGE)
                fresh = [event for event in found if (event.seq, event.n) > (seq, n)]
                silent = monotonic() - sent_at > ALIVE_EVERY
                if fresh or silent:
                    # INVARIANT: nothing is sent under a credential that was revoked or has expired since.
                    await check_again()
            except MunimentError as error:
                # The client reconnects, and gets the error as for every request.
                yield f": {error.code}\n\n".encode()
                return
            if fresh:
                yield b"".join(map(_encode, fresh))
                sent_at = monotonic()
            elif silent:
                yield b": still here\n\n"
                sent_at = monotonic()
            if found:
                seq, n = found[-1].seq, -1
            if len(found) < PAGE:
                with anyio.move_on_after(LOOK_EVERY):
                    await self._stopping.wait()


def _start(after: int | None, last: str | None) -> tuple[int, int]:
    """The number after which the stream begins, and the last event of that number that was received, or -1."""
    if last is None:
        return after or 0, -1
    found = _ID.fullmatch(last)
    if found is None or int(found[1]) > _MOST:
        raise InvalidInput("expected the id of an event of this stream", field="Last-Event-ID")
    return int(found[1]), int(found[2])


def _encode(event: Event) -> bytes:
    return b"id: %d.%d\nevent: %b\ndata: %b\n\n" % (event.seq, event.n, event.type.encode(), encoded(event))
