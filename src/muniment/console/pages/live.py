"""Live updates: a server-sent event stream that reports changes in the tenant."""

from collections import Counter
from collections.abc import AsyncGenerator
from time import monotonic
from weakref import WeakKeyDictionary

import anyio
from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse
from pydantic_core import to_json

from muniment.console.rendering import HEADERS
from muniment.console.visitors import CurrentVisitor, SignedOut, Visitor, current_visitor
from muniment.errors import MunimentError, RateLimited
from muniment.fabric import AsyncFabric

router = APIRouter()

# Seconds between two checks of the tenant's sequence number.
CHECK_EVERY = 1.0
# Seconds of silence after which a keep-alive comment is sent.
ALIVE_EVERY = 15.0
# Milliseconds after which a browser reconnects.
RETRY_AFTER = 3000
# Streams that one person may have open: a browser opens one for each visible page.
MOST_STREAMS = 12
# Tenants whose counts are cached.
MOST_TENANTS = 1000

_OPEN: Counter[str] = Counter()
# Many people watch one queue: for each sequence number it is counted once for all of them.
_COUNTS: WeakKeyDictionary[AsyncFabric, dict[str, dict[str, int]]] = WeakKeyDictionary()


@router.get("/live")
async def live(request: Request, visitor: CurrentVisitor) -> Response:
    """Send an event `changes` now and whenever the tenant's sequence number rises; ends with the session."""
    person = f"{visitor.principal.tenant_id}\0{visitor.principal.id}"
    if _OPEN[person] >= MOST_STREAMS:
        raise RateLimited("has too many pages open", wait=ALIVE_EVERY)
    return StreamingResponse(_stream(request, visitor, person), media_type="text/event-stream", headers=HEADERS)


async def _stream(request: Request, visitor: Visitor, person: str) -> AsyncGenerator[bytes]:
    _OPEN[person] += 1
    try:
        yield f"retry: {RETRY_AFTER}\n\n".encode()
        async for chunk in _changes(request, visitor):
            yield chunk
    except (SignedOut, MunimentError):
        # The browser reconnects, and then gets the error as any request does.
        return
    finally:
        _OPEN[person] -= 1
        if not _OPEN[person]:
            del _OPEN[person]


async def _changes(request: Request, visitor: Visitor) -> AsyncGenerator[bytes]:
    access = visitor.fabric.access
    seen, sent_at = -1, monotonic()
    while not request.app.state.streams.stopping:
        seq = await access.at(visitor.principal.tenant_id)
        silent = monotonic() - sent_at > ALIVE_EVERY
        if seq != seen or silent:
            # INVARIANT: nothing is sent after the session has ended or the credential was revoked.
            visitor = await current_visitor(request)
        if seq != seen:
            yield b"event: changes\ndata: %b\n\n" % to_json(await _queue_counts(visitor, seq))
            seen, sent_at = seq, monotonic()
        elif silent:
            yield b": still here\n\n"
            sent_at = monotonic()
        await anyio.sleep(CHECK_EVERY)


async def _queue_counts(visitor: Visitor, seq: int) -> dict[str, int]:
    """The sequence number, and the counts of the queue for those who may read it."""
    if not visitor.may("read_queue"):
        return {"seq": seq}
    tenants = _COUNTS.setdefault(visitor.fabric, {})
    counts = tenants.get(visitor.principal.tenant_id)
    if counts is None or counts["seq"] != seq:
        found = await visitor.fabric.queue.counts(visitor.principal)
        counts = {"seq": seq, "open": found.open, "overdue": found.overdue}
        if len(tenants) >= MOST_TENANTS:
            tenants.clear()
        tenants[visitor.principal.tenant_id] = counts
    return counts
