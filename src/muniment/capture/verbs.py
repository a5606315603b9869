"""The verbs of capture: write down what happened; list, read and rerun captures; list what the gates refused."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Annotated, Any

from pydantic import Field, Strict

from muniment.capture import reruns
from muniment.capture import store as captures
from muniment.capture.read_log import record_reads
from muniment.capture.rules import (
    CaptureFields,
    CaptureMany,
    capture_input,
    capture_inputs,
    check_user,
    run_fields,
    user_of,
)
from muniment.context import FabricContext
from muniment.database.sealing import KeysMissing
from muniment.errors import InvalidInput
from muniment.loops import give_way
from muniment.model.candidate import GateName
from muniment.model.capture import (
    CaptureEntry,
    CaptureHistory,
    CaptureState,
    Receipt,
    Receipts,
    RefusalCount,
    RefusalEntry,
    Rerun,
    RerunReason,
)
from muniment.model.context import Asker, Principal
from muniment.model.fields import CaptureKind, Ceid, Instant, Name, Source
from muniment.model.inputs import Listing, VerbInput, check_whole_number
from muniment.standby_reads import reading
from muniment.verbs.declaration import verb

BATCH_LIMIT = 10_000
# Captures that are checked before other tasks of the event loop run.
_SLICE = 20
# The index of an archive does not keep these fields.
_NOT_IN_THE_INDEX = ("source", "session_id", "run_id")


@verb(
    "capture",
    right="capture",
    http="POST /captures",
    status=201,
    unchecked=CaptureFields,
    keywords=CaptureFields,
    retry=True,
    custom_route=True,
)
async def capture(context: FabricContext, asker: Asker, fields: Mapping[str, Any], *, principal: Principal) -> Receipt:
    """Capture one thing that was said, observed or decided. It is committed when this returns."""
    item = capture_input(run_fields(asker), fields)
    check_user(asker, [item])
    prepared = captures.Prepared(await context.pack_for(asker), context.now())
    prepared.add([item])
    return (await _write(context, principal, prepared))[0]


@verb(
    "capture_many",
    right="capture",
    http="POST /captures",
    status=201,
    unchecked=CaptureMany,
    positional=("items",),
    retry=True,
    shown_as=Receipts,
    slow=True,
    custom_route=True,
)
async def capture_many(
    context: FabricContext, asker: Asker, fields: Mapping[str, Any], *, principal: Principal
) -> list[Receipt]:
    """Write many captures, all or none, in one transaction. The receipts are in the order of the items."""
    items: Sequence[Mapping[str, Any]] = fields["items"]
    if not isinstance(items, Sequence) or isinstance(items, str | bytes):
        raise InvalidInput("expected a list of captures", field="captures")
    check_whole_number(len(items), "captures", least=1, most=BATCH_LIMIT)
    prepared = captures.Prepared(await context.pack_for(asker), context.now(), batch=True)
    known = run_fields(asker)
    # Checking a batch is only computation: one batch at a time, in slices, so that other calls do not wait for many.
    async with context.batch_check:
        for first in range(0, len(items), _SLICE):
            prepared.add(capture_inputs(known, items[first : first + _SLICE], within="captures", first=first))
            await give_way()
    check_user(asker, prepared.items, within="captures")
    return await _write(context, principal, prepared)


async def _write(context: FabricContext, author: Principal, prepared: captures.Prepared) -> list[Receipt]:
    await context.open_tenant(author.tenant_id)
    # Claiming idempotency keys may wait for another transaction, which must come before the tick.
    if not any(item.idempotency_key for item in prepared.items):
        with suppress(KeysMissing):
            opened = context.transaction(author.tenant_id, "writer", under=prepared.pack, one_plan=True)
            async with opened as tx:
                tx.change_nothing_visible()
                return await captures.write(tx, context.vault, author, prepared, make_keys=False)
    async with context.transaction(author.tenant_id, "writer", under=prepared.pack) as tx:
        tx.change_nothing_visible()
        return await captures.write(tx, context.vault, author, prepared)


class CaptureFilters(VerbInput):
    """What `captures.list` can be narrowed to."""

    kind: CaptureKind | None = None
    source: Source | None = Field(None, description="the kind of principal that captured it")
    subject: Ceid | None = Field(None, description="what it is about")
    user_id: Name | None = Field(None, description="the end user it was captured for")
    session_id: Name | None = None
    run_id: Name | None = None
    since: Instant | None = Field(None, description="captured at that moment or later")
    until: Instant | None = Field(None, description="captured before that moment")
    state: CaptureState | None = Field(None, description="archived captures are listed only with `archived`")


class ListCaptures(Listing, CaptureFilters):
    """Which captures to list."""


@verb(
    "captures.list",
    right="read_captures",
    http="GET /captures",
    keywords=CaptureFilters,
    page_key="capture_id",
    cli="captures list",
)
async def list_captures(context: FabricContext, reader: Principal, request: ListCaptures) -> list[CaptureEntry]:
    """List captures without their content, the latest first.

    They can be narrowed to a `kind`, a `source`, a `subject`, a `user_id`, a `session_id`, a `run_id`, a `state`, and
    to those captured from `since` on and before `until`. An auditor sees all, a reviewer those with a proposal or a
    refusal. Archived captures are listed only with the state `archived`.
    `after` is the id of the last capture of the previous page. Raises `NotFound`.
    """
    in_archives = request.state == "archived"
    for name in _NOT_IN_THE_INDEX if in_archives else ():
        if getattr(request, name) is not None:
            raise InvalidInput("is not known of archived captures", field=name)
    pack = await context.pack_for(reader)
    filters = {name: getattr(request, name) for name in CaptureFilters.model_fields}
    filters["subject"] = pack.identity.spellings(request.subject) if request.subject is not None else None
    filters["subject_user"] = user_of(request.subject, pack)
    async with context.transaction(reader.tenant_id, "auditor") as tx:
        return await reruns.captures(
            tx, filters, in_archives=in_archives, every=_sees_all(reader), count=request.limit, after=request.after
        )


class CaptureId(VerbInput):
    """A capture."""

    capture_id: Name


@verb("captures.get", right="read_captures", http="GET /captures/{capture_id}", cli="captures get")
async def get_capture(context: FabricContext, reader: Principal, request: CaptureId) -> CaptureHistory:
    """Show one capture with its content and its proposals and refusals. The reading of the content is recorded.

    Raises `NotFound`, for a reviewer also where no proposal and no refusal came from it; `ArchiveBroken`.
    """
    async with context.transaction(reader.tenant_id, "auditor") as tx:
        found = await reruns.history(tx, context.vault, context.archives, request.capture_id, every=_sees_all(reader))
    if found.capture is not None and found.capture.content is not None:
        await record_reads(context, reader, {request.capture_id: found.archive is not None})
    return found


class RerunCapture(CaptureId):
    """Which capture to consolidate again, and why."""

    reason: RerunReason


@verb("captures.rerun", right="rerun", http="POST /captures/{capture_id}/rerun", positional=("capture_id", "reason"))
async def rerun(context: FabricContext, reviewer: Principal, request: RerunCapture) -> Rerun:
    """Order that a capture is consolidated again, after a consent, an extractor or the pack changed.

    It passes the same gates, under the pack in force then. What was proposed from it before is not proposed again,
    whatever became of that; what was refused may pass now. A parked capture is taken up again. The worker, or
    `consolidate`, carries it out.
    Raises `NotFound`, and `Conflict` if it waits already, was erased or is archived.
    """
    async with context.write_once(reviewer.tenant_id, "writer") as tx:
        return await reruns.order(tx, reviewer, request.capture_id, request.reason)


class RefusalFilters(VerbInput):
    """What `refusals.list` can be narrowed to."""

    gate: GateName | None = None
    reason: Name | None = Field(None, description="the code of the reason, such as `consent_missing`")
    since: Instant | None = Field(None, description="refused at that moment or later")
    until: Instant | None = Field(None, description="refused before that moment")
    capture_id: Name | None = None
    latest: Annotated[bool, Strict()] = Field(
        False, description="only refusals whose capture was not consolidated again since"
    )


class ListRefusals(Listing, RefusalFilters):
    """Which refusals to list."""


@verb(
    "refusals.list",
    right="read_queue",
    http="GET /refusals",
    keywords=RefusalFilters,
    page_key="refusal_id",
    cli="refusals",
    standby=True,
)
async def list_refusals(context: FabricContext, reader: Principal, request: ListRefusals) -> list[RefusalEntry]:
    """List what the gates refused, the latest first.

    Each refusal names its gate and its reason; the refused text is not kept.

    They can be narrowed to a `gate`, a `reason`, a `capture_id`, to those from `since` on and before `until`; with
    `latest` to those whose capture was not consolidated again since.
    `after` is the `refusal_id` of the last of the previous page.
    """
    filters = {name: getattr(request, name) for name in RefusalFilters.model_fields}
    filters["only_latest"] = filters.pop("latest")
    async with reading(context, reader.tenant_id) as tx:
        return await reruns.refusals(tx, filters, count=request.limit, after=request.after)


@verb("refusals.counts", right="read_queue", http="GET /refusals/counts", standby=True)
async def count_refusals(context: FabricContext, reader: Principal) -> Sequence[RefusalCount]:
    """Count what the gates refused in the last 30 days, by gate and reason, the most frequent first."""
    async with reading(context, reader.tenant_id) as tx:
        rows = await tx.rows("history.refusal_counts", since=tx.now - timedelta(days=30))
        return [RefusalCount.model_validate(dict(row)) for row in rows]


def _sees_all(principal: Principal) -> bool:
    return "auditor" in principal.roles
