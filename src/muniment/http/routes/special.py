"""The routes that are written by hand: one or many captures, documents, streams, Prometheus text, and who one is."""

from typing import Annotated, Any

from fastapi import Depends, Header, Query, Request, Response

from muniment.audit.verbs import events as list_events
from muniment.candidates.verbs import propose as propose_fact
from muniment.capture.verbs import capture as write_capture
from muniment.consent.verbs import grant as grant_consent
from muniment.errors import InvalidInput
from muniment.http.bodies import (
    Captured,
    CapturesBody,
    Consented,
    Limit,
    Page,
    ProposalDocumentBody,
    Proposed,
    given_fields,
    page,
)
from muniment.http.caller import Asking, IdempotencyKey, May
from muniment.http.event_stream import STREAM, Streams
from muniment.http.routes.declared import keyed
from muniment.http.routes.router import v1_router
from muniment.http.server_metrics import CONTENT_TYPE
from muniment.metrics.prometheus import prometheus_text
from muniment.metrics.verbs import metrics as measure
from muniment.model.api_key import Credential
from muniment.model.candidate import Refusal
from muniment.model.capture import Receipt, Receipts
from muniment.model.consent import Consent
from muniment.model.events import Event, EventType
from muniment.model.fields import Instant, Name
from muniment.model.metrics import Metrics
from muniment.model.proposal import Submission
from muniment.model.zones import UTC_NAME, ZoneName

router = v1_router()

_TEXT: dict[str, Any] = {"schema": {"type": "string"}}


@router.get("/whoami", tags=["whoami"])
async def whoami(asking: Annotated[Asking, Depends(May())]) -> Credential:
    """Return the principal and the rights of the credential of this request."""
    return asking.credential


@router.post("/captures", status_code=201, tags=["captures"])
async def capture(
    asking: Annotated[Asking, Depends(May(write_capture))], body: Captured, key: IdempotencyKey = None
) -> Receipt | Receipts:
    """Write down one thing that happened, or many in `captures`, all or none. It is committed when this answers."""
    asker = await asking.asker(body.run)
    if not isinstance(body, CapturesBody):
        return await asking.fabric.capture(asker, **keyed(given_fields(body, "run"), key))
    items = [given_fields(item) for item in body.captures]
    if key is not None:
        items = [
            item if item.get("idempotency_key") else item | {"idempotency_key": f"{key}#{n}"}
            for n, item in enumerate(items)
        ]
    return Receipts.of(await asking.fabric.capture_many(asker, items))


@router.post("/proposals", status_code=201, tags=["proposals"])
async def propose(
    asking: Annotated[Asking, Depends(May(propose_fact))], body: Proposed, key: IdempotencyKey = None
) -> Submission | Refusal:
    """Propose a typed fact, or a proposal document as it is exchanged.

    It is captured, passes the gates and enters the queue, in one transaction; a fact that a gate refuses is answered
    with the gate and the reason. A document keeps its id, and every check in it is computed anew.
    """
    asker = await asking.asker(body.run)
    fields = given_fields(body, "run")
    return await asking.fabric.propose(
        asker, **(fields if isinstance(body, ProposalDocumentBody) else keyed(fields, key))
    )


@router.post("/consents", status_code=201, tags=["consents"])
async def grant(asking: Annotated[Asking, Depends(May(grant_consent))], body: Consented) -> Consent:
    """Record a consent; with `supersedes` it renews or changes an earlier one.

    Or record a consent document as it is exchanged, with its own id, times and evidence.
    """
    return await asking.fabric.consent.grant(asking.principal, **given_fields(body))


@router.get("/events", tags=["events"], responses={200: {"content": {STREAM: _TEXT}}}, response_model=Page[Event])
async def events(
    asking: Annotated[Asking, Depends(May(list_events))],
    request: Request,
    after: Annotated[
        int | None, Query(ge=0, le=2**62, description="the number of the last event that is known")
    ] = None,
    limit: Limit = list_events.page_limit,
    types: Annotated[
        list[EventType] | None, Query(description="only events of these types; repeat the parameter for each")
    ] = None,
    about: Annotated[Name | None, Query(description="an id that they name")] = None,
    latest: Annotated[bool, Query(description="the last first; `after` is the number that they come before")] = False,
    since: Annotated[Instant | None, Query(description="only events from this moment on")] = None,
    until: Annotated[Instant | None, Query(description="only events from before this moment")] = None,
    accept: Annotated[str | None, Header(include_in_schema=False)] = None,
    last_event_id: Annotated[
        str | None, Header(max_length=64, description="the position from which an interrupted stream continues")
    ] = None,
) -> Page[Event] | Response:
    """List the tenant's events after a number, as a page; for `Accept: text/event-stream` as a stream that goes on.

    A page ends with a whole transaction. A stream sends each event as a CloudEvent under its own id; with that id as
    `Last-Event-ID`, the next stream continues after it.
    """
    if STREAM in (accept or ""):
        if types is not None or about is not None or latest or since is not None or until is not None:
            raise InvalidInput("a stream has all events, in their order", field="types")
        streams: Streams = request.app.state.streams
        return streams.open(asking, after, last_event_id, request.state.check_again)
    found = await asking.fabric.events(
        asking.principal,
        after=after or 0,
        limit=limit,
        types=types,
        about=about,
        latest=latest,
        since=since,
        until=until,
    )
    return page(found, limit, "seq")


@router.get("/metrics", tags=["metrics"], responses={200: {"content": {"text/plain": _TEXT}}}, response_model=Metrics)
async def metrics(
    asking: Annotated[Asking, Depends(May(measure))],
    since: Instant | None = None,
    until: Instant | None = None,
    zone: ZoneName = UTC_NAME,
    storage: bool = True,
    accept: Annotated[str | None, Header(include_in_schema=False)] = None,
) -> Metrics | Response:
    """Compute the metrics of the tenant; for `Accept: text/plain` in the format of Prometheus."""
    found = await asking.fabric.metrics(asking.principal, since=since, until=until, zone=zone, storage=storage)
    # Prometheus names OpenMetrics first, and this among the rest; who names JSON too is a program of another kind.
    if "text/plain" in (accept or "") and "application/json" not in (accept or ""):
        return Response(prometheus_text({found.tenant_id: found}), media_type=CONTENT_TYPE)
    return found
