"""The auditor's: events, the chain, archives; and the figures of a tenant."""

from typing import Annotated

from fastapi import APIRouter, Depends, Header, Query, Request, Response

from muniment.errors import InvalidInput
from muniment.http.bodies import Page, VerifyBody, page
from muniment.http.caller import Asking, May
from muniment.http.event_stream import STREAM, Streams
from muniment.http.idempotency import IdempotentRoute
from muniment.http.lists import After, Limit
from muniment.http.server_metrics import CONTENT_TYPE
from muniment.metrics.prometheus import prometheus_text
from muniment.model.adoption import Adoption
from muniment.model.archive import Archive, ArchiveCheck
from muniment.model.chain import Head, Verification
from muniment.model.events import Event, EventType
from muniment.model.fields import Instant, Name
from muniment.model.metrics import Metrics

router = APIRouter(tags=["audit"], route_class=IdempotentRoute)

Auditor = Annotated[Asking, Depends(May("audit"))]
_NUMBER = 2**62


@router.get(
    "/events", responses={200: {"content": {STREAM: {"schema": {"type": "string"}}}}}, response_model=Page[Event]
)
async def events(
    asking: Auditor,
    request: Request,
    after: Annotated[
        int | None, Query(ge=0, le=_NUMBER, description="the number of the last event that is known")
    ] = None,
    limit: Limit = 100,
    types: Annotated[list[EventType] | None, Query(description="of these types alone; said once for each")] = None,
    about: Annotated[Name | None, Query(description="an id that they name")] = None,
    latest: Annotated[bool, Query(description="the last first; `after` is the number that they come before")] = False,
    accept: Annotated[str | None, Header(include_in_schema=False)] = None,
    last_event_id: Annotated[
        str | None, Header(max_length=64, description="where a stream that broke off goes on")
    ] = None,
) -> Page[Event] | Response:
    """The tenant's log from a number on, as a page; for `Accept: text/event-stream` as a stream that goes on.

    A page ends with a whole transaction. A stream sends each event as a CloudEvent under its own id; told that id as
    `Last-Event-ID`, the next stream goes on after it.
    """
    if STREAM in (accept or ""):
        if types is not None or about is not None or latest:
            raise InvalidInput("a stream tells of everything, in its order", field="types")
        streams: Streams = request.app.state.streams
        return streams.open(asking, after, last_event_id, request.state.check_again)
    found = await asking.fabric.events(
        asking.principal, after=after or 0, limit=limit, types=types, about=about, latest=latest
    )
    return Page(items=found, next=str(found[-1].seq) if len(found) >= limit else None)


@router.post("/verify")
async def verify(asking: Auditor, body: VerifyBody | None = None) -> Verification:
    """Whether the audit chain holds and every row is what the log says, and every place where not.

    With a `count` it stops after about so many events; `cursor` of the answer, given again, goes on from there.
    """
    given = body or VerifyBody()
    return await asking.fabric.verify(asking.principal, head=given.head, cursor=given.cursor, count=given.count)


@router.get("/chain/head")
async def chain_head(asking: Auditor) -> Head:
    """The head of the audit chain, to keep elsewhere."""
    return await asking.fabric.chain_head(asking.principal)


@router.get("/archives")
async def archives(asking: Auditor, limit: Limit = 50, after: After = None) -> Page[Archive]:
    """The archives that old captures went to, the latest first."""
    found = await asking.fabric.archives(asking.principal, limit=limit, after=after)
    return page(found, limit, "archive_id")


@router.post("/archives/verify")
async def verify_archives(asking: Auditor) -> ArchiveCheck:
    """Whether every archive file is there and holds what was archived."""
    return await asking.fabric.verify_archives(asking.principal)


@router.get("/adoption")
async def adoption(asking: Auditor) -> Adoption:
    """After how many corrections a decision that got the correction differs from the last one before it."""
    return await asking.fabric.adoption(asking.principal)


@router.get(
    "/metrics",
    response_model=Metrics,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def metrics(
    asking: Annotated[Asking, Depends(May("metrics"))],
    since: Instant | None = None,
    until: Instant | None = None,
    accept: Annotated[str | None, Header(include_in_schema=False)] = None,
) -> Metrics | Response:
    """What the tenant's memory does and how well; for `Accept: text/plain` as Prometheus reads it."""
    found = await asking.fabric.metrics(asking.principal, since=since, until=until)
    # Prometheus names OpenMetrics first, and this among the rest; who names JSON too is a program of another kind.
    if "text/plain" in (accept or "") and "application/json" not in (accept or ""):
        return Response(prometheus_text({found.tenant_id: found}), media_type=CONTENT_TYPE)
    return found
