"""Events as a stream: server-sent, one CloudEvent each, resumed where it broke off."""

import re
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from time import monotonic

import anyio
from fastapi.responses import StreamingResponse

from muniment.errors import InvalidInput, MunimentError, RateLimited
from muniment.http.caller import Asking
from muniment.http.server_metrics import ServerMetrics
from muniment.model.credential import Credential
from muniment.model.events import Event
from muniment.webhooks.messages import encoded

CheckAgain = Callable[[], Awaitable[Credential]]

STREAM = "text/event-stream"
# Seconds between two looks at the log.
LOOK_EVERY = 0.5
# Seconds after which a silent stream says that it is still there.
ALIVE_EVERY = 15.0
# Milliseconds after which a client whose stream broke off comes back.
COME_BACK = 2000
PAGE = 500
_MOST = 2**62
_ID = re.compile(r"(\d{1,19})\.(\d{1,5})")


class Streams:
    """The open streams of a server."""

    def __init__(self, meters: ServerMetrics, most: int) -> None:
        self._meters = meters
        self._most = most
        self._open: Counter[str] = Counter()
        self._stopping = anyio.Event()

    @property
    def stopping(self) -> bool:
        """Whether the server is about to stop."""
        return self._stopping.is_set()

    def stop(self) -> None:
        """End them all: a server that stops waits for what is in flight."""
        self._stopping.set()

    def open(self, asking: Asking, after: int | None, last: str | None, check_again: CheckAgain) -> StreamingResponse:
        """A stream from a number on, or after the last event that its reader had; else of the whole log.

        Raises `InvalidInput`, and `RateLimited` for a principal who has as many open as it may.
        """
        whose = f"{asking.tenant_id}\0{asking.principal.id}"
        if self._open[whose] >= self._most:
            raise RateLimited("has too many event streams open", wait=ALIVE_EVERY)
        place = _place(after, last)
        return StreamingResponse(self._stream(asking, place, whose, check_again), media_type=STREAM)

    async def _stream(
        self, asking: Asking, place: tuple[int, int], whose: str, check_again: CheckAgain
    ) -> AsyncGenerator[bytes]:
        # It counts from here on; meanwhile others may have been let in too.
        self._open[whose] += 1
        one_too_many = self._open[whose] > self._most
        try:
            with self._meters.stream():
                yield f"retry: {COME_BACK}\n\n".encode()
                if one_too_many:
                    yield f": {RateLimited.code}\n\n".encode()
                    return
                async for chunk in self._events(asking, *place, check_again):
                    yield chunk
        finally:
            self._open[whose] -= 1
            if not self._open[whose]:
                del self._open[whose]

    async def _events(self, asking: Asking, seq: int, n: int, check_again: CheckAgain) -> AsyncGenerator[bytes]:
        # A page ends with a whole transaction, but a reader may have got only part of one: its number is asked again.
        spoke = monotonic()
        while not self._stopping.is_set():
            try:
                after = max(0, seq - 1) if n >= 0 else seq
                found = await asking.fabric.events(asking.principal, after=after, limit=PAGE)
                fresh = [event for event in found if (event.seq, event.n) > (seq, n)]
                silent = monotonic() - spoke > ALIVE_EVERY
                if fresh or silent:
                    # INVARIANT: nothing is sent under a credential that was revoked or has expired since.
                    await check_again()
            except MunimentError as error:
                # It comes back, and is then told what is wrong as every request is.
                yield f": {error.code}\n\n".encode()
                return
            if fresh:
                yield b"".join(map(_written, fresh))
                spoke = monotonic()
            elif silent:
                yield b": still here\n\n"
                spoke = monotonic()
            if found:
                seq, n = found[-1].seq, -1
            if len(found) < PAGE:
                with anyio.move_on_after(LOOK_EVERY):
                    await self._stopping.wait()


def _place(after: int | None, last: str | None) -> tuple[int, int]:
    """The number after which it begins, and the last event of that number that its reader had, or -1 for all."""
    if last is None:
        return after or 0, -1
    found = _ID.fullmatch(last)
    if found is None or int(found[1]) > _MOST:
        raise InvalidInput("expected the id of an event of this stream", field="Last-Event-ID")
    return int(found[1]), int(found[2])


def _written(event: Event) -> bytes:
    return b"id: %d.%d\nevent: %b\ndata: %b\n\n" % (event.seq, event.n, event.type.encode(), encoded(event))
