"""What happens meanwhile: a stream that says when something in the tenant has changed."""

from collections import Counter
from collections.abc import AsyncGenerator
from time import monotonic
from typing import Protocol, cast
from weakref import WeakKeyDictionary

import anyio
from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse
from pydantic_core import to_json

from muniment.console.rendering import HEADERS
from muniment.console.visitors import SignedOut, Visiting, Visitor
from muniment.console.visitors import visitor as visiting
from muniment.errors import MunimentError, RateLimited
from muniment.fabric import AsyncFabric

router = APIRouter()

# Seconds between two looks at the tenant's clock.
LOOK_EVERY = 1.0
# Seconds after which a silent stream says that it is still there.
ALIVE_EVERY = 15.0
# Milliseconds after which a browser whose stream broke off comes back.
COME_BACK = 3000
# A browser opens one for each page that is seen; nobody sees more at once.
MOST = 12
# Whose counts are kept.
TENANTS = 1000


class _Streams(Protocol):
    """What a server knows of its streams."""

    @property
    def stopping(self) -> bool:
        """Whether it is about to stop."""
        ...


@router.get("/live")
async def live(request: Request, visitor: Visiting) -> Response:
    """An event `changes` now, and whenever the tenant's number has moved; it ends with the session."""
    whose = f"{visitor.principal.tenant_id}\0{visitor.principal.id}"
    if _OPEN[whose] >= MOST:
        raise RateLimited("has too many pages open", wait=ALIVE_EVERY)
    return StreamingResponse(_stream(request, visitor, whose), media_type="text/event-stream", headers=HEADERS)


_OPEN: Counter[str] = Counter()


async def _stream(request: Request, visitor: Visitor, whose: str) -> AsyncGenerator[bytes]:
    _OPEN[whose] += 1
    try:
        yield f"retry: {COME_BACK}\n\n".encode()
        async for chunk in _changes(request, visitor):
            yield chunk
    except (SignedOut, MunimentError):
        # The browser comes back, and is then told what is wrong as every request is.
        return
    finally:
        _OPEN[whose] -= 1
        if not _OPEN[whose]:
            del _OPEN[whose]


async def _changes(request: Request, visitor: Visitor) -> AsyncGenerator[bytes]:
    streams = cast("_Streams", request.app.state.streams)
    access = visitor.fabric.access
    seen, spoke = -1, monotonic()
    while not streams.stopping:
        seq = await access.at(visitor.principal.tenant_id)
        silent = monotonic() - spoke > ALIVE_EVERY
        if seq != seen or silent:
            # INVARIANT: nothing is sent in a session that is over, or under a credential that was revoked since.
            visitor = await visiting(request)
        if seq != seen:
            yield b"event: changes\ndata: %b\n\n" % to_json(await _told(visitor, seq))
            seen, spoke = seq, monotonic()
        elif silent:
            yield b": still here\n\n"
            spoke = monotonic()
        await anyio.sleep(LOOK_EVERY)


async def _told(visitor: Visitor, seq: int) -> dict[str, int]:
    """The number, and to who may know it how the queue stands."""
    if not visitor.may("read_queue"):
        return {"seq": seq}
    known = _COUNTED.setdefault(visitor.fabric, {})
    told = known.get(visitor.principal.tenant_id)
    if told is None or told["seq"] != seq:
        counts = await visitor.fabric.queue.counts(visitor.principal)
        told = {"seq": seq, "open": counts.open, "overdue": counts.overdue}
        if len(known) >= TENANTS:
            known.clear()
        known[visitor.principal.tenant_id] = told
    return told


# Many look at one queue: at each number it is counted once for them all.
_COUNTED: WeakKeyDictionary[AsyncFabric, dict[str, dict[str, int]]] = WeakKeyDictionary()
