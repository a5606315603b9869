"""Administration: API keys with what each allows, webhooks, and the models and budgets of the pack in force."""

from datetime import UTC, timedelta
from functools import partial
from typing import Annotated, Any, cast, get_args

from fastapi import APIRouter, Depends, Request, Response

from muniment.console.figures import counted_text
from muniment.console.forms import read_form, redirect, text_field
from muniment.console.listing import load_listing
from muniment.console.pages.packs import registered_pack
from muniment.console.rendering import page
from muniment.console.storage_counts import StorageCounts
from muniment.console.visitors import Requires, Visitor, error_text
from muniment.contradictions.model_judge import JUDGE_PREFIX
from muniment.errors import Conflict, InvalidInput, NotFound
from muniment.model.events import EventType, Webhook
from muniment.model.metrics import BudgetUse, Metrics
from muniment.pack import Budget, Pack, builtin_pack

router = APIRouter()

PAGE_SIZE = 50
SOON = timedelta(days=14)
MOMENT = timedelta(seconds=1)
# A key that nobody has used for so long can probably go.
UNUSED = timedelta(days=90)
TYPES: tuple[EventType, ...] = get_args(EventType)

KeyAdmin = Annotated[Visitor, Depends(Requires("keys"))]
WebhookAdmin = Annotated[Visitor, Depends(Requires("webhooks"))]
PackReader = Annotated[Visitor, Depends(Requires("read_packs"))]


@router.get("/admin")
async def administration(visitor: KeyAdmin) -> Response:
    """The first page of the section."""
    return redirect(visitor, "admin/keys")


@router.get("/admin/keys")
async def keys(request: Request, visitor: KeyAdmin) -> Response:
    """The API keys, the latest first. They are made and revoked where the database is, never here (ISO-5)."""
    fetch = partial(visitor.fabric.keys.list, visitor.principal)
    found = await load_listing(request, "admin/keys", (), fetch, "key_id", size=PAGE_SIZE)
    now = visitor.fabric.access.now()
    active = [one for one in found.items if one.state == "active"]
    ending = [one for one in active if one.expires_at is not None and one.expires_at - now < SOON]
    unused = [one for one in active if now - (one.last_used_at or one.created_at) > UNUSED]
    context: dict[str, Any] = {"listing": found, "ending": ending, "unused": unused, "days": SOON.days}
    return page("admin_keys.html", visitor, problem=found.problem, unused_days=UNUSED.days, **context)


@router.get("/admin/webhooks")
async def webhooks(request: Request, visitor: WebhookAdmin) -> Response:
    """The webhooks, the oldest first, with their state."""
    return await _webhooks_page(request, visitor)


async def _webhooks_page(
    request: Request, visitor: Visitor, problem: str | None = None, url: str = "", made: Webhook | None = None
) -> Response:
    fetch = partial(visitor.fabric.webhooks.list, visitor.principal)
    found = await load_listing(request, "admin/webhooks", (), fetch, "webhook_id", size=PAGE_SIZE)
    context: dict[str, Any] = {"listing": found, "url_typed": url, "made": made, "types": TYPES}
    return page("admin_webhooks.html", visitor, problem=problem or found.problem, **context)


@router.post("/admin/webhooks")
async def add(request: Request, visitor: WebhookAdmin) -> Response:
    """Register a webhook; its secret is on the answer to this form, once, and in no address."""
    form = await read_form(request, visitor)
    url = text_field(form, "url") or ""
    chosen: frozenset[EventType] = frozenset(
        cast("EventType", one) for one in form.getlist("types") if isinstance(one, str) and one
    )
    try:
        made = await visitor.fabric.webhooks.add(visitor.principal, url=url, types=chosen or None)
    except InvalidInput as error:
        return await _webhooks_page(request, visitor, error_text(error), url)
    return await _webhooks_page(request, visitor, made=made)


@router.post("/admin/webhooks/{webhook_id}/{act}")
async def change(request: Request, webhook_id: str, act: str, visitor: WebhookAdmin) -> Response:
    """Resume a webhook, replace its secret, or remove it after its id was typed."""
    form = await read_form(request, visitor)
    group, who = visitor.fabric.webhooks, visitor.principal
    try:
        if act == "resume":
            await group.resume(who, webhook_id)
            return redirect(visitor, "admin/webhooks", "Delivery goes on from the event that failed")
        if act == "rotate":
            return await _webhooks_page(request, visitor, made=await group.rotate_secret(who, webhook_id))
        if act != "remove":
            raise NotFound("no such page")
        if text_field(form, "typed") != webhook_id:
            raise InvalidInput(f"nothing was removed: the text you typed is not {webhook_id}")
        await group.remove(who, webhook_id)
    except (InvalidInput, Conflict) as error:
        return await _webhooks_page(request, visitor, error_text(error))
    return redirect(visitor, "admin/webhooks", "The webhook is removed")


@router.get("/admin/limits")
async def limits(request: Request, visitor: PackReader) -> Response:
    """The language models and the budgets of the pack in force, and how much of each is used.

    What is stored is counted at most once a minute, for this page and that of the metrics together.
    """
    pack = await _pack_in_force(visitor)
    layer = pack.memory_layer
    used, counted = None, ""
    if visitor.may("metrics"):
        counts = cast("StorageCounts", request.app.state.storage_counts)
        # What is stored does not depend on the window, and model calls are by day: it need not be longer.
        used, counted_at = await counts.measured(visitor, visitor.fabric.access.now() - MOMENT)
        counted = counted_text(counted_at)
    context: dict[str, Any] = {
        "pack": pack.ref,
        "extraction": layer.extraction,
        "judge": layer.contradiction.judge,
        "budgets": [_budget(one) for one in layer.budgets] if used is None else used.budgets,
        "near": layer.alerts.budget_share,
        "calls": _calls_today(used) if used is not None else None,
        "day_began": visitor.fabric.access.now().astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0),
        "used": used is not None,
        "counted": counted,
        "sensitive": pack.sensitive_labels,
    }
    return page("admin_limits.html", visitor, **context)


def _budget(one: Budget) -> BudgetUse:
    """A budget for who may not see how much of it is used."""
    limits = {"most_records": one.records, "most_bytes": one.bytes}
    return BudgetUse(tier=one.tier, write_class=one.write_class, records=0, bytes=0, **limits)


def _calls_today(used: Metrics) -> dict[str, int]:
    """How often language models were called since the day of UTC began, to read captures and to compare facts."""
    calls = {"extraction": 0, "judge": 0}
    for one in used.model_calls:
        if one.day == used.at.astimezone(UTC).date():
            calls["judge" if one.extractor.startswith(JUDGE_PREFIX) else "extraction"] += one.calls
    return calls


async def _pack_in_force(visitor: Visitor) -> Pack:
    try:
        ref = (await visitor.fabric.packs.in_force(visitor.principal)).pack
        return await registered_pack(visitor, ref)
    except NotFound:
        return builtin_pack()
