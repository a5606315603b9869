"""Live updates: a server-sent event stream that reports changes in the tenant."""

import re
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
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
from muniment.model.notices import Alert
from muniment.notices.rules import short_text

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

_NUMBER = re.compile(r"[0-9]{1,18}")
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
    seen, told, sent_at = -1, _last_id(request), monotonic()
    while not request.app.state.streams.stopping:
        seq = await access.at(visitor.principal.tenant_id)
        silent = monotonic() - sent_at > ALIVE_EVERY
        if seq != seen or silent:
            # INVARIANT: nothing is sent after the session has ended or the credential was revoked.
            visitor = await current_visitor(request)
        if seq != seen:
            yield b"event: changes\ndata: %b\nid: %d\n\n" % (to_json(await _queue_counts(visitor, seq)), seq)
            if told is not None and visitor.may("notices"):
                found = await visitor.fabric.notices.alerts(visitor.principal, after=told)
                told = found.seq
                if found.alerts:
                    yield b"event: notice\ndata: %b\n\n" % to_json(_notification(found.alerts))
            seen, told, sent_at = seq, max(seq, told or 0), monotonic()
        elif silent:
            yield b": still here\n\n"
            sent_at = monotonic()
        await anyio.sleep(CHECK_EVERY)


def _last_id(request: Request) -> int | None:
    """The sequence number that a browser had got when its stream broke."""
    text = request.headers.get("last-event-id", "")
    return int(text) if _NUMBER.fullmatch(text) else None


def _notification(alerts: Sequence[Alert]) -> dict[str, str]:
    """What a browser shows: how many alerts of which kinds, and the page they lead to."""
    paths = {one.path for one in alerts}
    title = f"Muniment: {len(alerts)} alert{'s' if len(alerts) > 1 else ''}"
    return {"title": title, "body": short_text(alerts), "path": paths.pop() if len(paths) == 1 else "/console"}


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
